"""Plans as data: one action for each block, equal bytes for equal logs, one line for what is wrong."""

from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import ArtifactId, BlockId, DataError, DroppedSpan, TimelineId
from render import CompactionDraft, Policy, Proposal, draft_compaction
from render.compaction._ladder import Action, in_force, normalised
from tests import _builders as make
from tests._table import for_each
from tests.render.compaction.talk import turns

SPAN = DroppedSpan(first=1, last=1, started_at=0.0, ended_at=0.0)


def proposal(action: Action, *blocks: str) -> Proposal:
    ids = tuple(BlockId(block) for block in blocks)
    place: dict[str, Any] = {"blocks": ids, "first": 1, "last": 1}
    match action:
        case "externalize":
            return Proposal(
                action="externalize",
                **place,
                artifact=ArtifactId("art-0"),
                replacement="moved",
                path="tc:t1.c.result",
            )
        case "summarize":
            return Proposal(action="summarize", **place, cut=2, source_hash="0")
        case "clear":
            return Proposal(action="clear", **place, replacement="cleared")
        case _:
            return Proposal(action="drop", **place, entry=SPAN, replacement="dropped")


# One action for each block.

RANKS: tuple[Action, ...] = ("clear", "summarize", "externalize", "drop")


@for_each(("one", "other"), list(permutations(RANKS, 2)))
def test_of_two_actions_the_higher_counts_in_either_order(one: Action, other: Action) -> None:
    actions, warnings = normalised([proposal(one, "b"), proposal(other, "b")])
    higher = max(one, other, key=RANKS.index)
    assert actions == {"b": higher}
    assert warnings == (f"b: {one} and {other}; {higher} counts",)


@for_each("action", RANKS)
def test_the_same_twice_is_no_conflict(action: Action) -> None:
    assert normalised([proposal(action, "b"), proposal(action, "b")]) == ({"b": action}, ())


def test_what_nobody_names_is_included() -> None:
    draft = made(proposal("clear", "a"), proposal("drop", "b", "c"))
    assert [draft.action(BlockId(b)) for b in "abcd"] == ["clear", "drop", "drop", "include"]


def test_there_is_a_warning_for_each_block_with_several() -> None:
    draft = made(proposal("summarize", "a", "b", "c"), proposal("externalize", "b", "c"))
    assert draft.warnings == (
        "b: summarize and externalize; externalize counts",
        "c: summarize and externalize; externalize counts",
    )
    assert draft.rungs == ("summarize", "externalize")


def test_a_draft_shows_what_it_would_do_in_one_line() -> None:
    draft = msgspec.structs.replace(
        made(proposal("clear", "a"), proposal("drop", "b"), proposal("clear", "c")),
        timeline=TimelineId("talk"),
        version=7,
        tokens_before=12_000,
        tokens_after=3400,
    )
    head = "<CompactionDraft for 'talk', version 7: 12,000 to 3,400 tokens; "
    assert repr(draft) == f"{head}clear 2, drop 1>"
    assert repr(msgspec.structs.replace(draft, proposals=())) == f"{head}nothing>"


def test_a_higher_action_is_not_undone_by_a_lower_one_after_it() -> None:
    dropped, cleared, moved = (proposal(a, "b") for a in ("drop", "clear", "externalize"))
    assert in_force([dropped, cleared, moved]) == [dropped]
    assert in_force([cleared, moved, dropped]) == [cleared, moved, dropped]


proposals = st.lists(
    st.builds(
        proposal,
        st.sampled_from(RANKS),
        st.sampled_from("abcdefg"),
    )
    | st.builds(proposal, st.sampled_from(RANKS), st.sampled_from("abc"), st.sampled_from("defg")),
    max_size=12,
)


@given(proposals)
def test_each_block_has_one_action_the_highest_that_anybody_proposed(
    given_: list[Proposal],
) -> None:
    actions, warnings = normalised(given_)
    wanted: dict[str, list[Action]] = {}
    for each in given_:
        for block in each.blocks:
            action: Action = msgspec.to_builtins(each)["action"]
            wanted.setdefault(block, []).append(action)
    assert actions == {b: max(found, key=RANKS.index) for b, found in wanted.items()}
    several = {block for block, found in wanted.items() if len(set(found)) > 1}
    assert {warning.partition(":")[0] for warning in warnings} == several


# JSON.


def made(*each: Proposal, **more: Any) -> CompactionDraft:
    return CompactionDraft(**{"version": 1, "trigger": "forced", "proposals": each, **more})


texts = st.text(max_size=20)
drafts = st.builds(
    lambda given_, **more: made(*given_, **more),
    proposals,
    timeline=texts,
    version=st.integers(0, 2**40),
    trigger=st.sampled_from(("forced", "proactive", "cold")),
    policy=texts,
    limit=st.integers(0, 10**6),
    tokens_before=st.integers(0, 10**6),
)


@given(drafts)
def test_a_draft_comes_back_from_json_as_it_was(draft: CompactionDraft) -> None:
    again = CompactionDraft.from_json(draft.to_json())
    assert again == draft
    assert again.to_json() == draft.to_json()
    assert again.digest == draft.digest
    assert CompactionDraft.from_json(draft.to_json().decode()) == draft


@for_each(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"version": 1}',
        b'{"version": "one", "trigger": "forced"}',
        b'{"version": 1, "trigger": "by hand"}',
        b'{"version": 1, "trigger": "forced", "proposals": [{"action": "shred"}]}',
        b'{"version": 1, "trigger": "forced", "proposals": [{"action": "clear"}]}',
        msgspec.json.encode(made(proposal("clear"))),
        b"\xff",
        "\ud800",
        b'{"version": 1, "trigger": "forced", "format": 2}',
    ],
)
def test_what_is_no_draft_is_refused_in_one_line(data: bytes | str) -> None:
    with pytest.raises(DataError) as refused:
        CompactionDraft.from_json(data)
    assert "\n" not in str(refused.value)
    assert "draft" in str(refused.value)


def test_the_digest_of_a_draft_is_a_promise() -> None:
    """It is the name under which a draft was committed: it must not change between releases."""
    draft = made(
        proposal("externalize", "a"),
        proposal("summarize", "b", "c"),
        proposal("clear", "d"),
        proposal("drop", "e", "f"),
        timeline="talk",
        policy="default",
        limit=1000,
        target=800,
        tokens_before=900,
        tokens_after=700,
    )
    assert draft.digest == DIGEST


DIGEST = "3f25f11fbf5bf35297212cf1c2d5e10c2971180dcc887bf4d389288857349b85"


def test_equal_logs_give_equal_drafts_on_two_machines() -> None:
    """Whatever the time is there."""
    blocks = turns(20)
    drafts_made: list[bytes] = []
    for now in (1.0, 2_000_000_000.0):
        view = make.view_of(*blocks)
        policy = Policy(rungs=("externalize", "clear", "summarize", "drop"), externalize_tokens=50)
        within = make.context(limit=3000, policy=policy, now=now, can_externalize=True)
        trial = draft_compaction(view, within, "proactive")
        assert trial
        drafts_made.append(trial.draft.to_json())
    assert drafts_made[0] == drafts_made[1]
