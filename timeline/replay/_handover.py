"""Measures what someone who takes over from a request needs: the old lines of the next edit, and what was laid down.

An edit names text that must be in the file exactly, so whoever writes it needs each of its *old lines*: the old text
of an edit tool, the removed and context lines of a patch.  An edit *can be written from the request* if the request
has every one of them:

    -    return total          in the request, `  12→    return total`     has it
         # of all lines        in the request, `# of all the lines`        has it not: this edit cannot be written

Lines of fewer than eight characters (`}`, `else:`) do not count, since they can be guessed; nor do lines that the
history never showed, since no engine could have kept them.

*Standing instructions* are kept by the line: of the newest text of each kind, the share of the lines of twelve or more
characters.  A *prompt* is kept if it is in the request whole.

Like recall, all three are measured at the calls whose full history exceeds the window.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import fmean
from typing import Any, Final, Self, cast

import attrs

from blocks import (
    AssistantThinking,
    Block,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    inner_call,
    standing_of,
    text_of,
)
from blocks.formats import appended_texts
from persistence.sessions import Responded, Session
from render import Rendered
from timeline.replay._recall import (
    Needs,
    Recall,
    RequestTexts,
    bare_lines,
    needs_of,
    recall_of,
)

OLD_LINE_CHARACTERS_MIN: Final = 8
"""Shorter lines of an edit do not count."""
DIGITS: Final = 4
STANDING_LINE_CHARACTERS_MIN: Final = 12
"""Shorter lines of a standing instruction do not count."""
OLD_TEXTS: Final = frozenset(
    {
        "old_string",  # Claude Code's Edit and MultiEdit; `replace` of Gemini CLI, `edit` of Qwen Code
        "oldText",  # pi's edit
        "old_str",  # Anthropic's text editor, OpenHands' str_replace_editor, Copilot CLI
        "oldString",  # opencode's edit
    }
)
"""The arguments in which edit tools take the text to be replaced."""
PATCH: Final = "*** Update File:"
"""What a patch in the form of Codex's `apply_patch` has for each file that it changes."""
PATCH_MARK: Final = "*** "
"""How each line begins that begins or ends a part of such a patch."""


@attrs.frozen(kw_only=True)
class Handover:
    """Shares from 0 to 1 of what a request must hand over; None if it was never measured."""

    edits: float | None = None
    """Of the edits that the agent made next, those that could be written from the request."""
    standing: float | None = None
    """Of the lines of the newest standing instructions, those that the request had: a mean over the calls."""
    prompts: float | None = None
    """Of the user's prompts, those that were in the request whole: a mean over the calls."""


@attrs.frozen(kw_only=True)
class Laid:
    """What one call needs from its request."""

    edits: tuple[tuple[str, ...], ...] = ()
    """The old lines of each edit that its response makes, as far as the history has shown them."""
    standing: tuple[str, ...] = ()
    """The lines of the newest standing instructions of each kind."""
    prompts: tuple[str, ...] = ()


@attrs.define
class MemoryMeter:
    """Measures what the requests of one session still had: for recall, and for a handover."""

    needs: Sequence[tuple[Needs, Laid]]
    """Of each call."""
    _texts: RequestTexts = attrs.field(init=False, factory=RequestTexts)
    _shares: dict[str, list[float]] = attrs.field(
        init=False, factory=lambda: defaultdict[str, list[float]](list)
    )
    """By measure: one for each call; for `edits` one for each, with the same weight wherever it was made."""

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls(list(zip(needs_of(session), laid_of(session), strict=True)))

    def measure(self, call: int, rendered: Rendered) -> None:
        """Measure the request of this call."""
        self.measure_text(call, self._texts.of(rendered))

    def measure_text(self, call: int, text: str) -> None:
        needs, laid = self.needs[call]
        for name, share in recall_of(needs, text).items():
            self._shares[name].append(share)
        lines = set(bare_lines(text)) if laid.edits or laid.standing else set[str]()
        self._shares["edits"] += [lines.issuperset(old) for old in laid.edits]
        if laid.standing:
            self._shares["standing"].append(fmean(line in lines for line in laid.standing))
        if laid.prompts:
            self._shares["prompts"].append(fmean(prompt in text for prompt in laid.prompts))

    def mean(self, name: str) -> float | None:
        """The mean of a measure; None if it was never measured."""
        shares = self._shares[name]
        return round(fmean(shares), DIGITS) if shares else None

    @property
    def recall(self) -> Recall:
        return Recall(**{name: self.mean(name) for name in attrs.fields_dict(Recall)})

    @property
    def handover(self) -> Handover:
        return Handover(**{name: self.mean(name) for name in attrs.fields_dict(Handover)})


# What each call needs


def laid_of(session: Session) -> tuple[Laid, ...]:
    """What each call of the session needs from its request."""
    edits = (old for item in session.calls for old in edits_of(item.blocks))
    past = _Past(wanted=frozenset(chain.from_iterable(edits)))  # no other line need be remembered
    needs: list[Laid] = []
    for item in session.items:
        if isinstance(item, Responded):
            needs.append(past.needs(item.blocks))
        for block in item.blocks:
            past.add(block)
    return tuple(needs)


@attrs.define(kw_only=True)
class _Past:
    """What a session has shown and laid down so far."""

    wanted: frozenset[str]
    lines: set[str] = attrs.field(factory=set[str])
    """The wanted lines that were shown."""
    standing: dict[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    """The lines of the newest standing instruction of each kind."""
    prompts: tuple[str, ...] = ()

    def add(self, block: Block) -> None:
        if isinstance(block, AssistantThinking):
            return
        self.lines |= self.wanted.intersection(bare_lines(text_of(block)))
        if isinstance(block, UserPrompt | UserFollowup | UserSteer) and block.text.strip():
            self.prompts = (*self.prompts, block.text.strip())
        for kind, instruction in standing_texts(block):
            self.standing[kind] = tuple(
                line
                for line in bare_lines(instruction)
                if len(line) >= STANDING_LINE_CHARACTERS_MIN
            )

    def needs(self, response: Iterable[Block]) -> Laid:
        shown = (tuple(line for line in old if line in self.lines) for old in edits_of(response))
        return Laid(
            edits=tuple(old for old in shown if old),
            standing=tuple(line for lines in self.standing.values() for line in lines),
            prompts=self.prompts,
        )


def standing_texts(block: Block) -> Iterator[tuple[str, str]]:
    """The standing instructions in a block, oldest first: what each replaces, and its text."""
    if kind := standing_of(block):
        yield kind, text_of(block)
    elif isinstance(block, ToolResult):
        for client, text in reversed([*appended_texts(text_of(block))]):
            yield client.standing, text


# The edits of a response: the old text of an edit tool, in whatever depth of its arguments; each part of a patch, in
# whatever argument it is, since agents also pass patches to a shell.


def edits_of(response: Iterable[Block]) -> Iterator[tuple[str, ...]]:
    """The old lines of each edit that a response makes, without white space around them."""
    for block in response:
        if isinstance(block, ToolCall):
            for old in _edited(inner_call(block.name, block.input)[1]):
                lines = tuple(
                    line for line in map(str.strip, old) if len(line) >= OLD_LINE_CHARACTERS_MIN
                )
                if lines:
                    yield lines


def _edited(value: Any) -> Iterator[list[str]]:
    """The old lines of each edit in a JSON value."""
    waiting: list[Any] = [value]  # not by recursion: arguments may be nested to any depth
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            fields = cast("dict[str, Any]", inner)
            texts = {key for key in OLD_TEXTS & fields.keys() if isinstance(fields[key], str)}
            yield from (str(fields[key]).split("\n") for key in sorted(texts))
            waiting += [field for key, field in fields.items() if key not in texts]
        elif isinstance(inner, list | tuple):
            waiting += cast("Sequence[Any]", inner)
        elif isinstance(inner, str) and PATCH in inner:
            # The removed and context lines of each part of a patch.
            part: list[str] = []
            for line in inner.split("\n"):
                if line.startswith(PATCH_MARK):
                    yield part
                    part = []
                elif line.startswith(("-", " ")):
                    part.append(line[1:])
            yield part
