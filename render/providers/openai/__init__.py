"""OpenAI's two APIs, Responses and Chat Completions: a folder for each, and their common parts."""

from typing import Final

from render.providers.openai.chat import _provider as chat
from render.providers.openai.chat._rules import check_request as check_chat
from render.providers.openai.responses import _provider as responses
from render.providers.openai.responses._rules import check_request as check_responses

CHAT: Final = chat.provider(check_chat)
RESPONSES: Final = responses.provider(check_responses)
