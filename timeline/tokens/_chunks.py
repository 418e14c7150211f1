"""Long texts in pieces, so that no input can crash the tokenizer or keep it busy for seconds.

A run of about a million spaces overflows the stack of tiktoken's regex engine (openai/tiktoken#15,
#245), and a run of one letter takes n log n.  In pieces of 128 Ki characters both are harmless.

Where to cut: after a newline, unless "/" or a blank line follows.  No piece of the o200k pattern crosses
such a point: only ` ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*` and `\\s*[\\r\\n]+` may contain a newline before their end;
the first goes on only with a line end or "/", the second only with white space up to a line end.  So the
count does not change.  A text without such a point is cut blindly, which costs about one token per cut.
"""

import re
from collections.abc import Iterator

CHUNK_CHARS_MAX = 128 * 1024
_BEGUN = r"(?=[ \t]*[^\s/]|[ \t]+/)"
"""Follows a newline after which a new token certainly begins."""
_EXACT = re.compile(rf".*\n{_BEGUN}", re.DOTALL)
_LINE_END = re.compile(rf"\n{_BEGUN}")
EXACT_BYTES_MAX = 4_000_000
"""Above this size a text is not encoded; its UTF-8 length is used as an upper bound."""


def chunks(text: str, chars_max: int = CHUNK_CHARS_MAX) -> Iterator[str]:
    """`text` in pieces of at most `chars_max` characters, cut so that their counts add up if possible."""
    start = 0
    while len(text) - start > chars_max:
        cut = _cut(text, start, start + chars_max)
        yield text[start:cut]
        start = cut
    yield text[start:] if start else text


def lines(text: str) -> list[str]:
    """`text` cut wherever that does not change its count. Blank lines stay with the line before."""
    *others, last = _LINE_END.split(text)
    return [*(f"{line}\n" for line in others), last]


def _cut(text: str, start: int, end: int) -> int:
    """The last position in `text[start:end]` where a cut does not change the count; `end` if there is none."""
    exact = _EXACT.match(text, start, end + 1)
    return exact.end() if exact else end


def utf8_bytes(text: str) -> int:
    """Length in UTF-8, an upper bound for the tokens of any byte-level tokenizer."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
