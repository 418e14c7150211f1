"""Cache marks, keys and the life of the cache in OpenAI's two APIs; the invariants are in
`tests/render/providers/test_logs.py`."""

from typing import Any

import attrs

from render import Rendered, provider_of
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.openai._play import (
    CHAT,
    LOCAL,
    MARKED,
    MODELS,
    PLAIN,
    items_of,
    kwargs_of,
)

BY_ID = {model.name: model for model in MODELS}


@for_each("model", MODELS, ids=BY_ID)
def test_a_request_has_marks_exactly_where_its_model_takes_them(model: Any) -> None:
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    request = kwargs_of(timeline.render(system="You help. " * 50))
    has_marks = "prompt_cache_breakpoint" in str(request)
    assert has_marks == (model in (MARKED, CHAT))
    assert ("prompt_cache_options" in request) == has_marks
    assert ("prompt_cache_key" in request) == (model is not LOCAL)


@for_each("model", [MARKED, CHAT], ids=lambda model: model.provider)
def test_a_mark_of_the_last_request_is_found_by_the_next(model: Any) -> None:
    """What was written at a mark is read only where the next request has a mark, too."""
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    tails: list[Any] = []
    for number in range(12):
        marked = _marked(timeline.render(system="You help."))
        assert len(marked) <= 4
        assert not tails or tails[-1] in marked
        tails.append(marked[-1])
        timeline.append(make.call(f"c{number}", response=f"r{number}"))
        timeline.tool_result(f"c{number}", "done " * number)


def _marked(rendered: Rendered) -> list[int]:
    """Which items carry a mark."""
    items = items_of(rendered)
    return [n for n, item in enumerate(items) if "prompt_cache_breakpoint" in str(item)]


def test_the_cache_key_is_the_timelines_own_and_tells_nothing_of_it() -> None:
    keys: dict[str, set[str]] = {}
    for name in ("anna@example.com", "other"):
        for _ in range(2):
            timeline = make.open_timeline(name, model=PLAIN)
            timeline.user(f"Go {len(keys)}.")
            keys.setdefault(name, set()).add(kwargs_of(timeline.render())["prompt_cache_key"])
    assert [len(found) for found in keys.values()] == [1, 1]
    assert keys["other"] != keys["anna@example.com"]
    assert "anna" not in str(keys["anna@example.com"])


def test_the_life_of_the_cache_is_the_providers_where_that_is_longer() -> None:
    """After 10 minutes nothing is cold where what was written is kept for 30."""
    policy = make.steady(ttl_seconds=300.0)
    short = make.context(model=PLAIN, provider=provider_of(PLAIN), policy=policy)
    long = make.context(model=MARKED, provider=provider_of(MARKED), policy=policy)
    assert (short.ttl_seconds, long.ttl_seconds) == (300.0, 1800.0)
    patient = attrs.evolve(policy, ttl_seconds=7200.0)
    assert attrs.evolve(long, policy=patient).ttl_seconds == 7200.0
