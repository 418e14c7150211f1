"""OpenAI's two APIs, Responses and Chat Completions: a folder for each, and their common parts."""

from typing import Final

from render.providers.openai.chat import _provider as chat
from render.providers.openai.chat import _rules as chat_rules
from render.providers.openai.responses import _provider as responses
from render.providers.openai.responses import _rules as responses_rules

CHAT: Final = chat.provider(chat_rules.check_request)
RESPONSES: Final = responses.provider(responses_rules.check_request)
