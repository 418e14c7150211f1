"""The state of a file: what a tool that reads files declares as its `capture`."""

import os
from hashlib import file_digest
from pathlib import Path

from blocks import Determinism


def file_state(path: str | os.PathLike[str]) -> Determinism:
    """A file's content hash and the time of its last change; a ready `capture` for `tool`.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    with Path(path).open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        return Determinism.of_sha256(digest, mtime=os.fstat(file.fileno()).st_mtime)
