"""The invariants of a render hold for OpenAI's two APIs, too: over generated logs, its own and others'."""

import re
from typing import Any

import attrs
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced
from render import Rendered, provider_of, show
from tests import _builders as make
from tests.render.providers.openai._play import (
    CHAT,
    LOCAL,
    MARKED,
    MODELS,
    PLAIN,
    OpenAIPlay,
    bytes_of,
    items_of,
    kwargs_of,
    openai_settings,
    plain,
)
from tests.strategies import Step, answers, steps

MARK = re.compile(r"mark_\d{4}:")
REWRITES = (BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced)
BY_ID = {model.name: model for model in MODELS}


def played(all_steps: list[Step], options: dict[str, Any], **more: Any) -> OpenAIPlay:
    play = OpenAIPlay(options, **more)
    play.run(all_steps)
    return play


@given(steps(), openai_settings(), st.booleans())
def test_every_request_is_valid_however_broken_the_log(
    all_steps: list[Step],
    options: dict[str, Any],
    native: bool,  # noqa: FBT001 -- data
) -> None:
    play = played([*all_steps, ("render",)], options, native=native)
    for request in play.requests:
        assert request.rendered.violations == ()
        validator = provider_of(options["model"]).validator()
        assert validator.check(kwargs_of(request.rendered), options["model"]) == ()


@given(steps(hides=False), openai_settings())
def test_a_warm_request_extends_the_one_before_item_by_item(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    play = played([*all_steps, ("render",)], options)
    play.timeline.flush()
    facts = dict(play.timeline.events())
    for one, two in zip(play.requests, play.requests[1:], strict=False):
        between = [facts[v] for v in range(one.version + 1, two.version)]
        if not any(_rewrites(fact) for fact in between):
            before, after = _words(one.rendered), _words(two.rendered)
            assert after[: len(before)] == before
            event("a prefix was checked")


def _rewrites(fact: Any) -> bool:
    return isinstance(fact, REWRITES) and not (
        isinstance(fact, BlocksHidden) and fact.reason == "clipped"
    )


def _words(rendered: Rendered) -> list[Any]:
    """The items; of a chat, what stands in them: a message of the user's grows as long as nobody answers."""
    items: list[Any] = plain(items_of(rendered))
    if rendered.provider.name != "openai.chat":
        return items
    found: list[Any] = []
    for item in items:
        content = item.get("content")
        parts = content.split("\n\n") if isinstance(content, str) else content or ()
        found += [(item["role"], part) for part in parts]
        found += [(item["role"], call) for call in item.get("tool_calls", ())]
    return found


@given(steps(), openai_settings())
def test_live_is_reopened(all_steps: list[Step], options: dict[str, Any]) -> None:
    play = played(all_steps, options)
    play.timeline.flush()
    live = play.timeline.render()
    play.timeline.flush()
    reopened = play.open().render()
    assert bytes_of(live) == bytes_of(reopened)
    assert live.content_hash == reopened.content_hash


@given(steps(), openai_settings())
def test_a_call_is_answered_by_what_was_recorded_for_it(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    play = played([*all_steps, ("render",)], options)
    recorded = answers(play.timeline)
    for request in play.requests:
        for item in items_of(request.rendered):
            call_id = item.get("tool_call_id") or (item.get("output") and item["call_id"])
            if not call_id:
                continue
            marks = set(MARK.findall(str(item.get("output") or item["content"])))
            owners = {
                owner
                for owner, found in recorded.items()
                for block in found
                if marks & set(MARK.findall(str(block.parts)))
            }
            assert len(owners) <= 1
            assert all(_is_same(owner, call_id) for owner in owners)


def _is_same(call_id: str, wire_id: str) -> bool:
    bare = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "call"
    return wire_id == bare or wire_id.startswith(f"{bare}_")


@given(steps(), openai_settings(), st.sampled_from((*MODELS, make.BOUND)))
def test_what_one_provider_recorded_another_can_be_asked_with(
    all_steps: list[Step], options: dict[str, Any], other: Any
) -> None:
    """Nothing that only the first one reads is sent, and no call loses its answer."""
    view = played(all_steps, options).timeline.view
    given_ = make.context(model=other, provider=provider_of(other), limit=options["window"])
    rendered = show(view, given_)
    assert rendered.violations == ()
    if other.provider == "anthropic":
        sent = str(rendered.anthropic(max_tokens=1))
        assert "encrypted_content" not in sent
        assert "prompt_cache" not in sent


@pytest.mark.parametrize("model", MODELS, ids=BY_ID)
def test_a_request_has_marks_exactly_where_its_model_takes_them(model: Any) -> None:
    timeline = make.open_timeline(model=model)
    timeline.user("Go.")
    request = kwargs_of(timeline.render(system="You help. " * 50))
    has_marks = "prompt_cache_breakpoint" in str(request)
    assert has_marks == (model in (MARKED, CHAT))
    assert ("prompt_cache_options" in request) == has_marks
    assert ("prompt_cache_key" in request) == (model is not LOCAL)


@pytest.mark.parametrize("model", [MARKED, CHAT], ids=lambda model: model.provider)
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
