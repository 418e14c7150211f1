"""The content of a summary block: the written summary, its digest, and its index."""
