"""Rare identifiers in text: what an agent refers to by name and cannot guess again.

Paths, URLs, dotted, snake_case and camelCase names, UUIDs, hexadecimal ids, long numbers.  Plain
words are none, however long.
"""

import re

LENGTH_MAX = 160
"""Longer ones are data, not names."""
SEARCHED_MAX = 100_000
"""Characters of a text that are searched for names: the agent has seen no more of a longer one than
its beginning and its end."""

# Quantifiers are possessive (`++`) where nothing that follows could match what they gave back.
_TOKEN = re.compile(
    r"(?=[\w.@~+/-])(?:"  # most positions are refused here
    r"https?://[^\s\"'<>()\[\]{}`|\\,;]+"  # a URL
    r"|[A-Za-z]:\\[\w.\\-]+"  # a Windows path
    r"|[\w.@~+-]*+(?:/[\w.@~+-]++)++"  # a path
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|[A-Za-z_][\w-]*+(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    r"|[0-9a-f]{7,}+|\d{4,}+"  # a hash, a long number
    r"|[A-Za-z_]\w{5,}+"  # a name, if it has an inner mark of one
    r")"
)
_INNER = re.compile(r"[/\\]|\w\.\w|[^\W_]_+[^\W_]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}")


def searched(text: str, characters_max: int = SEARCHED_MAX) -> tuple[str, ...]:
    """A text, or, of one that is too long to be searched, its beginning and its end."""
    if len(text) <= characters_max:
        return (text,)
    return text[: characters_max // 2], text[-characters_max // 2 :]


def identifiers(text: str) -> set[str]:
    """The identifiers of a text; each is looked at once, however often it occurs."""
    terms = {token.rstrip(".-:/") for token in set(_TOKEN.findall(text))}
    return {term for term in terms if len(term) <= LENGTH_MAX and _is_rare(term)}


def _is_rare(term: str) -> bool:
    if term.isdigit():
        return len(term) >= 4  # noqa: PLR2004 -- shorter numbers are everywhere
    if len(term) < 6:  # noqa: PLR2004 -- as are shorter names
        return False
    return bool(_INNER.search(term) or _HASH.fullmatch(term)) or (term[0].isdigit() and "-" in term)
