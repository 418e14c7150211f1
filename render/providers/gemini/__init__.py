"""The Gemini API of Google (`generateContent`): the provider, and the rules that its requests must follow."""

from typing import Final

from render.providers.gemini._provider import provider
from render.providers.gemini._rules import check_request, refusal_of

GEMINI: Final = provider(check_request, refusal_of)
