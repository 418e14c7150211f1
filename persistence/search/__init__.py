"""Search over the blocks of a store, and the block at a logical path."""
