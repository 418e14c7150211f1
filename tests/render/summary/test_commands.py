"""The commands of a digest: each once, as the agent wrote it, how it last ended, within its room."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blocks import Block, CommandRecord, Digest, Envelope
from render.summary._commands import (
    COMMAND_MAX,
    ERROR_LINES,
    LINE_MAX,
    STATUS_MAX,
    command_line,
    fit_commands,
    joined_commands,
)
from render.summary._digest import LISTS, build_digest, fit_digest
from render.summary._text import digest_sections
from tests._builders import call, result, view_of
from tests._table import for_each
from tests.render.summary.samples import count


def ran(*items: Block, previous: Digest | None = None) -> tuple[CommandRecord, ...]:
    return build_digest(previous or Digest(), view_of(*items).entries).commands


def run_of(command: object, text: str = "ok", **fields: Any) -> CommandRecord:
    [record] = ran(call("a", name="bash", command=command), result("a", text, **fields))
    return record


def test_a_command_that_ran_again_is_listed_once_at_its_newest_place_with_its_newest_outcome() -> (
    None
):
    first = build_digest(
        Digest(),
        view_of(
            call("a", name="bash", command="make test", description="Run all tests"),
            result("a", "Exit code 2\nFAILED test_cart", is_error=True),
            call("b", name="bash", command="make lint"), result("b", "fine"),
        ).entries,
    )  # fmt: skip
    assert first.commands[0].error == "FAILED test_cart"
    lint, tests = ran(
        call("c", name="bash", command="make test"), result("c", "fine"), previous=first
    )
    assert lint.command == "make lint"
    assert command_line(tests) == "make test -> ok (2 times; Run all tests)"  # the error is over


def test_a_command_is_quoted_as_it_was_written() -> None:
    command = "grep  -rn   'a  b'  src | head"
    assert run_of(command).command == command


def test_of_a_script_the_first_line_stands_with_a_mark_that_more_follows() -> None:
    assert run_of("\npython - <<'EOF'\nprint(1)\nEOF").command == "python - <<'EOF' …"


def test_a_command_given_as_an_argument_vector_is_one_line() -> None:
    assert run_of(["bash", "-lc", "ls  -l"]).command == "bash -lc ls  -l"


@for_each("length", [COMMAND_MAX - 1, COMMAND_MAX, COMMAND_MAX + 1, 100_000])
def test_a_long_command_is_cut_to_its_beginning(length: int) -> None:
    whole = "x" * length
    assert run_of(whole).command == (
        whole if length <= COMMAND_MAX else whole[: COMMAND_MAX - 1] + "…"
    )


def test_of_a_failure_the_last_lines_that_name_an_error_are_kept() -> None:
    noise = "\n".join(f"building {n}" for n in range(500))
    text = f"Exit code 1\n{noise}\nerror: no such field `total`\nerror: aborting\n{noise}"
    assert run_of("cargo build", text, is_error=True).error == (
        "error: no such field `total`\nerror: aborting"
    )
    plain = run_of("true", "Exit code 3\nall is lost\n\n")
    assert plain.error == "all is lost"  # nothing is called an error: the last that it said
    assert "\n  all is lost" in command_line(plain)


def test_what_went_well_has_no_error_even_if_its_output_speaks_of_errors() -> None:
    assert not run_of("make", "0 errors, 0 failed").error
    [open_call] = ran(call("a", name="bash", command="sleep 9"))
    assert (open_call.status, open_call.error) == ("no result", "")


def test_a_failure_that_only_the_tool_declared_has_its_error() -> None:
    assert run_of("deploy", "access denied", envelope=Envelope(outcome="failure")).error


LETTERS = st.sampled_from("abc")
RUNS = st.lists(st.builds(CommandRecord, command=LETTERS, status=st.sampled_from(["0", "1"])))


@given(RUNS, RUNS)
def test_runs_add_up_however_the_compactions_part_them(
    old: list[CommandRecord], new: list[CommandRecord]
) -> None:
    at_once = joined_commands([*old, *new])
    assert joined_commands([*joined_commands(old), *new]) == at_once
    assert sum(record.runs for record in at_once) == len(old) + len(new)
    assert len({record.command for record in at_once}) == len(at_once)


@given(RUNS, st.integers(min_value=0, max_value=40))
def test_those_that_ran_most_often_stay_within_the_room_in_their_order(
    runs: list[CommandRecord], room: int
) -> None:
    records = tuple(joined_commands(runs))
    kept = fit_commands(records, room, count)
    assert list(kept) == [record for record in records if record in kept]
    assert sum(count(f"- {command_line(record)}\n") for record in kept) <= room
    left = [record for record in records if record not in kept]
    assert all(min(gone.runs, 3) <= min(stays.runs, 3) for gone in left for stays in kept)


def test_commands_with_a_room_of_their_own_leave_the_digest_to_the_other_lists() -> None:
    many = [
        block
        for n in range(LISTS["commands"])
        for block in (call(f"c{n}", name="bash", command=f"make {n} " + "x" * 90), result(f"c{n}"))
    ]
    reads = [
        b for n in range(9) for b in (call(f"r{n}", name="read", path=f"{n}.py"), result(f"r{n}"))
    ]
    digest = build_digest(Digest(), view_of(*many, *reads).entries)
    fitted = fit_digest(digest, 200, count, 300)
    assert len(fitted.files_read) == 9
    section = dict(digest_sections(fitted))["Commands"]
    assert 0 < len(fitted.commands) < LISTS["commands"]
    assert count(section) <= 320
    assert fitted.forgotten["commands"] == LISTS["commands"] - len(fitted.commands)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    ),
    st.text(),
    st.sampled_from(["success", "failure"]),
)
def test_whatever_a_command_holds_its_record_is_bounded(
    given: Any, text: str, outcome: Any
) -> None:
    records = ran(
        call("a", name="bash", command=given, description=given),
        result("a", text, envelope=Envelope(outcome=outcome, key_fields={"exit_code": given})),
    )
    for record in records:
        assert len(record.command) <= COMMAND_MAX + 2
        assert len(record.status) <= STATUS_MAX
        assert len(record.about) <= LINE_MAX
        assert len(record.error.splitlines()) <= ERROR_LINES
        assert command_line(record)


def after(command: str, said: str, previous: Digest | None = None) -> Digest:
    entries = view_of(call("a", name="bash", command=command), result("a", said)).entries
    return build_digest(previous or Digest(), entries)


def test_a_command_says_how_its_tests_went_first_and_last() -> None:
    first = after("make test", "3 failed, 40 passed in 2.0s")
    between = after("make test", "1 failed, 42 passed in 2.0s", first)
    last = after("make test", "43 passed in 2.0s", between)
    assert list(map(command_line, first.commands)) == ["make test -> 3 failed, 40 passed"]
    assert list(map(command_line, last.commands)) == [
        "make test -> 43 passed (first 3 failed, 40 passed; 3 times)"
    ]


def test_the_same_tests_are_told_once_however_much_of_their_output_was_asked_for() -> None:
    first = after("make test 2>&1 | tail -40", "1 failed in 2.0s")
    (record,) = after("make test 2>&1 | head -9", "compiling ...", first).commands
    assert command_line(record) == "make test 2>&1 | head -9 -> ok (first 1 failed; 2 times)"
    assert len(after("ls | head -9", "a", after("ls | tail -9", "b")).commands) == 2


def test_a_failure_beside_the_tests_is_told_with_them() -> None:
    record = run_of("make", "Exit code 2\n43 passed in 2.0s\nerror: coverage", is_error=True)
    assert command_line(record) == "make -> 2, 43 passed\n  error: coverage"


def test_where_there_is_little_room_commands_that_ran_tests_stay() -> None:
    many = [CommandRecord(command=f"ls {n}", runs=2) for n in range(9)]
    tests = CommandRecord(command="make test", tests="1 passed", tests_first="1 passed")
    assert fit_commands((tests, *many), 30, count)[0] is tests


def test_a_command_that_an_older_release_stored_is_listed() -> None:
    assert command_line(CommandRecord(command="make", status="0")) == "make -> 0"
