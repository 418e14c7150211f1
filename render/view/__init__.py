"""The state of the log: entries, groups, the fold of events, what is visible."""
