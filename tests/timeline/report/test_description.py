"""A row of a list says of a timeline what reading all of it would say, and reads little of it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import Event, RequestRendered, TimelineId, UsageRecorded, decode_event
from persistence import EventStore, open_store
from render import open_view
from tests import _builders as make
from tests.strategies import Play, Step, settings, steps
from timeline.report._description import (
    FIRST_EVENTS,
    Description,
    beginning,
    descriptions,
    first_prompt,
)


def read_whole(store: EventStore, name: TimelineId) -> Description:
    """The same from a view of the window and the whole log."""
    window = store.load_window(name)
    prompt = first_prompt(event for _, event in store.read(name, limit=FIRST_EVENTS))
    withheld = open_view(window).state.withheld
    events = [event for _, event in window.events]
    named = [e.model for e in events if isinstance(e, UsageRecorded) and e.model]
    return Description(
        prompt=None if prompt is None or prompt.id in withheld else beginning(prompt),
        model=named[-1] if named else None,
        tokens=_latest(events),
    )


def _latest(events: Sequence[Event]) -> int | None:
    """The newest size that is told, up to the report that names a model."""
    named = [n for n, e in enumerate(events) if isinstance(e, UsageRecorded) and e.model]
    sizes = [
        event.input if isinstance(event, UsageRecorded) else event.tokens
        for event in events[named[-1] if named else 0 :]
        if isinstance(event, UsageRecorded | RequestRendered)
    ]
    return next((size for size in reversed(sizes) if size), None)


FIRST_PROMPT: Final = 1
"""Which block of a log it is."""
OF_THE_FIRST = st.sampled_from(
    [[], [("hide", FIRST_PROMPT)], [("hide", FIRST_PROMPT), ("restore", FIRST_PROMPT)]]
)


@given(steps(), OF_THE_FIRST, steps(), settings())
def test_it_is_what_reading_the_whole_log_says(
    before: list[Step], hidden: list[Step], after: list[Step], options: dict[str, Any]
) -> None:
    """Whatever was hidden, restored, folded, expanded: nothing is shown that is hidden on request."""
    play = Play(options).run([("user", 1), *before, *hidden, *after, ("flush",)])
    names = [info.id for info in play.store.list()]
    found = dict(descriptions(play.store, names))
    assert found == {name: read_whole(play.store, name) for name in names}


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_list_does_not_read_logs_whole(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = [make.appended(make.said(f"b{n}")) for n in range(200)]
    read: list[object] = []

    def counted(payload: bytes | str) -> Event:
        event = decode_event(payload)
        read.append(event)
        return event

    with closing(open_store(f"{kind}:///{tmp_path / 'store'}")) as store:
        names = [TimelineId(f"n{number}") for number in range(20)]
        for name in names:
            store.append(name, log, expected_version=0)
        monkeypatch.setattr("persistence._log.decode_event", counted)
        assert len(dict(descriptions(store, names))) == 20
    assert 0 < len(read) <= 20 * FIRST_EVENTS
