"""Rare identifiers in text: names that an agent refers to and cannot guess.

These are paths, URLs, dotted, snake_case and camelCase names, UUIDs, hexadecimal ids and long numbers, but
never plain words.
"""

import re

LENGTH_MAX = 160
"""Longer tokens are taken as data."""
WORD_MAX = 1000
"""So are longer words, which would take long to search."""
SEARCHED_MAX = 100_000
"""Characters of a text that are searched; of a longer text, its beginning and end, which is all the agent
saw."""

_TOKEN = re.compile(
    r"https?://[^\s\"'<>()\[\]{}`|\\,;]++"  # a URL
    r"|[A-Za-z]:\\[\w.\\-]++"  # a Windows path
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|[A-Za-z_][\w-]*+(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    r"|[0-9a-f]{7,}+|\d{4,}+|[A-Za-z_]\w{5,}+"  # a hash, a long number, a name
)
_INNER = re.compile(r"[/\\]|\w\.\w|[^\W_]_+[^\W_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}")


def searched(text: str, characters_max: int = SEARCHED_MAX) -> tuple[str, ...]:
    """The text; if it is too long, its beginning and its end."""
    if len(text) <= characters_max:
        return (text,)
    return text[: characters_max // 2], text[-characters_max // 2 :]


def table(words: str) -> frozenset[str]:
    """The words of a table, which are separated by white space."""
    return frozenset(words.split())


def one_line(text: str, characters_max: int) -> str:
    """The text on one line, cut to at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters_max else f"{line[: characters_max - 1]}…"


def identifiers(text: str) -> set[str]:
    """The identifiers of a text; none contains white space."""
    words = (word for word in set(text.split()) if len(word) <= WORD_MAX)
    names = (token.rstrip(".-:/") for word in words for token in _TOKEN.findall(word))
    return set(filter(_is_rare, names))


def _is_rare(term: str) -> bool:
    if term.isdigit():
        return LENGTH_MAX >= len(term) >= 4  # noqa: PLR2004 -- shorter numbers are everywhere
    if not LENGTH_MAX >= len(term) >= 6:  # noqa: PLR2004 -- as are shorter names
        return False
    return bool(_INNER.search(term) or _HASH.fullmatch(term)) or (term[0].isdigit() and "-" in term)
