"""Real agents, unchanged, at a scripted task: with the fake provider, and with the gateway in between."""
