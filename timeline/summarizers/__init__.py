"""Who writes summaries: the protocol, a model behind an API, and how long it is waited for."""
