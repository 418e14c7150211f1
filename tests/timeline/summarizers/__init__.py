"""Summaries by a model: asked of the practice provider through the real client."""
