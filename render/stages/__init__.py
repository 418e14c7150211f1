"""The stages of a render other than compaction, one per file."""
