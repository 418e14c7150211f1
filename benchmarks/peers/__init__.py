"""Other engines beside ours: the same sessions, the same window, one run, one table."""
