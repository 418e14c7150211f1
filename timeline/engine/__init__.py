"""One timeline: its log, its view, and everything that can be done to it, written as flows."""
