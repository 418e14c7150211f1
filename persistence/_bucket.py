"""Objects in a bucket, at a URL such as `s3://bucket/folder`: what artifacts and archives are stored as there.

The library `obstore` reaches S3 and what speaks its protocol, Google Cloud Storage and Azure.  It creates no bucket, keeps
nothing that it has listed, and waits for a server that is away.  Credentials come from the environment, never from the URL.
"""

import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

import attrs

from blocks import MisuseError, StoreError, lacking
from persistence._file import SHOWN

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

WAIT_SECONDS: Final = 30.0
"""How long a request is repeated while the server does not answer."""
KINDS: Final = {"s3": "AWS", "s3a": "AWS", "gs": "GOOGLE"} | dict.fromkeys(
    ("az", "azure", "adl", "abfs", "abfss"), "AZURE"
)
"""By the scheme of a URL, how the names of the variables begin that hold its credentials."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_ENDPOINT")
_WHOLE_PARTS: Final = 4
"""Pieces that are put in one request; more are put in parts."""
_NO_BUCKET: Final = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
_NO_CREDENTIALS: Final = re.compile("169.254.|metadata.google|Account must be|MissingC|credential")
_AWAY: Final = re.compile("error sending request|timed out|status code: 5|retries, max_retries")
_SHORTER: Final = re.compile("status code: 416|Invalid range")
"""The object ends before the bytes that were asked for."""
Object: TypeAlias = "ObjectMeta"
"""`path`, `size` and `last_modified` of an object."""


def is_url(where: object) -> bool:
    """Whether this names a place for objects, and not a folder."""
    return isinstance(where, str) and "://" in where


@attrs.frozen
class Objects:
    """The objects below a URL."""

    url: str
    _store: "ObjectStore" = attrs.field(repr=False)

    @classmethod
    def at(cls, url: str, wait_seconds: float = WAIT_SECONDS) -> "Objects":
        """The objects below `url`, after one request that finds out whether its bucket can be listed.

        Raises:
            MisuseError: the URL cannot be one, its library is not installed, or there is no such bucket.
            StoreError: permission is denied, or the server does not answer.
        """
        objects = cls(_checked(url), _opened(url, wait_seconds))
        with objects.errors():
            next(iter(objects._listed("", 1)), None)
        return objects

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Store an object; it appears when all of it is stored.  Errors of `pieces` stay unchanged."""
        import obstore

        raised: list[BaseException] = []

        def watched() -> Iterator[bytes]:
            try:
                yield from pieces
            except BaseException as error:
                raised.append(error)
                raise

        left = watched()
        some = list(islice(left, _WHOLE_PARTS))
        is_whole = len(some) < _WHOLE_PARTS
        body = b"".join(some) if is_whole else chain(some, left)
        del some  # each piece is freed when its part is sent
        with self.errors(name, raised):
            obstore.put(self._store, name, body, max_concurrency=1)

    def get(self, name: str) -> bytes | None:
        """The content of an object; None if there is none, for example after a sweep."""
        return None if (parts := self.parts(name)) is None else b"".join(parts)

    def parts(self, name: str, span: tuple[int, int] | None = None) -> Iterator[bytes] | None:
        """An object, or these bytes of it, as they arrive, with one request; None if nothing is there."""
        import obstore

        with self.errors(name):
            try:
                response = obstore.get(self._store, name, options={"range": span} if span else None)
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise
                return None
            except obstore.exceptions.GenericError as error:
                if span and _SHORTER.search(str(error)):
                    return None
                raise
            return self._arriving(name, iter(response.stream()))

    def _arriving(self, name: str, stream: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            with self.errors(name):
                part = next(stream, None)
            if part is None:
                return
            yield bytes(part)

    def list(self, folder: str) -> list[Object]:
        """The objects in a folder and below, by name; one request for each thousand."""
        with self.errors(folder):
            return sorted(self._listed(folder), key=lambda each: each["path"])

    def _listed(self, folder: str, size: int = 1000) -> Iterator[Object]:
        import obstore

        listing = obstore.list(self._store, folder or None, chunk_size=size)  # pyright: ignore[reportUnknownMemberType] -- its Arrow
        return chain.from_iterable(listing)

    def delete(self, name: str) -> None:
        """Remove an object, if it is there."""
        import obstore

        with self.errors(name):
            try:
                obstore.delete(self._store, name)
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise

    @contextmanager
    def errors(self, name: str = "", own: Iterable[BaseException] = ()) -> Generator[None]:
        """Raise our errors instead of the library's, which quote requests whole."""
        from obstore.exceptions import BaseError

        _refuse_if_forked()
        try:
            yield
        except (BaseError, OSError) as error:
            if error in own:
                raise
            raise self._translated(error, name) from None

    def _translated(self, error: Exception, name: str) -> MisuseError | StoreError:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        reason = re.sub(r"\?\S*", "", str(error).partition("\n")[0])[:SHOWN]
        where = f"{self.url}/{name}" if name else self.url
        if _NO_BUCKET.search(str(error)) or isinstance(error, FileNotFoundError):
            return MisuseError(
                f"{self.url}: there is no such bucket; create it, or correct the URL (a bucket is never"
                " created for you)"
            )
        if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
            return StoreError(
                f"{where}: permission denied ({reason}); let these credentials list, read, write and delete"
                " the objects there"
            )
        kind = KINDS[urlsplit(self.url).scheme.lower()]
        if _NO_CREDENTIALS.search(reason):
            return StoreError(
                f"{where}: no credentials ({reason}); set the environment variables {kind}_..."
            )
        if _AWAY.search(reason):
            return StoreError(
                f"{where}: the server does not answer ({reason}); check the network and the endpoint, and"
                " repeat the call"
            )
        return StoreError(f"{where}: {reason}; correct the URL or {kind}_..., and repeat the call")


def _checked(url: str) -> str:
    """The URL without a slash at its end.

    Raises:
        MisuseError: it cannot be the URL of a bucket.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:  # whose text may quote a password
        raise MisuseError("the URL of a bucket cannot be read; write s3://bucket/folder") from error
    scheme = parts.scheme.lower()
    if ":" in parts.netloc.partition("@")[0] and "@" in parts.netloc:
        raise MisuseError(
            f"the {scheme}:// URL contains a password; leave it out, and set the variables of the environment"
        )
    if scheme not in KINDS:
        schemes = ", ".join(f"{each}://" for each in KINDS)
        raise MisuseError(
            f"{scheme:.{SHOWN}}:// is not a known kind of bucket; give one of: {schemes}"
        )
    if not parts.netloc or parts.query or parts.fragment:
        raise MisuseError(
            f"{url:.{SHOWN}} is not the URL of a bucket; write {scheme}://bucket/folder"
        )
    return url.rstrip("/")


_USERS: Final[set[int]] = set()
"""The process that has used the library, whose threads a forked child lacks: there, the library would wait forever."""


def _refuse_if_forked() -> None:
    if _USERS and os.getpid() not in _USERS:
        raise MisuseError(
            "this process was forked from one that had used a bucket, so it cannot use buckets; start it with"
            ' multiprocessing.get_context("spawn"), or before the first use'
        )


def _opened(url: str, wait_seconds: float) -> "ObjectStore":
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise lacking(f"{urlsplit(url).scheme}://", "artifacts") from error
    _refuse_if_forked()
    _USERS.add(os.getpid())
    client: ClientConfig = {}
    if any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS):
        client["allow_http"] = True  # whoever names such an endpoint means it
    retries: RetryConfig = {"max_retries": 100, "retry_timeout": timedelta(seconds=wait_seconds)}
    try:
        return from_url(_checked(url), client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        reason = str(error).partition("\n")[0][:SHOWN]
        raise MisuseError(f"{url:.{SHOWN}} cannot be opened: {reason}; correct it") from None
