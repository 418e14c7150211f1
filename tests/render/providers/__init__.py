"""Tests of `render/providers`: each module has a suite of its name."""
