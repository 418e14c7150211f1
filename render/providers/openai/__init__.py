"""OpenAI's two APIs, Responses and Chat Completions: a folder for each, and their common parts."""

from typing import Final

from render.providers.openai import _chat as chat
from render.providers.openai import _chat_rules as chat_rules
from render.providers.openai import _responses as responses
from render.providers.openai import _responses_rules as responses_rules

CHAT: Final = chat.provider(chat_rules.check_request, chat_rules.refusal_of)
RESPONSES: Final = responses.provider(responses_rules.check_request, responses_rules.refusal_of)
