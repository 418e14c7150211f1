"""Compaction of a range: from the decision that it is due to the `RangeCompacted` event."""
