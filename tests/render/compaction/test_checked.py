"""A rung of the user's own: what it may propose is done, what it may not is refused in one line.

That no rung breaks a request, whatever it does, is seen by every invariant: `WildRung` is one of the
rungs that `tests.strategies` draws.
"""

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import msgspec
import pytest

from blocks import (
    ArgumentError,
    BlockId,
    BlocksHidden,
    DroppedSpan,
    Envelope,
    ImagePart,
    RangeCompacted,
    RungError,
)
from render import (
    CompactionDraft,
    Context,
    ExternalFacts,
    Policy,
    Proposal,
    RungScope,
    View,
    apply_compaction,
    draft_compaction,
    restore_draft,
    total_tokens,
)
from render.compaction._ladder_steps import RUNGS
from tests import _builders as make
from tests._builders import steady
from tests._table import for_each
from tests.render.compaction.scenes import Scene, scene
from tests.strategies import cleared, dropped, externalized

PICTURE = """
P  f c1 r1   a n c2 r2   c3  |  c4 r4
5  5 5  900  9 9 5  900  5      5  9
"""


@attrs.frozen
class Own:
    """Proposes what a function says."""

    act: Callable[[RungScope], Iterable[object]]
    name: str = "own"

    def propose(self, scope: RungScope) -> Iterable[object]:
        return self.act(scope)


def within(*rungs: Any, **more: Any) -> Context:
    given = {"can_externalize": True, "limit": 2000, **more}
    policy = steady(rungs=rungs, keep_ratio=0.03, externalize_tokens=300, pointer_tokens=20)
    return make.context(policy=policy, **given)


def draft_of(view: View, context: Context) -> tuple[CompactionDraft | None, list[str]]:
    """The draft, and what was refused on the way."""
    heard: list[str] = []
    known = ExternalFacts(on_refused=lambda error: heard.append(str(error)))
    found = draft_compaction(view, context, "forced", known)
    return found.draft if found else None, heard


def entries(drawn: Scene, *words: str) -> list[Any]:
    ids = {drawn[word].id for word in words}
    return [entry for entry in drawn.view.entries if entry.block.id in ids]


# What it may.


def test_it_takes_its_place_among_the_others() -> None:
    """Before it and after it the built-in rungs do what they do, on what it leaves."""
    drawn = scene(PICTURE)
    own = Own(lambda scope: [scope.clear(f, "gone") for f in scope.answers()][:1])
    draft, heard = draft_of(drawn.view, within(own, "externalize", limit=500))
    assert draft
    assert heard == []
    assert [p.action for p in draft.proposals] == ["clear", "externalize"]
    assert [p.blocks for p in draft.proposals] == [(drawn["r1"].id,), (drawn["r2"].id,)]


def test_a_clear_knows_what_it_frees() -> None:
    drawn = scene(PICTURE)
    draft, _ = draft_of(
        drawn.view, within(Own(lambda s: [s.clear(next(s.results()), "gone", "x")]))
    )
    assert draft
    [made] = draft.proposals
    assert made.tokens_freed == draft.tokens_before - draft.tokens_after > 0
    assert (made.reason, made.turns) == ("x", ("t1",))


def test_a_picture_may_be_cleared() -> None:
    """The built-in rungs leave pictures alone, and `results` is without them."""
    shot = make.result("c1")
    shot = msgspec.structs.replace(shot, parts=(ImagePart(data="aGVsbG8="),))
    view = make.view_of(make.prompt("Go."), make.call("c1"), shot, make.said("Seen."))
    context = within(Own(lambda s: [s.clear(f, "[a screenshot]") for f in s.answers()]))
    draft, heard = draft_of(view, context)
    assert draft, heard
    assert list(RungScope(view=view, context=context, protected=99).results()) == []


def test_it_may_choose_where_the_summary_ends() -> None:
    drawn = scene(PICTURE)
    cut = entries(drawn, "a")[0].version
    own = Own(lambda scope: [made] if (made := scope.summarize_before(cut)) else [])
    context = within(own, "summarize", limit=100_000)
    draft, heard = draft_of(drawn.view, context)
    assert draft, heard
    assert [p.action for p in draft.proposals] == ["summarize"], "one summary is enough"
    found = restore_draft(draft, drawn.view, within())
    assert found
    after = apply_compaction(drawn.view, found, None, context)
    assert isinstance(after.decisions[-1], RangeCompacted)
    assert after.decisions[-1].cut == cut


def test_it_may_ask_a_built_in_rung_and_leave_some_out() -> None:
    drawn = scene(PICTURE)
    own = Own(lambda scope: list(scope.proposals("drop"))[:1])
    draft, heard = draft_of(drawn.view, within(own))
    assert draft, heard
    assert draft.rungs == ("drop",)


def test_a_call_goes_with_its_result() -> None:
    drawn = scene(PICTURE)
    draft, heard = draft_of(
        drawn.view, within(Own(lambda _: [dropped(entries(drawn, "c1", "r1"))]))
    )
    assert draft, heard
    assert drawn.after_draft(draft) == ". . D D . . . . . . ."


def test_its_draft_is_carried_out_where_nobody_knows_it() -> None:
    """A draft is data: it comes from JSON, and the policy is another one by then."""
    drawn = scene(PICTURE)
    context = within(Own(lambda scope: [scope.clear(f, "gone") for f in scope.answers()]))
    live = draft_compaction(drawn.view, context, "forced")
    assert live
    again = restore_draft(CompactionDraft.from_json(live.draft.to_json()), drawn.view, within())
    assert again
    one = apply_compaction(drawn.view, live, None, context)
    two = apply_compaction(drawn.view, again, None, within())
    assert one.decisions == two.decisions
    assert [type(event) for event in one.decisions] == [BlocksHidden]
    assert make.request_bytes(make.shown(one)) == make.request_bytes(make.shown(two))


# What it may not.


def with_changes(made: Any, **changes: Any) -> list[Any]:
    return [msgspec.structs.replace(made, **changes)]


def bad_span(drawn: Scene) -> list[Any]:
    span = DroppedSpan(first=1, last=99, started_at=0.0, ended_at=0.0)
    return with_changes(dropped(entries(drawn, "a")), entry=span)


def another_artifact(drawn: Scene, **changes: Any) -> list[Any]:
    return with_changes(externalized(entries(drawn, "r1")[0]), **changes)


def forged(drawn: Scene, **changes: Any) -> Any:
    first, last = entries(drawn, "P")[0], entries(drawn, "r1")[0]
    made = {"cut": last.version + 1, "source_hash": "0", **changes}
    return Proposal(
        action="summarize", blocks=(first.block.id,), first=1, last=last.version, **made
    )


LONG = "word " * 2000
BAD: dict[str, tuple[Callable[[Scene], Any], str]] = {
    "nothing at all": (lambda _: None, "it raised TypeError"),
    "no proposal": (lambda _: ["clear"], "it proposes 'clear'"),
    "a class": (lambda _: [Proposal], "it proposes a "),
    "the last word": (
        lambda d: with_changes(cleared(d.view.entries[3]), first="x"),
        "stored in a draft",
    ),
    "not for JSON": (
        lambda d: with_changes(cleared(d.view.entries[3]), replacement="\ud800"),
        "stored in a draft",
    ),
    "no blocks": (
        lambda d: with_changes(cleared(d.view.entries[3]), blocks=()),
        "stored in a draft",
    ),
    "unknown": (
        lambda d: with_changes(cleared(d.view.entries[3]), blocks=(BlockId("?"),)),
        "'?' is no",
    ),
    "the tail": (lambda d: [cleared(e) for e in entries(d, "r4")], "before the verbatim tail"),
    "twice": (lambda d: [cleared(e) for e in entries(d, "r1") * 2], "is named 2 times"),
    "wrong place": (
        lambda d: with_changes(cleared(d.view.entries[3]), first=1),
        "of versions (1, 4)",
    ),
    "backwards": (lambda d: [dropped(entries(d, "c1", "r1")[::-1])], "not in log order"),
    "another span": (bad_span, "not in log order"),
    "no word": (lambda d: with_changes(cleared(d.view.entries[3]), replacement=" "), "is empty"),
    "a prompt": (lambda d: [cleared(e) for e in entries(d, "P")], "is not a visible tool result"),
    "a call": (lambda d: [cleared(e) for e in entries(d, "c1")], "is not a visible tool result"),
    "the user's words": (lambda d: [dropped(entries(d, "f"))], "must not be dropped"),
    "a note": (lambda d: [dropped(entries(d, "a", "n"))], "must not be dropped"),
    "half a pair": (lambda d: [dropped(entries(d, "r1", "a"))], "without its call"),
    "the other half": (lambda d: [dropped(entries(d, "c1"))], "without its result"),
    "other content": (
        lambda d: another_artifact(d, artifact="art-0"),
        "does not match the artifact",
    ),
    "another path": (
        lambda d: another_artifact(d, path="tc:t1.c2.result"),
        "does not match the artifact",
    ),
    "less secret": (
        lambda d: another_artifact(d, sensitivity="public"),
        "does not match the artifact",
    ),
    "no shorter": (
        lambda d: with_changes(cleared(d.view.entries[3]), replacement=LONG),
        "frees no tokens",
    ),
    "its own summary": (lambda d: [forged(d)], "summarize_before()"),
    "two things": (lambda d: [*map(cleared, entries(d, "r2")), forged(d)], "summarize_before()"),
}


@for_each(("act", "why"), BAD.values(), ids=list(BAD))
def test_what_it_may_not_is_refused_in_one_line(act: Callable[[Scene], Any], why: str) -> None:
    """All of what it proposes is left out, and the other rungs are tried as if it were not there."""
    drawn = scene(PICTURE)
    draft, heard = draft_of(drawn.view, within(Own(lambda _: act(drawn)), "externalize"))
    without, _ = draft_of(drawn.view, within("externalize"))
    assert draft == without
    [line, *_] = dict.fromkeys(heard)
    assert line.startswith("rung 'own' is left out: ")
    assert why in line
    assert "\n" not in line


def test_an_open_call_stays_also_when_nothing_else_helps() -> None:
    """With everything but the newest round given up, calls without a result are before the tail."""
    drawn = scene(PICTURE)
    own = Own(lambda _: [dropped(entries(drawn, "c3"))])
    draft, heard = draft_of(drawn.view, within(own, limit=100))
    assert draft is None
    assert "without its result" in heard[-1]


def test_it_may_cut_no_later_than_the_tail() -> None:
    drawn = scene(PICTURE)
    scope = drawn.ground(within())
    cut = entries(drawn, "a")[0].version
    assert scope.summarize_before(cut)
    assert scope.summarize_before(cut - 1) is None, "it would part a pair"
    assert attrs.evolve(scope, protected=cut - 1).summarize_before(cut) is None


def test_what_is_hidden_already_is_not_its_business() -> None:
    drawn = scene(PICTURE).with_hidden("r1", "w " * 900, "requested")
    _, heard = draft_of(
        drawn.view, within(Own(lambda _: [cleared(e) for e in entries(drawn, "r1")]))
    )
    assert "is not a visible tool result" in heard[0]


def test_what_is_confidential_is_not_moved_without_keys() -> None:
    secret = make.result("c1", "word " * 900, envelope=Envelope(sensitivity="restricted"))
    view = make.view_of(make.prompt("Go."), make.call("c1"), secret, make.said("Done."))
    own = Own(lambda s: with_changes(externalized(s.view.entries[2]), sensitivity="restricted"))
    assert "no keys" in draft_of(view, within(own))[1][0]
    assert draft_of(view, within(own, can_encrypt=True))[0]


@for_each("rest", [{"can_externalize": False}, {}])
def test_what_rests_is_left_out_without_a_word(rest: dict[str, Any]) -> None:
    """Without an artifact store, and where it has just failed, nothing is moved there."""
    drawn = scene(PICTURE)
    own = Own(lambda _: [externalized(e) for e in entries(drawn, "r1")])
    heard: list[Any] = []
    disabled = frozenset() if rest else frozenset({"externalize"})
    known = ExternalFacts(disabled_rungs=disabled, on_refused=heard.append)
    assert draft_compaction(drawn.view, within(own, **rest), "forced", known) is None
    assert heard == []


def test_without_end_is_too_long() -> None:
    def act(scope: RungScope) -> Iterable[object]:
        while True:
            yield cleared(scope.view.entries[3])

    draft, heard = draft_of(scene(PICTURE).view, within(Own(act)))
    assert draft is None
    assert heard


def test_where_nobody_listens_it_is_raised_with_its_cause() -> None:
    """Whoever drafts without a timeline hears of it at once."""

    def act(_: RungScope) -> Iterable[object]:
        raise ZeroDivisionError("of mine")

    with pytest.raises(RungError, match="rung 'own' is left out: it raised ZeroDiv") as refused:
        draft_compaction(scene(PICTURE).view, within(Own(act)), "forced")
    assert isinstance(refused.value.__cause__, ZeroDivisionError)
    assert refused.value.rung == "own"


# In a policy.


def nothing(_: RungScope) -> list[object]:
    return []


def test_policies_with_rungs_of_one_s_own_are_values() -> None:
    one, two = Policy(rungs=("clear", Own(nothing))), Policy(rungs=["clear", Own(nothing)])
    assert one == two
    assert hash(one) == hash(two)
    assert one != Policy(rungs=("clear", Own(nothing, "other")))
    assert attrs.evolve(one, name="x").rungs == one.rungs
    assert "Own(" in repr(one)


def iter_nothing(_: RungScope) -> Iterable[object]:
    return iter(())


@attrs.define(frozen=False, on_setattr=None, eq=True)
class Unhashable:
    name = "unhashable"
    propose = nothing


WRONG: dict[str, tuple[Any, str]] = {
    "a misspelt name": (("claer",), "did you mean 'clear'?"),
    "a text": ("clear", "a list of externalize, summarize, clear, drop"),
    "a rung and no list": (Own(nothing), "must be a list"),
    "a class": ((Own,), "objects with a name, propose(scope) and a hash"),
    "no name": ((Own(nothing, ""),), "with a name"),
    "no function": ((7,), "propose(scope)"),
    "no hash": ((Unhashable(),), "a hash"),
    "a built-in name": ((Own(nothing, "drop"),), "more than one rung is named 'drop'"),
    "one name for two": ((Own(nothing), Own(iter_nothing)), "more than one rung is named 'own'"),
}


@for_each(("rungs", "why"), WRONG.values(), ids=list(WRONG))
def test_what_is_no_rung_is_refused(rungs: Any, why: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        Policy(rungs=rungs)
    assert "'rungs'" in str(refused.value)
    assert why in str(refused.value)


def test_the_built_in_rungs_are_those_of_a_policy() -> None:
    assert list(RUNGS) == list(Policy().rungs)


def test_a_drop_is_shorter_afterwards() -> None:
    drawn, context = scene(PICTURE), within()
    made: list[Proposal] = [dropped(entries(drawn, "c1", "r1"))]
    own = within(Own(lambda _: made))
    draft, _ = draft_of(drawn.view, own)
    assert draft
    assert draft.tokens_after < total_tokens(drawn.view, context) == draft.tokens_before
