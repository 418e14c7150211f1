"""Counting tokens offline: by the model's rules, in plain o200k, or by estimate."""

from render import TokenCounter
from timeline.tokens._counter import RequestCounter

__all__ = [
    "RequestCounter",
    "TokenCounter",
]

# For the rooms of this house; not public.
from timeline.tokens._counter import ModelCounter as ModelCounter
from timeline.tokens._counter import O200kCounter as O200kCounter
from timeline.tokens._counter import counter_for as counter_for
from timeline.tokens._parts import Untexted as Untexted
