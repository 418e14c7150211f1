"""The options of a replay, and the defaults that it takes from the session."""

from typing import Literal

import attrs
from attrs.validators import in_, instance_of, or_

from blocks import ToolCall
from persistence.sessions import Session
from render import Model, Policy, provider_of
from timeline import ModelSummarizer, Options, policy_named
from timeline._arguments import System, Tools
from timeline._models import guess_about, known_models, model_named, priced_model
from timeline.billing import company_of, kept_in
from timeline.engine import TimelineSettings

MODEL = "claude-sonnet-5-5"
"""The model whose prices and rules apply if the session's own is not in the table."""
SYSTEM = "You are an agent that works with tools. Do what the user asks, and say what was done."


@attrs.frozen(kw_only=True)
class ReplayOptions:
    """How to replay a session; every option has a default."""

    window: int | None = None
    """The most tokens of a prompt; default: what the session's log says, else the model's window less the output
    reserve."""
    counter: str = "model"
    """`model`, `o200k` or `estimate`."""
    policy: Policy | str = "default"
    """A policy, or the name of one."""
    model: str = ""
    """The name of a model; default: the session's."""
    provider: str = ""
    """The provider whose requests are rendered, as in `Model.provider`; default: the model's."""
    summarizer: Literal["extractive", "stand-in", "anthropic"] | ModelSummarizer = attrs.field(
        default="extractive",
        validator=or_(in_(("extractive", "stand-in", "anthropic")), instance_of(ModelSummarizer)),
    )
    """Who writes summaries; `anthropic` calls a real model, with the key in the environment."""
    base_url: str = ""
    """The API address for `anthropic`; default: the client's."""
    keep_thinking: bool = True
    """Whether requests contain recorded thinking."""
    system: System = None
    """The system prompt; default: the recorded one, or one sentence."""
    tools: Tools = None
    """The tools; default: the recorded ones, or for each tool name seen a definition for any arguments."""
    name: str = ""
    """The timeline's name; default: the session's."""

    def policy_given(self) -> Policy:
        """The policy, looked up if it was given by name."""
        return policy_named(self.policy) if isinstance(self.policy, str) else self.policy

    def policy_for_replay(self) -> Policy:
        """The policy without background summaries, since a replay is strictly sequential."""
        return attrs.evolve(self.policy_given(), prepare_ratio=1.0)

    def model_for(self, session: Session) -> Model:
        """The model whose rules and prices apply: the given one, or the session's own."""
        model = _own(self.model or session.model or MODEL)
        provider = self.provider or (
            "anthropic" if self.summarizer == "anthropic" else model.provider
        )
        if company_of(model.provider) != company_of(provider):
            # another provider serves the session's own model: the newest of this one's in the table
            of_it = (m for m in known_models() if company_of(m.provider) == company_of(provider))
            ours = model_named(MODEL)
            model = ours if company_of(provider) == company_of(ours.provider) else next(of_it, ours)
        return attrs.evolve(model, provider=provider)

    def limit_for(self, session: Session) -> int:
        """The most tokens of a prompt: the given number, what the log says, or what the model has."""
        if self.window is not None:
            return self.window
        settings: Options = {"model": self.model_for(session), "policy": self.policy_given()}
        return (0 if self.model else session.window) or TimelineSettings.of(settings).limit

    def kept_for(self, session: Session) -> float:
        """The seconds for which the session's provider kept its prompts, by its usage; 0: as the policy says, which counts
        for a window and a model that are not the session's own."""
        if self.model or self.provider or self.window is not None:
            return 0.0
        return kept_in([(call.at, call.spent) for call in session.calls if call.spent])

    def guess_for(self, session: Session) -> str:
        """Why window and prices are guesses; empty if the model is known."""
        name, model = self.model or session.model, self.model_for(session)
        why, way_out = "the session names no model", ""
        if name:
            own = _own(name)
            if own.name == model.name:
                return guess_about(model_named(name))
            why = f"{name!r} is no model of {model.provider}, for which requests are rendered"
            way_out = f"; --provider {own.provider} is for its own"
        return f"{why}: the window and the prices are those of {model.name}, a guess{way_out}"

    def system_for(self, session: Session) -> System:
        """The system prompt of every request."""
        return self.system if self.system is not None else session.system.strip() or SYSTEM

    def tools_for(self, session: Session) -> Tools:
        """The tool definitions of every request."""
        if self.tools is not None or session.tools:
            return session.tools if self.tools is None else self.tools
        blocks = (block for call in session.calls for block in call.blocks)
        names = (block.name for block in blocks if isinstance(block, ToolCall))
        return provider_of(self.model_for(session)).open_tools(names)


def _own(name: str) -> Model:
    """The model with this name; if no model of its vendor is known, what most servers offer, at no price."""
    return priced_model(name) or attrs.evolve(model_named(name), provider="openai.chat")
