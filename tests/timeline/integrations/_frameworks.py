"""The frameworks, by the name of their extra, of their page and of their suite."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

FRAMEWORKS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "litellm": "litellm",
    "openai-agents": "agents",
    "langchain": "langchain",
    "pydantic-ai": "pydantic_ai",
    "google-genai": "google.genai",
    "google-adk": "google.adk",
    "strands-agents": "strands",
    "agent-framework": "agent_framework",
    "claude-agent-sdk": "claude_agent_sdk",
}
"""Each with the module that is there once it is installed."""
LOOPS: Final = ("openai", "litellm", "google-genai", "claude-agent-sdk")
"""Those without a model for tests: programs that call a client themselves, and an agent that is a process of its own."""


def suite_of(name: str) -> str:
    """The file of its tests."""
    return f"test_{name.replace('-', '_')}.py"


def missing() -> list[str]:
    """Those that are not installed here."""
    return [name for name, module in FRAMEWORKS.items() if not _is_there(module)]


def _is_there(module: str) -> bool:
    parent = module.rpartition(".")[0]
    return (not parent or _is_there(parent)) and find_spec(module) is not None
