"""Ids of calls as the provider takes them: `^[a-zA-Z0-9_-]{1,64}$`."""

import re
from hashlib import sha256
from typing import Final

LENGTH_MAX: Final = 64
HASH_LENGTH: Final = 16
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")


def wire_id(pair: str) -> str:
    """The id itself where the provider takes it; else what it takes of it, and a hash that keeps two
    such ids apart."""
    plain = _FOREIGN.sub("_", pair)[:LENGTH_MAX]
    if pair and plain == pair:
        return pair
    digest = sha256(pair.encode(errors="surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{plain[: LENGTH_MAX - HASH_LENGTH - 1]}_{digest}"
