"""Externalize: which results go to the artifact store, and what the pointer says."""

import re
from typing import Any

import attrs

from blocks import Envelope, ImagePart, TextPart, artifact_id, text_of
from render import Context, Json, Proposal, ToolPolicy, total_tokens
from render.compaction._ladder import apply_proposals
from tests import _builders as make
from tests._builders import steady
from tests._table import for_each
from tests.render.compaction.scenes import Scene, scene

FIRST_LINE = re.compile(
    r"\[moved to the artifact store: \d+ tokens of (?P<about>.*); "
    r'(?:read_artifact\(|name )"(?P<id>art-[0-9a-f]{32})"(?:\)| and it is shown again)\]'
)


def within(**policy: Any) -> Context:
    given = {"externalize_tokens": 300, "pointer_tokens": 40, **policy}
    return make.context(policy=steady(**given), can_externalize=True)


def proposed(drawn: Scene, context: Context | None = None) -> list[Proposal]:
    return list(drawn.ground(context or within()).proposals("externalize"))


# Which.


@for_each(
    "picture",
    [
        # the large ones, whatever their durability, but not what may be cleared anyway
        """
        P  c1 r1   c2 r2  c3 r3r  c4 r4x  c5 r5e  |  c6 r6
        5  5  500  5  20  5  500  5  500  5  500     5  500
        .  .  E    .  .   .  E    .  E    .  .       .  .
        """,
        # never what the user or the agent said
        """
        P    c1 r1   f    n    p    a    |  c2 r2
        500  5  500  500  500  500  500     5  500
        .    .  E    .    .    .    .       .  .
        """,
        # each of a parallel step on its own
        """
        P  ( c1 c2 c3 ) r2   r1  r3   |  a
        5    5  5  5    500  5   500     5
        .    .  .  .    E    .   E       .
        """,
        # nothing of the tail, nothing of a log that is all tail
        """
        P  c1 r1   |  c2 r2
        5  5  200     5  500
        .  .  .       .  .
        """,
    ],
)
def test_large_results_before_the_tail_go(picture: str) -> None:
    drawn = scene(picture)
    assert drawn.after(proposed(drawn)) == drawn.expected


ONE = """
P  c1 r1   |  c2 r2
5  5  500     5  5
.  .  E       .  .
"""


def test_without_an_artifact_store_nothing_goes() -> None:
    drawn = scene(ONE)
    assert proposed(drawn, make.context(policy=steady(externalize_tokens=1))) == []


def test_a_tool_may_have_a_threshold_of_its_own() -> None:
    drawn = scene(
        """
        P  c1 r1   c2 r2   c3 r3   |  a
        5  5  500  5  500  5  200     5
        .  .  .    .  E    .  E       .
        """
    )
    tools = {
        "tool_1": ToolPolicy(externalize_tokens=1000),
        "tool_3": ToolPolicy(externalize_tokens=0),
    }
    assert drawn.after(proposed(drawn, within(tools=tools))) == drawn.expected


def test_the_policy_says_what_is_ephemeral() -> None:
    drawn = scene(ONE)
    tools = {"tool_1": ToolPolicy(durability="ephemeral")}
    assert proposed(drawn, within(tools=tools)) == []


@for_each("reason", ["requested", "expired", "cleared", "externalized", "dropped"])
def test_what_is_hidden_already_stays_as_it_is(reason: Any) -> None:
    drawn = scene(ONE).with_hidden("r1", "w " * 900, reason)
    assert proposed(drawn) == []


def test_a_clipped_result_goes_as_a_whole() -> None:
    drawn = scene(ONE).with_hidden("r1", "beginning " * 200, "clipped")
    [moved] = proposed(drawn)
    assert moved.artifact == artifact_id(text_of(drawn["r1"]).encode())


def test_a_result_with_a_picture_stays() -> None:
    """The artifact would hold its text alone."""
    parts = (TextPart(text="x" * 4000), ImagePart(data="aGVsbG8="))
    view = make.view_of(
        make.prompt("Go."), make.call("c1"), make.result("c1", parts=parts), make.said("a")
    )
    drawn = Scene((), (), view, 4, "")
    assert proposed(drawn) == []


# The pointer.


@for_each("sensitivity", ["confidential", "restricted"])
def test_a_pointer_quotes_nothing_of_what_is_encrypted(sensitivity: Any) -> None:
    drawn = scene(ONE)
    context = within(tools={"tool_1": ToolPolicy(sensitivity=sensitivity)}, pointer_tokens=200)
    [moved] = proposed(drawn, attrs.evolve(context, can_encrypt=True))
    [open_] = proposed(drawn, within(pointer_tokens=200))
    assert "\n" not in moved.replacement
    assert moved.replacement.endswith("of tool_1 /c1.py; read back at tc:t1.c1.result]")
    assert FIRST_LINE.match(open_.replacement.partition("\n")[0])


@for_each("tokens", [0, 3, 40, 400])
def test_the_first_line_of_a_pointer_is_a_format(tokens: int) -> None:
    """However little room there is, the id is whole, and it is the id of what was there."""
    drawn = scene(ONE)
    [moved] = proposed(drawn, within(pointer_tokens=tokens))
    line, *_ = moved.replacement.splitlines()
    found = FIRST_LINE.fullmatch(line)
    assert found
    assert found["about"] == "tool_1 /c1.py"
    assert found["id"] == moved.artifact == artifact_id(text_of(drawn["r1"]).encode())


def test_a_pointer_shows_how_the_content_begins_and_ends() -> None:
    lines = [f"def helper_{n}(): return compute_{n}" for n in range(300)]
    view = make.view_of(
        make.prompt("Go."),
        make.call("c1", "t1", "r1", name="read_file", path="a.py"),
        make.result("c1", "\n".join(lines)),
        make.said("Done.", "t1", "r3"),
    )
    [moved] = proposed(Scene((), (), view, 4, ""))
    _, _, shown = moved.replacement.partition("\n")
    assert shown.startswith(lines[0])
    assert shown.endswith(lines[-1])
    assert "compute_150" not in shown


@for_each("tokens", [0, 5, 20, 100])
def test_a_pointer_is_bounded(tokens: int) -> None:
    drawn = scene(ONE)
    [moved] = proposed(drawn, within(pointer_tokens=tokens))
    _, _, shown = moved.replacement.partition("\n")
    assert make.CharCounter().count(shown) <= tokens


def test_a_pointer_says_what_it_frees() -> None:
    drawn = scene(ONE)
    [moved] = proposed(drawn)
    before = total_tokens(drawn.view, within())
    after = total_tokens(apply_proposals(drawn.view, [moved], within()), within())
    assert before - after == moved.tokens_freed > 0


def test_a_pointer_longer_than_what_it_stands_for_is_not_worth_it() -> None:
    drawn = scene("P c1 r1 | a\n5 5 20 5")
    assert proposed(drawn, within(externalize_tokens=0)) == []


def test_the_proposal_says_whose_content_it_is() -> None:
    known = Envelope(sensitivity="restricted")
    view = make.view_of(
        make.prompt("Go."),
        make.call("c1", name="bank"),
        make.result("c1", "x" * 4000, envelope=known),
        make.said("a"),
    )
    drawn = Scene((), (), view, 4, "")
    assert proposed(drawn) == []  # no store takes it without a key
    [moved] = proposed(drawn, attrs.evolve(within(), can_encrypt=True))
    assert moved.sensitivity == "restricted"
    assert moved.path == "tc:t1.c1.result"
    tools = {"bank": ToolPolicy(sensitivity="public")}
    [public] = proposed(drawn, within(tools=tools))
    assert public.sensitivity == "public"


def test_what_was_hidden_on_request_does_not_come_back_in_a_pointer() -> None:
    """The user hid the call; its result's pointer would have quoted it."""
    drawn = scene(ONE).with_hidden("c1", "[hidden]", "requested")
    [moved] = proposed(drawn)
    assert "/c1.py" not in moved.replacement


@for_each(
    ("tools", "way_back"),
    [
        ((), "name "),
        (({"name": "read_artifact"},), "read_artifact("),
        (({"name": "mcp__foldline__read_artifact"},), "mcp__foldline__read_artifact("),
        (({"function": {"name": "foldline_read_artifact"}},), "foldline_read_artifact("),
        (({"name": "ns", "tools": [{"name": "read_artifact"}]},), "ns.read_artifact("),
        (({"name": "spread_artifact"},), "name "),
    ],
)
def test_the_pointer_names_the_tool_only_where_there_is_one(
    tools: tuple[Json, ...], way_back: str
) -> None:
    context = make.context(policy=steady(externalize_tokens=300), can_externalize=True, tools=tools)
    [moved] = proposed(scene(ONE), context)
    assert f'; {way_back}"{moved.artifact}"' in moved.replacement
