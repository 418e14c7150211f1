"""Counting tokens offline: by the model's rules, in plain o200k, or by estimate."""

from timeline.tokens._counter import RequestCounter, TextCounter

__all__ = [
    "RequestCounter",
    "TextCounter",
]

# For the rooms of this house; not public.
from timeline.tokens._counter import ModelCounter as ModelCounter
from timeline.tokens._counter import O200kCounter as O200kCounter
from timeline.tokens._counter import counter_for as counter_for
