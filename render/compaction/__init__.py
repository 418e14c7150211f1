"""Compaction, from "is it due" to the event that says what was folded."""
