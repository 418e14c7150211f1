"""Runs real, unchanged agents on a scripted task: with the fake provider, and through the gateway."""
