"""What stands for a folded range: the summary, its digest, its index."""
