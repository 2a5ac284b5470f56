"""Where tasks are kept: one protocol, in memory or in a file."""
