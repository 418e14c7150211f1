"""Flat blocks of one session's requests: interned, each counted once, whatever the provider."""

from typing import Any

import attrs

from render import PROVIDERS, Model, Provider
from tests._table import for_each
from tests.render.providers.plain import plain_text
from timeline._models import model_named
from timeline.billing import Flattener
from timeline.tokens import counter_for
from timeline.tokens._counter import EstimateCounter

MESSAGES_API = PROVIDERS["anthropic"]
CLAUDE = model_named("claude-sonnet-5-5")
MARK = {"type": "ephemeral"}


@attrs.define
class CountingEstimate(EstimateCounter):
    """Remembers what it was asked."""

    model: Model = CLAUDE
    asked: list[str] = attrs.field(factory=list[str])

    def count(self, text: str) -> int:
        self.asked.append(text)
        return EstimateCounter.count(self, text)


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(content)}]}


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "text": text}]}


@for_each(
    ("provider", "request_of"),
    [(MESSAGES_API, lambda text: user({"type": "text", "text": text})), (plain_text(), said)],
    ids=["anthropic", "plain"],
)
def test_equal_blocks_are_one_key_and_counted_once(provider: Provider, request_of: Any) -> None:
    counter = CountingEstimate()
    flattener = Flattener(counter, provider)
    first, again, other = (flattener.flatten(request_of(t)) for t in ("once", "once", "two"))
    assert counter.asked == ["once", "two"]
    assert first == again
    assert first[0].key != other[0].key


def test_a_mark_makes_no_other_block() -> None:
    flattener = Flattener(CountingEstimate(), MESSAGES_API)
    block = {"type": "text", "text": "x"}
    (plain,) = flattener.flatten(user(block))
    (marked,) = flattener.flatten(user(block | {"cache_control": MARK}))
    assert marked == plain._replace(ttl=300)


def test_a_real_counter_takes_an_image_at_its_flat_rate() -> None:
    counter = counter_for("o200k", CLAUDE)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    (block,) = Flattener(counter, MESSAGES_API).flatten(user(image))
    assert block.tokens == 1_500 + 3


def test_what_is_known_by_identity_is_bounded() -> None:
    flattener = Flattener(CountingEstimate(), MESSAGES_API, seen_max=10)
    requests = [user({"type": "text", "text": f"{n}"}) for n in range(50)]
    keys = [flattener.flatten(request)[0].key for request in (*requests, *requests)]
    assert keys[:50] == keys[50:]
    assert len(flattener._seen) <= 10
