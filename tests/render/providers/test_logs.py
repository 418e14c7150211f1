"""The invariants of a render hold for every provider: over generated logs, its own and others'.

Anthropic's are those of `tests/timeline/test_invariants.py`.
"""

import re
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced
from render import provider_of, show
from tests import _builders as make
from tests.render.providers._play import Api
from tests.render.providers.gemini import _play as gemini
from tests.render.providers.openai import _play as openai
from tests.strategies import Step, answers, steps

APIS = pytest.mark.parametrize("api", [gemini.API, openai.API], ids=str)
MODELS = (make.BOUND, gemini.MODEL, *openai.MODELS)
MARK = re.compile(r"mark_\d{4}:")
REWRITES = (BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced)


@APIS
@given(steps(), st.data(), st.booleans())
def test_every_request_is_valid_however_broken_the_log(
    api: Api,
    all_steps: list[Step],
    data: st.DataObject,
    native: bool,  # noqa: FBT001 -- data
) -> None:
    play = api.played([*all_steps, ("render",)], data.draw(api.options), native=native)
    model = play.options["model"]
    for request in play.requests:
        assert request.rendered.violations == ()
        assert provider_of(model).violations(api.sent(request.rendered), model) == ()


@APIS
@given(steps(hides=False), st.data())
def test_a_warm_request_extends_the_one_before(
    api: Api, all_steps: list[Step], data: st.DataObject
) -> None:
    play = api.played([*all_steps, ("render",)], data.draw(api.options))
    play.timeline.flush()
    facts = dict(play.timeline.events())
    for one, two in zip(play.requests, play.requests[1:], strict=False):
        between = [facts[v] for v in range(one.version + 1, two.version)]
        if not any(_rewrites(fact) for fact in between):
            before, after = api.words(one.rendered), api.words(two.rendered)
            assert after[: len(before)] == before
            event("a prefix was checked")


def _rewrites(fact: Any) -> bool:
    return isinstance(fact, REWRITES) and not (
        isinstance(fact, BlocksHidden) and fact.reason == "clipped"
    )


@APIS
@given(steps(), st.data())
def test_live_is_reopened(api: Api, all_steps: list[Step], data: st.DataObject) -> None:
    play = api.played(all_steps, data.draw(api.options))
    play.timeline.flush()
    live = play.timeline.render()
    play.timeline.flush()
    reopened = play.open().render()
    assert api.bytes_of(live) == api.bytes_of(reopened)
    assert live.content_hash == reopened.content_hash


@APIS
@given(steps(), st.data())
def test_a_call_is_answered_by_what_was_recorded_for_it(
    api: Api, all_steps: list[Step], data: st.DataObject
) -> None:
    play = api.played([*all_steps, ("render",)], data.draw(api.options))
    recorded = answers(play.timeline)
    for request in play.requests:
        for call_id, said in api.returned(request.rendered):
            marks = set(MARK.findall(said))
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


@APIS
@given(steps(), st.data(), st.sampled_from(MODELS))
def test_what_one_provider_recorded_another_can_be_asked_with(
    api: Api, all_steps: list[Step], data: st.DataObject, other: Any
) -> None:
    """Nothing that only the first one reads is sent, and no call loses its answer."""
    play = api.played(all_steps, data.draw(api.options))
    limit = play.options["window"]
    given_ = make.context(model=other, provider=provider_of(other), limit=limit)
    rendered = show(play.timeline.view, given_)
    assert rendered.violations == ()
    if api.name not in other.provider:
        assert not [own for own in api.own if own in str(rendered.request())]
