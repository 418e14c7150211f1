"""The options of a replay, and the defaults that it takes from the session."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import attrs
from attrs.validators import in_, instance_of, or_

from blocks import ToolCall, text_of
from persistence.sessions import Session
from render import Model, Policy, provider_of
from timeline import ModelSummarizer, Options, policy_named
from timeline._arguments import System, Tools
from timeline._models import guess_about, known_models, model_named, priced_model
from timeline.billing import kept_in
from timeline.engine import TimelineSettings
from timeline.tokens import counter_for

Summaries: TypeAlias = Literal["extractive", "stand-in", "anthropic"]
MODEL = "claude-sonnet-5-5"
"""The model whose prices and rules apply if the session's own is not in the table."""
SYSTEM = "You are an agent that works with tools. Do what the user asks, and say what was done."
TELLING_SHARE: Final = 0.6
"""The window as a share of the whole session: it is compacted a few times, and much of it stays."""
WINDOWS: Final = tuple(
    digits * 10**zeros for zeros in range(3, 7) for digits in (8, 10, 15, 20, 30, 40, 60)
)
ROOM_TOKENS_MIN: Final = 6_000
"""The least tokens besides system prompt and tools; with fewer, every call would compact."""


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
    summarizer: Summaries | ModelSummarizer = attrs.field(
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
        if _company(model.provider) != _company(provider):
            # another provider serves the session's own model: the newest of this one's in the table
            of_it = (m for m in known_models() if _company(m.provider) == _company(provider))
            ours = model_named(MODEL)
            model = ours if _company(provider) == _company(ours.provider) else next(of_it, ours)
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


def _company(provider: str) -> str:
    """The company that offers an API; one may offer several."""
    return provider.partition(".")[0]


def _own(name: str) -> Model:
    """The model with this name; if no model of its vendor is known, what most servers offer, at no price."""
    return priced_model(name) or attrs.evolve(model_named(name), provider="openai.chat")


def smaller_windows(
    session: Session, options: ReplayOptions, room: int
) -> tuple[Sequence[int], int]:
    """Round windows of at most `room` in which the session may have to be compacted, largest first, and the approximate
    tokens of the whole session."""
    count = counter_for("estimate", options.model_for(session)).count
    blocks = (block for item in session.items for block in item.blocks)
    parts = (options.system_for(session), *(options.tools_for(session) or ()))
    fixed = sum(count(str(part)) for part in parts)
    whole = fixed + sum(count(text_of(block)) for block in blocks)
    most = min(TELLING_SHARE * whole, room)
    return [n for n in reversed(WINDOWS) if fixed + ROOM_TOKENS_MIN <= n <= most], whole
