"""The rungs: what each proposes, and the scope that it is given.

A rung is an object with a name and a method `propose(scope)`. It sees the view as the earlier rungs left it, and proposes
blocks to hide, as data (`Proposal`), or a range to fold (`FittedRange`). The built-in ones, each with what it takes:

    externalize   large results: their content goes to the artifact store, and a pointer stays
    summarize     everything before a cut: one summary with a digest takes its place
    clear         results: each becomes a placeholder, if its durability allows it
    drop          whole rounds, as a last resort: one line says how to find them

A replayable result is cleared only if the same content can be read again. The evidence, in this order:

    a probe                 looked at the source just now: equal marks mean unchanged
    a later, equal read     of the same target by the same tool, and no write to the target since
    none                    the source counts as changed

A write is a call of a tool that declares that it writes, or whose name implies it (`tool_kind`), including
failed and open calls. Writes by shell commands are unknown and ignored; only a probe detects them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from posixpath import normpath
from typing import Annotated, Any, Final, Literal, TypeAlias

import attrs
import msgspec
from msgspec import Meta, Struct

from blocks import (
    ENCRYPTED,
    ArtifactId,
    BlockId,
    CallId,
    Determinism,
    DroppedSpan,
    Durability,
    Envelope,
    Hidden,
    Sensitivity,
    SystemMessage,
    ToolCall,
    ToolResult,
    Trigger,
    TurnId,
    artifact_id,
    fields_in,
    images_of,
    is_sealed,
    text_of,
    tool_kind,
    tool_target,
    written_paths,
)
from blocks.formats import lays_down
from render.compaction._range import (
    FittedRange,
    fitted_at,
    fitting_range,
    range_before,
    tried_out,
)
from render.policy._context import Context
from render.policy._policy import RungName, ToolPolicy
from render.stages._visibility import offered
from render.summary._prose import identifiers, one_line
from render.summary._shell import without_middle
from render.view._view import Entry, Group, Place, View

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "externalize": ("artifact", "path"),
    "summarize": ("cut", "source_hash"),
    "clear": (),
    "drop": ("entry",),
}
"""The fields that a proposal must have, by action."""
ANY_TOOL = ToolPolicy()


class Proposal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rung proposes for a span of blocks. Without a field that its action needs, it is refused (`ValueError`)."""

    action: RungName
    blocks: Annotated[tuple[BlockId, ...], Meta(min_length=1)]
    """Ids in log order; never empty."""
    first: int
    last: int
    """Versions of the oldest and the newest block."""
    turns: tuple[TurnId, ...] = ()
    tokens_freed: int = 0
    """Tokens by which the request gets shorter, before later rungs are applied."""
    reason: str = ""
    cut: int = 0
    """Summarize: version of the first kept block."""
    squeeze: float = 1.0
    """Summarize: factor on the policy's shares, below 1 if the request would not fit otherwise."""
    source_hash: str = ""
    """Summarize: hash of what is summarised."""
    entry: DroppedSpan | None = None
    """Drop: what is known of the span."""
    artifact: ArtifactId = ArtifactId("")
    """Externalize: id of the artifact that will hold the content."""
    replacement: str = ""
    """Clear, externalize, drop: the text in place of the first block: a placeholder, a pointer, a line."""
    path: str = ""
    """Externalize: path of the result."""
    sensitivity: Sensitivity = "internal"
    """Externalize: sensitivity of the result."""

    def __post_init__(self) -> None:
        missing = [name for name in _NEEDED.get(self.action, ()) if not getattr(self, name)]
        if missing:
            raise ValueError(f"{self.action} needs {' and '.join(missing)}")

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """What is shown in place of the blocks: the replacement at the first, nothing at the others. The content of an
        artifact is stored before. Empty for `summarize`, whose blocks become part of a summary."""
        if self.action == "summarize":
            return ()
        first = self.blocks[0]
        instead = Hidden(
            block=first, replacement=self.replacement, artifact=self.artifact, dropped=self.entry
        )
        return instead, *(Hidden(block=block) for block in self.blocks if block != first)


@attrs.frozen(kw_only=True)
class ToolAnswer:
    """A tool result that a rung may propose to move or clear."""

    group: Group = attrs.field(repr=False)
    entry: Entry
    result: ToolResult
    call: ToolCall
    tokens: int
    """Tokens of the result as it is shown."""
    policy: ToolPolicy

    @property
    def durability(self) -> Durability:
        """The policy's durability, or else the one the tool declared."""
        return self.policy.durability or self.result.envelope.durability

    @property
    def sensitivity(self) -> Sensitivity:
        """The policy's sensitivity, or else the one the tool declared."""
        return self.policy.sensitivity or self.result.envelope.sensitivity

    @property
    def key_fields(self) -> dict[str, Any]:
        """The key fields that the tool declared, and those that the policy keeps of a JSON result."""
        wanted = self.policy.key_fields
        fields = fields_in(text_of(self.result), wanted) if wanted else {}
        return {**fields, **self.result.envelope.key_fields}

    @property
    def artifact(self) -> ArtifactId:
        """The id of the artifact that holds the result's content, or would hold it."""
        content = text_of(self.result).encode(errors="surrogatepass")
        return self.result.artifact or artifact_id(content)

    def may_be_stored(self, context: Context) -> bool:
        """Whether the artifact store has its content, or may take it."""
        is_kept = bool(self.result.artifact) or self.sensitivity not in ENCRYPTED
        return is_kept or context.can_encrypt


@attrs.frozen(kw_only=True, eq=False)
class RungScope:
    """The view, the context, and how far a rung may go."""

    view: View = attrs.field(repr=False)
    context: Context = attrs.field(repr=False)
    protected: int
    """Version of the first block of the verbatim tail, which must not be touched."""
    missing: int = 0
    """Tokens by which the request exceeds its goal."""
    is_last_resort: bool = False
    """Whether this is the second pass, in which only the newest round is protected."""
    current: Mapping[CallId, Determinism] = attrs.field(factory=dict[CallId, Determinism])
    """The current state of the sources of replayable results, as far as it was probed."""
    trigger: Trigger = "proactive"
    cuts: tuple[int, ...] = ()
    """Versions before which a summary is already prepared, best first."""
    disabled: frozenset[str] = frozenset()
    """Actions that must not be proposed now, for example `externalize` without an artifact store."""

    @property
    def groups(self) -> Iterator[Group]:
        """The groups before the tail, oldest first."""
        return (group for group in self.view.groups if group.last < self.protected)

    def results(self) -> Iterator[ToolAnswer]:
        """Tool results before the tail that are shown whole or clipped, oldest first; without results with images
        or standing instructions."""
        answers = (each for each in self.answers() if not images_of(each.result))
        return (each for each in answers if not lays_down(each.result))

    def answers(self) -> Iterator[ToolAnswer]:
        """As `results`, with images. Results that are hidden for another reason are left out."""
        encoder, tools = self.context.encoder, self.context.policy.tools
        for group in self.groups:
            calls = {e.pair: e.block for e in group.placed[Place.RESPONSE]}
            for entry in group.placed[Place.RESULT]:
                block, call = entry.block, calls.get(entry.pair)
                is_shown = entry.replacement is None or entry.hidden_as == "clipped"
                if is_shown and isinstance(block, ToolResult) and isinstance(call, ToolCall):
                    yield ToolAnswer(
                        group=group,
                        entry=entry,
                        result=block,
                        call=call,
                        tokens=encoder.shown(group).tokens_of(entry.version),
                        policy=tools.get(call.name, ANY_TOOL),
                    )

    def freed_by(self, answer: ToolAnswer, replacement: str) -> int:
        """Tokens that the request saves if this text replaces the result."""
        overhead = self.context.limits.result_tokens
        return answer.tokens - overhead - self.context.counter.count(replacement)

    def clear(self, answer: ToolAnswer, replacement: str, reason: str = "") -> Proposal:
        """The proposal to show this text instead of the result."""
        return self.replace("clear", answer, replacement, reason)

    def replace(
        self,
        action: Literal["clear", "externalize"],
        answer: ToolAnswer,
        replacement: str,
        reason: str,
        **fields: Any,
    ) -> Proposal:
        """The proposal for one result, which this text replaces."""
        return Proposal(
            action=action,
            blocks=(answer.entry.block.id,),
            first=answer.entry.version,
            last=answer.entry.version,
            turns=(answer.result.turn,),
            tokens_freed=self.freed_by(answer, replacement),
            reason=reason,
            replacement=replacement,
            **fields,
        )

    def summarize_before(self, cut: int) -> FittedRange | None:
        """The proposal to summarise everything before the block of version `cut`; None if that cut is not legal
        or lies in the verbatim tail."""
        if cut > self.protected:
            return None
        return fitted_at(self.view, self.context, self.trigger, cut)

    def proposals(self, rung: RungName) -> Sequence[Any]:
        """What a built-in rung proposes in this scope: `Proposal`s, or one `FittedRange`."""
        return RUNGS[rung](self)

    def drift(self) -> "Drift":
        """The evidence about which replayable results may be stale."""
        return Drift(self.view.entries, self.current)


def newest_round(view: View) -> int:
    """Version of the first block of the newest round."""
    return view.groups[-1].first if view.groups else 0


def replayable_calls(view: View, context: Context) -> list[ToolCall]:
    """The calls whose results could be cleared if their sources were probed."""
    scope = RungScope(view=view, context=context, protected=newest_round(view))
    smallest = context.policy.prune_block_tokens
    return [
        answer.call
        for answer in scope.results()
        if answer.durability == "replayable" and answer.tokens > smallest
    ]


# Externalize: the content also remains in the log. The store adds a short name that can be passed to a tool, access rules,
# an expiry, and access from other machines.


ABOUT_CHARACTERS: Final = 120


def _externalize(scope: RungScope) -> list[Proposal]:
    """Move every large enough result before the tail, in one batch."""
    results = scope.results() if scope.context.can_externalize else ()
    proposals = (_pointer(each, scope) for each in results if _may_move(each, scope.context))
    return [proposal for proposal in proposals if proposal.tokens_freed > 0]


def _may_move(answer: ToolAnswer, context: Context) -> bool:
    own = answer.policy.externalize_tokens
    if answer.tokens < (context.policy.externalize_tokens if own is None else own):
        return False
    # What is ephemeral may be cleared instead, so it is not worth storing.
    return answer.durability != "ephemeral" and answer.may_be_stored(context)


def _pointer(answer: ToolAnswer, scope: RungScope) -> Proposal:
    """The proposal to show a line about a result, and its beginning and end unless it is confidential."""
    context, policy = scope.context, scope.context.policy
    text = text_of(answer.entry.opened or answer.result)
    target = tool_target(answer.call.input, answer.result.envelope)
    about = f"{answer.call.name} {target}".strip()[:ABOUT_CHARACTERS]
    if answer.sensitivity in ENCRYPTED or policy.artifact_seconds:
        way_back = f"read back at {answer.entry.path}"  # it never comes back by itself
    elif tool := offered("read_artifact", context):
        way_back = f'{tool}("{answer.artifact}")'
    else:  # see `render.stages._visibility`
        way_back = f'name "{answer.artifact}" and it is shown again'
    tokens = context.counter.count(text)
    line = f"[moved to the artifact store: {tokens} tokens of {about}; {way_back}]"
    if answer.sensitivity not in ENCRYPTED:
        line += _ends_of(answer.entry, policy.pointer_tokens)
    return scope.replace(
        "externalize",
        answer,
        line,
        f"{answer.tokens} tokens",
        artifact=answer.artifact,
        path=answer.entry.path,
        sensitivity=answer.sensitivity,
    )


# Summarize: everything before a cut; `_range` says which cut, `_head` what the summary holds.


def _summarize(scope: RungScope) -> list[FittedRange]:
    """The range whose summary is prepared already, if folding it leaves enough room; else the one that keeps most of the
    tail and fits. None if there is no range."""
    for cut in scope.cuts:
        fold = range_before(scope.view, scope.context, scope.trigger, cut)
        if fold and (prepared := tried_out(scope.view, fold, scope.context)).fits:
            return [prepared]
    fitted = fitting_range(scope.view, scope.context, scope.trigger)
    return [fitted] if fitted else []


# Clear, by durability: ephemeral gets a placeholder; anchoring one with its key fields, its beginning and its end; replayable a
# placeholder, if its source is known to be unchanged; non-replayable is never cleared.


def _clear(scope: RungScope) -> list[Proposal]:
    """Clear every result before the tail that may be cleared and saves tokens, in one batch."""
    results = list(scope.results())
    if not results:
        return []
    drift = scope.drift()
    proposals = [_cleared(answer, scope) for answer in results if _may_clear(answer, drift, scope)]
    return [proposal for proposal in proposals if proposal.tokens_freed > 0]


def _may_clear(answer: ToolAnswer, drift: "Drift", scope: RungScope) -> bool:
    if answer.tokens <= scope.context.policy.prune_block_tokens:
        return False
    if answer.durability == "replayable":
        return not drift.has_changed(answer.entry)
    return answer.durability != "non-replayable"


def _cleared(answer: ToolAnswer, scope: RungScope) -> Proposal:
    tokens_max, durability = scope.context.policy.pointer_tokens, answer.durability
    text = placeholder(answer, tokens_max, scope.context.counter.count)
    if durability == "anchoring":
        text += _ends_of(answer.entry, tokens_max)
    return scope.clear(answer, text, f"{durability}, {answer.tokens} tokens")


# Drop: user texts, notes and plans stay. A non-replayable result that is not in the artifact store stays with its
# call, unless the request would not fit.


KEYWORDS_MAX: Final = 8
TEXT_MAX: Final = 20_000
"""Characters of each block that are searched for keywords."""
_DROPPABLE: Final = frozenset({Place.RESPONSE, Place.RESULT, Place.LATE})

_Priced: TypeAlias = tuple[Entry, int]
"""An entry and its tokens as it is shown."""


def _drop(scope: RungScope) -> list[Proposal]:
    """Drop the oldest rounds before the tail, as many as the goal needs: one proposal for each run of adjacent rounds."""
    rare = (answer for answer in scope.results() if answer.durability == "non-replayable")
    exempt = set[str]() if scope.is_last_resort else {answer.entry.pair for answer in rare}
    exempt |= {e.pair for g in scope.groups for e in g.placed[Place.RESULT] if lays_down(e.block)}
    proposals = (_dropped(span, scope.context) for span in _spans(scope, exempt))
    return [proposal for proposal in proposals if proposal.tokens_freed > 0]


def _spans(scope: RungScope, exempt: set[str]) -> Iterator[list[_Priced]]:
    """Runs of dropped rounds between which nothing stays in the prompt."""
    encoder, missing = scope.context.encoder, scope.missing
    span: list[_Priced] = []
    for group in scope.groups:
        if missing <= 0:
            break
        piece = encoder.shown(group)
        gone = [(e, piece.tokens_of(e.version)) for e in group.entries if _goes(e, exempt)]
        missing -= sum(tokens for _, tokens in gone)
        span += gone
        stays = any(e.place is not Place.SILENT and not _goes(e, exempt) for e in group.entries)
        if span and (not gone or stays):
            yield span
            span = []
    if span:
        yield span


def _goes(entry: Entry, exempt: set[str]) -> bool:
    return may_go(entry) and entry.pair not in exempt


def may_go(entry: Entry) -> bool:
    """Whether the entry is shown, and was written by the model, a tool or the engine."""
    is_there = entry.replacement != "" and entry.dropped is None
    is_notice = isinstance(entry.block, SystemMessage) and not entry.block.standing
    return is_there and (entry.place in _DROPPABLE or is_notice)


def _dropped(span: Sequence[_Priced], context: Context) -> Proposal:
    entries = [entry for entry, _ in span]
    record = DroppedSpan(
        first=entries[0].version,
        last=entries[-1].version,
        turns=tuple(dict.fromkeys(entry.block.turn for entry in entries)),
        started_at=min(entry.at for entry in entries),
        ended_at=max(entry.at for entry in entries),
        about=_about(entries),
        keywords=_keywords(entries),
        paths=tuple(dict.fromkeys((entries[0].name, entries[-1].name))),
    )
    tool = offered("read_timeline", context)
    way_back = f"; {tool} reads it back" if tool else ""
    text = f"[dropped to save space: {_span_line(record)}{way_back}]"
    return Proposal(
        action="drop",
        blocks=tuple(entry.block.id for entry in entries),
        first=record.first,
        last=record.last,
        turns=record.turns,
        tokens_freed=sum(tokens for _, tokens in span) - context.counter.count(text),
        reason="the oldest that is left",
        entry=record,
        replacement=text,
    )


def _span_line(span: DroppedSpan) -> str:
    """A dropped span on one line: turns, time, content, keywords, and its first and last path."""
    turns = " to ".join(dict.fromkeys((span.turns[0], span.turns[-1]))) if span.turns else "?"
    began = minute_of(span.started_at)
    paths = " to ".join(dict.fromkeys(span.paths))
    about = f"; about {', '.join(span.keywords)}" if span.keywords else ""
    return f"{turns}, {began}: {span.about}{about}; {paths}"


def minute_of(seconds: float) -> str:
    """`2026-11-21 03:05` for seconds since the epoch; `?` for a time before or after all dates."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "?"


def _about(entries: Sequence[Entry]) -> str:
    """The number of blocks, and how often each tool was called."""
    tools = Counter(e.block.name for e in entries if isinstance(e.block, ToolCall))
    names = ", ".join(f"{name} {count}" for name, count in sorted(tools.items()))
    return f"{len(entries)} blocks" + (f" ({names})" if names else "")


def _keywords(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Ids of moved artifacts, then the identifiers that occur in most blocks, the newest first among equals."""
    texts = (text_of(entry.block)[:TEXT_MAX] for entry in reversed(entries))
    names = Counter(chain.from_iterable(sorted(identifiers(text)) for text in texts))
    artifacts = [entry.artifact for entry in entries if entry.artifact]
    return (*artifacts, *(name for name, _ in names.most_common(KEYWORDS_MAX)))[:KEYWORDS_MAX]


# The built-in rungs.


RUNGS: Final[Mapping[RungName, Callable[[RungScope], Sequence[Any]]]] = {
    "externalize": _externalize,
    "summarize": _summarize,
    "clear": _clear,
    "drop": _drop,
}
"""The built-in rungs: what each proposes. To add one, write its function, and name it here and in `RungName`."""


# Durability, and what replaces a result.


_LINE_MAX: Final = 160
_TARGET_MIN: Final = 40
"""Characters of the target when space is short."""
CHARACTERS: Final = 3
"""Characters per token of the beginning and end of a content."""


def placeholder(answer: ToolAnswer, tokens_max: int, count: Callable[[str], int]) -> str:
    """The text that replaces a cleared result, in at most `tokens_max` tokens if possible.

    It has the tool, its target, the outcome, the key fields, the first line of an error, and the path. What
    does not fit is left out: the largest fields first, then the error, then the target. The path always
    stays.
    """
    target = one_line(tool_target(answer.call.input, answer.result.envelope), _LINE_MAX)
    call = f"{answer.call.name} {target}".strip()
    short = f"{answer.call.name} {one_line(target, _TARGET_MIN)}".strip()
    outcome, error = answer.result.envelope.outcome, _error(answer.result)
    whole = [(call, outcome, fields, error) for fields in _fewer(answer.key_fields)]
    details: list[tuple[str, ...]] = [*whole, (call, outcome, error), (call, outcome)]
    details += [(short, outcome), (answer.call.name, outcome), ()]
    texts = [_cleared_line(answer, *each) for each in details]
    return next((text for text in texts if count(text) <= tokens_max), texts[-1])


def _cleared_line(answer: ToolAnswer, *parts: str) -> str:
    details = "; ".join(filter(None, parts))
    about = f": {details}" if details else ""
    return f"[cleared{about}; read back at {answer.entry.path}]"


def _fewer(fields: Mapping[str, Any]) -> Iterator[str]:
    """The fields as JSON, sorted by name; each time without the largest remaining one."""
    encoded = {name: f"{_json(name)}:{_json(value)}" for name, value in sorted(fields.items())}
    largest = sorted(encoded, key=lambda name: (-len(encoded[name]), name))
    for missing, name in enumerate(largest):
        more = f" (+{missing} more)" if missing else ""
        yield f"{{{','.join(encoded.values())}}}{more}"
        del encoded[name]


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _error(result: ToolResult) -> str:
    is_failure = result.is_error or result.envelope.outcome == "failure"
    if not is_failure or is_sealed(result):
        return ""
    text = text_of(result).strip()
    return f"error: {one_line(text.splitlines()[0], _LINE_MAX)}" if text else ""


def _ends_of(entry: Entry, tokens_max: int) -> str:
    """The beginning and the end of a block's text on further lines, in about so many tokens; none of a sealed one."""
    text = "" if is_sealed(entry.block) else text_of(entry.block).strip()
    return f"\n{without_middle(text, CHARACTERS * tokens_max)}" if text and tokens_max else ""


# Drift: whether a source has changed.


_STILL_OPEN: Final = 1 << 62
"""The version of a write that has no result yet: it may happen at any time."""

_ENDS_MAX: Final = 40
"""The most trailing path components that are compared."""


@attrs.define
class _Writes:
    """When which files were written, as versions. Relative and absolute names of one file match."""

    _anywhere: int = 0
    """Version of the newest write without a path."""
    _whole: dict[str, int] = attrs.field(factory=dict[str, int])
    """Version of the newest write, by the path that the write named."""
    _ends: dict[str, int] = attrs.field(factory=dict[str, int])
    """Version of the newest write, by every ending of that path: `/srv/a.py`, `srv/a.py`, `a.py`."""

    def add(self, paths: Sequence[str], version: int) -> None:
        if not paths:
            self._anywhere = max(self._anywhere, version)
        for path in map(_normal, paths):
            self._whole[path] = max(self._whole.get(path, 0), version)
            for end in _ends(path):
                self._ends[end] = max(self._ends.get(end, 0), version)

    def last(self, path: str) -> int:
        """Version of the newest write to a file that may be this one; 0: never."""
        path = _normal(path)
        longer = self._ends.get(path, 0)
        shorter = max(self._whole.get(end, 0) for end in _ends(path))
        return max(self._anywhere, longer, shorter)


class Drift:
    """What the entries of a view and the probes say about the sources of results; built once per view."""

    def __init__(
        self, entries: Sequence[Entry], current: Mapping[CallId, Determinism] | None = None
    ) -> None:
        self._current = current or {}
        self._calls: dict[str, ToolCall] = {}  # by wire id
        # Of reads, with the version of the call: whatever returned before it had already taken effect.
        self._same: dict[tuple[str, bytes], tuple[int, Determinism]] = {}  # by tool and arguments
        self._alike: dict[tuple[str, str, str], int] = {}  # by tool, target and hash
        self._writes = _Writes()
        answers = {e.pair: e for e in entries if e.place is Place.RESULT}
        for entry in entries:
            if isinstance(entry.block, ToolCall) and entry.pair:
                self._calls[entry.pair] = entry.block
                self._learn(entry.version, entry.block, answers.get(entry.pair))

    def _learn(self, version: int, call: ToolCall, answer: Entry | None) -> None:
        result = answer.block if answer and isinstance(answer.block, ToolResult) else None
        envelope = result.envelope if result else None
        if tool_kind(call.name, call.input, envelope) == "write":
            paths = written_paths(call.name, call.input, envelope)
            self._writes.add(paths, answer.version if answer else _STILL_OPEN)
        elif envelope and envelope.determinism != Determinism():
            mark, target = envelope.determinism, tool_target(call.input, envelope)
            self._same[call.name, _arguments(call)] = version, mark
            self._alike[call.name, target, mark.content_hash] = version

    def has_changed(self, entry: Entry) -> bool:
        """Whether the source of this result may have changed since."""
        call, result = self._calls.get(entry.pair), entry.block
        if not isinstance(result, ToolResult) or entry.place is not Place.RESULT or call is None:
            return True
        then = result.envelope.determinism
        now = self._current.get(result.call_id)
        if now is not None:
            return then.has_changed(now)
        return not self._was_seen_again(entry.version, call, result.envelope)

    def _was_seen_again(self, version: int, call: ToolCall, envelope: Envelope) -> bool:
        target, then = tool_target(call.input, envelope), envelope.determinism
        seen, mark = self._same.get((call.name, _arguments(call)), (0, then))
        if seen > version and then.has_changed(mark):
            return False
        if target and then.content_hash:
            seen = max(seen, self._alike.get((call.name, target, then.content_hash), 0))
        return seen > version and seen > self._writes.last(target)


def _normal(path: str) -> str:
    return normpath(" ".join(path.split()).replace("\\", "/"))


def _ends(path: str) -> Iterator[str]:
    """The path and its endings, longest first: `a/b/c`, `b/c`, `c`."""
    yield path
    names = path.split("/")
    for start in range(max(1, len(names) - _ENDS_MAX), len(names)):
        yield "/".join(names[start:])


def _arguments(call: ToolCall) -> bytes:
    return msgspec.json.encode(call.input, order="sorted")
