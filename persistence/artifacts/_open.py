"""Opening an artifact store by a folder or a URL."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from persistence.artifacts._artifacts import Artifacts
from persistence.artifacts._backend import Backend
from persistence.artifacts._crypt import KeyRing
from persistence.artifacts._folder import FolderBackend
from persistence.artifacts._url import UrlBackend, reached

OPENING_BYTES = 4


def open_artifacts(
    where: str | Path,
    *,
    keys: KeyRing | None = None,
    clock: Callable[[], float] = time.time,
    random: Callable[[int], bytes] = os.urandom,
) -> Artifacts:
    """The artifact store in a folder, or at a URL such as `s3://bucket/artifacts`.

    Raises:
        MisuseError: the URL cannot be reached, for example because a library is not installed.
        StoreError: the folder cannot be created.
    """
    backend = _backend(str(where), random)
    return Artifacts(backend, keys=keys, clock=clock, random=random)


def _backend(where: str, random: Callable[[int], bytes]) -> Backend:
    scheme, is_url, _ = where.partition("://")
    if not is_url:
        return FolderBackend(Path(where).absolute())
    if scheme == "file":
        return FolderBackend(Path(unquote(urlsplit(where).path)))
    files, root = reached(where)
    return UrlBackend(files, root, random(OPENING_BYTES).hex())
