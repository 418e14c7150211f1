"""The log as it stands: entries, groups, the fold of events, what is visible."""
