"""Whatever somebody feeds us is refused by an error of ours, or works; and a log always renders.

The inputs are those of `tests/persistence/sessions/corpus` and of `tests/persistence/formats`, damaged.
What was ever found goes into the corpus and stays there.  `make test-long` looks for more.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    BlockAppended,
    CodecError,
    Event,
    EventId,
    FoldlineError,
    SessionFormatError,
    TimelineId,
    canonical_block,
    decode_event,
    encode_event,
)
from persistence import MemoryStore, verify
from persistence.sessions import exported_events, read_session
from persistence.sessions._read import FORMATS
from render import validate_request
from tests._builders import Ids, open_timeline
from tests._mutations import mutated
from timeline import quality_of

HERE = Path(__file__).parent / "persistence"
CORPUS = sorted((HERE / "sessions/corpus").iterdir())
LOGS = sorted((HERE / "formats").glob("summary-*.jsonl.gz"))
T = TimelineId("talk")
DAMAGED = 40
"""Events in a row of which a third is damaged."""

seeds = st.integers(0, 2**32 - 1)


@cache
def log_of(path: Path) -> tuple[bytes, ...]:
    return tuple(exported_events(str(path)))


def test_the_corpus_has_a_sample_of_every_format() -> None:
    without = {*FORMATS} - {read_session(path).format for path in CORPUS} - {"foldline"}
    assert without == set(), "add tests/persistence/sessions/corpus/NAME-1, an invented session"


@given(path=st.sampled_from(CORPUS), seed=seeds)
def test_a_damaged_session_is_refused_or_read_and_rendered(
    path: Path, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sample = tmp_path_factory.getbasetemp() / f"{path.name}.damaged"
    sample.write_bytes(mutated(path.read_bytes(), seed))
    try:
        session = read_session(sample)
    except SessionFormatError:
        return
    events: list[Event] = [
        BlockAppended(id=EventId(f"e{n}.{m}"), at=item.at, block=canonical_block(block))
        for n, item in enumerate(session.items)
        for m, block in enumerate(item.blocks)
    ]
    store = MemoryStore()
    store.append(T, events, expected_version=0)
    renders(store)


@given(path=st.sampled_from(LOGS), start=st.integers(0, 300), seed=seeds)
def test_a_damaged_log_is_refused_event_by_event_and_what_is_left_renders(
    path: Path, start: int, seed: int
) -> None:
    log = log_of(path)[: start + DAMAGED]
    kept = list(log[:start])
    for number, data in enumerate(log[start:]):
        sample = data if (seed + number) % 3 else mutated(data, seed + number)
        try:
            event = decode_event(sample)
            again = decode_event(encode_event(event))
        except CodecError:
            continue
        assert again == event
        kept.append(sample)
    store = MemoryStore()
    store.append_bytes(T, kept, expected_version=0)
    assert len(store.read_bytes(T)) == len(kept)
    renders(store)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_an_event_or_a_codec_error(data: bytes) -> None:
    try:
        event = decode_event(data)
    except CodecError:
        return
    assert msgspec.json.decode(encode_event(event))


def renders(store: MemoryStore) -> None:
    """Everything that reads the log works, or says in an error of ours why not."""
    timeline = open_timeline(str(T), store=store, window=12_000, ids=Ids("n"))
    rendered = timeline.render()
    if rendered.messages:
        assert validate_request(rendered.anthropic(max_tokens=1_000)) == ()
    for use in (
        lambda: store.search("error"),
        lambda: verify(store),
        lambda: quality_of(timeline.events()),
        lambda: timeline.user("go on"),
        timeline.compact,
        timeline.render,
        timeline.expand,
    ):
        with suppress(FoldlineError):
            use()
