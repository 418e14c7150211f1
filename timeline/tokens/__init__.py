"""Counting tokens offline: by the model's rules, in plain o200k, or by estimate."""

from timeline.tokens._counter import EstimateCounter as EstimateCounter
from timeline.tokens._counter import ModelCounter as ModelCounter
from timeline.tokens._counter import O200kCounter as O200kCounter
from timeline.tokens._counter import RequestCounter as RequestCounter
from timeline.tokens._counter import RequestTokens as RequestTokens
from timeline.tokens._counter import TextCounter as TextCounter
from timeline.tokens._counter import counter_for as counter_for
from timeline.tokens._parts import image_tokens as image_tokens
