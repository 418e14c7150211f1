"""The invariants of a render hold for every provider: over generated logs, its own and others'.

Anthropic's are those of `tests/timeline/test_invariants.py`."""

import re
from typing import Any

import attrs
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from blocks import (
    Answered,
    BlockAppended,
    BlocksHidden,
    BlocksRestored,
    EventId,
    MisuseError,
    ProviderPart,
    RangeCompacted,
    RangeExpanded,
    SummaryReplaced,
)
from render import PROVIDERS, Context, Rendered, provider_of, show
from render.stages._visibility import strip_unbound
from tests import _builders as make
from tests.render.providers._play import Api
from tests.render.providers.gemini import _play as gemini
from tests.render.providers.openai import _play as openai
from tests.render.providers.plain import plain_text
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


PARTS = (
    *("image", "document", "search_result", "container_upload", "tool_reference"),
    *(
        "input_image",
        "input_file",
        "image_url",
        "file",
        "input_audio",
        "inlineData",
        "file_data",
        "",
    ),
)
FIELDS = (
    *PARTS,
    *("source", "url", "media_type", "mime", "data", "filename", "file_id", "file_url", "fileUri", "title", "id"),
)  # fmt: skip
VALUES = st.recursive(
    st.sampled_from([None, 5, "", "x", "https://a.b/c", "data:image/png;base64,aGVs", "aGVsbG8="]),
    lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4) | st.lists(inner),
    max_leaves=6,
)


@pytest.mark.parametrize("model", [make.LOOSE, *MODELS], ids=lambda model: model.name)
@given(st.sampled_from(PARTS), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5))
def test_a_part_of_any_provider_is_sent_as_it_is_or_named_but_never_broken(
    model: Any, kind: str, fields: dict[str, Any]
) -> None:
    """A log from elsewhere has parts that only look like those of this provider."""
    part = ProviderPart(value={**fields, **({"type": kind} if kind else {})})
    log = make.prompt("See.", "t1", part), make.call("a"), make.result("a", parts=(part,))
    given_ = make.context(model=model, provider=provider_of(model), validate=False)
    rendered = make.shown(make.view_of(*log), given_)
    assert [each for each in rendered.violations if not each.may_be_new] == []


# The seam between stages and providers: what is kept for one provider is never shown to another.


TOOLS = ({"name": "look", "description": "Look. " * 200, "input_schema": {"type": "object"}},)
SYSTEM = ({"type": "text", "text": "You help."},)


def shown_twice(first: Context, second: Context) -> tuple[Rendered, Rendered]:
    view = make.view_of(make.prompt("Go."), make.call("a"), make.result("a", "done"))
    return make.shown(view, first), make.shown(view, second)


def test_the_same_log_and_tools_are_rendered_for_two_providers_as_if_each_were_alone() -> None:
    """As when a summariser asks a model of another provider in the middle of a conversation."""
    one = make.context(system=SYSTEM, tools=TOOLS)
    other = attrs.evolve(one, provider=plain_text(name="plain"))
    assert other.fixed is one.fixed
    alone = make.context(system=SYSTEM, tools=TOOLS, provider=plain_text(name="plain"))
    for first, second in ((one, other), (other, one)):
        by_provider = {r.provider.name: r for r in shown_twice(first, second)}
        plain, claude = by_provider["plain"], by_provider["anthropic"]
        again, _ = shown_twice(alone, alone)
        assert plain.request() == again.request()
        assert plain.account == again.account
        assert plain.prefix_hash == again.prefix_hash != claude.prefix_hash
        assert claude.account.tools > plain.account.tools


def test_a_request_is_handed_out_for_the_provider_that_it_was_rendered_for() -> None:
    plain = make.context(provider=plain_text(name="plain"))
    rendered, _ = shown_twice(plain, plain)
    with pytest.raises(MisuseError, match="rendered for 'plain'"):
        rendered.anthropic(max_tokens=10)


def test_the_table_has_each_provider_under_its_own_name() -> None:
    assert [provider.name for provider in PROVIDERS.values()] == list(PROVIDERS)


def test_a_model_of_an_unknown_provider_is_refused_by_name() -> None:
    assert provider_of(make.LOOSE) is PROVIDERS["anthropic"]
    with pytest.raises(MisuseError, match=r"no provider 'antropic'; did you mean 'anthropic'"):
        provider_of(attrs.evolve(make.LOOSE, provider="antropic"))


def test_thinking_is_looked_at_as_each_provider_shows_it() -> None:
    """The log begins with an answer to a request that nobody knows.  Plain text does not show that
    thinking, so nothing is wrong with it; that says nothing of the other provider."""
    answered = Answered(shown=1, sent="another request")
    thought = BlockAppended(
        id=EventId("e"), at=0.0, block=make.thought(response="r"), answers=answered
    )
    claude = make.context(model=make.BOUND)
    bound = plain_text(name="plain", thinking=frozenset({"bound"}))
    plain = attrs.evolve(claude, provider=bound)
    view = make.view_of(thought, make.call("a", response="r"))
    assert strip_unbound(view, plain) is view
    assert strip_unbound(view, claude) is not view
