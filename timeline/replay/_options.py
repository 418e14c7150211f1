"""What a replay may be told, and what it takes from the session when it is told nothing."""

from typing import Literal, TypeAlias

import attrs
from attrs.validators import in_

from blocks import ToolCall
from persistence.sessions import Session
from render import Json, Model, Policy, provider_of
from timeline._models import model_named
from timeline._policies import policy_named
from timeline.arguments._fixed import System, Tools

Summaries: TypeAlias = Literal["extractive", "stand-in", "anthropic"]

MODEL = "claude-sonnet-5-5"
"""Whose prices and rules count when the session's own model is not in the table."""
SYSTEM = "You are an agent that works with tools. Do what the user asks, and say what was done."


@attrs.frozen(kw_only=True)
class ReplayOptions:
    """How to replay; everything has a default."""

    window: int | None = None
    """Tokens that the prompt may have; default: the model's window less the output reserve."""
    counter: str = "model"
    """`model`, `o200k` or `estimate`."""
    policy: Policy | str = "default"
    model: str = ""
    """Default: the session's, when its prices are known."""
    provider: str = ""
    """Whose requests are sent, as `Model.provider` names it; default: the model's."""
    summarizer: Summaries = attrs.field(
        default="extractive", validator=in_(("extractive", "stand-in", "anthropic"))
    )
    """`anthropic` asks a real model, with the key in the environment."""
    base_url: str = ""
    """Of the provider, for `anthropic`; default: the client's."""
    keep_thinking: bool = True
    system: System = None
    """Default: what the log has, or one sentence."""
    tools: Tools = None
    """Default: what the log has, or an open definition for each name seen."""
    name: str = ""
    """Of the timeline; default: the session's."""

    def policy_given(self) -> Policy:
        """The policy, looked up where it is a name."""
        return policy_named(self.policy) if isinstance(self.policy, str) else self.policy

    def policy_for_replay(self) -> Policy:
        """The policy, without summaries in the background: a replay is one step after the other."""
        return attrs.evolve(self.policy_given(), prepare_ratio=1.0)

    def model_for(self, session: Session) -> str | Model:
        """The model whose rules and prices count."""
        name = self.model or (session.model if model_named(session.model).known else MODEL)
        return attrs.evolve(model_named(name), provider=self.provider) if self.provider else name

    def system_for(self, session: Session) -> System:
        """The system prompt of every request."""
        return self.system if self.system is not None else session.system.strip() or SYSTEM

    def tools_for(self, session: Session) -> Tools:
        """The tool definitions of every request."""
        return self.tools if self.tools is not None else session.tools or self._open_tools(session)

    def _open_tools(self, session: Session) -> list[Json]:
        """A definition that takes any arguments, for each tool name seen."""
        blocks = (block for call in session.calls for block in call.blocks)
        names = (block.name for block in blocks if isinstance(block, ToolCall))
        model = self.model_for(session)
        return provider_of(model_named(model) if isinstance(model, str) else model).open_tools(
            names
        )
