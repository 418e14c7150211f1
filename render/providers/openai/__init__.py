"""OpenAI's two APIs, Responses and Chat Completions: one folder each, and what they have in common."""

from render.providers.openai.chat._provider import OpenAIChat as OpenAIChat
from render.providers.openai.responses._provider import OpenAIResponses as OpenAIResponses
