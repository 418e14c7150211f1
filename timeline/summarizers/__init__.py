"""Summarisers, which write summaries: the protocol, one that calls a model, and the time limit for all."""
