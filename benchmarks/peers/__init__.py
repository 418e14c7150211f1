"""Compares other engines with ours: the same sessions and window, in one run and one table."""
