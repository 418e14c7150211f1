r"""Text between tags: whatever it spells, it can neither end the quotation that it stands in nor begin another.

Who reads it is a model, which takes for a tag whatever looks like one: `</Artifact >`, `< / artifact`
over two lines, with an attribute, in letters of other alphabets, with characters that nobody sees, as
entities.  So a text is read as it looks, character for character, and where that gives the tag, a
backslash goes behind the angle: `<\/artifact>`.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from itertools import groupby
from typing import Final

_ANGLES: Final = "<˂‹ᐸᚲ≪≺⋖⟨⟪⦑⧼〈《〈❬❮❰«𐌂𝈶﹤＜"
_STROKES: Final = "/⁄∕╱⟋⧸／⼃〳ノ᜵"
_LETTERS: Final = {"а": "a", "α": "a", "ɑ": "a", "Ь": "b", "Ᏼ": "b", "в": "b", "с": "c", "ϲ": "c", "ⅽ": "c"} | {
    "е": "e", "ҽ": "e", "ϝ": "f", "ƒ": "f", "ɡ": "g", "і": "i", "ι": "i", "ı": "i", "ӏ": "l", "ǀ": "l"
} | {"к": "k", "κ": "k", "м": "m", "ո": "n", "п": "n", "о": "o", "ο": "o", "օ": "o", "р": "p", "ρ": "p"} | {
    "г": "r", "ѕ": "s", "ꜱ": "s", "т": "t", "τ": "t", "υ": "u", "ս": "u", "у": "y", "γ": "y", "ү": "y"
}  # fmt: skip
_DIGITS: Final = {
    "a": "4@",
    "b": "8",
    "e": "3",
    "i": "1l|!",
    "l": "1i|",
    "o": "0",
    "s": "5$",
    "t": "7",
}
"""Characters of ASCII that look like a letter."""
_UNSEEN: Final = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that have no ink; other such characters are known by their category."""
_NOTHING, _SOMETHING = "\0", "\uffff"
"""What stands for a character that is not seen, and for a letter that could be any."""
_IGNORED: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_BREAKING: Final = re.compile(
    f'[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029"“”„‟″＂>›〉》»＞﹥{_ANGLES}]|&(?=#|quot|[lg]t)',
    re.IGNORECASE,
)
_ENTITY: Final = re.compile(
    r"[&%\\](?:"  # most positions are refused here
    r"(?<=&)(?:amp;|\#0*38;|\#x0*26;)*+(?P<entity>\#\d{1,9}|\#x[0-9a-f]{1,8}|[a-z]\w{1,30})(?P<end>;?)"
    r"|(?:(?<=\\)(?:u00|x)|(?<=%))(?P<code>3c|2f))",
    re.IGNORECASE | re.ASCII,
)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f]++")
_START: Final = re.compile(f"[{_ANGLES}&]|\\\\u00|\\\\x|%", re.IGNORECASE)
"""Without one of these, no tag begins."""


def quoted(tag: str, text: str, **attributes: str) -> str:
    """A text between an opening and a closing tag, each on a line of its own."""
    given = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<{tag}{given}>\n{escaped(text, tag)}\n</{tag}>"


def escaped(text: str, *tags: str) -> str:
    """The text, with a backslash behind the angle of whatever can be read as one of these tags."""
    if not (_may_start(text) and _START.search(text)):
        return text
    pieces, start = list[str](), 0
    for match in _pattern(tags).finditer(_as_it_looks(text)):
        if not match[2].isascii() and not match[2].strip(_SOMETHING + _IGNORED):
            continue  # a word of another alphabet, as long as the tag
        pieces.append(text[start : match.end(1)])
        start = match.end(1)
    return "\\".join([*pieces, text[start:]])


def _may_start(text: str) -> bool:
    """Whether it is worth looking closely; cheap, because nearly all texts are plain."""
    return not text.isascii() or any(mark in text for mark in "<&%\\")


def _attribute(value: str) -> str:
    """A name that somebody else chose, within quotation marks."""
    return _BREAKING.sub("_", value)


@lru_cache(maxsize=32)
def _pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """An angle and what stands between it and the name; then the name."""
    names = "|".join("".join(_slots(tag)) for tag in tags)
    return re.compile(
        rf"(<\0*+)[{_IGNORED}/]*+({names})(?![a-z0-9_{_SOMETHING}])", re.IGNORECASE | re.ASCII
    )


def _slots(tag: str) -> Iterator[str]:
    """A place for each letter, with room for blanks before it; a double letter may be one sign."""
    for letter, run in groupby(tag):
        alike = re.escape(letter) + _DIGITS.get(letter, "")
        yield f"(?:[{_IGNORED}]*+[{alike}{_SOMETHING}]){{1,{len(list(run))}}}"


def _as_it_looks(text: str) -> str:
    """As many characters, each what it looks like; entities are followed by nothing."""
    text = _ENTITY.sub(_meant, text)
    if text.isascii():
        return text
    # Line by line: Python knows of each whether it is ASCII, and most are.
    lines = text.split("\n")
    return "\n".join(line if line.isascii() else _FOREIGN.sub(_plain, line) for line in lines)


def _plain(signs: re.Match[str]) -> str:
    return "".join(map(_alike, signs[0]))


def _meant(match: re.Match[str]) -> str:
    code, whole = match["code"], match[0]
    meant = chr(int(code, 16)) if code else unescape(f"&{match['entity']}{match['end']}")
    return meant.ljust(len(whole), _NOTHING)[: len(whole)]


@lru_cache(maxsize=4096)
def _alike(sign: str) -> str:
    """The character of ASCII that a sign looks like; itself if it is like none."""
    if sign.isascii():
        return sign
    for look, signs in (("<", _ANGLES), ("/", _STROKES), (_NOTHING, _UNSEEN)):
        if sign in signs:
            return look
    if sign.isspace():
        return " "
    category = unicodedata.category(sign)
    if category in {"Mn", "Me", "Cc", "Cf", "Co", "Cn", "Cs"}:
        return _NOTHING
    plain = unicodedata.normalize("NFKD", sign)[0].casefold()[0]
    plain = _LETTERS.get(plain, plain)
    if plain.isascii():
        return plain
    if category == "Pd":
        return "-"
    is_wide = unicodedata.east_asian_width(sign) in {"W", "F"}
    return _SOMETHING if category[0] == "L" and not is_wide else sign
