"""Validation of requests against the rules of the Gemini API; independent of the encoder, so it can find
its errors."""
