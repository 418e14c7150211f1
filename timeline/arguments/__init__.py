"""Checks of what callers pass, before anything is done with it."""
