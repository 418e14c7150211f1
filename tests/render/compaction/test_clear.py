"""Clear: durability says what may go, drift whether what could be read again still can."""

from typing import Any

from blocks import CallId, Determinism
from render import Context, Proposal, ToolPolicy, total_tokens
from render.compaction._ladder import apply_proposals
from tests import _builders as make
from tests._builders import steady
from tests._table import for_each
from tests.render.compaction.scenes import MARKED, Scene, scene


def within(**policy: Any) -> Context:
    given = {"prune_block_tokens": 100, "pointer_tokens": 40, **policy}
    return make.context(policy=steady(**given))


def proposed(drawn: Scene, context: Context | None = None, **more: Any) -> list[Proposal]:
    return list(drawn.ground(context or within(), **more).proposals("clear"))


CHANGED = Determinism(version="2")


@for_each(
    ("picture", "current"),
    [
        # ephemeral and anchoring results are cleared, non-replayable ones never; small ones stay
        (
            """
            P  c1 r1   c2 r2e  c3 r3x  c4 r4  |  c5 r5
            5  5  500  5  500  5  500  5  20     5  500
            .  .  C    .  C    .  .    .  .      .  .
            """,
            {},
        ),
        # replayable: only while somebody can say that the source is what it was
        (
            """
            P  c1 r1r  c2 r2r  c3 r3r  |  a
            5  5  500  5  500  5  500     5
            .  .  C    .  .    .  .       .
            """,
            {"c1": MARKED, "c2": CHANGED},
        ),
        # what a probe finds counts for replayable results alone
        (
            """
            P  c1 r1   c2 r2e  c3 r3x  |  a
            5  5  500  5  500  5  500     5
            .  .  C    .  C    .  .       .
            """,
            {"c1": CHANGED, "c2": CHANGED, "c3": MARKED},
        ),
    ],
)
def test_durability_and_drift_say_what_is_cleared(
    picture: str, current: dict[CallId, Determinism]
) -> None:
    drawn = scene(picture)
    assert drawn.after(proposed(drawn, current=current)) == drawn.expected


def read(call_id: str, content: str, path: str = "/a.py") -> list[Any]:
    known = {"durability": "replayable", "determinism": Determinism.of(content)}
    return [
        make.call(call_id, "t1", call_id, name="read_file", path=path),
        make.result(call_id, content * 500, envelope=make_envelope(**known)),
    ]


def make_envelope(**fields: Any) -> Any:
    from blocks import Envelope

    return Envelope(**fields)


def write(call_id: str, path: str = "/a.py") -> list[Any]:
    return [
        make.call(call_id, "t1", call_id, name="write_file", path=path),
        make.result(call_id, "ok"),
    ]


@for_each(
    ("log", "cleared"),
    [
        ([read("c1", "one")], []),
        ([read("c1", "one"), read("c2", "one")], ["c1"]),
        ([read("c1", "one"), read("c2", "two")], []),
        ([read("c1", "one"), read("c2", "one"), write("c3")], []),
        ([read("c1", "one"), write("c3"), read("c2", "one")], ["c1"]),
        ([read("c1", "one"), read("c2", "one"), write("c3", "/b.py")], ["c1"]),
        ([read("c1", "one", "/b.py"), read("c2", "one")], []),
    ],
    ids=[
        "read once",
        "read again, equal",
        "read again, changed",
        "written since",
        "written between, and equal again",
        "another file was written",
        "another file was read",
    ],
)
def test_without_a_probe_a_later_read_can_tell(log: list[list[Any]], cleared: list[str]) -> None:
    blocks = [make.prompt("Go."), *(block for part in log for block in part), make.said("a")]
    drawn = Scene((), tuple(blocks), make.view_of(*blocks), len(blocks), "")
    paths = [p.replacement.rpartition("read back at ")[2] for p in proposed(drawn)]
    assert paths == [f"tc:t1.{call_id}.result]" for call_id in cleared]


ONE = """
P  c1 r1   |  a
5  5  500     5
"""


@for_each(
    ("durability", "letter"),
    [("ephemeral", "C"), ("anchoring", "C"), ("replayable", "."), ("non-replayable", ".")],
)
def test_the_policy_s_durability_counts(durability: Any, letter: str) -> None:
    drawn = scene(ONE)
    tools = {"tool_1": ToolPolicy(durability=durability)}
    assert drawn.after(proposed(drawn, within(tools=tools))) == f". . {letter} ."


def test_an_anchoring_result_leaves_excerpts_an_ephemeral_one_its_envelope_alone() -> None:
    drawn = scene(ONE)
    [anchoring] = proposed(drawn)
    tools = {"tool_1": ToolPolicy(durability="ephemeral")}
    [ephemeral] = proposed(drawn, within(tools=tools))
    line = "[cleared: tool_1 /c1.py; success; read back at tc:t1.c1.result]"
    assert ephemeral.replacement == line
    assert anchoring.replacement.splitlines()[0] == line
    assert "see src/file_1.py" in anchoring.replacement


@for_each("reason", ["requested", "expired", "externalized", "dropped"])
def test_what_is_hidden_already_stays_as_it_is(reason: Any) -> None:
    drawn = scene(ONE).with_hidden("r1", "w " * 900, reason)
    assert proposed(drawn) == []


def test_a_clipped_result_is_cleared() -> None:
    drawn = scene(ONE).with_hidden("r1", "beginning " * 200, "clipped")
    assert len(proposed(drawn)) == 1


def test_a_placeholder_says_what_it_frees_and_stays_a_result() -> None:
    drawn = scene(ONE)
    made = proposed(drawn)
    before = total_tokens(drawn.view, within())
    after = apply_proposals(drawn.view, made, within())
    assert before - total_tokens(after, within()) == made[0].tokens_freed > 0
    shown = make.shown(after)
    assert shown.violations == ()
    results = [
        c["content"] for m in shown.messages for c in m["content"] if c["type"] == "tool_result"
    ]
    assert results == [made[0].replacement]


def test_a_proposal_says_what_it_is_told_and_what_it_frees() -> None:
    scope = scene(
        """
        P  c1 r1   |  c2 r2
        5  5  500     5  500
        """
    ).ground(within())
    (answer,) = scope.results()
    made = scope.clear(answer, "x" * 40)
    assert made == Proposal(
        action="clear",
        blocks=(answer.result.id,),
        first=3,
        last=3,
        turns=(answer.result.turn,),
        tokens_freed=scope.freed_by(answer, "x" * 40),
        replacement="x" * 40,
    )
    assert scope.clear(answer, "x", "why").reason == "why"
    assert scope.freed_by(answer, "x" * 40) == scope.freed_by(answer, "") - 10
