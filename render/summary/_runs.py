"""Calls with their results, and what their commands tell: tests and builds, open errors, processes, branch and commits.

A script is divided into its commands by form (`&&`, `;`, `|`, line ends), because agents chain them:
`cd web && npm test 2>&1 | tail -20`. No script is too unusual for that; `_commands` knows less scripts, but more of them.

    check      a command that says whether the work is right, with its last result
    error      a failure after which the same program and task has not succeeded
    process    a command that runs on after its call, until a call or a notice says that it has ended
    git        branch, commits, pushes and pull requests, as git told
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from posixpath import basename, splitext
from typing import Final

import attrs
from msgspec.structs import replace

from blocks import (
    CheckRecord,
    Commit,
    Process,
    Repository,
    ToolCall,
    ToolKind,
    ToolResult,
    is_sealed,
    text_of,
    tool_kind,
    tool_target,
)
from render.summary._commands import WENT_WELL, command_of, outcome, status_of, telling_error
from render.summary._identifiers import listed, one_line, output_of, searched

COMMAND_CHARACTERS: Final = 160


# A finished call, and the commands of its script.


@attrs.frozen
class Command:
    """One command of a script."""

    text: str
    """Without redirections."""
    words: tuple[str, ...]
    """Without assignments and wrappers (`timeout 60`); the program without its folder."""
    end: str = ""
    """The operator after it."""


@attrs.frozen
class Run:
    """A call with its result."""

    call: ToolCall
    result: ToolResult
    version: int
    """Version of the result."""
    kind: ToolKind
    text: str
    """What the tool returned, without the lines that it adds around a command's output."""
    failed: bool
    commands: Sequence[Command] = ()


_REFUSED: Final = re.compile(
    r"\W*(?:<tool_use_error>|error\b|failed\b|invalid\b|no replacement\b|no changes\b|could not\b|cannot\b|unable\b"
    r"|apply_patch verification failed|your proposed edit has introduced)",
    re.IGNORECASE,
)
"""How the answer of an editor begins that changed nothing although the call counts as a success: OpenHands, SWE-agent,
Claude Code, Codex."""
REJECTED: Final = re.compile(r"\s*(?:The user doesn't want|\[Request interrupted)")
"""How the result begins of a call that the user did not let run, before words of the user: Claude Code."""
_NOT_RUN: Final = re.compile(rf"\s*<tool_use_error>|{REJECTED.pattern}")
"""How a result begins of a command that did not run: Claude Code."""


def run_of(call: ToolCall, result: ToolResult, version: int) -> Run:
    """The call with what its result tells."""
    known = result.envelope
    kind = tool_kind(call.name, call.input, known)
    text = "" if is_sealed(result) else text_of(result)
    failed = result.is_error or known.outcome == "failure"
    if kind in {"write", "command"} and not failed:
        is_write = kind == "write"
        failed = bool(_REFUSED.match(text)) if is_write else status_of(result) not in WENT_WELL
    command = command_of(call, known) if kind == "command" else None
    commands = commands_in(command.text) if command and not _NOT_RUN.match(text) else ()
    start, end = output_of(text)
    return Run(call, result, version, kind, text[start:end], failed, commands)


SCRIPT_MAX: Final = 20_000
"""Characters of a script that are divided; what follows is seldom more than a long here-document."""
_DOCUMENT: Final = re.compile(
    r"<<-?[ \t]*(['\"\\]?)(\w+)\1?(?P<rest>[^\n]*)\n.*?(?:\n[ \t]*\2\b|\Z)", re.DOTALL
)
_PIECE: Final = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?P<end>&&|\|\|?|[;\n]|(?<![<>])&(?!>))"
    r"|(?P<redirection>(?:&|\d)?(?:>>?|<)(?:&\d?|[ \t]*[^\s;&|<>]+)?)|\w+|.",
    re.DOTALL,
)
_WRAPPERS: Final = re.compile(
    r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|\S*)\s+|-\S+\s+|timeout\s+\d\S*\s+|(?:\S*/)?python[\d.]*\s+-m\s+"
    r"|(?:sudo|time|env|nice|nohup|exec|xvfb-run|cross-env|npx|bunx|uvx|then|do|else)\s+"
    r"|(?:uv|poetry|pdm|pipenv|hatch|rye)\s+run\s+|(?:bundle|pnpm|yarn|npm|mise)\s+exec\s+)*"
)
"""What only changes how a command runs, with package managers' ways to run a program of a project."""


@lru_cache(maxsize=256)
def commands_in(script: str) -> tuple[Command, ...]:
    """The commands of a script, in order."""
    found, text = list[Command](), ""
    for piece in _PIECE.finditer(_DOCUMENT.sub(r"\g<rest>", script[:SCRIPT_MAX]) + "\n"):
        if not piece["end"]:
            text += "" if piece["redirection"] else piece[0]
            continue
        said = text.strip()
        said = said.strip("(){} ") if said[:1] in {"(", "{"} else said
        words = [word.strip("'\"") for word in _WRAPPERS.sub("", said, count=1).split()]
        if words and words[0] != "cd":
            program = basename(words[0]) or words[0]
            found.append(Command(one_line(said, 200), (program, *words[1:]), piece["end"]))
        text = ""
    return tuple(found)


def _joined(commands: Iterable[Command]) -> str:
    """The commands as one that can be divided again: a quotation that is cut is closed."""
    line = one_line(" && ".join(dict.fromkeys(c.text for c in commands)), COMMAND_CHARACTERS)
    return line + next((mark for mark in "\"'" if line[-1:] == "…" and line.count(mark) % 2), "")


# Tests, builds, linters, and open errors.


CHECKS_MAX: Final = 6
ERRORS_MAX: Final = 3
CHECK_VERSIONS: Final = 300
"""A check that did not run again for this many blocks, some hundred calls, belongs to other work."""
OPEN_VERSIONS: Final = 60
"""An error that the agent has left alone for this many blocks, some twenty calls, is one that it went around."""
FAILING_MAX: Final = 6
"""The most failing tests that are named."""
_CHECK: Final = re.compile(
    r"(?:[\w.-]*[:_-])?(?:(?:run)?tests?|--test|checks?|--check|build|--build|lint|type-?check|compile|vet|clippy|verify"
    r"|validate|ci|e2e|unit|spec|nextest|analyze)(?:[:_-][\w:.-]*)?"
    r"|make|pytest|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|tsc|vue-tsc|svelte-check|eslint|biome|jest|vitest"
    r"|mocha|playwright|cypress|ctest|ninja|golangci-lint|staticcheck|rubocop|rspec|phpunit|phpstan|shellcheck|ktlint"
    r"|detekt|xcodebuild|bats|clang-tidy|rustc|gcc|g\+\+|cc|clang|clang\+\+|javac|webpack|rollup|vite|msbuild|pre-commit"
)
"""Names of tasks, scripts and programs that check or build; from the documentation of each language's tools."""
_LOOKS: Final = listed(
    "cat head tail grep egrep rg ag find fd ls ll tree stat file wc nl awk cut tr sort uniq jq less which diff cmp"
    " echo printf pwd du date ps pgrep true false sleep xargs"
)
"""Programs that only print what there is, or nothing."""
_LOOK: Final = re.compile(
    r"\W*(?:sed -n|git (?:-\S+ \S+ )?(?:log|show|diff|status|grep|blame|branch|ls-files|ls-tree|rev-parse|remote)"
    r"|gh (?:\w+ (?:view|list|status|diff)|api (?!.*(?:-X|--method|-f|-F)\b)))\b"
)
"""Other commands that do no more."""
_LOOKING: Final = _LOOKS | listed(
    "sed type test [ [[ wait kill pkill killall mkdir touch cp mv rm ln chmod export source . set read tee exit if for"
    " while until case fi done esac"
)
"""Programs that say or do nothing about whether the work is right: their failure is an answer, or a trifle."""
_OTHERS: Final = listed(
    "write git gh glab curl wget ssh pip install add clean fmt format --write --version --help"
)
"""Programs, tasks and options with which a word like `test` is a name, or files change."""
_FAULT: Final = re.compile(
    r"error|fail|fatal|panic|undefined|not found|cannot|denied|:\d+:\d+:", re.IGNORECASE
)
"""Names a fault in a line."""
_ENDED: Final = re.compile(r"\bexit(?:ed)?(?: with)?(?: code| status)?\W{0,3}0\b", re.IGNORECASE)
"""A line that only says that the command ended well."""
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
        r"^FAIL[ \t]+([\w.-]+(?:/[\w.-]+)+)(?:[ \t]|$)",  # go test, a package; jest, a file
    )
)
"""How each runner names a test that failed, the more exact form first; see the table in `_commands`."""


def checks_after(before: Sequence[CheckRecord], run: Run) -> list[CheckRecord]:
    """The checks and open errors after one more call: without those that it replaces or closes, and with its own."""
    told, tests = _told(run), outcome(run.text)
    checking = [c for c in told if suite_of(c)] or (told[-1:] if tests or run.failed else [])
    command = _joined(checking or told)
    left = [
        old
        for old in before
        if run.version - old.seen <= (CHECK_VERSIONS if _suites(old) else OPEN_VERSIONS)
        and not _covers(command, old)
    ]
    if checking and checking[-1].end != "&":
        result = _result(run, tests, is_hidden=checking[-1].end == "|")
        left.append(CheckRecord(command=command, result=result, seen=run.version))
    checks, errors = [c for c in left if _suites(c)], [c for c in left if not _suites(c)]
    kept = [*checks[-CHECKS_MAX:], *errors[-ERRORS_MAX:]]
    return sorted(kept, key=lambda check: check.seen)


def _told(run: Run) -> Sequence[Command]:
    """The commands of a call whose result says something; of a tool that is none, its name with its target."""
    if run.kind in {"write", "other"}:
        verb = run.kind if run.kind == "write" else run.call.name
        return commands_in(f"{verb} {tool_target(run.call.input, run.result.envelope)}")[:1]
    return [
        c
        for c in run.commands
        if c.words[0] not in _LOOKING and not (c.words[0] == "git" and is_look(c))
    ]


def is_look(command: Command) -> bool:
    """Whether a command only prints what there is."""
    return command.words[0] in _LOOKS or bool(_LOOK.match(command.text))


def suite_of(command: Command) -> str:
    """Program and task of a command that checks or builds; empty if it does neither."""
    program, *others = command.words
    plain = [word for word in others[:6] if word[:1] != "-" or _CHECK.fullmatch(word)][:2]
    if program in _LOOKING or not _OTHERS.isdisjoint((program, *others[:2])):
        return ""
    names = [splitext(basename(word))[0] for word in (program, *plain) if "://" not in word]
    task = (
        plain[:1] if program == "make" else [name for name in names if _CHECK.fullmatch(name)][:1]
    )
    return " ".join(dict.fromkeys([program, *task])) if task or program == "make" else ""


def _covers(command: str, old: CheckRecord) -> bool:
    """Whether the tasks of an older record ran again; of a check with fewer arguments than then, or with others if nothing
    had failed, or with others that name the tests that had."""
    if _selects(command, old):
        return True
    ran, before = (
        {suite_of(c) or " ".join(c.words[:2]) for c in commands_in(text)}
        for text in (command, old.command)
    )
    is_fault = not old.result.startswith("ok") and _FAULT.search(old.result)
    words_max = len(old.command.split()) - bool(is_fault)
    is_narrow = _suites(old) and len(command.split()) > words_max
    return command == old.command or (before <= ran and not is_narrow)


def _selects(command: str, old: CheckRecord) -> bool:
    """Whether the arguments of a command name all the tests that had failed, or what they are in."""
    words = [
        word for word in _NAME.findall(command.partition(" ")[2]) if word not in old.command[:20]
    ]
    failed = old.result.partition("failed: ")[2].split(", ") if _suites(old) else [""]
    return all(any(word in test for word in words) for test in failed)


_NAME: Final = re.compile(r"[\w./:-]{6,}")
"""A word that may name tests."""


def _suites(record: CheckRecord) -> list[str]:
    """The suites of a record; none if it is an open error."""
    return list(filter(None, map(suite_of, commands_in(record.command))))


def without_errors(checks: Iterable[CheckRecord]) -> tuple[CheckRecord, ...]:
    """The checks when the user asks for something new: errors of the work before are closed."""
    return tuple(check for check in checks if _suites(check))


def without_checks(processes: Iterable[Process]) -> tuple[Process, ...]:
    """The processes when the user asks for something new: a check ends by itself, and nobody waits for it any more."""
    return tuple(each for each in processes if not any(map(suite_of, commands_in(each.command))))


def _result(run: Run, tests: str, *, is_hidden: bool) -> str:
    """What came of a check; of one whose status a pipe hides, the line that tells of a fault."""
    why, status = telling_error(run.text), status_of(run.result)
    if run.failed or "failed" in tests or "errors" in tests:
        how = f"failed ({status})" if status.lstrip("-").isdigit() and run.failed else "failed"
        return f"{tests or how}: {', '.join(failing_in(run.text)) or why}"
    if tests or (is_hidden and (not why or _FAULT.search(why))):
        return tests or why or "no output"
    lines = (x for x in reversed(run.text.splitlines()) if re.search(r"\w", x))
    last = next((x for x in lines if not _ENDED.search(x)), "")
    return f"ok: {one_line(last, COMMAND_CHARACTERS // 2)}" if last else "ok"


def failing_in(text: str) -> list[str]:
    """The tests that failed, as an output names them."""
    for form in _FAILED:
        found = (name for part in searched(text) for name in form.findall(part))
        if named := list(dict.fromkeys(one_line(name, 100) for name in found)):
            left = len(named) - FAILING_MAX
            return [*named[:FAILING_MAX], *([f"{left} more"] if left > 0 else [])]
    return []


# Processes.


PROCESSES_MAX: Final = 4
STARTED: Final = re.compile(
    r"^(?:Command|Process|Task|Shell)\b[^\n]{0,40}\b(?:running|started|moved)\b[^\n]{0,60}?\bID:? *([\w-]+)",
    re.MULTILINE | re.IGNORECASE,
)
"""How a tool says that the command runs on, and under which id: Claude Code, Codex."""
_EXITED: Final = re.compile(
    r"\b(?:exited|completed|finished|failed|stopped|killed|terminated|not found|no longer)\b",
    re.IGNORECASE,
)


def processes_after(before: Sequence[Process], run: Run) -> tuple[list[Process], Run]:
    """The processes after one more call, and what the call counts as: one that starts a process has no result yet, one
    that sees it exit is a run of the command that started it."""
    whole, left = text_of(run.result), list(before)
    head = whole[: output_of(whole)[0] or 600]
    started = STARTED.search(head)
    named = {str(value) for value in run.call.input.values() if isinstance(value, str | int)}
    if asked := next((each for each in before if each.id and each.id in named), None):
        if started or not _EXITED.search(head):
            return left, attrs.evolve(run, kind="command", commands=())
        failed = run.failed or status_of(run.result) not in WENT_WELL
        left.remove(asked)
        return left, attrs.evolve(
            run, kind="command", commands=commands_in(asked.command), failed=failed
        )
    if started and run.commands:
        left.append(Process(command=_joined(run.commands), id=started[1], seen=run.version))
        return left[-PROCESSES_MAX:], attrs.evolve(run, commands=())
    for command in run.commands:
        if command.end == "&":
            left.append(Process(command=_joined([command]), seen=run.version))
        elif command.words[0] in {"kill", "pkill", "killall", "wait"}:
            left = [each for each in left if each.id]
    return left[-PROCESSES_MAX:], run


def noticed(processes: Sequence[Process], text: str) -> tuple[Process, ...]:
    """The processes after a notice of the client: it names one, and says that it ended."""
    head = text[:2000] if _EXITED.search(text[:2000]) else ""
    return tuple(each for each in processes if not each.id or each.id not in head)


# Branch and commits.


COMMITS_MAX: Final = 8
LINKS_MAX: Final = 3
COMMITTED: Final = re.compile(
    r"^\[([^\]\n]+?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE
)
_ON: Final = re.compile(
    r"^(?:On branch |## (?:No commits yet on )?|Switched to (?:a new )?branch '|Already on '|\* )"
    r"([^\s'.(][^\s']*?)(?:\.\.\.\S+|')?(?: \[.*\])?$",
    re.MULTILINE,
)
_PUSHED: Final = re.compile(r"^ [ *+!=-] ?\S*(?: ?\[new \w+\])? +(\S+ +-> +\S+)$", re.MULTILINE)
_LINK: Final = re.compile(r"https?://[^\s\"'<>)\]]+/(?:pull|merge_requests|pulls)/\d+")
"""What git prints (`git commit`, `status`, `switch`, `push`), and the addresses of GitHub, GitLab, Gitea."""


def git_after(old: Repository, run: Run) -> Repository:
    """What is known of branch and commits after one more call, as far as the output of git tells."""
    told = [c for c in run.commands if c.words[0] in {"git", "gh", "glab"}]
    words = {word for command in told for word in command.words}
    text = run.text[:40_000] if told else ""
    made = COMMITTED.findall(text)
    for command in () if run.failed else told:
        if command.words[1:2] == ("reset",):
            old = replace(old, commits=_after_reset(old.commits, command.words[2:]))
    if not run.failed and not made and words & {"--amend", "rebase"}:
        # Their ids are others now, which a log may tell.
        old = replace(old, commits=tuple(replace(commit, hash="") for commit in old.commits))
    for branch, number, subject in made:
        known = old.commits[: -1 if "--amend" in words else None]
        commits = [commit for commit in known if commit.subject != one_line(subject, 100)]
        new = Commit(subject=one_line(subject, 100), hash=number[:10], seen=run.version)
        old = replace(old, branch=branch, commits=(*commits, new)[-COMMITS_MAX:])
    if run.failed or not told:
        return old
    logs = [command for command in told if command.words[1:2] == ("log",)]
    if len(logs) == 1 and all(map(_LOG.fullmatch, logs[0].words[2:])):
        found, seen = _LOGGED.findall(text), run.version
        logged = [Commit(subject=one_line(s, 100), hash=h[:10], seen=seen) for h, s in found]
        old = replace(old, commits=_in_log(old.commits, logged))
    names = _ON.findall(text) if words & {"status", "switch", "checkout", "branch"} else ()
    if words & {"--show-current", "--abbrev-ref"} and len(run.commands) == 1:
        names = text.split()
    if names:
        old = replace(old, branch=one_line(names[-1], 80))
    if "push" in words and (pushed := _PUSHED.findall(text)):
        old = replace(old, pushed=one_line(", ".join(pushed[:2]), 80), pushed_at=run.version)
    if words & {"pr", "mr"} and words & {"create", "edit", "merge"}:
        links = dict.fromkeys([*old.links, *_LINK.findall(text)])
        old = replace(old, links=tuple(links)[-LINKS_MAX:])
    return old


_LOG: Final = re.compile(r"--oneline|--(?:no-)?decorate|-n?\d*|\d+|HEAD|\S+\.\.(?:HEAD)?")
"""The words of a `git log` that lists the newest commits without a gap."""
_LOGGED: Final = re.compile(r"^([0-9a-f]{7,40}) (?:\([^)\n]*\) )?(.+)$", re.MULTILINE)
_BACK: Final = re.compile(r"(?:HEAD|@)(?:~(\d*)|(\^*))")


def _after_reset(commits: tuple[Commit, ...], words: Sequence[str]) -> tuple[Commit, ...]:
    """The commits that `git reset` leaves: those before the one it goes back to, if that is known."""
    target = next((word for word in words if word[:1] not in {"", "-"}), "HEAD")
    places = [n for n, c in enumerate(commits, 1) if c.hash and c.hash[:7] == target[:7]]
    if back := _BACK.fullmatch(target):
        steps = len(back[2]) if back[1] is None else int(back[1] or 1)
        places = [max(len(commits) - steps, 0)]
    return commits[: places[-1]] if places else commits


def _in_log(commits: tuple[Commit, ...], logged: Sequence[Commit]) -> tuple[Commit, ...]:
    """The commits as a log lists them from the oldest known one on. What it does not list is gone, unless it ends there
    and the missing commits are older."""
    subjects, known = [c.subject for c in logged], {c.subject: c.seen for c in commits}
    first = next((n for n, commit in enumerate(commits) if commit.subject in subjects), None)
    if first is None:
        return commits
    last = subjects.index(commits[first].subject) + 1
    older = commits[:first] if last == len(logged) else ()
    newer = (replace(c, seen=known.get(c.subject, c.seen)) for c in logged[:last][::-1])
    return (*older, *newer)[-COMMITS_MAX:]
