"""Load tests for any store: `python -m benchmarks.load --help`."""
