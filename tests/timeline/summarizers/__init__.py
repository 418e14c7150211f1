"""Tests of `timeline/summarizers`: a module's suite has its name, or is given here.

Summaries by a model: asked of the fake provider through the real client.

_summarizer: test_summarizer.py
"""
