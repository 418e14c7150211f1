"""Rare identifiers in text: what an agent refers to by name and cannot guess again.

Paths, URLs, dotted, snake_case and camelCase names, UUIDs, hexadecimal ids, long numbers.  Plain
words are none, however long.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from string import ascii_letters

LENGTH_MAX = 160
"""Longer ones are data, not names."""
SEARCHED_MAX = 100_000
"""Characters of a text that are searched for names: the agent has seen no more of a longer one than
its beginning and its end."""

SHORT_CHARACTERS = 1000
"""Of excerpts, of which thousands are remembered at once; of longer texts a hundred."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_COLON = r":(?://|\\)"
"""What follows the first word of a URL or of a Windows path."""

# Linear: every character is looked at a bounded number of times, whatever the text.  Quantifiers are
# possessive (`++`) where nothing that follows could match what they gave back; a path is tried where a
# run of its characters begins, not again at each of them; and what is sure to hold no path and no
# dotted name is taken whole, to be looked into for the rest (`_WORD`).
_TOKEN = re.compile(
    r"(?=[\w.@~+/-])(?:"  # most positions are refused here
    r"https?://[^\s\"'<>()\[\]{}`|\\,;]+"  # a URL
    r"|[A-Za-z]:\\[\w.\\-]++(?:[@~+][\w.@~+-]*+(?:/[\w.@~+-]++)++)?+"  # a Windows path, and another
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    rf"|{_UUID}"
    r"|[A-Za-z_][\w-]*+(?:"
    r"(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    rf"|(?<=[\w-]{{4}})(?!{_COLON}))"  # hyphened words
    rf"|[A-Za-z_][\w-]*-(?={_UUID}\w*+{_COLON})"  # such up to where a last UUID or word begins
    rf"|[A-Za-z_][\w-]*-(?=\w*+{_COLON})"
    r"|[0-9a-f]{7,}+|\d{4,}+|[A-Za-z_]\w{5,}+"  # a hash, a long number, a name
    r"|(?:[-.@~+]|[^\W\dA-Za-z_])++"  # nothing
    r")"
)
_WORD = re.compile(
    rf"{_UUID}|[0-9a-f]{{7,}}+|\d{{4,}}+"
    r"|[A-Za-z_]\w{5,}+"  # a name, if it has an inner mark of one
)
_RUN = re.compile(r"[\w.@~+/-]{4,}+")
_LETTERS = frozenset("_" + ascii_letters)
_WINDOWS = re.compile("(?=[@~+])")
_INNER = re.compile(r"[/\\]|\w\.\w|[^\W_]_+[^\W_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}")


def searched(text: str, characters_max: int = SEARCHED_MAX) -> tuple[str, ...]:
    """A text, or, of one that is too long to be searched, its beginning and its end."""
    if len(text) <= characters_max:
        return (text,)
    return text[: characters_max // 2], text[-characters_max // 2 :]


def identifiers(text: str) -> frozenset[str]:
    """The identifiers of a text; each is looked at once, however often it occurs.

    Remembered: what was folded once, every later compaction asks for again, piece by piece.
    """
    return _of_short(text) if len(text) <= SHORT_CHARACTERS else _of_long(text)


def _found(text: str) -> frozenset[str]:
    terms = {token.rstrip(".-:/") for token in _tokens(text)}
    return frozenset(term for term in terms if len(term) <= LENGTH_MAX and _is_rare(term))


_of_short = lru_cache(maxsize=8192)(_found)
_of_long = lru_cache(maxsize=128)(_found)


def _tokens(text: str) -> set[str]:
    """All that may be an identifier."""
    tokens, words = set[str](), list[str]()
    for token in set(_TOKEN.findall("\n".join(_looked_into(text)))):
        if ":\\" in token:
            tokens.update(_WINDOWS.split(token, 1))
        elif "/" in token or ("." in token and token[0] in _LETTERS):
            tokens.add(token)
        else:
            words.append(token)
    return tokens.union(_WORD.findall("\n".join(words)))


def _looked_into(text: str) -> Iterator[str]:
    """The parts of a text that tokens are in, each once: a token reaches over no blank and, but for URLs
    and Windows paths, over nothing that is not in `_RUN`.  Plain words are left out."""
    if ":/" in text or ":\\" in text:
        parts = set(text.split())
        with_colon = {part for part in parts if ":/" in part or ":\\" in part}
        yield from with_colon
        text = "\n".join(parts - with_colon)
    for run in set(_RUN.findall(text)):
        if not (run.isalpha() and run[1:].islower()):
            yield run


def _is_rare(term: str) -> bool:
    if term.isdigit():
        return len(term) >= 4  # noqa: PLR2004 -- shorter numbers are everywhere
    if len(term) < 6:  # noqa: PLR2004 -- as are shorter names
        return False
    return bool(_INNER.search(term) or _HASH.fullmatch(term)) or (term[0].isdigit() and "-" in term)
