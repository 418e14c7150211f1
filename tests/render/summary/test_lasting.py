"""What lasts of a summary: what is carried stays, what is new gets the room that is left."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from blocks import Decision, StructuredSummary, Work
from render import SummaryRoom, merge_summaries
from render.summary._written import GAP, LASTING
from tests import _builders as make
from tests._table import for_each

ROOM = SummaryRoom(history=800, prefix=400, count=make.CharCounter().count)
WORDS = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "never",
    "touch",
    "the",
    "db-1",
    "db-2",
    "API",
    "7",
    "8",
)
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
LISTS = st.lists(SENTENCES, max_size=30).map(tuple)


def answers() -> st.SearchStrategy[StructuredSummary]:
    return st.builds(
        StructuredSummary,
        constraints=LISTS,
        facts=LISTS,
        decisions=LISTS.map(lambda texts: tuple(Decision(decision=text) for text in texts)),
        state=st.sampled_from(("", "on it", "word " * 3000)),
        turn_context=st.sampled_from(("", "It began.", "And so on.\n" * 900)),
    )


def constraints(*texts: str, quoted: int = 0) -> StructuredSummary:
    return StructuredSummary(constraints=texts, quoted=quoted)


def merged(*answers: StructuredSummary, room: SummaryRoom = ROOM) -> StructuredSummary:
    """One compaction after the other."""
    summary: StructuredSummary | None = None
    for answer in answers:
        summary = merge_summaries(summary, answer, room)
    assert summary
    return summary


@given(st.lists(answers(), min_size=2, max_size=6))
def test_no_answer_pushes_out_what_an_earlier_one_said(told: Sequence[StructuredSummary]) -> None:
    summary = merged(told[0])
    for answer in told[1:]:
        after = merge_summaries(summary, answer, ROOM)
        for name, share in LASTING.items():
            before = getattr(summary, name)
            assert [item for item in getattr(after, name) if item in before] == list(before)
            both = (*before, *getattr(answer, name))
            if sum(map(ROOM.size, both)) <= int(share * ROOM.history):
                assert set(before) <= set(getattr(after, name)), "with room nothing goes"
        summary = after


@for_each(
    ("old", "new"),
    [
        ("Never touch db-2!", "never touch  db-2"),
        ("Never touch `db-2`.", "Never touch db-2"),
        ("Use port 8080", "use port 8080."),
    ],
)
def test_the_same_words_are_one_constraint_in_its_older_wording(old: str, new: str) -> None:
    assert merged(constraints(old), constraints(new)).constraints == (old,)


@for_each(
    ("old", "new"),
    [
        ("Never touch db-1.", "Never touch db-2."),
        ("Deploy staging before production.", "Deploy production before staging."),
        ("Do not deploy on Friday.", "Do not deploy."),
        ("Always ask before a push.", "Never ask before a push."),
        ("<", ">"),
    ],
)
def test_what_differs_in_one_word_is_another_constraint(old: str, new: str) -> None:
    assert merged(constraints(old), constraints(new)).constraints == (old, new)


def test_a_model_that_rephrases_pushes_nothing_out() -> None:
    first = constraints("Amounts are in cents.")
    told = [
        constraints(f"As said in part {n}, leave the billing API as it is.") for n in range(300)
    ]
    found = merged(first, *told).constraints
    assert found[:2] == (*first.constraints, *told[0].constraints)
    assert sum(map(ROOM.size, found)) <= LASTING["constraints"] * ROOM.history


def test_the_users_own_words_go_before_what_a_model_makes_up() -> None:
    made_up = [constraints(f"Rule {n} about {n * 7} {n * 11} {n * 13}.") for n in range(100)]
    own = [f"I want word-{n} kept." for n in range(5)]
    found = merged(*made_up, *(constraints(text, quoted=1) for text in own), *made_up)
    assert found.constraints[: found.quoted] == tuple(own)
    assert len(found.constraints) > len(own)


def test_endless_texts_and_lists_of_one_answer_are_cut() -> None:
    """8,000 tokens of a summariser of somebody's own push nothing out."""
    first = StructuredSummary(
        constraints=("Never touch db-2!",), facts=("Port 48231.",), decisions=(Decision(decision="CHF."),)
    )  # fmt: skip
    flood = StructuredSummary(
        task="long " * 3000, state="long " * 3000, plan="long " * 3000, turn_context="long\n" * 3000,
        facts=("huge " * 2000, *(f"fact {n} of many" for n in range(2000))),
        constraints=tuple(f"rule {n} is {n * n}" for n in range(2000)),
        completed=(Work(component="x", action="long " * 3000),) * 3,
    )  # fmt: skip
    found = merged(first, flood, flood)
    assert found.constraints[0] == "Never touch db-2!"
    assert found.facts[0] == "Port 48231."
    assert found.decisions == first.decisions
    assert found.state.endswith("…")


# The beginning of a turn.


def test_the_beginning_of_a_turn_survives_every_later_fold() -> None:
    told = [StructuredSummary(turn_context=f"Step {n} begins.\nStep {n} ends.") for n in range(200)]
    context = merged(*told).turn_context
    lines = context.split("\n")
    assert lines[:2] == ["Step 0 begins.", "Step 0 ends."]
    assert lines[-2:] == ["Step 199 begins.", "Step 199 ends."]
    assert lines.count(GAP) == 1
    assert ROOM.count(context) <= ROOM.prefix


@given(st.lists(st.text("ab \n", max_size=60), min_size=1, max_size=12), st.integers(8, 60))
def test_however_it_is_told_its_first_words_stay(told: Sequence[str], prefix: int) -> None:
    room = SummaryRoom(history=800, prefix=prefix, count=ROOM.count)
    first = merged(StructuredSummary(turn_context=told[0]), room=room).turn_context
    last = merged(*(StructuredSummary(turn_context=text) for text in told), room=room).turn_context
    kept = first.split("\n")[0][: prefix // 2]
    assert last.startswith(kept) or kept.startswith(last.split("\n")[0].rstrip("…"))
    assert room.count(last) <= prefix


def test_what_fills_its_room_exactly_is_let_in() -> None:
    """A token less, and it is not."""
    both = constraints("never touch db-1", "gamma and delta are read only")
    needed = [sum(map(ROOM.size, both.constraints[:count])) for count in (1, 2)]
    for history in range(140, 400):
        room = SummaryRoom(history=history, prefix=0, count=ROOM.count)
        left = int(LASTING["constraints"] * history)
        kept = merged(both, room=room).constraints
        assert kept == both.constraints[: sum(size <= left for size in needed)]
