"""Timelines under other people's agents: one module a framework, loaded only when it is imported.

    openai_agents    the OpenAI Agents SDK
    langchain        LangChain and LangGraph
    pydantic_ai      Pydantic AI

An adapter holds no logic of its own: it hands what the framework has to `sync`, sends what `render` makes, and
gives what comes back to `record`.  Loops on a client (`openai`, `litellm`) need no adapter at all.
"""
