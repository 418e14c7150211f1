"""The state of the log: entries, groups, the fold of events, and what is visible."""
