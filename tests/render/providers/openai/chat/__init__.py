"""Tests of `render/providers/openai/chat`: each module has a suite of its name."""
