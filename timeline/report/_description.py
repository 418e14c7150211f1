"""A short description of a timeline, read from the beginning and the window of its log, and from the recorded usage."""

from collections.abc import Iterable, Iterator, Sequence
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
    decode_event,
    text_of,
)
from persistence import EventStore, Skim

FIRST_EVENTS: Final = 32
"""Number of events at the beginning of a log in which the first prompt is looked for first."""
PROMPT_PAGE: Final = 250
PROMPT_EVENTS_MAX: Final = 1_000
"""If it is not among them, it is looked for in so many more: agents put long instructions before it."""
PROMPT_MAX: Final = 200
KINDS: Final = ("BlocksHidden", "BlocksRestored", "RequestRendered")
"""Kinds of events that tell, in the window, the size of a timeline and which blocks are hidden."""
ALWAYS: Final = ("UsageRecorded",)
"""Kinds of events that are read from the whole log."""
_PROMPT: Final = str(UserPrompt.__struct_config__.tag).encode()


@attrs.frozen(kw_only=True)
class Description:
    """A short description; a field is None if the log does not tell it."""

    prompt: str | None = None
    """The beginning of the first prompt; None if it is hidden on request."""
    model: str | None = None
    """The model that gave the newest answer."""
    tokens: int | None = None
    """Tokens of the newest request: the provider's count, or the estimate if there is none."""
    usage: Sequence[UsageRecorded] = ()
    """The recorded usage, oldest first."""

    @property
    def window(self) -> int:
        """The most tokens of a prompt, as the newest usage says; 0: it does not."""
        return self.usage[-1].window if self.usage else 0


def descriptions(
    store: EventStore, names: Sequence[TimelineId]
) -> Iterator[tuple[TimelineId, Description]]:
    """The descriptions of these timelines, in any order."""
    for name, skim in store.skim(names, FIRST_EVENTS, KINDS, ALWAYS):
        first = first_prompt(event for _, event in skim.first) or _later_prompt(store, name, skim)
        window = LogWindow(compaction=skim.compaction, events=tuple(skim.window))
        prompt = None if first is None or first.id in window.withheld else beginning(first)
        usage = tuple(event for _, event in skim.always if isinstance(event, UsageRecorded))
        events = dict([*skim.window, *skim.always])
        newest = (events[version] for version in sorted(events, reverse=True))
        sizes = (
            event.input if isinstance(event, UsageRecorded) else event.tokens
            for event in newest
            if isinstance(event, RequestRendered)
            or (isinstance(event, UsageRecorded) and not event.aside)
        )
        yield (
            name,
            Description(
                prompt=prompt,
                model=next((u.model for u in reversed(usage) if u.model and not u.aside), None),
                tokens=next(filter(None, sizes), None),
                usage=usage,
            ),
        )


def description_of(store: EventStore, name: TimelineId) -> Description:
    """The description of one timeline."""
    return dict(descriptions(store, [name]))[name]


def _later_prompt(store: EventStore, name: TimelineId, skim: Skim) -> UserPrompt | None:
    """The first prompt after the first events, which have none."""
    after = skim.first[-1][0] if skim.first else 0
    last = after + PROMPT_EVENTS_MAX
    while 0 < after < last and (page := store.read_bytes(name, after=after, limit=PROMPT_PAGE)):
        prompt = first_prompt(decode_event(data) for _, data in page if _PROMPT in data)
        if prompt:
            return prompt
        after = page[-1][0]
    return None


def first_prompt(events: Iterable[Event]) -> UserPrompt | None:
    """The first prompt among these events."""
    blocks = (event.block for event in events if isinstance(event, BlockAppended))
    return next((block for block in blocks if isinstance(block, UserPrompt)), None)


def beginning(prompt: UserPrompt) -> str:
    """The beginning of a prompt, on one line."""
    return " ".join(text_of(prompt)[: 4 * PROMPT_MAX].split())[:PROMPT_MAX]
