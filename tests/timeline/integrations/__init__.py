"""Tests of `timeline/integrations`: each with its real framework, where that is installed.

Run all of them, each in an environment of its own: `make adapters`.
"""
