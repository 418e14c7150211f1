"""A search query: words and phrases, and the kinds and turns of blocks.

disk full                  both words, in any order, also inside longer words; case is ignored
"no space left"            these words in this order, whatever white space is between them
-warning -"out of memory"  not these
type:react.tool.result     only blocks of this kind; of several kinds any of them
turn:t3                    only blocks of this turn; -type: and -turn: exclude
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import attrs

from blocks import (
    Block,
    DocumentPart,
    MisuseError,
    Part,
    TextPart,
    ToolResult,
    UserAttachment,
    UserFollowup,
    UserPrompt,
    UserSteer,
    clean_json,
    tag_of,
    text_of,
)

QUERY_CHARACTERS_MAX: Final = 4_000
_TOKEN: Final = re.compile(
    r'(?P<no>-?)(?P<field>type:|turn:)?(?:"(?P<phrase>[^"]*)"?|(?P<word>\S+))'
)


@attrs.frozen
class Needle:
    """One or more words that must occur in this order."""

    words: tuple[str, ...]
    """The words, case-folded."""

    @classmethod
    def of(cls, text: str) -> "Needle":
        return cls(tuple(text.casefold().split()))

    @cached_property
    def _phrase(self) -> re.Pattern[str]:
        return re.compile(r"\s+".join(map(re.escape, self.words)))

    def is_in(self, folded: str) -> bool:
        """Whether the words occur in a case-folded text."""
        if any(word not in folded for word in self.words):
            return False
        return len(self.words) == 1 or self._phrase.search(folded) is not None

    def spans(self, folded: str) -> Iterator[tuple[int, int]]:
        """Start and end of each occurrence, in order."""
        return (match.span() for match in self._phrase.finditer(folded))


@attrs.frozen(kw_only=True)
class Query:
    """A parsed query."""

    wanted: tuple[Needle, ...] = ()
    unwanted: tuple[Needle, ...] = ()
    types: frozenset[str] = frozenset()
    types_not: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    turns_not: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str) -> "Query":
        """Parse a query.

        Raises:
            MisuseError: it has no search term, or is too long.
        """
        if len(text) > QUERY_CHARACTERS_MAX:
            raise MisuseError(f"a query has at most {QUERY_CHARACTERS_MAX:,} characters")
        found: dict[str, list[str]] = {}
        for match in _TOKEN.finditer(str(clean_json(text))):
            value = match["word"] if match["phrase"] is None else match["phrase"]
            found.setdefault(match["no"] + (match["field"] or ""), []).append(value)
        query = cls(
            wanted=_needles(found.get("", ())),
            unwanted=_needles(found.get("-", ())),
            types=frozenset(found.get("type:", ())),
            types_not=frozenset(found.get("-type:", ())),
            turns=frozenset(found.get("turn:", ())),
            turns_not=frozenset(found.get("-turn:", ())),
        )
        if not (query.wanted or query.types or query.turns):
            raise MisuseError('nothing to search for: give a word, a "phrase", type: or turn:')
        return query

    def accepts(self, block: Block) -> bool:
        """Whether the query admits the block's kind and turn."""
        tag, turn = tag_of(block), block.turn
        return (
            (not self.types or tag in self.types)
            and (not self.turns or turn in self.turns)
            and tag not in self.types_not
            and turn not in self.turns_not
        )

    def matches(self, folded: str) -> bool:
        """Whether a case-folded text contains all wanted needles and no unwanted one."""
        return all(needle.is_in(folded) for needle in self.wanted) and not any(
            needle.is_in(folded) for needle in self.unwanted
        )


def _needles(texts: "list[str] | tuple[str, ...]") -> tuple[Needle, ...]:
    needles = (Needle.of(text) for text in texts)
    return tuple(dict.fromkeys(needle for needle in needles if needle.words))


def searched_text(block: Block) -> str:
    """The text that is searched: all texts of a block, without placeholders for images."""
    match block:
        case UserPrompt() | UserFollowup() | UserSteer():
            return "\n".join((block.text, *_texts(block.parts)))
        case ToolResult():
            return "\n".join(_texts(block.parts))
        case UserAttachment():
            return "\n".join((block.name, *_texts((block.part,))))
        case _:
            return text_of(block)


def _texts(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, TextPart):
            yield part.text
        elif isinstance(part, DocumentPart):
            yield part.name
