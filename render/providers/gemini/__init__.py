"""The Gemini API of Google (`generateContent`)."""

from render.providers.gemini._provider import Gemini as Gemini
