"""Rare identifiers, as recall counts them: paths, URLs, dotted, snake_case and camelCase names, ids, numbers.

On purpose not the recogniser that the engine keeps its index with: a yardstick that moved with what
it measures would always be content.
"""

import re
from string import ascii_letters
from typing import Final

CHARACTERS_MIN: Final = 6
"""Shorter names are everywhere."""
CHARACTERS_MAX: Final = 200
"""Longer ones are data."""
BLACKED_OUT: Final = "REDACTED"
"""Placeholders for secrets in recorded logs, which do not count as names."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_COLON = r":(?://|\\)"
"""What follows the first word of a URL or of a Windows path."""

# Linear: every character is looked at a bounded number of times, whatever the text.  A path is tried
# where a run of its characters begins, not again at each of them; what is sure to hold no path and no
# dotted name is taken whole, to be looked into for the rest (`_WORD`).
_CANDIDATE = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}|\\,;]+"  # a URL
    rf"|(?:(?<![\w.@~+-]){_UUID}[\w.@~+-]++(?:/[\w.@~+-]++)++"  # a UUID, and a path behind it
    rf"|{_UUID})"
    r"|[A-Za-z]:\\[\w.\\-]++(?:[@~+][\w.@~+-]*+(?:/[\w.@~+-]++)++)?+"  # a Windows path, and another
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    r"|[A-Za-z_][\w-]*+(?:"
    r"(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    rf"|(?<=[\w-]{{4}})(?!{_COLON}))"  # hyphened words
    rf"|[A-Za-z_][\w-]*-(?={_UUID}\w*+{_COLON})"  # such up to a last UUID or word
    rf"|[A-Za-z_][\w-]*-(?=\w*+{_COLON})"
    r"|[A-Za-z_]\w{5,}+"  # a word; most are no names
    r"|\d{4,}+|[0-9a-f]{7,}+"  # a number, a hash
    r"|(?:[-.@~+]|[^\W\dA-Za-z_])++"  # nothing
)
_WORD = re.compile(rf"{_UUID}|[A-Za-z_]\w{{5,}}+|\d{{4,}}+|[0-9a-f]{{7,}}+")
_FIRST = re.compile(_UUID)
_WINDOWS = re.compile("(?=[@~+])")
_LETTERS = frozenset("_" + ascii_letters)
_INSIDE = re.compile(r"[/\\]|(?<=.)\.(?=.)|[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]|^\d.*-")
"""What a name has inside, and a plain word has not."""
_HASH = re.compile(r"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,}")


def rare_names(text: str) -> set[str]:
    """The identifiers in a text that cannot be guessed."""
    found = {candidate.rstrip(".-:/") for candidate in _candidates(text)}
    return {name for name in found if _is_rare(name)}


def _candidates(text: str) -> set[str]:
    found, words = set[str](), list[str]()
    for candidate in set(_CANDIDATE.findall(text)):
        if ":\\" in candidate:
            found.update(_WINDOWS.split(candidate, 1))
        elif "/" in candidate and (first := _FIRST.match(candidate)):
            found.update((first[0], candidate[first.end() :]))
        elif "/" in candidate or ("." in candidate and candidate[0] in _LETTERS):
            found.add(candidate)
        else:
            words.append(candidate)
    return found.union(_WORD.findall("\n".join(words)))


def _is_rare(name: str) -> bool:
    if name.isdigit():
        return len(name) <= CHARACTERS_MAX
    if not CHARACTERS_MIN <= len(name) <= CHARACTERS_MAX or BLACKED_OUT in name:
        return False
    return bool(_INSIDE.search(name) or _HASH.fullmatch(name))
