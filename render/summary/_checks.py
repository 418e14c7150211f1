"""Whether the work is right, as commands told: tests, builds and linters with their last result, and open errors.

check    a command that says whether the work is right; a later run of the same suite replaces it, unless it was
         narrower
error    a failure after which the same program and task has not succeeded, in the turn that goes on
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename, splitext
from typing import Final

from blocks import CheckRecord, OpenError
from render.summary._commands import outcome, status_of
from render.summary._identifiers import one_line, searched
from render.summary._runs import COMMAND_CHARACTERS, Command, Run, listed
from render.summary._state import CHECKS_MAX, ERRORS_MAX

# Checks.


CHECK_VERSIONS: Final = 300
"""A check that did not run again for this many blocks, some hundred calls, belongs to other work."""
FAILING_MAX: Final = 6
"""The most failing tests that are named."""
LINE_CHARACTERS: Final = 160
ERROR_LINES: Final = 3
_CHECKERS: Final = listed(
    "pytest py.test unittest nose2 tox nox mypy pyright basedpyright pyrefly ruff flake8 pylint tsc tsgo"
    " vue-tsc svelte-check eslint biome oxlint stylelint jest vitest mocha ava playwright cypress ctest ninja"
    " golangci-lint staticcheck rubocop rspec phpunit pest phpstan psalm shellcheck hadolint actionlint"
    " markdownlint markdownlint-cli2 vale ktlint detekt swiftlint xcodebuild bats luacheck clang-tidy"
    " cppcheck rustc gcc g++ cc clang clang++ javac webpack rollup esbuild tsup vite make gmake msbuild"
    " pre-commit"
)
"""Programs that check or build, by their names; from the documentation of each language's tools."""
_FORMATTERS: Final = listed("black isort prettier stylua gofmt rustfmt clang-format fmt format")
"""Programs and tasks that change files, and check them only if they are told to."""
_OF_TARGETS: Final = frozenset({"make", "gmake", "ninja", "pre-commit"})
"""Checkers whose first argument says what is made."""
_ONLY_CHECKS: Final = frozenset(
    {"--check", "-c", "-l", "--diff", "--check-only", "--dry-run", "-d"}
)
_INTERPRETERS: Final = ("python", "node", "deno", "bun", "php", "ruby", "perl", "tsx", "ts-node")
_RUNNERS: Final = listed(
    "npm pnpm yarn bun deno node go cargo mvn mvnw gradle gradlew dotnet swift mix bazel just task mise hatch"
    " uv poetry rake bundle composer sbt lein zig cmake meson nx turbo lerna mage invoke pants buck2 dune"
    " stack cabal moon python python3 php flutter dart next astro ng expo rails django-admin"
)
"""Programs that run a task whose name says whether it is a check."""
_TASK: Final = re.compile(
    r"(?:[\w.-]*[:_-])?(?:tests?|check|build|lint|typecheck|type-check|types|compile|vet|clippy|verify|validate"
    r"|ci|e2e|unit|integration|spec|bench|nextest|runtests|assemble|analyze|--build|--test)(?:[:_.-][\w:.-]*)?"
)
"""The name of a task that checks or builds."""
_LOCAL: Final = re.compile(r"(?:.*[_.-])?(?:(?:run)?tests?|checks?|lint|build|verify)(?:[_.-].*)?")
"""The name of a script of a project's own."""
_LOOKING: Final = listed(
    "cat head tail grep egrep fgrep rg ag find fd ls tree stat file wc sed awk cut sort uniq jq less which"
    " type test [ [[ diff cmp echo printf pwd true false sleep wait date ps pgrep kill pkill killall mkdir"
    " touch cp mv rm ln chmod export source . set read xargs tee exit if for while until case fi done esac"
)
"""Programs that say or do nothing about whether the work is right: their failure is an answer, or a trifle."""
_FAULT: Final = re.compile(
    r"^[ \t]*(?:error\b|fatal\b|panic:|FAIL(?:ED|URE)?\b|[✗✖×✘] |Traceback|make(?:\[\d+\])?: \*\*\*|npm ERR!|E   )"
    r"|\berror(?:\[\w+\]| TS\d+)?:|^\S+:\d+:\d+: |\b[1-9]\d* (?:errors?|failures?|problems?)\b"
    r"|\tfail\t|(?:command )?not found|No such file|[Pp]ermission denied|^\w*(?:Error|Exception)\b",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that tells of a fault: compilers, linters, test runners, shells."""
_FAILED: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[ \t]*--- FAIL: (\S+)",  # go test
        r"^(?:FAILED|ERROR) (\S+::[^\n]+?)(?: - |$)",  # pytest
        r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))",  # unittest
        r"^test (\S+) \.\.\. FAILED$",  # cargo
        r"^ +● (.+ › .+)$",  # jest
        r"^ *(?:FAIL|×|✗|✖) +(\S.* > .*\S)",  # vitest
        r"^not ok \d+ -? ?(.+)$",  # TAP: node, bats, prove
        r"^[ \t]+\d+ - (\S+) \((?:Failed|Timeout)\)",  # ctest
        r"^\[ERROR\] +(\w[\w.]+\.\w+:\d+)",  # Maven
        r"^rspec (\./\S+:\d+)",  # RSpec
        r"^(\w\S* > .+) FAILED$",  # Gradle
        r"^FAIL[ \t]+([\w./-]+\.(?:[jt]sx?|mjs))\b",  # jest, a file
        r"^FAIL[ \t]+([\w.-]+(?:/[\w.-]+)+)(?:[ \t]|$)",  # go test, a package
    )
)
"""How each runner names a test that failed, the more exact form first; see the table in `_commands`."""


def checks_after(before: Sequence[CheckRecord], run: Run) -> list[CheckRecord]:
    """The checks after one more call: it replaces those of the same suites that are not broader."""
    checking = [command for command in run.commands if suite_of(command)]
    result = outcome(run.text)
    if not checking and result and run.commands:
        checking = [c for c in run.commands[-1:] if c.words[0] not in _LOOKING and not c.is_piped]
    if not checking or any(c.is_left for c in checking):
        return list(before)
    record = _checked(checking, run, result)
    since = run.version - CHECK_VERSIONS
    left = [check for check in before if check.seen >= since and not _covers(record, check)]
    return [*left, record][-CHECKS_MAX:]


def _covers(new: CheckRecord, old: CheckRecord) -> bool:
    """Whether each suite of an older check ran again, with fewer arguments than then or the same; with others, if nothing
    had failed."""
    ran = list(zip(new.suites, new.command.split(" && "), strict=False))
    failed = "failed" in old.result or "error" in old.result
    return new.command == old.command or all(
        any(
            command == before or len(command.split()) < len(before.split()) + (not failed)
            for other, command in ran
            if other == suite
        )
        for suite, before in zip(old.suites, old.command.split(" && "), strict=False)
    )


def suite_of(command: Command) -> str:
    """Program and task of a command that checks or builds; empty if it does neither."""
    program, *others = command.words
    named = [
        word for word in others[:6] if not word.startswith("-") or word in {"--build", "--test"}
    ]
    if not {program, *named[:2]}.isdisjoint(_FORMATTERS) and _ONLY_CHECKS.isdisjoint(others):
        return ""
    if program in _CHECKERS or program in _FORMATTERS:
        target = named[:1] if program in _OF_TARGETS else []
        is_none = {"--version", "--help", "-h", "clean", "install"} & set(others[:2])
        return "" if is_none else " ".join([program, *target])
    script = basename(named[0]) if named and program.startswith(_INTERPRETERS) else ""
    if splitext(script)[1] and _LOCAL.fullmatch(script):
        return f"{program} {script}"
    if program in _RUNNERS:
        task = next((word for word in named if _TASK.fullmatch(word)), "")
        return f"{program} {task}" if task else ""
    is_script = program.endswith((".sh", ".py", ".rb", ".js", ".ts")) or "." not in program
    is_script = is_script and "/" in command.text.split(maxsplit=1)[0]
    return program if is_script and _LOCAL.fullmatch(program) else ""


def _checked(commands: Sequence[Command], run: Run, tests: str) -> CheckRecord:
    last = commands[-1]
    faults = [] if run.failed else list(_faults(run.text))
    is_hidden = last.is_piped and not run.failed
    failed = (
        run.failed
        or "failed" in tests
        or "error" in tests
        or (is_hidden and bool(faults) and not tests)
    )
    failing = failing_in(run.text) if failed else ()
    status = status_of(run.result)
    said = f"failed ({status})" if run.failed and status.lstrip("-").isdigit() else "failed"
    well = "ok" if run.text.strip() or not is_hidden else "no output"
    named = dict.fromkeys((suite_of(command), _plain(command)) for command in commands)
    return CheckRecord(
        command=one_line(" && ".join(text for _, text in named), COMMAND_CHARACTERS),
        result=tests or (said if failed else well),
        failing=failing,
        error="" if failing or not failed else telling(run.text),
        suites=tuple(suite for suite, _ in named),
        seen=run.version,
    )


def _plain(command: Command) -> str:
    """A command as it was written, without redirections."""
    return " ".join(
        w for w in command.text.split() if not re.fullmatch(r"\d?>>?&?\d?|2>/dev/null", w)
    )


def failing_in(text: str) -> tuple[str, ...]:
    """The tests that failed, as an output names them."""
    for form in _FAILED:
        parts = searched(text)
        named = dict.fromkeys(one_line(name, 100) for part in parts for name in form.findall(part))
        if named:
            left = len(named) - FAILING_MAX
            return (*list(named)[:FAILING_MAX], *([f"{left} more"] if left > 0 else []))
    return ()


def telling(text: str) -> str:
    """The lines of an output that tell why something failed: the first two and the last one that name a fault, else
    the last line."""
    lines = list(dict.fromkeys(_faults(text)))
    if not lines:
        lines = [line for line in text[-2000:].splitlines() if line.strip()][-1:]
    chosen = lines if len(lines) <= ERROR_LINES else [*lines[: ERROR_LINES - 1], lines[-1]]
    return "\n".join(one_line(line, LINE_CHARACTERS) for line in chosen)


def _faults(text: str) -> Iterator[str]:
    for part in searched(text, 40_000):
        yield from (
            line.strip() for line in part.splitlines() if line.strip() and _FAULT.search(line)
        )


# Open errors.


OPEN_VERSIONS: Final = 60
"""An error that the agent has left alone for this many blocks, some twenty calls, is one that it went around."""


def errors_after(before: Iterable[OpenError], run: Run) -> list[OpenError]:
    """The open errors after one more call: those of its turn that it did not close, and its own."""
    keys = _keys(run)
    left = [
        error
        for error in before
        if error.turn == run.call.turn
        and run.version - error.seen <= OPEN_VERSIONS
        and error.key not in keys
    ]
    if run.failed and keys and not any(map(suite_of, run.commands)):
        last = run.commands[-1].text if run.commands else f"{run.call.name} {run.target}"
        left.append(
            OpenError(
                command=one_line(last, COMMAND_CHARACTERS),
                error=telling(run.text),
                key=keys[-1],
                turn=str(run.call.turn),
                seen=run.version,
            )
        )
    return left[-ERRORS_MAX:]


def _keys(run: Run) -> list[str]:
    """What a failure and a later success have in common: program and task, or the tool and its target."""
    if run.commands:
        return [c.task for c in run.commands if c.words[0] not in _LOOKING]
    if run.kind in {"read", "search", "web", "command"}:
        return []
    return [f"{run.kind if run.kind == 'write' else run.call.name} {run.target}"]
