"""Tests of `timeline/observe`: each module has a suite of its name."""
