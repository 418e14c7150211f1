"""Rare identifiers, as recall counts them: paths, URLs, dotted, snake_case and camelCase names, ids, numbers.

On purpose not the recogniser that the engine keeps its index with: a yardstick that moved with what
it measures would always be content.
"""

import re
from typing import Final

CHARACTERS_MIN: Final = 6
"""Shorter names are everywhere."""
CHARACTERS_MAX: Final = 200
"""Longer ones are data."""
BLACKED_OUT: Final = "REDACTED"
"""What recorders put in the place of secrets; nobody refers to it."""

_CANDIDATE = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}|\\,;]+"  # a URL
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # a UUID
    r"|[A-Za-z]:\\[\w.\\-]+"  # a Windows path
    r"|[\w.@~+-]*(?:/[\w.@~+-]+)+"  # a path
    r"|[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)+"  # a dotted name
    r"|[A-Za-z_]\w{5,}"  # a word; most are no names
    r"|\d{4,}|[0-9a-f]{7,}"  # a number, a hash
)
_INSIDE = re.compile(r"[/\\]|(?<=.)\.(?=.)|[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]|^\d.*-")
"""What a name has inside, and a plain word has not."""
_HASH = re.compile(r"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,}")


def rare_names(text: str) -> set[str]:
    """The identifiers in a text that nobody could guess."""
    found = {candidate.rstrip(".-:/") for candidate in set(_CANDIDATE.findall(text))}
    return {name for name in found if _is_rare(name)}


def _is_rare(name: str) -> bool:
    if name.isdigit():
        return len(name) <= CHARACTERS_MAX
    if not CHARACTERS_MIN <= len(name) <= CHARACTERS_MAX or BLACKED_OUT in name:
        return False
    return bool(_INSIDE.search(name) or _HASH.fullmatch(name))
