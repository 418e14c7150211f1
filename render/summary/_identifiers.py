"""Rare identifiers in text: names that an agent refers to and cannot guess.

These are paths, URLs, dotted, snake_case and camelCase names, UUIDs, hexadecimal ids and long numbers, but
never plain words.
"""

import re
from collections.abc import Sequence
from string import ascii_letters

LENGTH_MAX = 160
"""Longer tokens are taken as data."""
SEARCHED_MAX = 100_000
"""Characters of a text that are searched; of a longer text, its beginning and end, which is all the agent
saw."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_COLON = r":(?://|\\)"
"""Follows the first word of a URL or of a Windows path."""

# Linear time: each character is visited a bounded number of times. Quantifiers are possessive
# (`++`) where giving back could not help; a path is tried only where a run of its characters
# begins; and text that holds no path and no dotted name is matched as a whole and then searched
# with `_WORD`.
_TOKEN = re.compile(
    r"(?=[\w.@~+/-])(?:"  # rejects most positions at once
    r"https?://[^\s\"'<>()\[\]{}`|\\,;]+"  # a URL
    r"|[A-Za-z]:\\[\w.\\-]++(?:[@~+][\w.@~+-]*+(?:/[\w.@~+-]++)++)?+"  # a Windows path, with a second path after it
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    rf"|{_UUID}"
    r"|[A-Za-z_][\w-]*+(?:"
    r"(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    rf"|(?<=[\w-]{{4}})(?!{_COLON}))"  # hyphened words
    rf"|[A-Za-z_][\w-]*-(?={_UUID}\w*+{_COLON})"  # hyphened words, up to a final UUID or word
    rf"|[A-Za-z_][\w-]*-(?=\w*+{_COLON})"
    r"|[0-9a-f]{7,}+|\d{4,}+|[A-Za-z_]\w{5,}+"  # a hash, a long number, a name
    r"|(?:[-.@~+]|[^\W\dA-Za-z_])++"  # not an identifier
    r")"
)
_WORD = re.compile(
    rf"{_UUID}|[0-9a-f]{{7,}}+|\d{{4,}}+"
    r"|[A-Za-z_]\w{5,}+"  # a name, if it has an inner mark of one
)
_WINDOWS = re.compile("(?=[@~+])")
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
    tokens = (token for word in set(text.split()) for token in _TOKEN.findall(word))
    names = (part.rstrip(".-:/") for token in tokens for part in _parts(token))
    return set(filter(_is_rare, names))


def _parts(token: str) -> Sequence[str]:
    """The parts of a token that may be identifiers."""
    if ":\\" in token:
        return _WINDOWS.split(token, 1)
    if "/" in token or ("." in token and token[0] in f"_{ascii_letters}"):
        return (token,)
    return _WORD.findall(token)


def _is_rare(term: str) -> bool:
    if term.isdigit():
        return LENGTH_MAX >= len(term) >= 4  # noqa: PLR2004 -- shorter numbers are everywhere
    if not LENGTH_MAX >= len(term) >= 6:  # noqa: PLR2004 -- as are shorter names
        return False
    return bool(_INNER.search(term) or _HASH.fullmatch(term)) or (term[0].isdigit() and "-" in term)
