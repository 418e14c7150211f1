"""A hundred rounds with each provider through its real client, and every kind of content in them: the fake provider,
which checks each request by the provider's rules, refuses none."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

from blocks import ImagePart, RangeCompacted, TextPart
from persistence import MemoryStore
from render import PROVIDERS
from tests._builders import events_of
from tests._practice import Practice
from tests._sizes import sized
from tests.timeline.react.test_long import modelled
from timeline import Timeline
from timeline._apis import api_of
from timeline.fake_provider import Call, FakeServer, Reply

ROUNDS = sized(100, 400)
WINDOW = 16_000
ANSWER = 900
TOOLS = [
    {"name": name, "description": f"{name} it.", "input_schema": {"type": "object", "properties": {}}}
    for name in ("read_part", "look")
]  # fmt: skip
LINE = "the job read /srv/data/part-{}.csv and wrote 1000 rows\n"


def png(seed: int) -> str:
    """A small picture, each another one."""
    row = b"\0" + bytes((seed, 20, 200)) * 32
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(row * 32)),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def replies() -> Iterator[Reply]:
    """Thinking, texts, and none to three calls at once, in every combination."""
    for number in range(10 * ROUNDS):
        yield Reply(
            thinking=f"On to {number}." if number % 3 else None,
            text=f"I see {number}." if number % 2 or not number % 4 else "",
            calls=[
                Call("look" if number % 5 == 0 and not n else "read_part", {"number": number + n})
                for n in range(number % 4)
            ],
        )


def play(timeline: Timeline, client: Any, first: int, rounds: int) -> None:
    """Rounds of a loop as one writes it by hand."""
    api = api_of(timeline.settings.provider.name)
    for number in range(first, first + rounds):
        if not timeline.open_calls:
            picture = ImagePart(media_type="image/png", data=png(number))
            timeline.user(f"Go on with {number}.", *([picture] if number % 3 == 0 else []))
        if number % 11 == 0:
            timeline.note(f"Never write to /srv ({number}).")
        rendered = timeline.render(system="You read logs.", tools=TOOLS)
        assert rendered.violations == ()
        arguments = api.arguments(rendered.request(), rendered.model, ANSWER, {})
        timeline.record(api.create(client, arguments), rendered)
        for index, call in enumerate(timeline.open_calls):
            lines = "".join(LINE.format(f"{number}-{n}") for n in range(30))
            picture = ImagePart(media_type="image/png", data=png(number))
            is_shown = number % 4 == 1 and not index
            output: Any = [TextPart(text="as seen:"), picture] if is_shown else lines
            timeline.tool_result(call, output, is_error=number % 7 == 0 and not is_shown)


def opened(practice: Practice, server: FakeServer, provider: str) -> Any:
    clients: dict[str, Any] = {"anthropic": practice.client, "gemini": practice.google}
    return clients.get(provider, practice.openai)(server)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_hundred_rounds_with_one_provider(practice: Practice, provider: str) -> None:
    server = practice.serve(responder=replies(), window=WINDOW)
    window = WINDOW - ANSWER
    with Timeline.open("talk", model=modelled(provider), window=window) as timeline:
        play(timeline, opened(practice, server, provider), 0, ROUNDS)
        assert len(events_of(timeline, RangeCompacted)) >= 2
    assert server.refused == []
    assert len(server.requests) == ROUNDS


def test_a_hundred_rounds_with_another_provider_every_few(practice: Practice) -> None:
    server, store = practice.serve(responder=replies(), window=WINDOW), MemoryStore()
    for first, provider in zip(range(0, ROUNDS, 5), cycle(PROVIDERS), strict=False):
        model, window = modelled(provider), WINDOW - ANSWER
        with Timeline.open("talk", store=store, model=model, window=window) as timeline:
            play(timeline, opened(practice, server, provider), first, 5)
    assert server.refused == []
    assert len(server.requests) == ROUNDS
