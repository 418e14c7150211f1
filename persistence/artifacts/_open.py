"""One call for a place by its name: a folder, or a URL."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from persistence.artifacts._artifacts import Artifacts
from persistence.artifacts._crypt import KeyRing
from persistence.artifacts._folder import FolderShelf
from persistence.artifacts._shelf import Shelf
from persistence.artifacts._url import UrlShelf, reached

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
        MisuseError: what the URL needs is not installed.
        StoreError: the folder cannot be made.
    """
    shelf = _shelf(str(where), random)
    return Artifacts(shelf, keys=keys, clock=clock, random=random)


def _shelf(where: str, random: Callable[[int], bytes]) -> Shelf:
    scheme, is_url, _ = where.partition("://")
    if not is_url:
        return FolderShelf(Path(where).absolute())
    if scheme == "file":
        return FolderShelf(Path(unquote(urlsplit(where).path)))
    files, root = reached(where)
    return UrlShelf(files, root, random(OPENING_BYTES).hex())
