"""What an app speaks beyond the protocol itself."""
