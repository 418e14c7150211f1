"""Validation of requests against the rules of the Messages API."""
