"""Tests, builds and linters with their last result, and errors that are open."""

from blocks import Block, CheckRecord, Progress
from render.summary._runs import (
    CHECK_VERSIONS,
    FAILING_MAX,
    OPEN_VERSIONS,
    failing_in,
    suite_of,
    telling,
)
from render.summary._state import advance
from render.summary._runs import commands_in
from render.summary._state import CHECKS_MAX, text
from tests._builders import call, prompt, result, view_of
from tests._table import for_each


def after(*items: Block, before: Progress | None = None) -> Progress:
    return advance(before or Progress(), view_of(*items).entries)


def ran(
    call_id: str, command: str, answer: str = "ok", turn: str = "t1", **fields: object
) -> list[Block]:
    return [
        call(call_id, turn, name="bash", command=command),
        result(call_id, answer, turn, **fields),
    ]


def check_of(*items: Block) -> CheckRecord:
    [check] = after(*items).checks
    return check


@for_each(
    "command, suite",
    [
        ("go test ./...", "go test"),
        ("npm run test:unit", "npm test:unit"),
        ("pnpm --filter web typecheck", "pnpm typecheck"),
        ("cargo clippy -- -D warnings", "cargo clippy"),
        ("npx tsc --noEmit", "tsc"),
        ("python -m pytest -x", "pytest"),
        ("python tests/runtests.py", "python runtests.py"),
        ("python manage.py test shop", "python test"),
        ("./gradlew build", "gradlew build"),
        ("scripts/run-tests.sh", "run-tests.sh"),
        ("make", "make"),
        ("cmake --build build", "cmake --build"),
        ("prettier --check .", "prettier"),
        ("prettier --write .", ""),
        ("cargo fmt", ""),
        ("cat test.log", ""),
        ("npm install", ""),
        ("pytest --version", ""),
        ("git checkout test", ""),
        ("node scripts/serve.mjs build-of/x", ""),
    ],
)
def test_a_check_is_known_by_its_program_and_task(command: str, suite: str) -> None:
    assert suite_of(commands_in(command)[0]) == suite


@for_each(
    "output, failing",
    [
        ("--- FAIL: TestTotal (0.00s)\n    --- FAIL: TestTotal/empty (0.00s)\nFAIL\nFAIL\tx/cart\t0.1s", ("TestTotal", "TestTotal/empty")),
        ("FAILED tests/test_cart.py::test_total - assert 2 == 3\n1 failed in 0.1s", ("tests/test_cart.py::test_total",)),
        ("test cart::total ... FAILED\ntest cart::sum ... ok", ("cart::total",)),
        ("not ok 2 - adds up", ("adds up",)),
        ("FAIL: test_total (tests.Cart)", ("test_total (tests.Cart)",)),
        ("all is well", ()),
    ],
)  # fmt: skip
def test_failing_tests_are_named_as_the_runner_names_them(
    output: str, failing: tuple[str, ...]
) -> None:
    assert failing_in(output) == failing


def test_many_failing_tests_are_counted() -> None:
    output = "\n".join(f"--- FAIL: Test{n}" for n in range(FAILING_MAX + 3))
    assert failing_in(output)[-1] == "3 more"


def test_a_check_stands_with_its_last_result_and_says_if_files_were_edited_since() -> None:
    failed = "--- FAIL: TestTotal (0.00s)\nFAIL\nFAIL\tx/cart\t0.1s\nok  \tx/shop\t0.1s"
    tested = [
        *ran("a", "cd /w && go test ./... 2>&1 | tail -30", failed),
        *[call("e", name="Edit", file_path="a.go", old_string="x", new_string="y"), result("e")],
    ]
    assert "- [v2] go test ./... -> 1 package failed: TestTotal (before the last edits)" in text(after(*tested))  # fmt: skip
    again = check_of(*tested, *ran("b", "go test ./...", "ok  \tx/cart\t0.1s"))
    assert (again.result, again.failing, again.seen) == ("packages ok", (), 6)


def test_a_failed_build_stands_with_the_lines_that_say_why() -> None:
    output = "Exit code 2\nsrc/a.ts(3,1): error TS2304: Cannot find name 'x'.\nFound 1 error."
    check = check_of(*ran("a", "npx tsc --noEmit", output, is_error=True))
    assert check.result == "failed (2)"
    assert "src/a.ts(3,1): error TS2304: Cannot find name 'x'." in check.error


def test_a_pipe_hides_the_status_so_the_output_decides() -> None:
    output = "src/a.go:3:1: undefined: x"
    assert check_of(*ran("a", "go build ./... 2>&1 | head", output)).result == "failed"
    assert check_of(*ran("a", "go build ./... 2>&1 | head", "")).result == "no output"


def test_a_narrower_run_leaves_the_broader_one_and_a_broader_one_replaces_it() -> None:
    whole, one = (
        ran("a", "go test ./...", "fine"),
        ran("b", "go test ./cart -run TestTotal", "fine"),
    )
    assert len(after(*whole, *one).checks) == 2
    assert [c.command for c in after(*one, *whole).checks] == ["go test ./..."]
    both = ran("c", "go build ./... && go test ./...", "fine")
    assert [c.command for c in after(*one, *whole, *both).checks] == ["go build ./... && go test ./..."]  # fmt: skip


def test_a_check_that_did_not_run_says_nothing() -> None:
    assert after(*ran("a", "make test", "<tool_use_error>no", is_error=True)).checks == ()


def test_checks_are_bounded_and_those_of_other_work_expire() -> None:
    many = [block for n in range(CHECKS_MAX + 2) for block in ran(f"c{n}", f"make test{n} x{n}")]
    assert len(after(*many).checks) == CHECKS_MAX
    rest = [block for n in range(CHECK_VERSIONS // 2 + 1) for block in ran(f"n{n}", "date")]
    late = after(*many, *rest, *ran("z", "go vet ./..."))
    assert [check.command for check in late.checks] == ["go vet ./..."]


def test_the_lines_that_tell_of_a_fault_are_the_first_two_and_the_last() -> None:
    lines = [f"error: number {n}" for n in range(9)]
    assert telling("\n".join(["start", *lines, "end"])).splitlines() == [*lines[:2], lines[-1]]
    assert telling("one\nall is lost\n") == "all is lost"


# Open errors.


FAILED = {"is_error": True}


def test_an_error_is_open_until_the_same_thing_succeeds() -> None:
    failed = after(*ran("a", "npm publish", "Exit code 1\nnpm ERR! 403", **FAILED))
    assert "Open errors:\n- [v2] npm publish\n  npm ERR! 403" in text(failed)
    assert after(*ran("b", "date"), before=failed).errors == failed.errors
    assert after(*ran("c", "npm publish --tag next"), before=failed).errors == ()


def test_an_edit_that_failed_is_open_until_one_of_that_file_succeeds() -> None:
    failed = [call("a", name="edit", path="a.py", oldText="x", newText="y"), result("a", "no match", is_error=True)]  # fmt: skip
    edited = [call("b", name="edit", path="a.py", oldText="z", newText="y"), result("b")]
    assert len(after(*failed).errors) == 1
    assert after(*failed, *edited).errors == ()


@for_each("command", ["grep -rn x src", "ls none", "test -f x", "cat none", "diff a b"])
def test_an_answer_is_no_error(command: str) -> None:
    assert after(*ran("a", command, "Exit code 1", **FAILED)).errors == ()


def test_an_error_ends_with_its_turn_and_when_the_agent_went_around_it() -> None:
    failed = ran("a", "npm publish", "Exit code 1", **FAILED)
    later = [prompt("Now write the release notes for it.", "t2"), *ran("b", "date", turn="t2")]
    assert after(*failed, *later).errors == ()
    others = [block for n in range(OPEN_VERSIONS // 2 + 1) for block in ran(f"n{n}", "date")]
    assert after(*failed, *others).errors == ()


def test_an_output_of_blank_lines_is_read_at_once() -> None:
    """A form that may cross lines would take minutes."""
    assert failing_in("\n" * 100_000) == ()
    assert telling("\n" * 100_000) == ""
