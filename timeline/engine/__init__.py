"""One timeline: its log, its view and its operations, written as flows."""
