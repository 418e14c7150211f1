r"""Quoting text between tags, so that the text can neither close its quotation nor open another.

The reader is a model, which may take anything similar for a tag: `</Artifact >`, `< / artifact` over two
lines, with attributes, in letters of other alphabets, with invisible characters, as entities. So each
character is mapped to what it looks like. If the result contains the tag, a backslash is inserted after the
angle bracket: `<\/artifact>`.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
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
"""ASCII characters that look like a letter."""
_UNSEEN: Final = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol without ink; other invisible characters are recognised by their category."""
_NOTHING, _SOMETHING = "\0", "\uffff"
"""Replace an invisible character, and a letter that may look like any letter."""
_IGNORED: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_BREAKING: Final = re.compile(
    f'[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029"“”„‟″＂>›〉》»＞﹥{_ANGLES}]|&(?=#|quot|[lg]t)',
    re.IGNORECASE,
)
_ENTITY: Final = re.compile(
    r"[&%\\](?:"  # rejects most positions at once
    r"(?<=&)(?:amp;|\#0*38;|\#x0*26;)*+(?P<entity>\#\d{1,9}|\#x[0-9a-f]{1,8}|[a-z]\w{1,30})(?P<end>;?)"
    r"|(?:(?<=\\)(?:u00|x)|(?<=%))(?P<code>3c|2f))",
    re.IGNORECASE | re.ASCII,
)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f][^\x00-\x7f]*+")
"""Written with a first character, because that is searched faster than a repetition."""
_CODE: Final = re.compile(r"\\(?:u00|x)", re.IGNORECASE)
_ASCII: Final = bytes(range(0x80))


def quoted(tag: str, text: str, **attributes: str) -> str:
    """The text between an opening and a closing tag, each on its own line."""
    given = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<{tag}{given}>\n{escaped(text, tag)}\n</{tag}>"


def escaped(text: str, *tags: str) -> str:
    """The text with a backslash after the angle bracket of whatever may be read as one of these tags."""
    if not _may_start(text):
        return text
    pieces, start = list[str](), 0
    for match in _pattern(tags).finditer(_as_it_looks(text)):
        if not match[2].isascii() and not match[2].strip(_SOMETHING + _IGNORED):
            continue  # a foreign word of the same length
        pieces.append(text[start : match.end(1)])
        start = match.end(1)
    return "\\".join([*pieces, text[start:]])


def _may_start(text: str) -> bool:
    """Whether the text has an angle bracket, or what may stand for one; a fast test, because most texts have none."""
    if any(mark in text for mark in "<&%") or ("\\" in text and _CODE.search(text)):
        return True
    return not (text.isascii() or set(_ANGLES).isdisjoint(_foreign(text)))


def _foreign(text: str) -> str:
    """The characters of a text that are not ASCII."""
    found = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return found.decode("utf-8", "surrogatepass")


def _attribute(value: str) -> str:
    """An attribute's value, without characters that could end the quotation marks."""
    return _BREAKING.sub("_", value)


@lru_cache(maxsize=32)
def _pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    """The pattern for an angle bracket with what may follow it, and then one of the tag names."""
    names = "|".join("".join(_slots(tag)) for tag in tags)
    return re.compile(
        rf"(<\0*+)[{_IGNORED}/]*+({names})(?![a-z0-9_{_SOMETHING}])", re.IGNORECASE | re.ASCII
    )


def _slots(tag: str) -> Iterator[str]:
    """A pattern for each letter, with optional blanks before it; a double letter may be one character."""
    for letter, run in groupby(tag):
        alike = re.escape(letter) + _DIGITS.get(letter, "")
        yield f"(?:[{_IGNORED}]*+[{alike}{_SOMETHING}]){{1,{len(list(run))}}}"


def _as_it_looks(text: str) -> str:
    """The text with each character replaced by what it looks like; the length stays the same."""
    text = _ENTITY.sub(_meant, text)
    if text.isascii():
        return text
    # Line by line: `isascii` is fast, and most lines are ASCII.
    lines = text.split("\n")
    return "\n".join(line if line.isascii() else _FOREIGN.sub(_plain, line) for line in lines)


def _plain(signs: re.Match[str]) -> str:
    return "".join(map(_alike, signs[0]))


def _meant(match: re.Match[str]) -> str:
    from html import unescape  # here, because it takes long to import, and few texts have entities

    code, whole = match["code"], match[0]
    meant = chr(int(code, 16)) if code else unescape(f"&{match['entity']}{match['end']}")
    return meant.ljust(len(whole), _NOTHING)[: len(whole)]


@lru_cache(maxsize=4096)
def _alike(sign: str) -> str:
    """The ASCII character that a character looks like, or the character itself."""
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
