"""The Chat Completions API of OpenAI and of compatible servers."""
