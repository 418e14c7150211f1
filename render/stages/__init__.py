"""The stages of a render other than compaction, one a file."""
