"""The Responses API."""
