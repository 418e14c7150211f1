"""What a timeline is about, for a row in a list: read from its window, never from its history."""

from typing import TYPE_CHECKING

import attrs

from timeline.cli._rows import first_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blocks import Recorded
    from persistence import EventStore, TimelineInfo
    from render import View

FIRST_EVENTS = 16
"""The first prompt is among them, or there is none worth a look."""


@attrs.frozen(kw_only=True)
class Gist:
    """Each None where nothing says it."""

    prompt: str | None = None
    """The beginning of the first prompt; what somebody asked to be hidden is not shown."""
    model: str | None = None
    """The model that answered last."""
    tokens: int | None = None
    """The size of the latest request: as the provider reported it, else as it was estimated."""


def gist_of(store: "EventStore", info: "TimelineInfo", forgotten: int) -> Gist:
    """Of a timeline whose events up to `forgotten` are gone."""
    from render import open_view

    window = store.load_window(info.id)
    first = window.events[:FIRST_EVENTS]
    if window.compaction is not None:
        first = tuple(store.read(info.id, after=forgotten, limit=FIRST_EVENTS))
    prompt = _prompt(first, open_view(window))
    return attrs.evolve(_size(window.events), prompt=prompt)


def _prompt(events: "Sequence[Recorded]", view: "View") -> str | None:
    from blocks import BlockAppended, UserPrompt, text_of

    for _, event in events:
        if isinstance(event, BlockAppended) and isinstance(event.block, UserPrompt):
            withheld = view.state.withheld
            return None if event.block.id in withheld else first_words(text_of(event.block))
    return None


def _size(events: "Sequence[Recorded]") -> Gist:
    from blocks import RequestRendered, UsageRecorded

    tokens: int | None = None
    for _, event in reversed(events):
        if isinstance(event, UsageRecorded):
            found = tokens or event.input or None
            if event.model:
                return Gist(model=event.model, tokens=found)
            tokens = found
        elif isinstance(event, RequestRendered):
            tokens = tokens or event.tokens
    return Gist(tokens=tokens)
