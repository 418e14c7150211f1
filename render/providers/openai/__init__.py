"""OpenAI's two APIs, Responses and Chat Completions: a folder for each, and their common parts."""

from typing import Final

from render.providers.openai.chat import _provider as chat
from render.providers.openai.chat.validator._validate import ChatValidator
from render.providers.openai.responses import _provider as responses
from render.providers.openai.responses.validator._validate import ResponsesValidator

CHAT: Final = chat.provider(ChatValidator)
RESPONSES: Final = responses.provider(ResponsesValidator)
