"""Excerpts: passages of the folded texts that make sense alone, chosen for the names that the agent used.

They are taken from results, from what the agent wrote (code, messages) and from what the user attached; never from the
arguments of calls, which the actions tell (see `_actions`). A short text is one passage, a longer one is divided into runs
of a few adjacent lines. They are bought with one budget of tokens, the best worth for its price first:

    a name      is worth more the more often the agent wrote it, and the newer it is
    a passage   has the worth of the names that were last mentioned in it
    the price   is that of its lines, of the lines above it that it is indented under, and of the heading of its file or call

Lines that the model sees anyway are worth nothing, nor are lines of a file that were replaced later. At the next compaction
the excerpts compete with what is newly folded, so the cost follows what is new.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Final

import attrs
from msgspec.structs import replace

from blocks import (
    AssistantCompletion,
    Excerpt,
    Term,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    is_sealed,
    label_of,
    text_of,
    tool_kind,
)
from render.summary._actions import action_of
from render.summary._commands import outcome
from render.summary._files import Edit, edits_of, shown_by
from render.summary._identifiers import identifiers, one_line, output_of, searched
from render.view._group import Entry

USED_MAX: Final = 1000
"""The most names whose uses are remembered."""
CALL_MAX: Final = 100
"""Characters of the line that says where excerpts are from."""
GAP: Final = "…"


@attrs.frozen(kw_only=True)
class Beside:
    """What is known beside the texts that excerpts are taken from."""

    visible: Iterable[str] = ()
    """Texts that the model sees anyway."""
    uses: Mapping[str, int] = MappingProxyType({})
    """How often the agent wrote each name."""
    calls: Mapping[str, Entry] = MappingProxyType({})
    """Calls of results that are not among the entries, by pair."""


def choose(
    earlier: Iterable[Excerpt],
    folded: Sequence[Entry],
    beside: Beside,
    tokens_max: int,
    count: Callable[[str], int],
) -> tuple[Excerpt, ...]:
    """The excerpts of the earlier ones and of newly folded (or hidden) entries, in at most `tokens_max` tokens."""
    again = {entry.path for entry in folded}  # hidden at the last compaction, folded at this one
    calls = {**beside.calls, **{e.pair: e for e in folded if isinstance(e.block, ToolCall)}}
    failed = {e.pair for e in folded if isinstance(e.block, ToolResult) and e.block.is_error}
    done = [e for e in folded if not (isinstance(e.block, ToolCall) and e.pair in failed)]
    new = chain.from_iterable(_texts(entry, calls.get(entry.pair)) for entry in done)
    known = [excerpt for excerpt in earlier if excerpt.path not in again]
    texts = list(_current([*known, *new], [*done, *beside.calls.values()]))
    passages = [each for text in texts for each in passages_of(text)]
    visible = [part for text in beside.visible for part in searched(text)]
    names = set[str]().union(*map(identifiers, visible))
    shown = {plain(line) for text in visible for line in text.split("\n")}
    bought = _bought(_ranked(passages, names, beside.uses), shown, tokens_max, count)
    lines: dict[int, set[int]] = {}
    for passage in bought:
        lines.setdefault(id(passage.source), set()).update(passage.above, passage.lines)
    chosen = [text for text in texts if id(text) in lines]
    return tuple(replace(each, text=_joined(each.text, lines[id(each)])) for each in chosen)


def uses_after(earlier: Sequence[Term], folded: Sequence[Entry]) -> tuple[Term, ...]:
    """How often the agent wrote each name, the names most used first; `USED_MAX` of them."""
    uses = {term.term: (term.uses, term.seen) for term in earlier}
    for entry in folded:
        if isinstance(entry.block, AssistantCompletion | ToolCall) and entry.original is None:
            for text in searched(text_of(entry.block)):
                for name in identifiers(text):
                    uses[name] = uses.get(name, (0, 0))[0] + 1, entry.version
    best = sorted(uses, key=lambda name: (-min(uses[name][0], USES_MAX), -uses[name][1], name))
    return tuple(Term(term=n, uses=uses[n][0], seen=uses[n][1]) for n in best[:USED_MAX])


def _joined(text: str, numbers: set[int]) -> str:
    """These lines of a text, with marks where others with words are left out."""
    lines, last = list[str](), -1
    for number, line in enumerate(text.split("\n")):
        if line != GAP and not _WORD.search(bare(line)):
            last += last == number - 1
        elif number in numbers:
            lines += [GAP, line] if lines and last < number - 1 else [line]
            last = number
    return "\n".join(lines)


# The texts that excerpts are taken from, each as an excerpt that has all of it.


LONG_MIN: Final = 240
"""A line of more characters may be data, and is divided."""
DATA_WORD: Final = 200
"""A long line with a word of more characters is data."""
ESCAPES_MIN: Final = 3
"""A long line with so many escaped line ends is text inside of data."""
_PASSED: Final = re.compile(
    r"\bPASSED\b|\.\.\. ok$|^\s*(?:--- PASS|=== RUN|ok\b|\(pass\)|PASS\b|[✓✔√])"
)
"""The line of a test that passed: pytest, unittest and cargo, go and TAP, bun, jest, vitest, node."""
_COLOURS: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_LONG: Final = re.compile(rf".{{80,{LONG_MIN}}}[.;] |.{{1,{LONG_MIN}}}(?:\s|$)|.{{1,{LONG_MIN}}}")
_WORD: Final = re.compile(r"\w")
_NUMBER: Final = re.compile(r"[ \t]*\d{1,7}(?:→|\t|: |\|)")
"""The number that a viewer puts before a line."""


def _texts(entry: Entry, called: Entry | None) -> Iterator[Excerpt]:
    """The texts of an entry; a forgotten or sealed one has none."""
    block = entry.block
    if entry.original is not None or is_sealed(block):
        return
    whole = Excerpt(path=entry.path, seen=entry.version, text="")
    match block:
        case ToolCall():
            whole = replace(whole, call=_about(block))
            for edit in edits_of(block):
                yield replace(whole, text=readable(edit.new or ""), file=edit.file)
        case ToolResult():
            call = called.block if called and called.original is None else None
            if not isinstance(call, ToolCall):
                yield replace(whole, text=readable(text_of(block)), call="result")
            elif tool_kind(call.name, call.input, block.envelope) != "write":  # says only that
                file = view.file if (view := shown_by(call, block)) else ""
                yield replace(whole, text=_output(block), call=_about(call), file=file)
        case AssistantCompletion():
            yield replace(whole, text=readable(text_of(block)), call="agent")
        case UserAttachment() | UserPrompt() | UserFollowup() | UserSteer():
            yield replace(whole, text=readable(text_of(block)), call="user")
        case _:
            pass


def _output(result: ToolResult) -> str:
    """The output of a tool; that of tests without the lines of those that passed, which the action counts."""
    text = text_of(result)
    output = text[slice(*output_of(text))]
    if not outcome(output):
        return readable(output)
    return readable("\n".join(each for each in output.split("\n") if not _PASSED.search(each)))


def _about(call: ToolCall) -> str:
    """The call on one line."""
    action = action_of(call, None, 0)
    return one_line(f"{action.verb} {action.target} {action.part}", CALL_MAX)


def readable(text: str) -> str:
    """The beginning and end of a text, without a terminal's colours, overwritten lines, and long lines of data; other long
    lines are divided."""
    text = _COLOURS.sub("", "\n".join(searched(text)))
    if "\r" not in text and max(map(len, text.split("\n"))) <= LONG_MIN:
        return text
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return "\n".join(part for line in lines if not _is_data(line) for part in _divided(line))


def _is_data(line: str) -> bool:
    """Whether a long line is JSON, has a word that nobody would write, or text with escaped line ends."""
    return len(line) > LONG_MIN and (
        line.lstrip()[:1] in {"{", "["}
        or max(map(len, line.split()), default=0) > DATA_WORD
        or line.count("\\n") >= ESCAPES_MIN
    )


def _divided(line: str) -> Sequence[str]:
    """The parts of a long line, which end at a sentence or a word."""
    return (line,) if len(line) <= LONG_MIN else [part.rstrip() for part in _LONG.findall(line)]


def _current(texts: Iterable[Excerpt], entries: Iterable[Entry]) -> Iterator[Excerpt]:
    """The texts, without lines of a file that a later call replaced."""
    changes: dict[str, list[tuple[int, Edit]]] = {}
    for entry in entries:
        if isinstance(entry.block, ToolCall):
            for edit in edits_of(entry.block):
                changes.setdefault(edit.file, []).append((entry.version, edit))
    for text in texts:
        later = [edit for at, edit in changes.get(text.file, ()) if at > text.seen]
        if any(edit.old is None and not edit.is_added for edit in later):
            continue
        replaced = {(edit.old or "").strip() for edit in later} - {""}
        gone = {line.strip() for old in replaced for line in old.split("\n")}
        parts = [old for old in replaced if "\n" not in old]  # an edit may replace a part of a line
        lines = [
            GAP if plain(line) in gone or any(part in line for part in parts) else line
            for line in (text.text.split("\n") if gone else ())
        ]
        yield replace(text, text="\n".join(lines)) if gone else text


# Passages and their worth.


WHOLE_CHARACTERS: Final = 500
"""A text of at most this many characters, and of few lines, is one passage."""
WHOLE_LINES: Final = 12
RUN_LINES: Final = 6
"""The most lines of a passage of a longer text."""
ABOVE_LINES: Final = 400
"""Lines above a passage that are searched for those that it is indented under."""
ABOVE_MAX: Final = 2
ABOVE_CHARACTERS: Final = 160
USES_MAX: Final = 4
"""Uses of a name above this number do not raise its worth."""
UNUSED: Final = 0.35
"""The worth of a name that the agent has not written."""
HALF_AGE: Final = 400
"""Age in versions at which worth is halved."""


@attrs.frozen(eq=False)
class Passage:
    """Adjacent lines of a text."""

    source: Excerpt
    lines: range
    """Their numbers."""
    text: str
    above: Sequence[int] = ()
    """The numbers of the lines that it is indented under: the first lines of its function and class."""
    signature: str = ""
    """These lines."""


def passages_of(source: Excerpt) -> Iterator[Passage]:
    """The passages of a text, which end at blank lines, gaps and after `RUN_LINES` lines."""
    lines = source.text.split("\n")
    bared = [bare(line) for line in lines]
    is_whole = len(source.text) <= WHOLE_CHARACTERS and len(lines) <= WHOLE_LINES
    most = WHOLE_LINES if is_whole else RUN_LINES
    first = 0
    for number in range(len(lines) + 1):
        line = bared[number] if number < len(lines) else ""
        is_end = number == len(lines) or line == GAP or not (is_whole or line.strip())
        if is_end or number - first >= most:
            text = "\n".join(lines[first:number])
            if _WORD.search(text):
                above = _above(bared, first) if not is_whole else ()
                signature = "\n".join(lines[each] for each in above)
                yield Passage(source, range(first, number), text, above, signature)
            first = number + is_end


def _above(lines: Sequence[str], first: int) -> list[int]:
    """The outermost lines that a line is indented under; the lines without a viewer's numbers."""
    indent, above = _indent(lines[first]), list[int]()
    for number in reversed(range(max(first - ABOVE_LINES, 0), first)):
        if not indent:
            break
        line = lines[number]
        if (less := _indent(line)) < indent and _WORD.search(line):
            indent = less
            above += [number] if len(line) <= ABOVE_CHARACTERS else []
    return above[: -ABOVE_MAX - 1 : -1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def bare(line: str) -> str:
    """The line without a viewer's number."""
    return _NUMBER.sub("", line, count=1)


def plain(line: str) -> str:
    """The line without a viewer's number and white space around it."""
    return bare(line).strip()


def _ranked(
    passages: Sequence[Passage], seen: set[str], uses: Mapping[str, int]
) -> Iterator[Passage]:
    """The passages that name something that is not seen elsewhere, the best worth for its price first.

    The worth of a name goes to the newest passage that mentions it.
    """
    newest = max((passage.source.seen for passage in passages), default=0)
    known, ranks = set(seen), list[tuple[float, int, Passage]]()
    order = sorted(range(len(passages)), key=lambda n: (passages[n].source.seen, n), reverse=True)
    for number in order:
        passage = passages[number]
        names = identifiers(passage.text) - known
        known |= names
        worth = sum(UNUSED + min(uses.get(name, 0), USES_MAX) for name in names)
        worth /= 1 + (newest - passage.source.seen) / HALF_AGE
        size = len(passage.text) + len(passage.signature) + HEADING_PRICE
        if worth:
            ranks.append((-worth / size, number, passage))
    return (passage for _, _, passage in sorted(ranks, key=lambda rank: rank[:2]))


# Buying.


HEADING_PRICE: Final = 80
"""Characters of a heading that each passage under it pays for in the ranking; what is bought is counted exactly."""
ALONE_MIN: Final = 40
"""Characters that must stand under a heading."""
SEEN_MAX: Final = 0.5
"""Share of a passage's lines that may be seen already."""


def _bought(
    ranked: Iterable[Passage], shown: set[str], tokens_max: int, count: Callable[[str], int]
) -> list[Passage]:
    """The passages that are bought, in the order given, until the tokens are spent; `shown`: lines that are seen already."""
    left, bought, known = tokens_max, list[Passage](), set(shown)
    headings, above = set[str](), set[tuple[str, str]]()
    for passage in ranked:
        lines = {each for line in passage.text.split("\n") if _WORD.search(each := plain(line))}
        heading = heading_of(passage.source)
        is_new = heading not in headings
        if sum(line in known for line in lines) > SEEN_MAX * len(lines):
            continue
        if is_new and len(passage.text) + len(passage.signature) < ALONE_MIN:
            continue
        needed = [passage.signature] if (heading, passage.signature) not in above else []
        needed = [*([heading] if is_new else []), *filter(None, needed), passage.text]
        cost = count("\n".join(needed)) + 2 * len(needed)  # with gaps
        if cost <= left:
            left -= cost
            bought.append(passage)
            headings.add(heading)
            above.add((heading, passage.signature))
            known.update(lines)
    return bought


# As text.


def text_of_excerpts(excerpts: Iterable[Excerpt]) -> str:
    """Excerpts under what they are from: calls and messages in log order, then files."""
    groups: dict[str, list[str]] = {}
    for excerpt in sorted(excerpts, key=attrgetter("seen")):
        groups.setdefault(heading_of(excerpt), []).append(excerpt.text)
    ordered = sorted(groups, key=lambda heading: not heading.startswith("### ["))
    between = f"\n{GAP}\n"
    return "\n".join(f"{heading}\n{between.join(groups[heading])}" for heading in ordered)


def heading_of(excerpt: Excerpt) -> str:
    """The line above the excerpts of a file or call."""
    about = f"[{label_of(excerpt.seen)}] {excerpt.call or excerpt.path}"
    return f"### {excerpt.file or about}"
