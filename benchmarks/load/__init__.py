"""Load on any store: `python -m benchmarks.load --help`."""
