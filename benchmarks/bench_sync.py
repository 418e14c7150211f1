"""Measures syncing a history that has grown, against reading all of it anew."""

from typing import Any

import pytest

from benchmarks.figures import Meter
from blocks.formats import Format
from timeline import Timeline

MESSAGES = 4_000
NEW = 2
WORDS = "The nightly job writes 1000 rows an hour. " * 8
ROLES: dict[Format, tuple[str, str]] = {
    "anthropic": ("user", "assistant"),
    "openai.chat": ("user", "assistant"),
    "openai.responses": ("user", "assistant"),
    "gemini": ("user", "model"),
    "langchain": ("human", "ai"),
}


def history(name: Format) -> list[dict[str, Any]]:
    """Messages of the user and the model, in turn."""
    key = {"gemini": "parts"}.get(name, "content")
    role = "type" if name == "langchain" else "role"
    texts = (f"{number}: {WORDS}" for number in range(MESSAGES))
    said = ([{"text": text}] if name == "gemini" else text for text in texts)
    return [{role: ROLES[name][number % 2], key: each} for number, each in enumerate(said)]


@pytest.mark.parametrize("name", ROLES)
def test_syncing(meter: Meter, name: Format) -> None:
    messages = history(name)
    timeline, other = (Timeline.open("talk", model="claude-sonnet-5-5") for _ in range(2))
    length = MESSAGES // 2
    timeline.sync(messages[:length], format=name)
    other.sync(messages[:length], format=name)

    def prepare() -> tuple[Any, Any]:
        nonlocal length
        length += NEW
        return messages[:length], tuple(messages[:length])  # of a tuple, nothing is remembered

    sample = meter.compare(
        lambda given: timeline.sync(given, format=name),
        lambda given: other.sync(given, format=name),
        prepare,
        rounds=10,
    )
    meter.note("sync", f"{NEW} new of {length:,}, {name}", sample, against="reading all anew")
