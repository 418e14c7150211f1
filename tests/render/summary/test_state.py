"""Where the work stands: the newest state of what calls and results tell, for every client's tools."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, Envelope, Progress, Step, ToolResult
from render.summary._calls import runs_of
from render.summary._state import (
    COMMITS_LEAST,
    GOAL_CHARACTERS,
    STEPS_MAX,
    advance,
    fitted,
    text,
)
from tests._builders import call, followup, note, prompt, result, said, steer, view_of
from tests._table import for_each
from tests.render.summary.samples import count
from tests.strategies import Play, steps


def after(*items: Any, before: Progress | None = None) -> Progress:
    entries = view_of(*items).entries
    return advance(before or Progress(), entries, runs_of(entries))


# The goal.


def test_the_goal_is_the_newest_request_with_its_turn_and_label() -> None:
    state = after(
        prompt("Write a cart in Go. It has a total."), said("Done."),
        followup("Two things. The total is wrong for empty carts,\nand it is slow.", "t2"),
    )  # fmt: skip
    assert text(state) == (
        "Goal, as the user last put it (t2 [v3]): Two things. The total is wrong for empty carts, and it is slow."
    )


@for_each(
    "words",
    [
        "yes",
        "OK, go ahead!",
        "continue",
        "yes please do it",
        "looks good, thanks",
        "That worked!!",
        "👍",
        "c",
        "[2]",
    ],
)
def test_a_text_that_only_agrees_or_chooses_is_no_goal(words: str) -> None:
    assert after(prompt("Write a cart in Go."), steer(words, "t2")).goal == "Write a cart in Go."


def test_a_command_is_told_as_the_user_typed_it() -> None:
    written = "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n<command-args>a cart</command-args>"
    assert after(prompt(written)).goal == "/plan a cart"


def test_a_long_request_is_told_by_its_beginning() -> None:
    goal = after(prompt("<task>\n# Goal: " + "word " * 500)).goal
    assert goal.startswith("Goal: word word")
    assert len(goal) <= GOAL_CHARACTERS


# The steps.


def steps_of(name: str, answer: str = "ok", **arguments: Any) -> tuple[Step, ...]:
    return after(call("a", name=name, **arguments), result("a", answer)).steps


@for_each(
    "name, arguments",
    [
        ("TodoWrite", {"todos": [{"content": "one", "status": "completed", "activeForm": "doing one"}, {"content": "two", "status": "pending", "activeForm": "doing two"}]}),
        ("update_plan", {"explanation": "x", "plan": [{"step": "one", "status": "completed"}, {"step": "two", "status": "pending"}]}),
        ("todowrite", {"todos": [{"id": "1", "content": "one", "status": "completed", "priority": "high"}, {"id": "2", "content": "two", "status": "pending", "priority": "low"}]}),
        ("write_todos", {"todos": [{"description": "one", "status": "completed"}, {"description": "two", "status": "pending"}]}),
        ("task_tracker", {"command": "plan", "task_list": [{"id": "1", "title": "one", "status": "done", "notes": "n"}, {"id": "2", "title": "two", "status": "todo"}]}),
        ("manage_todo_list", {"todoList": [{"id": 1, "title": "one", "description": "d", "status": "completed"}, {"id": 2, "title": "two", "status": "not-started"}]}),
        ("of_our_own", {"items": [{"text": "one", "done": True}, {"text": "two", "done": False}]}),
    ],
    ids=["Claude Code", "Codex", "opencode", "Gemini CLI, LangChain", "OpenHands", "Copilot", "own"],
)  # fmt: skip
def test_a_list_of_steps_is_known_by_its_shape(name: str, arguments: dict[str, Any]) -> None:
    one, two = steps_of(name, **arguments)
    assert (one.text, two.text) == ("one", "two")
    told = text(Progress(steps=(one, two), steps_seen=2))
    assert told.startswith("Steps, as of [v2]:\n- done: 1 one\n- 2 [")


@for_each(
    "name, arguments",
    [
        ("ship", {"orders": [{"name": "a", "status": "shipped"}, {"name": "b", "status": "returned"}]}),
        ("find", {"items": [{"name": "a"}, {"name": "b"}]}),
        ("x", {"todos": []}),
        ("x", {"todos": [1, {"content": "a", "status": "pending"}]}),
        ("Write", {"file_path": "TODO.md", "content": "- [ ] a\n- [x] b"}),
    ],
)  # fmt: skip
def test_other_lists_are_no_steps(name: str, arguments: dict[str, Any]) -> None:
    assert steps_of(name, **arguments) == ()


def test_a_later_list_replaces_the_earlier_one() -> None:
    first = [
        call("a", name="update_plan", plan=[{"step": "one", "status": "pending"}]),
        result("a"),
    ]
    later = [
        call("b", name="update_plan", plan=[{"step": "two", "status": "pending"}]),
        result("b"),
    ]
    assert [step.text for step in after(*first, *later).steps] == ["two"]
    assert [step.text for step in after(*later, before=after(*first)).steps] == ["two"]


def test_a_list_that_is_merged_updates_the_earlier_one() -> None:
    first = [call("a", name="todo_write", merge=False, todos=[{"id": "1", "content": "one", "status": "pending"}, {"id": "2", "content": "two", "status": "pending"}]), result("a")]  # fmt: skip
    later = [call("b", name="todo_write", merge=True, todos=[{"id": "1", "content": "one", "status": "completed"}]), result("b")]  # fmt: skip
    assert [(s.text, s.status) for s in after(*first, *later).steps] == [
        ("one", "completed"),
        ("two", "pending"),
    ]


def created(number: int, subject: str) -> list[Block]:
    answer = f"Task #{number} created successfully: {subject}"
    return [
        call(f"c{number}", name="TaskCreate", subject=subject, description="Long", activeForm="x"),
        result(f"c{number}", answer),
    ]


def updated(number: int, status: str) -> list[Block]:
    return [
        call(f"u{number}", name="TaskUpdate", taskId=str(number), status=status),
        result(f"u{number}", f"Updated task #{number} status"),
    ]


def test_tasks_are_followed_one_by_one_across_folds() -> None:
    tasks = after(*created(1, "Read"), *created(2, "Write"), *created(3, "Test"))
    assert [(s.id, s.text, s.status) for s in tasks.steps] == [
        ("1", "Read", "pending"), ("2", "Write", "pending"), ("3", "Test", "pending"),
    ]  # fmt: skip
    later = after(*updated(1, "completed"), *updated(2, "in_progress"), *updated(3, "deleted"), before=tasks)  # fmt: skip
    assert text(later).splitlines()[1:] == ["- done: 1 Read", "- 2 [in_progress] Write"]


def test_a_list_that_a_tool_prints_replaces_the_earlier_one() -> None:
    """Claude Code's `TaskList`, which shows what other agents did, too."""

    def list_of(answer: str) -> list[Block]:
        return [call("l", name="TaskList"), result("l", answer)]

    tasks = after(*created(1, "Read"), *updated(1, "in_progress"))
    later = after(*list_of("#2 [pending] Write [blocked by #1]\n#1 [completed] Read"), before=tasks)
    assert text(later).splitlines()[1:] == ["- done: 1 Read", "- 2 [pending] Write [blocked by #1]"]
    assert after(*list_of("No tasks found"), before=later).steps == ()
    assert after(*list_of("Nothing to see"), before=later).steps == later.steps


def test_an_update_of_a_task_that_there_is_not_changes_nothing() -> None:
    tasks = after(*created(1, "Read"))
    update = [call("u", name="TaskUpdate", taskId="1", status="completed"), result("u", "Task not found")]  # fmt: skip
    assert after(*update, before=tasks).steps == tasks.steps


def test_tasks_that_begin_when_all_are_done_are_a_list_of_their_own() -> None:
    state = after(*created(1, "Read"), *updated(1, "completed"), *created(2, "Write"))
    assert [step.text for step in state.steps] == ["Write"]


def test_a_list_that_is_wholly_done_is_said_once() -> None:
    done = after(call("a", name="TodoWrite", todos=[{"content": "one", "status": "completed"}]), result("a"))  # fmt: skip
    assert "- done: 1 one" in text(done)
    assert after(said("Next."), before=done).steps == ()


def test_steps_from_before_the_newest_request_say_so() -> None:
    plan = [call("a", name="update_plan", plan=[{"step": "one", "status": "pending"}]), result("a")]
    state = after(prompt("Write a cart."), *plan, prompt("Now the docs of the cart.", "t2"))
    assert "Steps, as of [v3], before the newest request:" in text(state)


def test_steps_that_the_work_on_a_newer_request_left_alone_are_over() -> None:
    plan = [call("a", name="update_plan", plan=[{"step": "one", "status": "pending"}]), result("a")]
    edit = [call("b", name="Write", file_path="a.md", content="A cart."), result("b")]
    asked, other = (
        prompt("Now the docs of the cart.", "t2"),
        prompt("And a test of the docs.", "t3"),
    )
    assert after(prompt("Write a cart."), *plan, asked, *edit, other).steps == ()
    assert after(prompt("Write a cart."), *plan, asked, other).steps, "only words were added"
    assert after(prompt("Write a cart."), *edit, *plan, asked, other).steps


def test_steps_that_are_all_done_are_over_with_the_next_request() -> None:
    done = [call("a", name="update_plan", plan=[{"step": "one", "status": "done"}]), result("a")]
    assert after(prompt("Write a cart."), *done, prompt("Now the docs of it.", "t2")).steps == ()


def test_a_list_that_a_tool_refused_is_none() -> None:
    refused = [call("a", name="TodoWrite", todos=[{"content": "x", "status": "pending"}]), result("a", "no", is_error=True)]  # fmt: skip
    assert after(*refused).steps == ()


# The whole.


def test_nothing_known_is_nothing_said() -> None:
    assert text(Progress()) == ""
    assert text(after(said("Hello."), note("x"))) == ""


def test_a_hidden_block_is_not_quoted() -> None:
    view = view_of(call("a", name="bash", command="make secret"), result("a", "secret"))
    hidden = [msgspec.structs.replace(e, original=e.block) for e in view.entries]
    assert text(advance(Progress(), hidden, runs_of(hidden))) == ""


def test_a_tool_of_ones_own_is_followed_by_what_it_declares() -> None:
    envelope = Envelope(kind="write", key_fields={"path": "a.csv"})
    assert "a.csv" in text(after(call("a", name="export"), result("a", "ok", envelope=envelope)))


NAMES = st.sampled_from(("bash", "Edit", "apply_patch", "TodoWrite", "TaskUpdate", "write_stdin", "own"))  # fmt: skip
WORDS = st.sampled_from(
    (
        "git commit -m x", "[main 1a2b3c4] Add", "make test", "1 failed, 2 passed in 0.1s", "kill 1", "b1", "",
        "Process running with session ID b1", "*** Begin Patch\n*** Add File: a\n+def x():", "error: no", "a.py",
        "sed -i s/a/b/ a.py", "mv a.py b.py", "rm b.py", "x &", "git checkout .", "pending", "completed",
        "[ ] one\n[x] two", "def one():\n    pass", "gh pr create", "https://github.com/o/r/pull/1",
    )
)  # fmt: skip
VALUES = st.one_of(
    WORDS, st.integers(0, 9), st.none(), st.lists(WORDS, max_size=3), st.booleans(),
    st.lists(st.dictionaries(st.sampled_from(("content", "status", "id", "done")), WORDS), max_size=3),
)  # fmt: skip
KEYS = st.sampled_from(
    [
        "command",
        "cmd",
        "input",
        "file_path",
        "path",
        "old_string",
        "new_string",
        "content",
        "todos",
        "taskId",
        "status",
        "session_id",
        "workdir",
    ]
)
CALLS = st.tuples(NAMES, st.dictionaries(KEYS, VALUES, max_size=4), WORDS, st.booleans())


def logged(calls: Sequence[tuple[str, dict[str, Any], str, bool]]) -> list[Block]:
    blocks = list[Block]()
    for number, (name, arguments, answer, failed) in enumerate(calls):
        blocks.append(call(f"c{number}", name=name, **arguments))
        blocks.append(result(f"c{number}", answer, is_error=failed))
        if number % 3 == 2:
            blocks.append(prompt(answer, f"t{number}"))
    return blocks


@given(st.lists(CALLS, max_size=12), st.integers(0, 400))
def test_any_calls_make_a_state_that_fits_its_room_and_can_be_stored(
    calls: list[tuple[str, dict[str, Any], str, bool]], room: int
) -> None:
    entries = view_of(*logged(calls)).entries
    state = advance(Progress(), entries, runs_of(entries))
    small = fitted(state, room, count)
    assert count(text(small)) <= room
    assert fitted(small, room, count) == small
    assert advance(Progress(), entries, runs_of(entries)) == state
    assert msgspec.json.decode(msgspec.json.encode(small), type=Progress) == small
    assert fitted(state, 100_000, count) == state
    assert fitted(small, 100_000, count) == state, (
        "what one page has no room for is there for the next"
    )


@given(st.lists(CALLS, min_size=1, max_size=12), st.data())
def test_folding_in_parts_is_folding_at_once(
    calls: list[tuple[str, dict[str, Any], str, bool]], data: st.DataObject
) -> None:
    """Except that a list of steps that was wholly done in between is gone, and that what was read before is not."""
    blocks = logged(calls)
    ends = [place for place, block in enumerate(blocks) if not isinstance(block, ToolResult)]
    at = data.draw(st.sampled_from(ends))
    entries = view_of(*blocks).entries
    first = advance(Progress(), entries[:at], runs_of(entries))
    if not any(step.status == "completed" for step in first.steps):
        assert advance(first, entries[at:], runs_of(entries)) == advance(
            Progress(), entries, runs_of(entries)
        )


@given(steps())
def test_no_log_is_too_strange(made: list[tuple[Any, ...]]) -> None:
    entries = Play({}).run(made).timeline.view.entries
    assert isinstance(text(advance(Progress(), entries, runs_of(entries))), str)


def test_many_steps_are_bounded() -> None:
    many = [{"content": f"step {n}", "status": "pending"} for n in range(STEPS_MAX + 9)]
    assert len(steps_of("TodoWrite", todos=many)) == STEPS_MAX


def test_with_little_room_files_that_were_only_written_go_first_then_the_oldest() -> None:
    wrote = [
        b
        for n in range(4)
        for b in (
            call(f"w{n}", name="bash", command=f"cat > s{n} <<'E'\nhi\nE"),
            result(f"w{n}", ""),
        )
    ]
    edited = [
        b
        for n in range(9)
        for b in (
            call(f"e{n}", name="edit", path=f"{n}.py", oldText="x", newText=f"def f{n}(): pass"),
            result(f"e{n}"),
        )
    ]
    state = after(*edited, *wrote)
    small = fitted(state, count(text(state)) // 2, count)
    assert small.changes == state.changes
    paths = re.findall(r"^- (\d\.py) ", text(small), re.MULTILINE)
    assert paths == [f"{n}.py" for n in range(9)][-len(paths) :]
    plain = len(re.findall(r"\bs\d \[", text(small)))
    assert f"(changed and not listed: {13 - len(paths) - plain})" in text(small)
    assert plain < 4


def test_with_little_room_commits_stay_longer_than_files() -> None:
    made = [
        b
        for n in range(9)
        for b in (
            call(f"e{n}", name="edit", path=f"{n}.py", oldText="x", newText=f"def f{n}(): pass"),
            result(f"e{n}"),
            call(f"c{n}", name="bash", command=f"git commit -m {n}"),
            result(f"c{n}", f"[main 1a2b3c{n}] Step {n}"),
        )
    ]
    state = after(*made)
    shown = text(fitted(state, count(text(state)) // 2, count))
    assert len(re.findall(r"^- \d\.py ", shown, re.MULTILINE)) < COMMITS_LEAST
    assert re.findall(r"Step (\d)", shown) == ["4", "5", "6", "7", "8"]


def test_calls_whose_result_came_after_a_fold_are_followed() -> None:
    entries = view_of(
        call("a", name="bash", command="make test"), result("a", "1 failed in 1s")
    ).entries
    first = advance(Progress(), entries[:1], runs_of(entries[:1]))
    assert first.checks == ()
    assert (
        advance(first, entries[1:], runs_of(entries)).checks
        == advance(Progress(), entries, runs_of(entries)).checks
    )
