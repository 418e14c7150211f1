"""Measurements: every figure against a baseline or a target, in one run (`make bench`)."""
