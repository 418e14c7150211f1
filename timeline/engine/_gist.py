"""A short description of a timeline for a list, read only from the beginning and the window of its log."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from blocks import (
    BlockAppended,
    Event,
    LogWindow,
    RequestRendered,
    TimelineId,
    UsageRecorded,
    UserPrompt,
    text_of,
)
from persistence import EventStore, Skim

FIRST_EVENTS: Final = 32
"""Number of events at the beginning of a log in which the first prompt is looked for."""
PROMPT_MAX: Final = 200
KINDS: Final = ("BlocksHidden", "BlocksRestored", "RequestRendered", "UsageRecorded")
"""Kinds of events that tell the size of a timeline and which blocks are hidden."""


@attrs.frozen(kw_only=True)
class Gist:
    """A short description; a field is None if the log does not tell it."""

    prompt: str | None = None
    """The beginning of the first prompt; None if it is hidden on request."""
    model: str | None = None
    """The model that gave the newest answer."""
    tokens: int | None = None
    """Tokens of the newest request: the provider's count, or the estimate if there is none."""


def gists(store: EventStore, names: Sequence[TimelineId]) -> Iterator[tuple[TimelineId, Gist]]:
    """The descriptions of these timelines, in any order."""
    for name, skim in store.skim(names, FIRST_EVENTS, KINDS):
        yield name, _gist(skim)


def _gist(skim: Skim) -> Gist:
    first = first_prompt(event for _, event in skim.first)
    prompt = None if first is None or first.id in _withheld(skim) else beginning(first)
    return attrs.evolve(_size([event for _, event in skim.window]), prompt=prompt)


def first_prompt(events: Iterable[Event]) -> UserPrompt | None:
    """The first prompt among these events."""
    blocks = (event.block for event in events if isinstance(event, BlockAppended))
    return next((block for block in blocks if isinstance(block, UserPrompt)), None)


def beginning(prompt: UserPrompt) -> str:
    """The beginning of a prompt, on one line."""
    return " ".join(text_of(prompt)[: 4 * PROMPT_MAX].split())[:PROMPT_MAX]


def _withheld(skim: Skim) -> Collection[str]:
    """The blocks that are hidden on request, according to the newest compaction and the events since."""
    return LogWindow(compaction=skim.compaction, events=tuple(skim.window)).withheld


def _size(events: Sequence[Event]) -> Gist:
    tokens: int | None = None
    for event in reversed(events):
        if isinstance(event, UsageRecorded):
            found = tokens or event.input or None
            if event.model:
                return Gist(model=event.model, tokens=found)
            tokens = found
        elif isinstance(event, RequestRendered):
            tokens = tokens or event.tokens
    return Gist(tokens=tokens)
