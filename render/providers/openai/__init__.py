"""OpenAI's two APIs, Responses and Chat Completions: a folder for each, and their common parts."""

from render.providers.openai.chat._provider import OpenAIChat as OpenAIChat
from render.providers.openai.responses._provider import OpenAIResponses as OpenAIResponses
