"""A disk without room."""

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def full_disk(limit: int) -> Generator[None]:
    """No file grows beyond `limit` bytes; afterwards there is room again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
