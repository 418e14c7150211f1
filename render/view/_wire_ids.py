"""Ids of calls as the provider takes them: `^[a-zA-Z0-9_-]{1,64}$`, each once in a request."""

import re
from collections.abc import Container
from itertools import count
from typing import Final

LENGTH_MAX: Final = 64
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")


def free_wire_id(call_id: str, version: int, taken: Container[str]) -> str:
    """The call's own id where the provider accepts it, made unique by the version of its block."""
    own = wire_id = _FOREIGN.sub("_", call_id)[:LENGTH_MAX] or "call"
    for number in count(1):  # more than once when somebody's own id looks like ours
        if wire_id not in taken:
            break
        suffix = f"_{version}_{number}" if number > 1 else f"_{version}"
        wire_id = own[: LENGTH_MAX - len(suffix)] + suffix
    return wire_id
