"""What a request hands over: edits that could be written from it, standing instructions, whole prompts."""

from collections.abc import Iterable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    Block,
    BlockId,
    CallId,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserAttachment,
    text_of,
)
from persistence.sessions import Arrived, Item, Responded, Session
from tests._table import for_each
from tests.timeline.replay.invented import invented
from tests.timeline.replay.talk import TURN, asked, talk
from timeline.replay import ReplayOptions, replay
from timeline.replay._handover import Handover, Laid, MemoryMeter, edits_of, laid_of

PATCH = """*** Begin Patch
*** Update File: a.py
@@ def total():
     amount = 0
-    return amount
+    return amount + 1
 }
*** Update File: b.py
*** Move to: c.py
-removed_line = 1
*** Add File: d.py
+new_line = 1
*** End Patch"""


def call(**arguments: Any) -> ToolCall:
    return ToolCall(
        id=BlockId("c"), turn=TURN, call_id=CallId("call"), name="any_tool", input=arguments
    )


def edit(old: str) -> ToolCall:
    return call(path="a.py", old_string=old, new_string="something else")


def session(*steps: ToolCall | Block) -> Session:
    """A session in which calls are responses and everything else arrived."""
    items: list[Item] = [
        Responded(at=float(at), id=f"r{at}", blocks=(step,))
        if isinstance(step, ToolCall)
        else Arrived(at=float(at), blocks=(step,))
        for at, step in enumerate(steps)
    ]
    return Session(name="s", format="invention", items=tuple(items))


def returned(text: str) -> ToolResult:
    return ToolResult(
        id=BlockId("o"), turn=TURN, call_id=CallId("call"), parts=(TextPart(text=text),)
    )


def attached(text: str, standing: str) -> UserAttachment:
    part = TextPart(text=text)
    return UserAttachment(id=BlockId("a"), turn=TURN, name="n", part=part, standing=standing)


def handed(history: Session, *texts: str) -> Handover:
    """The measures of a session whose calls had these texts."""
    meter = MemoryMeter.of(history)
    for number, text in enumerate(texts):
        meter.measure_text(number, text)
    return meter.handover


# Edits.


@for_each("key", ["old_string", "oldText", "old_str", "oldString"])
def test_the_old_text_of_every_edit_tool_counts(key: str) -> None:
    made = call(**{"path": "a.py", key: "first_line()\n    second_line()\n}"})
    assert list(edits_of([made])) == [("first_line()", "second_line()")]


def test_each_of_many_edits_in_one_call_is_one() -> None:
    made = call(edits=[{"oldText": "first_line()"}, {"oldText": "second_line()"}])
    assert sorted(edits_of([made])) == [("first_line()",), ("second_line()",)]


@for_each(
    "arguments",
    [{"input": PATCH}, {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}],
)
def test_each_file_of_a_patch_is_an_edit_by_its_removed_and_context_lines(
    arguments: dict[str, Any],
) -> None:
    assert list(edits_of([call(**arguments)])) == [
        ("amount = 0", "return amount"),
        ("removed_line = 1",),
    ]


@for_each(
    "arguments",
    [{}, {"old_string": ""}, {"old_string": "}\n  else:"}, {"old_string": 7}, {"text": "- a list"}],
)
def test_what_names_no_line_of_eight_characters_is_no_edit(arguments: dict[str, Any]) -> None:
    assert not list(edits_of([call(**arguments)]))


def test_arguments_of_any_depth_are_read() -> None:
    nested: Any = {"old_str": "deep_down()"}
    for _ in range(5_000):
        nested = [{"in": nested}]
    assert list(edits_of([call(all=nested)])) == [("deep_down()",)]


def test_an_edit_needs_the_lines_that_the_history_has_shown() -> None:
    history = session(
        call(path="a.py"), returned("  1→def shown():\n  2→    pass_it_on()"), edit("def shown():")
    )
    assert [needs.edits for needs in laid_of(history)] == [(), (("def shown():",),)]
    unseen = session(edit("def shown():\n    never_seen()"), returned("def shown():"))
    assert [needs.edits for needs in laid_of(unseen)] == [()]


LINES = "def first():\n    return 'one'\n\ndef second():\n    return 'two'\n"
EDITS = session(
    call(path="a.py"),
    returned(LINES),
    edit("def first():\n    return 'one'"),
    edit("def second():"),
)


@for_each(
    ("second", "third", "share"),
    [
        (LINES, LINES, 1.0),
        ("  1→def first():\n  2→    return 'one'", "def second():", 1.0),
        ("def first():", "x\n\tdef second():  ", 0.5),
        ("def first(): return 'one'", "see def second():", 0.0),
        ("", "", 0.0),
    ],
)
def test_an_edit_can_be_written_if_every_old_line_is_there_whole(
    second: str, third: str, share: float
) -> None:
    assert handed(EDITS, "", second, third).edits == share


def test_every_edit_counts_the_same_whichever_call_made_it() -> None:
    both = call(edits=[{"oldText": "def first():"}, {"oldText": "return 'one'"}])
    history = session(call(path="a.py"), returned(LINES), both, edit("def second():"))
    assert handed(history, "", "", "def second():").edits == pytest.approx(1 / 3, abs=1e-4)


def test_without_an_edit_there_is_nothing_to_say() -> None:
    assert handed(session(call(path="a.py")), "everything") == Handover()


# Standing instructions.


RULES = "# AGENTS.md\nNever push to main.\nRun the tests first.\nshort"


def test_instructions_are_kept_by_the_line() -> None:
    history = session(attached(RULES, "rules:AGENTS.md"), call(path="a.py"))
    assert laid_of(history)[0].standing == ("Never push to main.", "Run the tests first.")
    assert handed(history, "> Never push to main.\n  Run the tests first.").standing == 0.5
    assert handed(history, RULES).standing == 1


def test_only_the_newest_of_a_kind_stands() -> None:
    operator = SystemMessage(
        id=BlockId("s"), turn=TURN, text="Answer in English.", standing="rules:operator"
    )
    history = session(
        attached("The old rule of all.", "rules:AGENTS.md"),
        operator,
        attached("The new rule of all.", "rules:AGENTS.md"),
        attached("It is no instruction.", ""),
        call(path="a.py"),
    )
    assert set(laid_of(history)[0].standing) == {"The new rule of all.", "Answer in English."}


def test_what_a_client_appended_to_a_result_stands_too() -> None:
    reminder = (
        "<system-reminder>\nContents of /app/CLAUDE.md:\nNever push to main.\n</system-reminder>"
    )
    (needs,) = laid_of(session(returned(f"some output\n{reminder}"), call(path="a.py")))
    assert "Never push to main." in needs.standing
    assert "some output" not in needs.standing


# Prompts.


def test_a_prompt_is_there_whole_or_not() -> None:
    long = "Please do this. " + "x" * 400
    history = session(asked("p1", long), asked("p2", " Go on.\n"), asked("p3", " "), call())
    assert laid_of(history)[0].prompts == (long, "Go on.")
    assert handed(history, f"{long}\nGo on.").prompts == 1
    assert handed(history, f"{long[:300]} [cut] Go on.").prompts == 0.5


# By all sessions.


lines = st.sampled_from(
    ["def total():", "    return amount", "}", "12→def total():", "rule number 1"]
)
texts = st.lists(lines, max_size=4).map("\n".join)
steps: st.SearchStrategy[ToolCall | Block] = st.one_of(
    texts.map(edit),
    texts.map(returned),
    st.tuples(texts, st.sampled_from(["rules:a", "rules:b"])).map(lambda p: attached(*p)),
    texts.map(lambda text: asked("p", text)),
)
histories = st.lists(steps, max_size=12).map(lambda found: session(*found))


def everything(items: Iterable[Item]) -> str:
    return "\n".join(text_of(block) for item in items for block in item.blocks)


@given(histories)
def test_a_request_with_everything_has_everything_and_an_empty_one_nothing(
    history: Session,
) -> None:
    calls = len(history.calls)
    whole = handed(history, *[everything(history.items)] * calls)
    assert set(attrs.astuple(whole)) <= {None, 1.0}
    assert set(attrs.astuple(handed(history, *[""] * calls))) <= {None, 0.0}


@given(histories, st.lists(texts, min_size=12, max_size=12))
def test_every_measure_is_a_share_and_more_text_has_no_less(
    history: Session, requests: list[str]
) -> None:
    calls = len(history.calls)
    less = attrs.astuple(handed(history, *requests[:calls]))
    more = attrs.astuple(handed(history, *(f"{text}\nrule number 1" for text in requests[:calls])))
    for before, after in zip(less, more, strict=True):
        assert (before is None) == (after is None)
        assert before is None or 0 <= before <= after <= 1


@given(histories)
def test_nothing_is_needed_that_had_not_been_there(history: Session) -> None:
    needs = iter(laid_of(history))
    for at, item in enumerate(history.items):
        if isinstance(item, Responded):
            before = everything(history.items[:at])
            found: Laid = next(needs)
            assert all(line in before for old in found.edits for line in old)
            assert all(line in before for line in (*found.standing, *found.prompts))


# In a replay.


def test_only_calls_whose_full_history_exceeds_the_window_are_measured() -> None:
    roomy = replay(invented(), ReplayOptions(window=100_000, counter="estimate"))
    assert roomy.handover == Handover()
    assert roomy.to_json()["handover"] == {"edits": None, "standing": None, "prompts": None}
    tight = replay(invented(), ReplayOptions(window=3_000, counter="estimate"))
    assert tight.handover.prompts == 1


def test_a_talk_without_edits_or_instructions_has_only_prompts() -> None:
    (needs, _) = laid_of(talk(("one", "two"), ("three", "four")))
    assert needs == Laid(prompts=("Please begin.",))
