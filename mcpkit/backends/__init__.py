"""What workers must share, and where it is kept."""
