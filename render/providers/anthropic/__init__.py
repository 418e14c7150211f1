"""The Messages API of Anthropic: the provider, and the rules that its requests must follow."""

from typing import Final

from render.providers.anthropic._provider import REPLAYED as REPLAYED
from render.providers.anthropic._provider import provider
from render.providers.anthropic._rules import refusal_of
from render.providers.anthropic._rules import validate_request as validate_request

ANTHROPIC: Final = provider(validate_request, refusal_of)
