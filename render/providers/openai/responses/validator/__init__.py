"""Validation of requests against the rules of the Responses API; independent of the encoder, so it can find
its errors."""
