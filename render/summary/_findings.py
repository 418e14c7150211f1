"""What was found and decided, by turn: the second section of the page.

A *finding* is a text condensed to its statements (see `_prose`), with the block that it came from:

    report     the agent's last words in a turn that ended: they sum the turn up
    found      what it said on the way, also to other agents: a cause, a result, a decision with its reason
    agent      the report of a sub-agent, or what a reviewer says
    document   a text in a file that the user named: the plan, the specification
    rule       what the user demanded in a text that is no longer shown whole

A report is taken by its position alone. Of what the agent said on the way, all stands but what only announces, offers or
exclaims ("Let me look at ..."): it is a small part of any session, and nobody else tells why something was done. Where the
room does not suffice, the most telling stands judged by its form (names, numbers) and by a few English words.
What a later statement repeats goes; a report that the next words contradict says so; the question or offer that closed a turn
goes when the user's next words make sense without it: "yes" does not.

    t12 [v340]: All tests pass. The cause was that `parse_amount` dropped the sign.     the turn's report
      - ledger.py: ...                                                                  its list
    - [v322]: The clock is not the problem: the queue has one reader.                   what was found on the way

In the room given, newer turns get more, and each has a line. Statements are told whole or not at all, the most telling first; of
a list that is told in part it is said how many items it lost. Nothing is written anew, so what is folded again and again only
gets shorter.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from posixpath import basename, normpath
from typing import Any, Final

import attrs
import msgspec
from msgspec import structs

from blocks import (
    AssistantCompletion,
    Finding,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    asks_user,
    is_sealed,
    label_of,
    leaves,
    text_of,
    words_of,
)
from blocks.formats import objs, without_reminders
from render.summary._calls import REJECTED, Run, edits_of, output_of, view_of
from render.summary._prose import (
    DEPENDENT,
    ProsePiece,
    identifiers,
    is_assent,
    is_prose_line,
    one_line,
    read_prose,
    sentences_of,
    shortened,
    text_of_pieces,
    tidy,
)
from render.summary._state import ELEMENT, is_plan
from render.view._view import Entry

USER_TEXTS: Final = UserPrompt, UserFollowup, UserSteer
"""Blocks of what the user says; a tuple, because `isinstance` is slow with a union."""


def advance(
    previous: Sequence[Finding],
    entries: Sequence[Entry],
    runs: Mapping[str, Run],
    running: str = "",
    named: frozenset[str] = frozenset(),
) -> tuple[Finding, ...]:
    """The findings after these entries were folded, too; `runs` has their calls, `running` is the turn that goes on after them,
    if any, and `named` are the names that the user has used. Of the rules in one text, among `previous`, the last stands."""
    visible = [e for e in entries if e.original is None and not is_sealed(e.block)]
    rules = {e.version: e for e in previous if e.kind == "rule"}
    earlier = [*(e for e in previous if e.kind != "rule"), *rules.values()]
    read = _reports(visible, runs, named)
    findings = [*earlier, *_in_texts(visible, runs, running), *read]
    changed = {basename(edit.file): run.version for run in runs.values() for edit in edits_of(run)}
    valid = [
        e
        for e in findings
        if e.kind != "document" or changed.get(basename(e.source), 0) < e.version
    ]
    return tuple(_replied(_settled(sorted(valid, key=attrgetter("version"))), visible))


# What the next words do to a report.


def _replied(findings: Sequence[Finding], entries: Sequence[Entry]) -> list[Finding]:
    """The findings; a report that the next words contradict has their turn; one that closes with a question loses it if they
    make sense without it."""
    replied, versions = [*findings], [each.version for each in findings]
    spoken = [entry.version for entry in entries if isinstance(entry.block, USER_TEXTS)]
    for entry in entries:
        words, block = words_of(entry.block).strip(), entry.block
        last = bisect_left(versions, entry.version) - 1
        if last < 0 or (report := replied[last]).kind != "report":
            continue
        between = bisect_left(spoken, entry.version) - bisect_left(spoken, report.version)
        if between > isinstance(block, AssistantCompletion):
            continue  # it is about something newer that left no finding
        rest = _without_questions(report.text)
        is_question = rest != report.text
        if isinstance(block, AssistantCompletion):
            is_contested = bool(_CONCESSION.match(block.text))
        else:  # a "no" to a question is an answer
            is_short = len(words) <= OBJECTION_CHARACTERS
            is_contested = is_short and bool(_OBJECTION.match(words)) and not is_question
        if is_contested:
            report = structs.replace(report, disputed=block.turn)
        if is_question and len(words) > ANSWER_CHARACTERS and not is_assent(words):
            report = structs.replace(report, text=rest or report.text)
        replied[last] = report
    return replied


def _without_questions(text: str) -> str:
    """The report without the questions and offers at its end, with the choices listed under them."""
    pieces = [*read_prose(text)]
    while pieces:
        last = next((n for n in reversed(range(len(pieces))) if not pieces[n].is_listed), 0)
        sentences = sentences_of(pieces[last].text)
        if pieces[last].is_listed or not (sentences and _asks(sentences[-1])):
            break
        left = " ".join(each for each in sentences if not _asks(each)).strip()
        pieces[last:] = [attrs.evolve(pieces[last], text=left)] if left else []
    return text if pieces == [*read_prose(text)] else text_of_pieces(tidy(pieces))


def _asks(sentence: str) -> bool:
    """Whether a sentence asks or offers something that an answer may refer to."""
    is_question = re.search(r"[?？]\W*\Z", sentence) or _OFFER.match(sentence)
    return bool(is_question) and not _COURTESY.match(sentence)


OBJECTION_CHARACTERS: Final = 600
"""A longer message says more than that the report is wrong."""
ANSWER_CHARACTERS: Final = 40
"""A longer message makes sense without the question that it answers."""
_CONCESSION: Final = re.compile(
    r"(?i)\W*(?:(?:ah|oh|yes|ok(?:ay)?|hmm|sorry|apologies)\b\W*)*(?:you(?:'|’)re (?:absolutely |completely |totally )?(?:right|correct)"
    r"|you are (?:absolutely )?(?:right|correct)|i was (?:wrong|mistaken)|i (?:misread|misunderstood)|my mistake)\b"
)
"""The beginning of an English answer that takes back the report before it."""
_OBJECTION: Final = re.compile(
    r"(?i)(?:no|nope|wrong|not (?:true|right|correct|working|quite))\s*[,.!;]|that(?:'|’)?s (?:not|wrong)\b"
    r"|(?:(?:it|this|that)(?:'|’)?s? )?(?:still (?:not|does ?n|fail|broken|wrong|the same)|does(?:n(?:'|’)?t| not) work)"
)
"""The beginning of a short English message that contradicts the report before it."""


# The user's words.


_DEMANDS: Final = re.compile(
    r"(?i)\b(?:must|never|always|do not|don(?:'|’)t|no longer|make sure|ensure|from now on)\b|(?<![\w-])only\b"
)
"""English words in which demands are made."""


def rule_in(words: str, shown: str, turn: str, version: int) -> Finding | None:
    """The sentences of the user's words that demand something and are no longer shown, if any."""
    lines = (line for line in words.split("\n") if not line.lstrip().startswith("|"))  # of a table
    sentences = dict.fromkeys(each.strip() for line in lines for each in sentences_of(line))
    visible = " ".join(shown.split())
    demands = (s for s in sentences if _DEMANDS.search(s) and is_prose_line(s) and s not in visible)
    text = " ".join(shortened(each, 240) for each in demands)
    return Finding(turn=turn, version=version, kind="rule", text=text) if text else None


def _finding(entry: Entry, kind: str, text: str, source: str = "") -> Finding:
    turn = entry.block.turn
    return Finding(turn=turn, version=entry.version, kind=kind, text=text, source=source)


# What the agent said.


def _in_texts(entries: Sequence[Entry], runs: Mapping[str, Run], running: str) -> Iterator[Finding]:
    """The findings in the agent's texts. The user's words divide a turn, and so does what a client says to an agent that had
    come to an end: a notice that wakes it."""
    turns: dict[str, list[list[Entry]]] = {}
    latest, unfinished = list[Entry](), list[list[Entry]]()
    for entry in entries:
        block, stretches = entry.block, turns.setdefault(entry.block.turn, [[]])
        if isinstance(block, (UserAttachment, *USER_TEXTS)) and REJECTED.match(text_of(block)):
            unfinished.append(latest)
        before = stretches[-1][-1].block if stretches[-1] else None
        is_woken = isinstance(block, UserAttachment) and isinstance(before, AssistantCompletion)
        is_text = isinstance(block, AssistantCompletion) and block.text.strip()
        if isinstance(block, USER_TEXTS) or is_woken:
            stretches.append([])
        elif isinstance(block, ToolCall) or is_text:
            stretches[-1].append(entry)
            latest = stretches[-1]
    unfinished += turns.get(running, [])[-1:]
    for part in chain.from_iterable(turns.values()):
        yield from _stretch(part, runs, is_open=any(part is each for each in unfinished))


def _stretch(part: Sequence[Entry], runs: Mapping[str, Run], *, is_open: bool) -> Iterator[Finding]:
    """The statements on the way, then the report."""
    calls = (n for n, entry in enumerate(part, 1) if isinstance(entry.block, ToolCall))
    end = len(part) if is_open else max(calls, default=0)
    for entry in part[:end]:
        block = entry.block
        words = _message(runs[entry.pair]) if isinstance(block, ToolCall) else text_of(block)
        lasting = (e for e in _stated(read_prose(words)) if e.is_listed or not is_remark(e))
        if text := text_of_pieces(tidy([*lasting])):
            yield _finding(entry, "found", text)
    prose = read_prose("\n\n".join(text_of(entry.block) for entry in part[end:]))
    if pieces := [each for each in prose if each.is_listed or not exclaims(each.text)]:
        text = text_of_pieces(_stated(pieces, is_closing=True)) or text_of_pieces(pieces)
        yield _finding(part[-1], "report", text)


MESSAGE_CHARACTERS: Final = 200
"""A shorter argument of a call is no message: it says what the call is about."""


def _message(run: Run) -> str:
    """What a call says to others than tools, condensed: a message to another agent or to the client's user, a plan to be
    approved, an issue; not a task for an agent, whose report is told."""
    if asks_user(run.call.name):
        is_unasked = run.is_error or run.whole.startswith(run.call.name)  # the client did not
        is_asked = not is_unasked or REJECTED.match(run.whole)
        return "\n\n".join(_questions(run.call.input.get("questions"))) if is_asked else ""
    return "" if is_delegated(run) else "\n\n".join(dict.fromkeys(map(_outline, _messages(run))))


def _messages(run: Run) -> list[str]:
    """The prose in the arguments of a tool that neither looks at nor changes anything."""
    if run.kind != "other" or is_plan(run):
        return []
    texts = (value for value in run.call.input.values() if isinstance(value, str))
    return [text for text in texts if len(text) >= MESSAGE_CHARACTERS and _is_prose(text)]


def _questions(rows: Any) -> Iterator[str]:
    """What the user was asked, with the options of each question: those not chosen are rejected. Claude Code, Codex, Gemini
    CLI and opencode have the same form."""
    for row in objs(rows):
        options = objs(row.get("options"))
        choices = (f"- {each.get('label', '')}: {each.get('description', '')}" for each in options)
        yield "\n".join([f"Asked: {row.get('question', '')} options:", *choices])  # one sentence


_CODE: Final = re.compile(
    r"(?!\s*(?:[-*•]|\d+[.)])\s).*[;{}(\[]\s*|\s*(?://|/\*|@\w|(?:const|let|var|return|await|import|export|function|def|class|async)\b|[\w.$]+ [:+-]?= ).*"
)
"""A line of a program, which may have as many letters as one of prose."""


def _is_prose(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    code = sum(1 for line in lines if _CODE.fullmatch(line))
    return 2 * sum(map(is_prose_line, lines)) > len(lines) > 4 * code


def _stated(pieces: Iterable[ProsePiece], *, is_closing: bool = False) -> Iterator[ProsePiece]:
    """The pieces without sentences that greet, exclaim, or only say what the agent is about to do and are not needed by the next
    one, or unless the user is next to speak, what it offers; a lead is without exclamations."""
    for piece in pieces:
        empty = is_talk if piece.form == "sentence" else exclaims
        every = sentences_of(piece.text)
        telling = {each for each in every if (is_closing and _asks(each)) or not empty(each)}
        sentences = [
            each.strip()
            for each, then in pairwise([*every, ""])
            if each in telling or (then in telling and announces(each) and DEPENDENT.match(then))
        ]
        if piece.is_listed:
            yield piece
        elif sentences:
            yield attrs.evolve(piece, text=" ".join(sentences))


# What a statement is worth.


NAMELESS_BYTES: Final = 40
"""A shorter statement that names nothing tells hardly anything; in UTF-8, since a word of Chinese is a character or two."""
NAMELESS_CUES: Final = 2
"""The most that words alone are worth ("Found it. Confirmed with benchmarks, not guessing.")."""
LENGTH_MIN: Final = 60
NAMES_MAX: Final = 2
"""The most names, and the most numbers, that count."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\w.:%-]*")
_CODED: Final = re.compile(r"`[^`\n]+`")
_CAUSE: Final = re.compile(
    r"(?i)\b(?:causes?|caused|because|since|due to|reasons?|culprit|turns out|means that|that(?:'|’)?s why|root"
    r"|confirm(?:s|ed)|missing|wrong|incorrect|bug|issue|problem|regression|fix(?:ed)?"
    r"|decided?|decision|instead of|rather than|reject(?:s|ed)?|chose|prefer|better|safer|simpler|should(?:n(?:'|’)t| not)"
    r"|must|policy|approach|keep|option|so that|not needed|no need)\b"
)
"""English words for causes and corrections, decisions and their reasons: what a successor needs first."""
_RESULT: Final = re.compile(
    r"(?i)\b(?:pass(?:es|ed)?|fail(?:s|ed|ure)?|found|committed|pushed|merged|verified|reproduced|works?|removed|deleted|renamed|reverted"
    r"|created|added|updated|succeed(?:s|ed)?|blocked|skipped|resolved|returns?|shows?|no longer|never|only)\b"
)
"""English words for results and limits."""
_UNSURE: Final = re.compile(
    r"(?i)\b(?:maybe|perhaps|might|could|probably|likely|possibly|presumably|apparently|seems?|appears?|suspect(?:ed)?|must be|assum(?:e|ing)"
    r"|i (?:think|guess|wonder)|hypothes[ie]s|whether|hmm|wait)\b|[?？]$|\A\[[ xX]\]|\A\W*(?:if|suppose|what if|unless)\b"
)
"""English words for what is not known; a question; a condition; the box of a plan's step."""
_PASSING: Final = re.compile(
    r"(?i)\b(?:still|pending|in progress|in flight|under ?way|so far|at the moment|right now|waiting|watching|standing by|queued)\b"
)
"""English words for the state of a moment, which has passed when it is read."""
_REASON: Final = re.compile(r"(?i)\b(?:because|since|instead|rather than|so that|due to)\b")
"""English words with which an announcement gives its reason, or what is not done."""
_START: Final = r"\W*(?:(?:ok(?:ay)?|good|great|perfect|so|and|but|wait|next|now|first|then|also|actually|interesting|finally)\b\W*)*"
_ANNOUNCED: Final = re.compile(
    r"(?i)" + _START + r"(?:let me|let(?:'|’)?s|let us"
    r"|i(?:'|’)?(?:ll| will|m going to| am going to| need to| want to| should|d like to)\b"
    r"|(?:now|next),? (?:to|i|we)\b"
    r"|now,? (?!(?:an?|the|that|this|these|those|there|here|it|its|they|you|your|all|any|both|each|every|only|is|are|was|why|how|what"
    r"|when|where|if|once|after|before|for|with|in|on|at|about|regarding|\w*[^s\W]s|\w+ed)\b)(?-i:[a-z]))"
)
"""The beginning of an English sentence that says what the agent is about to do; after "now", a verb in its plain form."""
_DOING: Final = re.compile(
    rf"(?i){_START}(?:still \w+ing|running|checking|looking|waiting|trying|reading|continuing)\b"
    r"|(?:.*[,;:]\s*(?:so |and |but |now )*)?(?:i(?:'|’)m|i am|we(?:'|’)re) (?:\w+ly )?(?:also |now |just |still )?"
    r"(?!missing|seeing|getting|hitting)\w+ing\b"
)
"""An English sentence that says what the agent is just doing."""
_OFFER: Final = re.compile(
    r"(?i)\W*(?:(?:so|ok(?:ay)?|now|or|just|and)[,\s]+)*(?:if you(?:(?:'|’)d)? (?:want|like|prefer|need|wish)\b|would you like"
    r"|do you want|want me to|shall i|should i)"
)
"""The beginning of an English offer."""
_COURTESY: Final = re.compile(
    r"(?i)\W*(?:(?:so|ok(?:ay)?|now|or|just|and)[,\s]+)*(?:let me know|feel free|happy to|what would you like|(?:is there )?anything else"
    r"|ready (?:for|when)|you(?:'|’)re welcome)"
)
"""The beginning of one that offers nothing of its own."""
_EXCLAMATION: Final = re.compile(
    r"(?i)\W*(?:(?:hello|hi)\b[^.!?]*\W*|\w+(?:['’ ]\w+)?\s*[!！.]\W*|[a-z]+\W*)"
)
"""A greeting; one or two words that are a sentence; one English word."""


@lru_cache(maxsize=4096)
def worth(statement: str) -> int:
    """How much a statement tells: by its names and numbers, which every language has, and by English words."""
    names, numbers = _names_in(statement), len(_NUMBER.findall(statement))
    cues = 3 * bool(_CAUSE.search(statement)) + 2 * bool(_RESULT.search(statement))
    if not (names or numbers):
        cues = min(cues, 1 if is_nameless(statement) else NAMELESS_CUES)
    is_vague = (_UNSURE.search(statement), _PASSING.search(statement), announces(statement))
    return min(names, NAMES_MAX) + min(numbers, NAMES_MAX) + cues - 3 * sum(map(bool, is_vague))


def _names_in(statement: str) -> int:
    """How many names it has: by their form, or because they are marked as code."""
    return max(len(identifiers(statement)), len(_CODED.findall(statement)))


@lru_cache(maxsize=4096)
def density(text: str) -> float:
    """The worth of a text for its length, which favours short statements, but none below `LENGTH_MIN` further. The power is
    between a sum, which takes the longest first (0), and a true density, which takes the shortest (1)."""
    worths = sum(max(worth(piece.text), 0) + 0.5 for piece in read_prose(text))
    return float(worths / max(len(text), LENGTH_MIN) ** 0.6)


def announces(statement: str) -> bool:
    """Whether it only says what the agent does or is about to do."""
    return bool(_ANNOUNCED.match(statement) or _DOING.match(statement))


def is_talk(statement: str) -> bool:
    """Whether it offers, greets, exclaims, or announces; a plan with its reason is a decision."""
    is_announced = _ANNOUNCED.match(statement) and not _REASON.search(statement)
    is_offer = _OFFER.match(statement) or _COURTESY.match(statement)
    return bool(_DOING.match(statement) or is_announced or is_offer) or exclaims(statement)


def is_remark(piece: ProsePiece) -> bool:
    """Whether it tells nothing that lasts: the state of a moment, or a few words in a sentence that name nothing."""
    is_vague = worth(piece.text) < 0 and _names_in(piece.text) < NAMES_MAX
    is_passing = is_vague and bool(_PASSING.search(piece.text))
    return is_passing or (piece.form == "sentence" and is_nameless(piece.text))


def is_nameless(statement: str) -> bool:
    """Whether it is short ("Found the cause!") and has neither a name nor a number."""
    is_short = len(statement.encode()) < NAMELESS_BYTES
    return is_short and not (_names_in(statement) or _NUMBER.search(statement))


def exclaims(statement: str) -> bool:
    """Whether it greets or exclaims, and names no result; a lead does not."""
    is_found = _EXCLAMATION.fullmatch(statement) and not statement.rstrip().endswith((":", "："))
    return bool(is_found) and ("!" in statement or "！" in statement or worth(statement) <= 0)


# What later statements do to earlier ones.


WORDS_MIN: Final = 4
"""Statements with fewer words, of three letters or more, are not compared."""
REPEATED_SHARE: Final = 0.7
"""A statement repeats another one if it has this share of its words."""
_WORD: Final = re.compile(r"\w[\w./-]+\w")


def _settled(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without what a later one repeats, reports only as the last of their turn; every turn keeps one."""
    turns: dict[str, list[Finding]] = {}
    later: list[str] = []
    for finding in reversed(findings):
        newer = turns.get(finding.turn, [])
        if finding.kind == "report":  # "Glad it works!" is none beside it
            newer = [
                e
                for e in newer
                if e.kind != "report" or not is_nameless(e.text) or worth(e.text) > 0
            ]
        is_dated = finding.kind in {"found", "document"}
        if newer and is_dated and any(repeats(e, finding.text) for e in later):
            continue
        is_last = finding.kind != "report" or all(e.kind not in {"report", "found"} for e in newer)
        settled = finding if is_last else structs.replace(finding, kind="found")
        turns[finding.turn] = [settled, *newer]
        pieces = (piece.text for piece in read_prose(finding.text))
        later = [*later, finding.text, *pieces][-120:]  # more would take long
    return sorted(chain.from_iterable(turns.values()), key=attrgetter("version"))


def best_first(findings: Sequence[Finding]) -> list[Finding]:
    """The most telling for their length first, the newest counted twice; `findings` in log order."""
    last = max(len(findings) - 1, 1)
    worths = [density(e.text) * (1 + n / last) for n, e in enumerate(findings)]
    return [findings[n] for n in sorted(range(len(findings)), key=worths.__getitem__)[::-1]]


def repeats(later: str, earlier: str) -> bool:
    """Whether a statement says what an earlier one says."""
    words = _words(earlier)
    return len(words) >= WORDS_MIN and len(_words(later) & words) >= REPEATED_SHARE * len(words)


@lru_cache(maxsize=4096)
def _words(statement: str) -> frozenset[str]:
    return frozenset(_WORD.findall(statement.casefold()))


# What sub-agents said.


REPORTING_TOOLS: Final = frozenset(
    ("task", "agent", "new_task", "delegate", "delegate_task", "wait_agent", "wait", "codebase_investigator")
)  # fmt: skip
"""Tools whose results are the report of another agent, by their names in lower case: Claude Code (Task, Agent), opencode,
Qwen Code and LangChain's deepagents (task), Cline and Roo Code (new_task), OpenHands (delegate), Codex (wait_agent, wait),
Gemini CLI (codebase_investigator). With a `cell_id`, Codex waits for a program. A call with one of `REPORTING_KEYS` counts, too."""
REPORTING_KEYS: Final = frozenset({"subagent_type", "agent_type", "subagent"})
GIVEN_CHARACTERS: Final = 10_000
"""Characters of a report that are kept at most, so that one does not fill a page."""
_ACKNOWLEDGED: Final = re.compile(
    r"(?im)\A\W*(?:async agent launched|spawned successfully)[\s\S]*|^(?:agentid|task_id): .*$|</?task_result>|<usage>[\s\S]*?(?:</usage>|\Z)"
)
"""What Claude Code and opencode add to a sub-agent's report, or give while it runs."""
_NOTIFIED: Final = re.compile(
    r"(?s)\A\s*<task-notification>.*?<summary>(.*?)</summary>.*?(?:<result>(.*?)</result>|\Z)"
)
"""The report of a sub-agent that ran in the background (Claude Code); it comes in the place of the user's words."""
_TEAMMATE: Final = re.compile(
    r'(?s)<teammate-message teammate_id="(?P<name>(?!team-lead")[^"\n]*)"[^>\n]*>\s*+(?P<text>(?!\{).*?)</teammate-message>'
)
"""What another agent of a team says (Claude Code), in the same place; its notices, that it waits for instance, are JSON."""
_COMMENTS: Final = re.compile(
    r"gh (?:pr view .*--(?:comments|json (?:\w+,)*(?:comments|reviews))"
    r"|api (?!.* (?:-X|--method|-f|-F|--input) )(?:-\S+ )*\S*/(?:comments|reviews))\b"
)
"""Commands that print what others say of a pull request: reviews."""
_BODY: Final = re.compile(r'"body": ?("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*+")')
_PROSE: Final = (".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc", ".org")
"""Endings of documents. One that the user named says what is wanted: a plan, a specification, a list of faults."""
_AROUND: Final = re.compile(
    r"(?sm)<!--.*?-->|<details>.*?</details>|^(?:\w+:\t[^\n]*|--)$|</?(?:a|b|br|code|details|div|em|h\d|hr|i|img|kbd|li|ol"
    r"|p|picture|pre|source|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|ul)\b[^<>]*>"
)
"""What a comment hides, or does not show at once, its tags, and what GitHub's client prints before and behind it."""


def _reports(
    entries: Sequence[Entry], runs: Mapping[str, Run], named: frozenset[str]
) -> Iterator[Finding]:
    """The reports of sub-agents and teammates, reviews, and the documents that the user named. What else was read is told by
    nobody: the agent says what it found in it, and can read it again."""
    for entry in entries:
        for kind, text, source in _told_by(entry, runs, named):
            is_whole = kind == "document"
            if condensed := _outline(text, is_whole=is_whole):
                about = source if is_whole else one_line(ELEMENT.sub(" ", source), 80)
                yield _finding(entry, kind, condensed, about)


def _told_by(
    entry: Entry, runs: Mapping[str, Run], named: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """The kind of finding, text and source of what a result tells: a report, with what was asked for, a document; of what a
    client wrote in the user's place: reports, each with who made it or what it is about."""
    if isinstance(entry.block, ToolResult):
        run = runs.get(entry.pair)
        if not run or run.is_hidden or run.is_error:
            return
        if views := [c.text for c in run.commands if _COMMENTS.match(" ".join(c.words))]:
            yield "agent", _AROUND.sub("", _texts_in(run.text)), views[0]
        if is_delegated(run):
            text, values = without_reminders(run.whole), run.call.input.values()
            start, end = output_of(text)
            tasks = (value for value in values if isinstance(value, str) and " " in value)
            task = min(tasks, key=len, default=run.call.name)
            yield "agent", _ACKNOWLEDGED.sub("", _texts_in(text[start:end])), task
        elif (view := view_of(run)) and view[0].endswith(_PROSE) and _is_named(view[0], named):
            yield "document", "\n".join(stretch.text for stretch in view[1]), view[0]
    elif isinstance(entry.block, (UserAttachment, *USER_TEXTS)):
        text = text_of(entry.block)
        if notice := _NOTIFIED.match(text):
            yield "agent", notice[2] or "", notice[1]
        yield from (("agent", each["text"], each["name"]) for each in _TEAMMATE.finditer(text))


def _is_named(file: str, names: Iterable[str]) -> bool:
    paths = (normpath(name.lstrip("@")) for name in names)
    return any(f"/{file}".endswith(f"/{path}") or path.endswith(f"/{file}") for path in paths)


def is_delegated(run: Run) -> bool:
    """Whether a call has another agent do something: by its name, or since other prose answers prose."""
    name, arguments = run.call.name, run.call.input
    is_known = name.lower() in REPORTING_TOOLS and "cell_id" not in arguments
    if is_known or REPORTING_KEYS & arguments.keys():
        return True
    if asks_user(name) or not (messages := _messages(run)):
        return False
    answer = _texts_in(run.text)
    is_long = len(answer) >= MESSAGE_CHARACTERS and _is_prose(answer)
    return is_long and not repeats("\n".join(messages), answer)


def _texts_in(reply: str) -> str:
    """The texts of a reply in JSON that are sentences, with what stands before it, or if it has some, those called `body`; of
    another reply all of it."""
    begins = re.search(r"(?m)^[{\[]", reply)
    start = begins.start() if begins else len(reply)
    bodies = ',"",'.join(_BODY.findall(reply, start)) if begins else ""
    try:
        values = (f"[{bodies}]" if bodies else reply[start:]).encode(errors="replace")
        lines = leaves(msgspec.json.decode(values)).split("\n")
    except (msgspec.DecodeError, RecursionError):
        return reply
    if bodies:
        return "\n".join(lines)
    return "\n\n".join(filter(None, [reply[:start].strip(), *(x for x in lines if " " in x)]))


def _outline(text: str, *, is_whole: bool = False) -> str:
    """The headings and lists of a text, and the first sentence of each paragraph that says something, or all of it."""
    pieces = [*_stated(read_prose(text))]
    blocks = [-1, *(piece.block for piece in pieces)]
    pairs = zip(pieces, blocks, strict=False)
    first = [p for p, before in pairs if is_whole or p.form != "sentence" or p.block != before]
    sizes = accumulate(len(piece.text) for piece in first)
    return text_of_pieces(tidy(first[: sum(size <= GIVEN_CHARACTERS for size in sizes)]))


# By turn: the text.


Count = Callable[[str], int]

ORDER: Final = (
    "(By turn: its report, then what was found on the way to it, oldest first. Where two differ, the report and the later one"
    " hold.)"
)


def text_of_findings(findings: Sequence[Finding]) -> str:
    """The section: for each turn its reports, then the rest in order."""
    turns = _turns(findings)
    heading = [ORDER] if any(len(turn) > 1 for turn in turns) else []
    return "\n".join([*heading, *map(_turn_text, turns)])


def _turns(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings by turn, in log order, each turn's reports first."""
    turns: dict[str, list[Finding]] = {}
    for finding in sorted(findings, key=attrgetter("version")):
        turns.setdefault(finding.turn, []).append(finding)
    return [sorted(turn, key=lambda each: each.kind != "report") for turn in turns.values()]


def _turn_text(turn: Sequence[Finding]) -> str:
    first, *others = turn
    missing = "" if first.kind == "report" else "(no report) "
    return "\n- ".join([f"{first.turn} {missing}{_one(first)}", *map(_one, others)])


def _one(finding: Finding) -> str:
    """A finding with its label; its further lines are indented below the first."""
    source = f"report of {finding.source}: " if finding.kind == "agent" else ""
    source += f"{finding.source}, which the user named: " if finding.kind == "document" else ""
    source += "the user: " if finding.kind == "rule" else ""
    source += f"(contested in {finding.disputed}) " if finding.disputed else ""
    body = "\n  ".join(filter(None, finding.text.split("\n")))
    body += f" (and {finding.gone} more)" if finding.gone else ""
    return f"[{label_of(finding.version)}]: {source}{body}"


# By turn: how they share the room.


ROOMS: Final = (1.0, 0.9, 0.8, 0.6, 0.4)
"""If the text, or a statement that is cut, is too long after all, the room is taken for so much smaller."""
LINE_TOKENS: Final = (32, 48)
"""The least and most tokens of the line that every turn has; all lines together get half of the room, if that is enough."""
NEWEST_SHARE: Final = 0.1
"""The part of what is left beyond the lines that a turn gets before older ones."""
SHARES: Final = {"report": 0.6, "agent": 0.35, "document": 0.35}
"""Shares of a turn's room for each of these, if there is more to tell; what a sub-agent reports is mostly longer than what
was found in it."""
SHORT_CHARACTERS: Final = 40
"""A statement is not shortened to fewer characters, except the only one of a turn: it would say nothing."""
LIST_SHARE: Final = 1 / 3
"""A list of which less than this share would stand goes: single points of many mislead."""


def fitted(findings: Sequence[Finding], tokens_max: int, count: Count) -> tuple[Finding, ...]:
    """The findings condensed until their text fits; what the user demanded has a third of the room before all else."""
    if count(text_of_findings(findings)) <= tokens_max:
        return tuple(findings)
    rules = [each for each in findings if each.kind == "rule"]
    while rules and count(text_of_findings(rules)) > tokens_max / 3:
        del rules[0]
    turns = _turns([each for each in findings if each.kind != "rule"])
    for share in ROOMS:
        room = int(share * tokens_max) - count(text_of_findings(rules))
        others = _shared(turns, room, count) if turns else ()
        left = tuple(sorted([*rules, *others], key=attrgetter("version")))
        if count(text_of_findings(left)) <= tokens_max:
            return left
    return ()


def _shared(turns: Sequence[list[Finding]], room: int, count: Count) -> Iterator[Finding]:
    """The findings of the turns, each in its part of the room, from the newest on; the oldest turns go if not each can
    have a line."""
    least, most = LINE_TOKENS
    turns = turns[-max(room // least, 1) :]
    line = min(max(room // (2 * len(turns)), least), most)
    needs = [_size(turn, count) for turn in turns]
    limits = [min(need, line) for need in needs]
    left = room - sum(limits)
    for index in reversed(range(len(turns))):
        older = sum(max(need - line, 0) for need in needs[:index])
        part = max(int(max(NEWEST_SHARE, 1 / (index + 1)) * left), left - older)
        more = min(max(part, 0), needs[index] - limits[index])
        limits[index], left = limits[index] + more, left - more
    fitting = [_within(turn, limit, count) for turn, limit in zip(turns, limits, strict=True)]
    spare = room - sum(_size(turn, count) for turn in fitting)
    for index in reversed(range(len(turns))):  # what is left goes to the newest that need it
        if limits[index] < needs[index] and spare > 0:
            size = _size(fitting[index], count)
            fitting[index] = _within(turns[index], size + spare, count)
            spare -= _size(fitting[index], count) - size
    return (finding for turn in fitting for finding in turn)


def _size(turn: Sequence[Finding], count: Count) -> int:
    return count(_turn_text(turn) + "\n") + 1 if turn else 0


def _line(turn: Sequence[Finding], tokens: int, count: Count) -> Finding:
    """The one line of a turn: the most telling statement of its report, or else of all, with its lead; rather a whole one."""
    own = [each for each in turn if each.kind not in {"agent", "document"}] or turn
    basis = [each for each in own if each.kind == "report"] or own
    lines = [structs.replace(e, text=line, gone=0) for e in basis for line in _statements(e.text)]
    whole = [each for each in lines if worth(each.text) > 0 and _size([each], count) <= tokens]
    return _cut(max(whole or lines, key=lambda each: density(each.text)), tokens, count)


def _statements(text: str) -> Iterator[str]:
    """Each statement of a text, with its leads on the same line, and each sentence that has sense alone."""
    pieces = read_prose(text)
    above = _above(pieces)
    for index in _by_worth(pieces):
        leads = [pieces[i].text for i in sorted(above[index]) if pieces[i].form != "row"]
        yield " ".join([*leads, pieces[index].text])
        if not leads and pieces[index].form == "sentence":
            alone = map(str.strip, sentences_of(pieces[index].text))
            yield from (each for each in alone if not DEPENDENT.match(each))
    if not pieces:
        yield " ".join(text.split())


def _by_worth(pieces: Sequence[ProsePiece]) -> list[int]:
    """The indices of the statements: the first that tells something by name, which sums up, then the most telling."""
    indices = [i for i, piece in enumerate(pieces) if piece.form != "lead"]
    first = next((i for i in indices if worth(pieces[i].text) > NAMELESS_CUES), -1)
    return sorted(indices, key=lambda i: (i != first, -density(pieces[i].text)))


def _cut(finding: Finding, tokens: int, count: Count) -> Finding:
    """The finding with its text, of one statement, cut to so many tokens."""
    text = finding.text
    rest = _size([structs.replace(finding, text="")], count)
    for share in ROOMS:
        short = shortened(text, int(share * len(text) * max(tokens - rest, 0) / (count(text) + 1)))
        finding = structs.replace(finding, text=short)
        if _size([finding], count) <= tokens:
            break
    return finding


def _within(turn: Sequence[Finding], tokens: int, count: Count) -> list[Finding]:
    """The turn's findings in so many tokens: its reports, then the most telling of the rest; in the room of a line only one
    statement."""
    if _size(turn, count) <= tokens:
        return list(turn)
    first = [each for each in reversed(turn) if each.kind == "report"]
    waiting = [*first, *best_first([each for each in turn if each not in first])]
    fitting: list[Finding] = []
    left = tokens
    while waiting and tokens > LINE_TOKENS[1]:
        finding = waiting.pop(0)
        beside = (1 - SHARES.get(finding.kind, 1)) * tokens
        reserve = min(int(beside), _size(waiting, count)) if waiting else 0
        if short := _condensed(finding, left - reserve, count):
            fitting.append(short)
            left -= _size([short], count)
    return [e for group in _turns(fitting) for e in group] or [_line(turn, tokens, count)]


def _condensed(finding: Finding, tokens: int, count: Count) -> Finding | None:
    """The finding with as many of its statements as fit, the most telling first; None if there is no room for one."""
    if _size([finding], count) <= tokens:
        return finding
    pieces = read_prose(finding.text)
    above, order = _above(pieces), _by_worth(pieces)
    left = tokens - _size([structs.replace(finding, text="")], count)
    more = count(" (and 99 more)")
    picks, lists, is_out = set[int](), set[int](), False
    for index in order:
        wanted = {index, *above[index]} - picks
        reserve = more * (pieces[index].is_listed and not lists)
        cost = sum(count(pieces[each].line) + 2 for each in wanted) + reserve
        is_telling = worth(pieces[index].text) > 0
        if cost > left:
            is_out |= is_telling
        elif is_telling or not is_out:  # what tells nothing does not stand in for what does
            picks |= wanted
            lists |= {pieces[index].block} if pieces[index].is_listed else set()
            left -= cost
    sizes = Counter(pieces[i].block for i in order if pieces[i].is_listed)
    stands = Counter(pieces[i].block for i in picks if pieces[i].is_listed)
    gone = [b for b, n in sorted(sizes.items()) if n < len(pieces) and stands[b] < LIST_SHARE * n]
    if gone:  # half of them, with their leads, since what they leave may be enough for the others
        half = gone[: (len(gone) + 1) // 2]
        goes = [each.is_listed and each.block in half for each in pieces]
        rows = zip(pieces, goes, [*goes[1:], False], strict=True)
        left_over = [p for p, out, after in rows if not (out or (p.form == "lead" and after))]
        if rest := text_of_pieces(tidy(left_over)):
            return _condensed(structs.replace(finding, text=rest), tokens, count)
    if gone or not picks:
        short = _line([finding], tokens, count)
        is_told = finding.kind == "report" and len(short.text) >= SHORT_CHARACTERS
        return short if is_told and _size([short], count) <= tokens else None
    out = [i for i in order if i not in picks and pieces[i].is_listed and pieces[i].block in lists]
    text = text_of_pieces(tidy([pieces[i] for i in sorted(picks)]))
    short = structs.replace(finding, text=text, gone=len(out) + finding.gone * bool(lists))
    return short if _size([short], count) <= tokens else None


def _above(pieces: Sequence[ProsePiece]) -> list[set[int]]:
    """For each piece, the indices of what it stands under: the items that its list is in, a table's first row, and the
    lead."""
    parents, items, start = list[set[int]](), list[int](), 0
    for index, piece in enumerate(pieces):
        if not (piece.is_listed and index and pieces[index - 1].is_listed):
            items, start = [], index
        while items and pieces[items[-1]].depth >= piece.depth:
            items.pop()
        first = {start} - {index} if piece.form == "row" else set[int]()
        lead = {start - 1} if start and pieces[start - 1].form == "lead" else set[int]()
        parents.append({*items} | first | lead)
        items.append(index)
    return parents
