"""Tests of `timeline/billing`: each module has a suite of its name."""
