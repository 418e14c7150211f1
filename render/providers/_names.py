"""Ids, tool names and filler texts that the requests of all providers share."""

import re
from hashlib import sha256
from typing import Final

INTERRUPTED: Final = "interrupted, no result was recorded"
CONTINUE: Final = "[continue]"
NO_OUTPUT: Final = "(no output)"
MIDWAY: Final = "[the session starts mid-way]"
ID_LENGTH_MAX: Final = 64
ID_HASH_LENGTH: Final = 16
NAME_LENGTH_MAX: Final = 64

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")


def wire_id(pair: str, longest: int = ID_LENGTH_MAX) -> str:
    """The id itself if every provider accepts it; otherwise its accepted characters, with a hash that keeps
    such ids distinct."""
    plain = _FOREIGN.sub("_", pair)[:longest]
    if pair and plain == pair:
        return pair
    digest = sha256(pair.encode(errors="surrogatepass")).hexdigest()[:ID_HASH_LENGTH]
    return f"{plain[: longest - ID_HASH_LENGTH - 1]}_{digest}"


def tool_name(name: str) -> str:
    """A tool name that every provider accepts: `^[a-zA-Z0-9_-]{1,64}$`."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
    return kept[:NAME_LENGTH_MAX] or "tool"
