"""Benchmarks: each figure is compared with a baseline or a target in the same run (`make bench`)."""
