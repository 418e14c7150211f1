"""What others may see of a render, or add to it: hooks, steps, quality signals."""
