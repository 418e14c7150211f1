"""The invariants of a render hold for Gemini, too: over generated logs, its own and others'."""

import re
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced
from render import provider_of, show
from tests import _builders as make
from tests.render.providers.gemini._play import (
    MODEL,
    SEALED,
    GeminiPlay,
    bytes_of,
    gemini_settings,
    parts_of,
)
from tests.render.providers.openai._play import CHAT, PLAIN
from tests.strategies import Step, answers, steps

MARK = re.compile(r"mark_\d{4}:")
REWRITES = (BlocksHidden, BlocksRestored, RangeCompacted, RangeExpanded, SummaryReplaced)


def played(all_steps: list[Step], options: dict[str, Any], **more: Any) -> GeminiPlay:
    play = GeminiPlay(options, **more)
    play.run(all_steps)
    return play


@given(steps(), gemini_settings(), st.booleans())
def test_every_request_is_valid_however_broken_the_log(
    all_steps: list[Step],
    options: dict[str, Any],
    native: bool,  # noqa: FBT001 -- data
) -> None:
    play = played([*all_steps, ("render",)], options, native=native)
    for request in play.requests:
        assert request.rendered.violations == ()
        sent = request.rendered.gemini(max_output_tokens=1000)
        assert provider_of(MODEL).validator().check(sent, MODEL) == ()
        roles = [content["role"] for content in sent["contents"]]
        assert roles == ["user" if n % 2 == 0 else "model" for n in range(len(roles))]


@given(steps(hides=False), gemini_settings())
def test_a_warm_request_extends_the_one_before_part_by_part(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    play = played([*all_steps, ("render",)], options)
    play.timeline.flush()
    facts = dict(play.timeline.events())
    for one, two in zip(play.requests, play.requests[1:], strict=False):
        between = [facts[v] for v in range(one.version + 1, two.version)]
        if not any(_rewrites(fact) for fact in between):
            before, after = parts_of(one.rendered), parts_of(two.rendered)
            assert after[: len(before)] == before
            event("a prefix was checked")


def _rewrites(fact: Any) -> bool:
    return isinstance(fact, REWRITES) and not (
        isinstance(fact, BlocksHidden) and fact.reason == "clipped"
    )


@given(steps(), gemini_settings())
def test_live_is_reopened(all_steps: list[Step], options: dict[str, Any]) -> None:
    play = played(all_steps, options)
    play.timeline.flush()
    live = play.timeline.render()
    play.timeline.flush()
    reopened = play.open().render()
    assert bytes_of(live) == bytes_of(reopened)
    assert live.content_hash == reopened.content_hash


@given(steps(), gemini_settings())
def test_a_call_is_answered_by_what_was_recorded_for_it(
    all_steps: list[Step], options: dict[str, Any]
) -> None:
    play = played([*all_steps, ("render",)], options)
    recorded = answers(play.timeline)
    for request in play.requests:
        for _, part in parts_of(request.rendered):
            returned = part.get("functionResponse", {})
            marks = set(MARK.findall(str(returned.get("response"))))
            owners = {
                owner
                for owner, found in recorded.items()
                for block in found
                if marks & set(MARK.findall(str(block.parts)))
            }
            assert len(owners) <= 1
            bare = [re.sub(r"[^a-zA-Z0-9_-]", "_", owner)[:47] for owner in owners]
            assert all(returned["id"].startswith(start) for start in bare)


@given(steps(), gemini_settings(), st.sampled_from((make.BOUND, PLAIN, CHAT)))
def test_what_was_recorded_of_it_another_provider_can_be_asked_with(
    all_steps: list[Step], options: dict[str, Any], other: Any
) -> None:
    """Nothing that only Gemini reads is sent, and no call loses its answer."""
    view = played(all_steps, options).timeline.view
    given_ = make.context(model=other, provider=provider_of(other), limit=options["window"])
    rendered = show(view, given_)
    assert rendered.violations == ()
    assert SEALED not in str(rendered.request())
    assert "thoughtSignature" not in str(rendered.request())


@pytest.mark.parametrize("model", [make.BOUND, PLAIN, CHAT], ids=lambda model: model.provider)
@given(steps())
def test_what_others_recorded_gemini_can_be_asked_with(model: Any, all_steps: list[Step]) -> None:
    """A model changes in the middle of a conversation: calls that it did not make say so."""
    view = played(all_steps, {"model": model, "window": 100_000}, native=False).timeline.view
    rendered = show(view, make.context(model=MODEL, provider=provider_of(MODEL)))
    assert rendered.violations == ()
    sealed = {
        part["thoughtSignature"] for _, part in parts_of(rendered) if "thoughtSignature" in part
    }
    assert sealed <= {"skip_thought_signature_validator"}
