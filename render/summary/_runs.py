"""Calls with their results, the commands that a script runs, and what they did to processes and repositories.

A script is divided into its commands by form (`&&`, `;`, `|`, line ends; texts in quotation marks and here-documents are
not divided), because agents chain them: `cd web && npm test 2>&1 | tail -20`. Less is certain here than in `_commands`,
which follows what a script does to files, and no script is too unusual.

    process       a command that runs on after its call, until a call, a notice or `kill` says that it has ended
    repository    branch, commits, pushes, uncommitted files, as git told
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from posixpath import basename, join, normpath
from typing import Any, Final, cast

import attrs
from msgspec.structs import replace

from blocks import (
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
from render.summary._commands import WENT_WELL, status_of
from render.summary._identifiers import one_line, output_of
from render.summary._state import COMMITS_MAX, PROCESSES_MAX


def listed(words: str) -> frozenset[str]:
    """The words of a table, which are separated by white space."""
    return frozenset(words.split())


# A finished call.


@attrs.frozen(kw_only=True)
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
    commands: tuple["Command", ...] = ()
    """The commands of a shell script, in order."""

    @property
    def target(self) -> str:
        """The file, the query or the like that the call is about."""
        return tool_target(self.call.input, self.result.envelope)


@attrs.frozen(kw_only=True)
class Command:
    """One command of a script."""

    text: str
    words: tuple[str, ...]
    """Without redirections, assignments and wrappers; the program without its folder."""
    folder: str = ""
    """Where it runs, if the call says so."""
    is_piped: bool = False
    """Whether another command gets its output, so that its status is not known."""
    added_to: str = ""
    """The file to which its output is appended."""
    is_left: bool = False
    """Whether it runs on in the background."""

    @property
    def task(self) -> str:
        """The program with its first word that is no option: `git commit`, `go test`."""
        words = [self.words[0], *(w for w in self.words[1:] if w[:1] not in {"-", "/", "."})]
        return " ".join(words[:2])


_REFUSED: Final = re.compile(
    r"\W*(?:<tool_use_error>|error\b|failed\b|invalid\b|no replacement\b|no changes\b|could not\b|cannot\b"
    r"|unable\b|apply_patch verification failed|your proposed edit has introduced)",
    re.IGNORECASE,
)
"""How the answer of an editor begins that changed nothing although the call counts as a success: OpenHands, SWE-agent,
Claude Code, Codex."""


_NOT_RUN: Final = re.compile(r"\s*(?:<tool_use_error>|The user doesn't want|\[Request interrupted)")
"""How a result begins of a command that did not run: Claude Code."""
_REPORT: Final = re.compile(
    r"Command: [^\n]*\n(?:[^\n]*\n)*?Directory: [^\n]*\n(?:Output|Stdout): "
)
"""The lines before a command's output in Gemini CLI and Qwen Code."""


def run_of(call: ToolCall, result: ToolResult, version: int) -> Run:
    """The call with what its result tells."""
    known = result.envelope
    kind = tool_kind(call.name, call.input, known)
    text = "" if is_sealed(result) else text_of(result)
    failed = result.is_error or known.outcome == "failure"
    script = script_in(call) if kind in {"command", "other"} else ""
    if script:
        failed = failed or status_of(result) not in WENT_WELL
    elif kind == "write":
        failed = failed or bool(_REFUSED.match(text[:200]))
    is_word = kind == "other" and not re.search(r"\s", script.strip())  # the function of a tool
    script = "" if is_word or _NOT_RUN.match(text) else script
    start, end = output_of(text)
    if report := _REPORT.match(text):
        start = report.end()
    return Run(
        call=call,
        result=result,
        version=version,
        kind="command" if script else kind,
        text=text[start:end],
        failed=failed,
        commands=commands_in(script, _folder(call.input)) if script else (),
    )


# The commands of a script.


_SCRIPTS: Final = ("cmd", "command", "script")
_FOLDERS: Final = ("workdir", "cwd", "directory", "dir_path")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash"})
SCRIPT_MAX: Final = 20_000
"""Characters of a script that are divided; what follows is seldom more than a long here-document."""
_DOCUMENT: Final = re.compile(
    r"<<-?[ \t]*(['\"\\]?)(\w+)\1?(?P<rest>[^\n]*)\n.*?(?:\n[ \t]*\2\b|\Z)", re.DOTALL
)
_PIECE: Final = re.compile(
    r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?P<end>&&|\|\|?&?|[;\n]|(?<![<>&|\d])&(?![&>\d]))|[^'\"\\&|;\n]+|.",
    re.DOTALL,
)
_WORD: Final = re.compile(r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s'\"\\])+", re.DOTALL)
_REDIRECTION: Final = re.compile(r"&?\d?(?:>|(?P<more>>>))(?:&\d|(?P<file>[^>]*))|\d?<.*")
_ASSIGNMENT: Final = re.compile(r"\w+=")
_WRAPPERS: Final = listed(
    "sudo time env nice nohup exec command timeout stdbuf setsid xvfb-run cross-env dotenv npx bunx uvx pipx"
    " winpty then do else"
)
"""Commands (and words of the shell's syntax) before the command that counts; `timeout` has a number before it."""
_WRAPPER_PAIRS: Final = frozenset(
    {
        ("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("pipenv", "run"), ("hatch", "run"), ("rye", "run"),
        ("bundle", "exec"), ("pnpm", "exec"), ("pnpm", "dlx"), ("yarn", "exec"), ("npm", "exec"), ("mise", "exec"),
        ("direnv", "exec"),
    }
)  # fmt: skip
"""The same, of two words: package managers' ways to run a program of a project."""


def script_in(call: ToolCall) -> str:
    """The shell script that a call runs; empty if it runs none."""
    given = (call.input.get(name) for name in _SCRIPTS)
    return next((text for value in given if (text := _script(value))), "")


def _script(value: Any) -> str:
    if isinstance(value, str):
        return value
    words = (
        [w for w in cast("list[Any]", value) if isinstance(w, str)]
        if isinstance(value, list)
        else []
    )
    if len(words) > 2 and basename(words[0]) in _SHELLS and words[1].startswith("-"):  # noqa: PLR2004
        return words[2]
    return shlex.join(words)


def _folder(arguments: dict[str, Any]) -> str:
    given = (arguments.get(name) for name in _FOLDERS)
    return next((folder for folder in given if isinstance(folder, str)), "")


@lru_cache(maxsize=256)
def commands_in(script: str, folder: str = "") -> tuple[Command, ...]:
    """The commands of a script that runs in `folder`."""
    plain = _DOCUMENT.sub(r"\g<rest>", script[:SCRIPT_MAX])
    found = list[Command]()
    for text, end in _divided(plain):
        words, added_to = _words(text)
        if not words:
            continue
        if words[0] == "cd" and len(words) > 1:
            folder = normpath(join(folder, words[1]))
            continue
        found.append(
            Command(
                text=one_line(text.strip(" \t({"), 200),
                words=words,
                folder=folder,
                is_piped=end.startswith("|") and end != "||",
                added_to=added_to,
                is_left=end == "&",
            )
        )
    return tuple(found)


def _divided(script: str) -> Iterator[tuple[str, str]]:
    """The commands' texts, each with the operator after it."""
    text = list[str]()
    for piece in _PIECE.finditer(script):
        if end := piece["end"]:
            yield "".join(text), end
            text = []
        else:
            text.append(piece[0])
    yield "".join(text), ""


def _words(text: str) -> tuple[tuple[str, ...], str]:
    """The words of a command from its program on, and the file to which its output is appended."""
    words, is_target, added_to = list[str](), False, ""
    for written in _WORD.findall(text.strip().lstrip("({").rstrip(")}")):
        redirection = _REDIRECTION.fullmatch(written)
        if redirection:
            is_target = redirection["file"] == "" or written in {"<", "0<"}
            if redirection["more"] and not written.startswith("2"):
                added_to = _bare(redirection["file"] or "") or ">>"
        elif is_target:
            is_target = False
            added_to = _bare(written) if added_to == ">>" else added_to
        else:
            words.append(_bare(written))
    words = _unwrapped(words)
    return ((basename(words[0]) or words[0], *words[1:]) if words else ()), added_to


def _bare(word: str) -> str:
    is_quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "'\""
    return word[1:-1] if is_quoted else word


def _unwrapped(words: list[str]) -> list[str]:
    """The words without what only changes how the command runs."""
    while words:
        if _ASSIGNMENT.match(words[0]) or words[0].startswith("-"):
            del words[0]
        elif basename(words[0]) in _WRAPPERS:
            is_timed = words[0] == "timeout"
            del words[0]
            while words and (words[0].startswith("-") or (is_timed and words[0][:1].isdigit())):
                del words[0]
        elif tuple(words[:2]) in _WRAPPER_PAIRS or (
            basename(words[0]).startswith("python") and words[1:2] == ["-m"]
        ):
            del words[:2]
        elif basename(words[0]) in _SHELLS and len(words) > 2 and re.fullmatch(r"-\w*c", words[1]):  # noqa: PLR2004
            words = _WORD.findall(words[2])
        else:
            break
    return words


# Processes.


COMMAND_CHARACTERS: Final = 160
_STARTED: Final = re.compile(
    r"^(?:Command|Process|Task|Shell)\b[^\n]{0,40}\b(?:running|started|moved)\b[^\n]{0,60}?\bID:? *([\w-]+)",
    re.MULTILINE | re.IGNORECASE,
)
"""How a tool says that the command runs on, and under which id: Claude Code, Codex."""
_EXITED: Final = re.compile(r"\b(?:exited|completed|finished|failed)\b", re.IGNORECASE)
_GONE: Final = re.compile(
    r"\b(?:stopped|killed|terminated|not found|no (?:such|longer)|does not exist)\b", re.IGNORECASE
)
_KILLING: Final = frozenset({"kill", "pkill", "killall"})


def processes_after(before: Sequence[Process], run: Run) -> tuple[list[Process], Run]:
    """The processes after one more call, and what the call counts as: one that starts a process has no result yet, one
    that sees it exit is a run of the command that started it."""
    whole = text_of(run.result)
    head = whole[: output_of(whole)[0] or 600]
    started = _STARTED.search(head)
    if asked := _asked(before, run):
        if started and started[1] == asked.id:
            return list(before), attrs.evolve(run, commands=())
        left = [each for each in before if each is not asked]
        if _EXITED.search(head):
            return left, attrs.evolve(
                run,
                kind="command",
                commands=commands_in(asked.command),
                failed=run.failed or status_of(run.result) not in WENT_WELL or "failed" in head,
            )
        return (left if _GONE.search(head) else list(before)), run
    if started and run.commands:
        new = Process(command=_joined(run.commands), id=started[1], seen=run.version)
        return [*before, new][-PROCESSES_MAX:], attrs.evolve(run, commands=())
    left = list(before)
    for command in run.commands:
        if command.is_left:
            left.append(Process(command=_joined([command]), seen=run.version))
        elif command.words == ("wait",):
            left = [each for each in left if each.id or each.seen != run.version]
        elif command.words[0] in _KILLING:
            left = _killed(left, command)
    return left[-PROCESSES_MAX:], run


def _asked(processes: Iterable[Process], run: Run) -> Process | None:
    """The process that a call names in an argument."""
    named = {str(value) for value in run.call.input.values() if isinstance(value, str | int)}
    return next((each for each in processes if each.id and each.id in named), None)


def _joined(commands: Iterable[Command]) -> str:
    return one_line(" && ".join(command.text for command in commands), COMMAND_CHARACTERS)


def _killed(processes: Sequence[Process], command: Command) -> list[Process]:
    """The processes that a command to end some leaves; a number means one that has no id."""
    words = [word for word in command.words[1:] if not word.startswith("-")]
    if command.words[0] != "kill":
        return [
            p
            for p in processes
            if not any(word in p.command or p.command in word for word in words)
        ]
    nameless = [each for each in processes if not each.id]
    return [each for each in processes if each.id not in words and each not in nameless[-1:]]


def noticed(processes: Sequence[Process], text: str) -> list[Process]:
    """The processes after a notice of the client: it names one, and says that it ended."""
    head = text[:2000]
    if not (_EXITED.search(head) or _GONE.search(head)):
        return list(processes)
    return [each for each in processes if not each.id or each.id not in head]


# Branch and commits.


REPOSITORIES_MAX: Final = 3
LINKS_MAX: Final = 3
FILES_TOLD: Final = 4
"""The most uncommitted files that are named."""
_COMMITTED: Final = re.compile(
    r"^\[(?P<branch>[^\]\n]+?)(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\] (?P<subject>.+)$",
    re.MULTILINE,
)
_ON: Final = re.compile(
    r"^(?:On branch |## (?:No commits yet on |Initial commit on )?|Switched to (?:a new )?branch '|Already on '|\* )"
    r"(?P<branch>[^\s'.(][^\s']*?)(?:\.\.\.\S+|')?(?: \[.*\])?$",
    re.MULTILINE,
)
_DETACHED: Final = re.compile(
    r"^(?:HEAD detached at (?P<at>\S+)|## HEAD \(no branch\)|HEAD is now at (?P<now>[0-9a-f]+)\b)",
    re.MULTILINE,
)
_PUSHED: Final = re.compile(
    r"^ [ *+!=-] ?\S*(?: ?\[new (?:branch|tag)\])? +(?P<from>\S+) +-> +(?P<to>\S+)$", re.MULTILINE
)
_CLEAN: Final = re.compile(r"^nothing to commit, working tree clean", re.MULTILINE)
_LONG: Final = re.compile(
    r"^(?:\t|[ \t]+(?=[a-z ]+: ))(?:(?:new file|modified|deleted|renamed|both \w+): +)?(?P<file>\S.*)$",
    re.MULTILINE,
)
_SHORT: Final = re.compile(r"^(?:[ MADRCU?!]{2}) (?P<file>\S.*)$", re.MULTILINE)
_LINK: Final = re.compile(r"https?://[^\s\"'<>)\]]+/(?:pull|merge_requests|pulls|pullrequest)/\d+")
"""What git prints (`git commit`, `status`, `switch`, `push`), and the addresses of GitHub, GitLab, Gitea, Azure."""


def repositories_after(before: Sequence[Repository], run: Run) -> list[Repository]:
    """What is known of repositories after one more call."""
    told = [c for c in run.commands if c.words[0] in {"git", "gh", "glab", "hub"}]
    if not told:
        return list(before)
    folder = next((f for c in told if (f := _at(c))), "")
    branch = _told(Repository(folder=folder), told, run).branch
    old = _repository_at(folder, before, branch)
    new = _told(old, told, run)
    if new == old:
        return list(before)
    left = [each for each in before if each is not old and _is_worked_in(each)]
    named = folder if branch or not old.seen else old.folder
    return [*left, replace(new, seen=run.version, folder=named or old.folder)][-REPOSITORIES_MAX:]


def _is_worked_in(repository: Repository) -> bool:
    """Whether there is more to say than that the agent looked at it."""
    return bool(repository.commits or repository.pushed_at or repository.links)


def _repository_at(folder: str, known: Sequence[Repository], branch: str) -> Repository:
    """The repository of a call in this folder that told this branch. Where one of two calls names no folder, both may have
    run in the same one: they did if they told the same branch, or the later one none."""
    same = [each for each in known if each.folder == folder]
    near = [each for each in known if not (folder and each.folder)]
    alike = [each for each in near if branch in {"", each.branch}]
    found = same or alike[-1:]
    return found[-1] if found else Repository(folder=folder)


def _at(command: Command) -> str:
    words = command.words
    return words[2] if len(words) > 2 and words[1] == "-C" else command.folder  # noqa: PLR2004


def _verb(command: Command) -> str:
    words = command.words[3:] if command.words[1:2] == ("-C",) else command.words[1:]
    return next((word for word in words if not word.startswith("-")), "")


def _told(old: Repository, commands: Sequence[Command], run: Run) -> Repository:
    """The repository after commands that succeeded or failed, as far as their output tells."""
    verbs = {_verb(command) for command in commands}
    text = run.text[:40_000]
    new = old
    if verbs & {"commit", "cherry-pick", "merge", "revert", "am", "rebase"}:
        new = _committed(new, text, commands, run.version)
    if not run.failed:
        new = _branched(new, verbs, text, commands)
    if verbs & {"status", "commit", "stash"}:
        new = _treed(new, text, run)
    if "push" in verbs and not run.failed:
        pushed = [f"{m['from']} -> {m['to']}" for m in _PUSHED.finditer(text)]
        if pushed or "Everything up-to-date" in text:
            new = replace(new, pushed=one_line(", ".join(pushed[:2]), 80), pushed_at=run.version)
    if any(
        c.words[0] != "git"
        and c.words[1:3] in {("pr", "create"), ("mr", "create"), ("pr", "edit"), ("pr", "merge")}
        for c in commands
    ):
        links = dict.fromkeys([*new.links, *_LINK.findall(text)])
        new = replace(new, links=tuple(links)[-LINKS_MAX:])
    return new


def _committed(old: Repository, text: str, commands: Sequence[Command], version: int) -> Repository:
    made = [
        Commit(subject=one_line(m["subject"], 100), hash=m["hash"][:10], seen=version)
        for m in _COMMITTED.finditer(text)
    ]
    if not made:
        return old
    is_again = any("--amend" in command.words for command in commands)
    subjects = {commit.subject for commit in made}
    before = [c for c in old.commits[: -1 if is_again else None] if c.subject not in subjects]
    branch = next((m["branch"] for m in _COMMITTED.finditer(text)), old.branch)
    is_named = not branch.startswith("detached")
    return replace(
        old,
        commits=(*before, *made)[-COMMITS_MAX:],
        branch=one_line(branch, 80) if is_named else "",
        tree="",
    )


def _branched(
    old: Repository, verbs: set[str], text: str, commands: Sequence[Command]
) -> Repository:
    if verbs & {"status", "switch", "checkout", "branch", "stash"}:
        names = [m["branch"] for m in _ON.finditer(text)]
        if names:
            return replace(old, branch=one_line(names[-1], 80))
        if found := _DETACHED.search(text):
            return replace(old, branch=f"detached at {found['at'] or found['now'] or 'HEAD'}")
    asks = any({"--show-current", "--abbrev-ref"} & set(command.words) for command in commands)
    if asks and len(commands) == 1 and re.fullmatch(r"\S{1,100}", text.strip()):
        return replace(old, branch=text.strip())
    return old


def _treed(old: Repository, text: str, run: Run) -> Repository:
    """The repository with what a status says of its files; a short status that says nothing means a clean tree."""
    files = list(dict.fromkeys(m["file"] for form in (_LONG, _SHORT) for m in form.finditer(text)))
    commands = [c for c in run.commands if c.words[0] == "git" and _verb(c) == "status"]
    if files:
        named = ", ".join(files[:FILES_TOLD])
        more = f" and {len(files) - FILES_TOLD} more" if len(files) > FILES_TOLD else ""
        return replace(old, tree=one_line(f"{named}{more}", 240), told=run.version)
    is_short = any({"--short", "-s", "--porcelain", "-sb"} & set(c.words) for c in commands)
    is_silent = (
        is_short
        and len(run.commands) == 1
        and not text.strip().removeprefix("##").partition("\n")[2]
    )
    if _CLEAN.search(text) or (is_silent and not run.failed):
        return replace(old, tree="clean", told=run.version)
    return old
