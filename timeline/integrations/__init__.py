"""Timelines in other agent frameworks: one module per framework, loaded only when it is imported.

    openai_agents    the OpenAI Agents SDK
    langchain        LangChain and LangGraph
    pydantic_ai      Pydantic AI
    google_adk       Google's ADK
    strands_agents   Strands Agents
    agent_framework  Microsoft's Agent Framework

An adapter has no logic of its own: it passes the framework's messages to `sync`, sends what `render` returns for the model
that is called, and passes the response to `record`.  Loops that call a client themselves (`openai`, `litellm`) need no
adapter.
"""
