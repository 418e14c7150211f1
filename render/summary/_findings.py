"""What was found and decided, by turn: the second section of the page.

A *finding* is a text condensed to its statements (see `_prose`), with the block that it came from:

    report     the agent's last words in a turn that ended, or before the user spoke again: they sum the turn up
    found      a statement on the way: a cause, a result, a decision with its reason, a rejected alternative
    guess      one that is not sure, or a plan; it goes when a report of its turn follows
    agent      the report of a sub-agent
    document   what was read: a design, an issue, a page; the newest reading of each
    rule       a demand of the user in a text that is no longer shown whole
    now        what is just being done in the turn that goes on

A report is taken by its position alone. The other statements of the agent are judged by their form (names, numbers) and by
a few English words; the last sentence before a call mostly says what the call will do, so it must tell more. What a later
statement repeats, or takes back, goes.

The turns share the room: newer ones, and those in which much was found, get more. A turn first loses its details (remarks
in parentheses, clauses), then its least telling statements, at last all but its first one. Nothing is written anew, so
what is folded again and again only gets shorter.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

import attrs
import msgspec
from msgspec import structs

from blocks import (
    AssistantCompletion,
    Block,
    Finding,
    TextPart,
    ToolCall,
    ToolResult,
    UserFollowup,
    UserPrompt,
    UserSteer,
    asks_user,
    is_sealed,
    leaves,
    text_of,
    tool_kind,
    tool_target,
)
from render.summary._identifiers import one_line, output_of
from render.summary._prose import (
    Piece,
    is_prose,
    is_prose_line,
    plain_line,
    read_prose,
    sentences_of,
    shortened,
    text_of_pieces,
    tidy,
)
from render.summary._statements import Claim, claim_of, is_guess, offers, worth
from render.view._group import Entry


def advance(
    previous: Sequence[Finding],
    entries: Sequence[Entry],
    running: str = "",
    cut: Iterable[tuple[int, Block, str]] = (),
) -> tuple[Finding, ...]:
    """The findings after these entries were folded, too.

    `running` is the turn that goes on after them, if any; `cut` are the user's texts that are no longer shown whole, each
    with its version and what is shown of it.
    """
    new = [*_said(entries, running), *_given(entries)]
    rules = [rule for version, block, shown in cut for rule in _rules(version, block, shown)]
    again = {rule.version for rule in rules}
    old = [
        _over(each, running)
        for each in previous
        if not (each.kind == "rule" and each.version in again)
    ]
    findings = sorted([*old, *new, *rules], key=attrgetter("version"))
    return tuple(_settled(findings))


# What the agent said.


WORTH_MIN: Final = 2
"""A statement on the way tells at least this much."""
TEXT_MAX: Final = 3
"""The most statements of one text on the way."""
STATEMENT_MIN: Final = 12
STATEMENT_CHARACTERS: Final = 320
NOW_CHARACTERS: Final = 160
LIST_WORTH: Final = 3
"""What a list is worth at most beyond its words."""
_SAID: Final = UserPrompt, UserFollowup, UserSteer


def _said(entries: Sequence[Entry], running: str) -> Iterator[Finding]:
    """The findings in the agent's texts, each turn's last words as its report."""
    turns: dict[str, list[Entry]] = {}
    for entry in entries:
        is_quotable = entry.original is None and not is_sealed(entry.block)
        if is_quotable and isinstance(entry.block, (AssistantCompletion, ToolCall, *_SAID)):
            turns.setdefault(entry.block.turn, []).append(entry)
    for turn, said in turns.items():
        yield from _stretches(said, is_open=turn == running)


def _stretches(said: Sequence[Entry], *, is_open: bool) -> Iterator[Finding]:
    """The findings of a turn; the user's words divide it."""
    texts: list[tuple[Entry, bool]] = []  # each with whether a call follows it
    for entry in said:
        if isinstance(entry.block, AssistantCompletion):
            if entry.block.text.strip():
                texts.append((entry, False))
        elif isinstance(entry.block, ToolCall):
            texts = [(each, True) for each, _ in texts] if texts and not texts[-1][1] else texts
        elif texts:
            yield from _stretch(texts, is_open=False)
            texts = []
    if texts:
        yield from _stretch(texts, is_open=is_open)


def _stretch(texts: Sequence[tuple[Entry, bool]], *, is_open: bool) -> Iterator[Finding]:
    closing = (
        0
        if is_open
        else next((n for n, (_, is_before) in enumerate(reversed(texts)) if is_before), len(texts))
    )
    on_the_way, last = texts[: len(texts) - closing], texts[-1][0]
    found = [one for entry, is_before in on_the_way for one in _on_the_way(entry, is_before)]
    yield from found
    if report := _report("\n\n".join(map(_text, texts[len(texts) - closing :]))):
        yield _finding(last, "report", report)
    elif (doing := _doing(_text(texts[-1]))) and not any(doing in each.text for each in found):
        yield _finding(last, "now" if is_open else "guess", doing)


def _text(said: tuple[Entry, bool]) -> str:
    return text_of(said[0].block)


def _doing(told: str) -> str:
    """What is being done, by a text before a call: its last sentence."""
    sentences = sentences_of(plain_line(told.strip().rpartition("\n")[2]))
    return shortened(sentences[-1].strip(), NOW_CHARACTERS) if sentences else ""


def _finding(entry: Entry, kind: str, told: str, source: str = "") -> Finding:
    return Finding(
        turn=entry.block.turn, version=entry.version, kind=kind, text=told, source=source
    )


def _report(told: str) -> str:
    """The statements of a closing text, without offers and announcements."""
    pieces = read_prose(told)
    return text_of_pieces(list(_stated(pieces)) or pieces)


def _stated(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces without sentences that offer, greet, or only say what the agent is about to do."""
    for piece in pieces:
        if piece.form != "sentence":
            yield piece
        elif stated := [each for each in sentences_of(piece.text) if not offers(each)]:
            yield attrs.evolve(piece, text=" ".join(stated))


def _on_the_way(entry: Entry, is_before_call: bool) -> Iterator[Finding]:  # noqa: FBT001
    """The statements of a text on the way that tell something, in their order; a list stays with its lead."""
    found: list[tuple[float, int, str]] = []
    pieces = read_prose(text_of(entry.block))
    told = [[*_stated(whole)] for whole in _wholes(pieces)]
    for index, whole in enumerate(told):
        statement = text_of_pieces(whole)
        is_last = is_before_call and index == len(told) - 1
        if len(statement) < STATEMENT_MIN or (
            is_last and statement.endswith((":", "：", "…", "..."))
        ):
            continue
        value = worth(" ".join(piece.text for piece in whole)) + (not index and len(told) > 1)
        value += min(len(whole) - 1, LIST_WORTH) - 2 * is_last
        if value >= WORTH_MIN:
            found.append((value, index, statement))
    best = sorted(found, key=lambda each: (-each[0], each[1]))[:TEXT_MAX]
    for _, _, statement in sorted(best, key=lambda each: each[1]):
        yield _finding(entry, "guess" if is_guess(statement) else "found", statement)


def _wholes(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces that have sense alone: a sentence; a lead with what it leads to; the items of a list."""
    whole: list[Piece] = []
    for piece in pieces:
        is_part = whole and (
            (piece.form in ("item", "row") and whole[-1].form != "sentence")
            or (whole[-1].form == "lead")
        )
        if whole and not is_part:
            yield whole
            whole = []
        whole.append(piece)
    if whole:
        yield whole


# What later statements do to earlier ones.


LOOKED_BACK: Final = 120
"""How many later statements an earlier one is compared with."""
_LASTING: Final = frozenset({"report", "agent", "document", "rule"})
"""Kinds that are not dropped for what later statements say; only their sentences are."""


def _over(finding: Finding, running: str) -> Finding:
    """The finding after its turn has ended: what was just being done is a statement like others."""
    is_over = finding.kind == "now" and finding.turn != running
    return structs.replace(finding, kind="guess") if is_over else finding


def _settled(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings without guesses of turns that have a report, and without what a later statement repeats or takes
    back; of what is just being done, and of each document, the newest."""
    reported = {each.turn: each.version for each in findings if each.kind == "report"}
    newest = {_once(each): each.version for each in findings if _once(each)}
    later: list[Claim] = []
    kept: list[Finding] = []
    for finding in reversed(findings):
        is_newest = newest.get(_once(finding), finding.version) == finding.version
        is_unsure = finding.kind in ("guess", "now")
        is_over = is_unsure and finding.version < reported.get(finding.turn, 0)
        is_remark = finding.kind == "guess" and "\n" not in finding.text and offers(finding.text)
        if not is_newest or is_over or is_remark:
            continue
        if finding.kind == "report":
            kept.append(_corrected(finding, later))
        elif finding.kind in _LASTING or not _is_gone(finding, later):
            kept.append(finding)
        else:
            continue
        if finding.kind == "now":
            continue
        claims = (claim_of(piece.text) for piece in read_prose(finding.text))
        later = [*later, claim_of(finding.text), *claims][-LOOKED_BACK:]
    yield from _with_a_line(kept[::-1], findings)


def _is_gone(finding: Finding, later: Iterable[Claim]) -> bool:
    claim = claim_of(finding.text)
    return any(other.repeats(claim) or other.denies(claim) for other in later)


def _corrected(report: Finding, later: Sequence[Claim]) -> Finding:
    """The report without the sentences that a later statement takes back."""
    back = [claim for claim in later if claim.takes_back]
    pieces = read_prose(report.text) if back else ()
    left = [
        piece
        for piece in pieces
        if piece.form != "sentence" or not any(c.denies(claim_of(piece.text)) for c in back)
    ]
    if not left or len(left) == len(pieces):
        return report
    return structs.replace(report, text=text_of_pieces(tidy(left)))


def _once(finding: Finding) -> str:
    """What there is only one of: the document of a name, and what is being done; else empty."""
    match finding.kind:
        case "document":
            return f"document {finding.source}"
        case "now":
            return "now"
        case _:
            return ""


def _with_a_line(kept: Sequence[Finding], findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings that are kept, and the newest of each turn that has none."""
    turns = {each.turn for each in kept}
    newest = {each.turn: each for each in findings if each.turn not in turns}
    yield from sorted([*kept, *newest.values()], key=attrgetter("version"))


# What others said: sub-agents, documents, the user.


REPORTING_TOOLS: Final = frozenset(
    {
        "task",
        "agent",
        "new_task",
        "delegate",
        "delegate_task",
        "wait_agent",
        "wait",
        "codebase_investigator",
    }
)
"""Tools whose results are the report of another agent, by their names in lower case: Claude Code (Task, Agent), opencode,
Qwen Code and LangChain's deepagents (task), Cline and Roo Code (new_task), OpenHands (delegate), Codex (wait_agent, wait),
Gemini CLI (codebase_investigator). A call with one of `REPORTING_KEYS` counts, too."""
REPORTING_KEYS: Final = frozenset({"subagent_type", "agent_type", "subagent"})
DOCUMENTS: Final = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".org")
"""Endings of files in prose: Markdown, reStructuredText, AsciiDoc, Org."""
SENTENCES_MIN: Final = 6
"""Whole sentences that an output has at least if it is a document."""
SOURCE_CHARACTERS: Final = 80
GIVEN_CHARACTERS: Final = 4_000
"""Characters of a report or document that are condensed from the beginning on; there is never room for more."""
DEMAND_CHARACTERS: Final = 240
DEMAND_LETTERS: Final = 0.6
"""Share of letters in a demand, which may name paths and commands."""
_QUOTED: Final = (">", "<", "|")
"""Beginnings of lines that the user quotes."""
_NUMBERED: Final = re.compile(r"^[ \t]*\d{1,7}(?:→|\t|\|)", re.MULTILINE)
"""The line number that a reading tool adds."""
_ACKNOWLEDGED: Final = re.compile(
    r"\A\W*async agent launched[\s\S]*|^(?:agentid|task_id): .*$|</?task_result>|<usage>[\s\S]*?(?:</usage>|\Z)",
    re.IGNORECASE | re.MULTILINE,
)
"""What Claude Code and opencode add to a sub-agent's report, or give while it runs."""
_NOTIFIED: Final = re.compile(
    r"\A\s*<task-notification>.*?<summary>(.*?)</summary>.*?(?:<result>(.*?)</result>|\Z)",
    re.DOTALL,
)
"""The report of a sub-agent that ran in the background (Claude Code); it comes in the place of the user's words."""
_DEMANDS: Final = re.compile(
    r"\b(?:must|never|always|do not|don(?:'|’)t|only|no longer|required?|make sure|ensure|prefer|should|instead of|from now on)\b",
    re.IGNORECASE,
)
"""English words in which demands are made."""


def _given(entries: Sequence[Entry]) -> Iterator[Finding]:
    """The reports of sub-agents, and the documents that were read."""
    calls = {entry.pair: entry.block for entry in entries if isinstance(entry.block, ToolCall)}
    for entry in entries:
        if entry.original is not None or is_sealed(entry.block):
            continue
        call = calls.get(entry.pair) if entry.pair else None
        if isinstance(entry.block, ToolResult) and call:
            yield from _answer(entry, call, entry.block)
        elif isinstance(entry.block, _SAID) and (notified := _NOTIFIED.match(entry.block.text)):
            told = _condensed_text(notified[2] or "")
            if told:
                yield _finding(entry, "agent", told, one_line(notified[1], SOURCE_CHARACTERS))


def _answer(entry: Entry, call: ToolCall, result: ToolResult) -> Iterator[Finding]:
    if asks_user(call.name) or result.is_error:
        return
    told = text_of(result)
    start, end = output_of(told)
    told = told[start:end]
    if call.name.lower() in REPORTING_TOOLS or REPORTING_KEYS & call.input.keys():
        if report := _condensed_text(_ACKNOWLEDGED.sub("", _texts_in(told))):
            yield _finding(entry, "agent", report, _about(call))
        return
    kind, target = (
        tool_kind(call.name, call.input, result.envelope),
        tool_target(call.input, result.envelope),
    )
    is_document = (kind == "read" and target.lower().endswith(DOCUMENTS)) or kind in (
        "web",
        "command",
        "other",
    )
    if is_document:
        plain = _NUMBERED.sub("", told) if kind == "read" else told
        is_named = kind == "read"  # by its ending
        if (is_named or is_prose(plain, SENTENCES_MIN)) and (document := _condensed_text(plain)):
            yield _finding(
                entry, "document", document, one_line(target or call.name, SOURCE_CHARACTERS)
            )


def _texts_in(told: str) -> str:
    """The texts of a reply in JSON that are sentences; of another reply all of it."""
    try:
        reply: object = msgspec.json.decode(told.encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return told
    return "\n\n".join(text for text in leaves(reply).split("\n") if " " in text)


def _about(call: ToolCall) -> str:
    """What a sub-agent was asked, in the call's shortest text of several words."""
    given = (value for value in call.input.values() if isinstance(value, str) and " " in value)
    return one_line(min(given, key=len, default=call.name), SOURCE_CHARACTERS)


def _condensed_text(told: str) -> str:
    """The headings and lists of a text, and the first sentence of each paragraph."""
    kept: list[Piece] = []
    length = 0
    block = -1
    for piece in read_prose(told):
        is_further = piece.form == "sentence" and piece.block == block
        block = piece.block
        if is_further:
            continue
        if length > GIVEN_CHARACTERS:
            break
        kept.append(attrs.evolve(piece, text=shortened(piece.text, DEMAND_CHARACTERS)))
        length += len(kept[-1].text)
    while kept and kept[-1].form == "lead":
        kept.pop()
    return text_of_pieces(kept)


def _rules(version: int, block: Block, shown: str) -> Iterator[Finding]:
    """The demands in the user's own sentences that are no longer shown, each with its list or command."""
    known = " ".join(shown.split())
    lines = words_of(block).split("\n")
    own = "\n".join(line for line in lines if not line.lstrip().startswith(_QUOTED))
    for first, *others in _wholes(read_prose(own)):
        told = [each for each in sentences_of(first.text) if _DEMANDS.search(each)]
        new = [each for each in told if each not in known and is_prose_line(each, DEMAND_LETTERS)]
        if new:
            demand = attrs.evolve(first, text=" ".join(new))
            short = (
                attrs.evolve(each, text=shortened(each.text, DEMAND_CHARACTERS))
                for each in (demand, *others)
            )
            yield Finding(
                turn=block.turn, version=version, kind="rule", text=text_of_pieces([*short])
            )


def words_of(block: Block) -> str:
    """The user's words in a block, without attachments; empty for other blocks."""
    if not isinstance(block, _SAID):
        return ""
    texts = (part.text for part in block.parts if isinstance(part, TextPart))
    return "\n".join(filter(None, (block.text, *texts)))
