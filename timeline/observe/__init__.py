"""Watching and influencing a render: hooks, steps, quality signals, traces."""
