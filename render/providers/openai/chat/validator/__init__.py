"""Validation of requests against the rules of Chat Completions; independent of the encoder, so it can find
its errors."""
