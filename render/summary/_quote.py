"""Quoting text between tags that the text cannot close.

    <summary-204 version="5">
    ... </summary> ... </summary-118> ...
    </summary-204>

The *mark* behind the tag's name is taken from the hash of the text, and is one that does not occur in the text. So whatever a
tool or a web page writes is not the closing tag, and nothing in it has to be found and rewritten: a text is quoted to the
letter. The same text has the same mark, so that a request stays in the cache.
"""

import re
import unicodedata
from hashlib import sha256
from typing import Final

MARK_DIGITS: Final = 3
"""Of a mark, one token, unless the text has it: a long text, or one that guesses, has a longer mark."""
_BREAKING: Final = re.compile(
    '[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029"“”„‟″＂<>‹›〈〉《》«»﹤﹥＜＞]|&(?=#|quot|[lg]t)',
    re.IGNORECASE,
)
"""What could end an attribute's quotation marks, or its tag, or is read as a character that could."""


def quoted(tag: str, text: str, **attributes: str) -> str:
    """The text between an opening and a closing tag, each on its own line."""
    name = f"{tag}-{_mark(text)}"
    given = "".join(f' {key}="{_BREAKING.sub("_", value)}"' for key, value in attributes.items())
    return f"<{name}{given}>\n{text}\n</{name}>"


def _mark(text: str) -> str:
    """The shortest beginning of the text's hash, as a number, that does not occur in the text."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    digits = str(int(sha256(text.encode(errors="surrogatepass")).hexdigest(), 16))
    ends = range(MARK_DIGITS, len(digits) + 1)
    return next(digits[:end] for end in ends if digits[:end] not in plain)
