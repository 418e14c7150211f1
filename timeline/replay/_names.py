"""Finds rare identifiers for recall: paths, URLs, dotted, snake_case and camelCase names, ids, numbers.

This is deliberately not the engine's own recogniser: with the same one, recall would not notice the
names that the engine overlooks.
"""

import re
from string import ascii_letters
from typing import Final

CHARACTERS_MIN: Final = 6
"""Shorter names are too common."""
CHARACTERS_MAX: Final = 200
"""Longer names are usually data."""
BLACKED_OUT: Final = "REDACTED"
"""The text that recorders put in place of secrets; it does not count as a name."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_COLON = r":(?://|\\)"
"""What follows the scheme of a URL or the drive of a Windows path."""

# Linear: every character is visited a bounded number of times, whatever the text.  A path is tried
# where a run of its characters begins, not again at each of them; a run without path or dotted name
# is matched as a whole, and `_WORD` then searches it for other names.
_CANDIDATE = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}|\\,;]+"  # a URL
    rf"|(?:(?<![\w.@~+-]){_UUID}[\w.@~+-]++(?:/[\w.@~+-]++)++"  # a UUID followed by a path
    rf"|{_UUID})"
    r"|[A-Za-z]:\\[\w.\\-]++(?:[@~+][\w.@~+-]*+(?:/[\w.@~+-]++)++)?+"  # a Windows path, perhaps followed by another path
    r"|(?:(?<![\w.@~+-])[\w.@~+-]++)?+(?:/[\w.@~+-]++)++"  # a path
    r"|[A-Za-z_][\w-]*+(?:"
    r"(?:\.[A-Za-z_]\w*+)++"  # a dotted name
    rf"|(?<=[\w-]{{4}})(?!{_COLON}))"  # hyphened words
    rf"|[A-Za-z_][\w-]*-(?={_UUID}\w*+{_COLON})"  # hyphened words up to a last UUID or word
    rf"|[A-Za-z_][\w-]*-(?=\w*+{_COLON})"
    r"|[A-Za-z_]\w{5,}+"  # a word; most are not names
    r"|\d{4,}+|[0-9a-f]{7,}+"  # a number, a hash
    r"|(?:[-.@~+]|[^\W\dA-Za-z_])++"  # no name
)
_WORD = re.compile(rf"{_UUID}|[A-Za-z_]\w{{5,}}+|\d{{4,}}+|[0-9a-f]{{7,}}+")
_FIRST = re.compile(_UUID)
_WINDOWS = re.compile("(?=[@~+])")
_LETTERS = frozenset("_" + ascii_letters)
_INSIDE = re.compile(r"[/\\]|(?<=.)\.(?=.)|[^_]_+[^_]|[a-z][A-Z]|[A-Z]{2}[a-z]|^\d.*-")
"""What a name contains and a plain word does not."""
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
