"""What a call or a text asks for, in a form that other words for the same thing share.

    calls   two calls ask for the same when they read, search, fetch or run the same: the same kind
            of tool, and the same targets but for case, blanks, quotes, `./` in front and `/` at the
            end. A part of a file, given by where it begins, is a target of its own. All other calls
            have to be equal.
    texts   a sentence that ends in a question mark and has a word like `what` or `remind` asks for
            something; a text answers it that has all its telling words, questions in it aside.
            Telling are the words of three letters and more that are not among the commonest.

The view `quality` does the same in SQL, so everything here is a pattern or a list that both read.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from blocks import (
    AssistantCompletion,
    Block,
    Envelope,
    Part,
    TextPart,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    tool_kind,
)

KINDS_ASKING: Final = ("read", "search", "web", "command")
COMMANDS: Final = ("cmd", "command")
TARGETS: Final = ("pattern", "query", "url", "file_path", "path", "filename", "notebook_path")
"""Arguments that name what is asked for, of a command and of all other kinds."""
BEGINNINGS: Final = ("offset", "start_line", "start", "line", "page")
"""Arguments that say which part of a target is asked for."""
ARGUMENT: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
"""Names that a declared target may have."""
BLANKS: Final = r"[ \t\n\r\f\x0b]+"
AROUND: Final = " \"'`"
"""Around a target, these say nothing."""
DOTTED: Final = r"^(\./)+|^\.$"
INTEGER_MAX: Final = 2**63 - 1

CHARACTERS_MAX: Final = 20_000
"""Of one text that are looked at."""
UPPER, LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_LOWERED: Final = str.maketrans(UPPER, LOWER)
ENDS: Final = r".!?\n"
"""Characters that end a sentence."""
WORD_RANGES: Final = ((0xC0, 0x1FFF), (0x2C00, 0x2DFF), (0x3040, 0xD7FF), (0xF900, 0xFDFF))
PLURAL: Final = "(..)s$"
ASKING: Final = frozenset(
    "what which who whose whom where when why how remind again repeat resend recall".split()  # noqa: SIM905 -- words read better than quotes
)
COMMON: Final = ASKING | frozenset(
    """about after all also and any are been before being both but can could did does doing done
    each excuse else ever every for from had has have having her hers him his into its just know let like
    look may maybe might mine more most much must need needs next not now off one only other our out
    over own please same shall she should some sorry such sure tell than thank thanks that the their them
    then there these they thing this those through too under until use used user using very want was
    way well were while will with within without would yes yet you your yours""".split()  # noqa: SIM905 -- as above
)
"""Words that tell nothing about what is asked for."""

_ASKING: Final = frozenset(re.sub(PLURAL, r"\1", word) for word in ASKING)
_sentence = re.compile(f"[^{ENDS}]*[{ENDS}]?")
_word = re.compile(
    "[a-z0-9" + "".join(f"{chr(first)}-{chr(last)}" for first, last in WORD_RANGES) + "]{3,}"
)


SPOKEN: Final = (
    "user.prompt", "user.followup", "user.steer", "user.attachment", "react.tool.result",
    "assistant.completion",
)  # fmt: skip
"""Blocks in which something is said."""


def said_in(block: Block) -> str:
    """The beginning of what a user, a tool or the agent said in a block; empty for other blocks."""
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            more = _texts(block.parts)
            text = f"{block.text}\n{more}" if more else block.text
        case UserAttachment():
            text = _texts((block.part,))
        case ToolResult():
            text = _texts(block.parts)
        case AssistantCompletion():
            text = block.text
        case _:
            return ""
    return text[:CHARACTERS_MAX].translate(_LOWERED)


def _texts(parts: tuple[Part, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def questions_in(said: str) -> Iterator[frozenset[str]]:
    """The telling words of each question in a text, as `said_in` gave it."""
    for sentence in _sentence.findall(said):
        words = set(_word.findall(sentence)) if sentence.endswith("?") else set[str]()
        if _singular(words) & _ASKING and (telling := _singular(words - COMMON)):
            yield telling


def words_in(said: str) -> frozenset[str]:
    """All words of a text but those of its questions."""
    stated = (part for part in _sentence.findall(said) if not part.endswith("?"))
    return _singular(set(_word.findall("".join(stated))))


def _singular(words: set[str]) -> frozenset[str]:
    return frozenset(re.sub(PLURAL, r"\1", word) for word in words)


def asked_for(name: str, arguments: Mapping[str, Any], declared: Envelope | None) -> str:
    """What a call asks for, the same text for the same thing; empty: nothing but itself.

    `declared` is what the tool declares about itself: of an envelope, kind and target count.
    """
    kind = tool_kind(name, arguments, declared)
    if kind not in KINDS_ASKING:
        return ""
    own = declared.target if declared and re.fullmatch(ARGUMENT, declared.target) else ""
    names = (own,) if own else COMMANDS if kind == "command" else TARGETS
    targets = ",".join(filter(None, (_target(arguments.get(name)) for name in names)))
    if not targets:
        return ""
    beginnings = ",".join(filter(None, map(_integer, map(arguments.get, BEGINNINGS))))
    return f"{kind},{targets},{beginnings}"


def _target(value: object) -> str:
    if not isinstance(value, str):
        return _integer(value)
    line = re.sub(BLANKS, " ", value.translate(_LOWERED)).strip(AROUND)
    text = re.sub(DOTTED, "", line)
    return text.rstrip("/") or text[:1]


def _integer(value: object) -> str:
    """A whole number as text; empty: it is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    return str(value) if abs(value) <= INTEGER_MAX else ""
