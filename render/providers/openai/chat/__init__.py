"""The Chat Completions API, of OpenAI and of the servers that speak it."""
