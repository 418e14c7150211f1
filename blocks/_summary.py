"""What a compaction writes: the structured summary (by a model or by rules) and the digest (computed).

Both are data; `render` merges them with those of the compaction before and turns them into text.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from blocks._ids import TurnId

Priority: TypeAlias = Literal["high", "medium", "low"]


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision, and the reason for it."""

    decision: str
    reason: str = ""
    turn: str = ""
    rejected: str = ""
    """The alternatives, and why they were not taken."""


class Work(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of the table of completed work."""

    component: str
    """A file, a module, a service."""
    action: str
    description: str = ""


class ToolOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A noteworthy outcome of a tool call."""

    tool: str
    outcome: str
    detail: str = ""


class ArtifactNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was produced, and when reading it again is worthwhile."""

    path: str
    description: str = ""
    read_when: str = ""


class OpenItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something left to do."""

    item: str
    priority: Priority = "medium"


class ErrorRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error, and how it was resolved, if it was."""

    error: str
    resolution: str = ""


class NamedList(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A list that is of use only if it is complete."""

    title: str
    items: tuple[str, ...] = ()


class StructuredSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary in fields, so that fixed rules decide which parts the next summary keeps."""

    schema: int = 1
    task: str = ""
    """The task: as it was first put, verbatim; or the goal, as a model last put it."""
    facts: tuple[str, ...] = ()
    """What was found out, each with its evidence."""
    constraints: tuple[str, ...] = ()
    """Demands and prohibitions; the user's own words first."""
    decisions: tuple[Decision, ...] = ()
    completed: tuple[Work, ...] = ()
    tool_outcomes: tuple[ToolOutcome, ...] = ()
    artifacts: tuple[ArtifactNote, ...] = ()
    state: str = ""
    """The current task and its progress."""
    plan: str = ""
    open_items: tuple[OpenItem, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    lists: tuple[NamedList, ...] = ()
    turn_context: str = ""
    """The folded first part of a split turn."""
    quoted: int = 0
    """How many of the constraints, from the first on, are the user's own words; the engine sets this."""
    complete: bool = False
    """Whether it holds all of the summary before that still counts, and so takes its place. Otherwise it is added to that
    one, by rules."""


class Action(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line of what was done: a call, or several that did the same."""

    target: str = ""
    """The file, command or query, on one line."""
    verb: str
    """`read`, `edit`, `search`, ..., `$` for a command, else the tool's name; empty: `runs` actions that are not told."""
    seen: int = 0
    """Version of the newest of its calls; 0: not known."""
    part: str = ""
    """Of a file: the lines that were read (`1-80`)."""
    folder: str = ""
    """Where a command ran, if its call says so."""
    outcome: str = ""
    """What came of it, in few words; empty if that goes without saying."""
    first: str = ""
    """Of several runs: what came of the first, if something else came of the last."""
    runs: int = 1
    weight: int = 0
    """How much it tells when it is no longer new, from 0 (a look) to 3 (tests, a commit)."""


class DroppedSpan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Blocks that left the prompt without a summary: enough to find them again."""

    first: int
    last: int
    """Versions of the oldest and the newest of them."""
    turns: tuple[TurnId, ...] = ()
    started_at: float = 0.0
    ended_at: float = 0.0
    """When the oldest and the newest of them were appended, in seconds since the epoch."""
    about: str = ""
    """A description on one line: tools by count."""
    keywords: tuple[str, ...] = ()
    """Rare identifiers in them; those that the agent used come first."""
    paths: tuple[str, ...] = ()
    """Logical paths of the oldest and the newest of them."""


class Region(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Adjacent whole lines of a file, as they are now, that were last seen and changed at the same time."""

    file: str
    line: int = 0
    """Number of the first; 0: not known."""
    text: str
    seen: int
    """Version of the block that showed or wrote them last."""
    edited: int = 0
    """Version of the last change of them; 0: none that is known."""
    doubt: int = 0
    """Version of a later call that may have changed them in an unknown way; 0: none."""
    joins: bool = False
    """Without a number: whether they follow the region before directly."""
    sources: tuple[int, ...] = ()
    """Versions of the other blocks that parts of them come from."""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An item of the agent's plan or list of tasks."""

    text: str
    status: str = ""
    """As the tool says it: `pending`, `in_progress`, `completed`."""
    id: str = ""
    """By which later calls name it, if they do."""


class FileChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent's edits did to one file."""

    path: str
    edits: int = 0
    seen: int = 0
    """Version of the result of the newest edit."""
    how: str = ""
    """`created`, `written` (the whole text), `deleted`, `moved from` another path; empty: edited."""
    line: str = ""
    """The most telling line of the newest edit."""
    added: int = 0
    """Version of the newest `git add` of it."""


class CheckRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last result of a test suite, a build, a linter; or a failure after which the same thing has not succeeded."""

    command: str
    """The command, or the tool with its target."""
    result: str = ""
    """`3 failed, 40 passed: TestX`, `ok`, `failed (2): error: ...`; of a command whose status a pipe hides, its error."""
    seen: int = 0


class Process(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command in the background whose end has not been seen."""

    command: str
    folder: str = ""
    """Where it runs, if its call says so."""
    id: str = ""
    """By which other calls name it, also two with a blank between, the newer one last; empty: they cannot."""
    seen: int = 0


class Commit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A commit that the agent made, or HEAD as a log tells it."""

    subject: str
    hash: str = ""
    """Empty: not known, or another since."""
    branch: str = ""
    """Where the agent made it."""
    seen: int = 0


class Repository(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What git told."""

    branch: str = ""
    folder: str = ""
    """Where the branch is, if git was told to work in another folder than the call's (`git -C`)."""
    commits: tuple[Commit, ...] = ()
    pushed: str = ""
    """What was pushed last, or how many commits the remote branch had not."""
    pushed_at: int = 0
    """Version of the result that told it."""
    links: tuple[str, ...] = ()
    """Pull requests."""


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the work stands: the newest state of everything that calls and results tell about it."""

    goal: str = ""
    """The beginning of the user's newest request."""
    goal_turn: str = ""
    goal_seen: int = 0
    steps: tuple[Step, ...] = ()
    steps_seen: int = 0
    changes: tuple[FileChange, ...] = ()
    """By the newest edit, the newest last; so are the other lists."""
    fewer: int = 0
    """How far the text is shortened for want of room, in steps; what is not shown is still here, for a page with more."""
    others: int = 0
    """How many changed files are not listed."""
    checks: tuple[CheckRecord, ...] = ()
    processes: tuple[Process, ...] = ()
    repository: Repository = Repository()


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was found or decided, condensed from one block."""

    turn: str
    version: int
    """Version of the block."""
    kind: str
    """`report`, `found`, `agent` or `rule`; see `render.summary._findings`."""
    text: str
    """Its statements: sentences, leads, list items and table rows, one or more lines."""
    source: str = ""
    """For `agent`: the task."""
    gone: int = 0
    """How many items of its lists were left out."""
    disputed: str = ""
    """The turn in which it was contradicted, or taken back, at once."""


class Past(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found and done, as a fold with all of the policy's room would show it."""

    findings: tuple[Finding, ...] = ()
    actions: tuple[Action, ...] = ()


class Digest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The deterministic record of what all compactions of a timeline have folded so far."""

    blocks: int = 0
    turns: int = 0
    rounds: int = 0
    compactions: int = 0
    actions: tuple[Action, ...] = ()
    """What was done, oldest first."""
    dropped: tuple[DroppedSpan, ...] = ()
    """The newest spans that a rung had dropped before they were folded; the parts tell of them like of everything else."""
    seen: int = 0
    """Version of the newest block that the parts about the present state (where things stand, the working set) cover."""
    regions: tuple[Region, ...] = ()
    """The working set: by file, in the order of its lines."""
    progress: Progress = Progress()
    findings: tuple[Finding, ...] = ()
    """What was found and decided, in log order."""
    held: Past | None = None
    """What the next fold begins with, if this one had less room than the policy gives, or stands beside a model's part."""
