"""What every store promises of an interrupt (Ctrl-C).

Python delivers an interrupt where a function begins and where a call of C code returns. The tests raise one at each of
these moments, one after the other, so they neither need a clock nor depend on luck.
"""

import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Final

import attrs
import msgspec

from blocks import Event
from persistence._store import EventStore
from persistence.testing._events import T, U, compacted, forked, many, said
from persistence.testing._retaining import RetainingStore, where_it_can

MOMENTS_MAX: Final = 2_000
"""An operation has fewer moments than this."""


@attrs.define
class Interrupt:
    """Raises `KeyboardInterrupt` at the `moment`-th moment (from 1) at which Python may deliver one inside `folders`."""

    moment: int
    folders: tuple[str, ...]
    _left: int = attrs.field(
        default=attrs.Factory(lambda self: self.moment, takes_self=True), init=False
    )

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # An unfinished generator expression is called to end it, and what it raises then is only printed.
        if code.co_name == "<genexpr>" or not code.co_filename.startswith(self.folders):
            return
        if event in ("call", "c_return"):
            self._left -= 1
            if not self._left:
                raise KeyboardInterrupt

    @property
    def happened(self) -> bool:
        """Whether it was raised."""
        return self._left <= 0

    @property
    def passed(self) -> int:
        """How many such moments there were so far."""
        return self.moment - self._left

    @contextmanager
    def armed(self) -> Generator[None]:
        """Interrupt the code inside, and catch the interrupt."""
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            yield
        except KeyboardInterrupt:
            if not self.happened:
                raise
        finally:
            sys.setprofile(before)


def folders_of(store: object) -> tuple[str, ...]:
    """The folders of the packages of a store's class and of its base classes, without those of Python."""
    packages = {kind.__module__.partition(".")[0] for kind in type(store).__mro__}
    modules = [sys.modules[name] for name in sorted(packages - sys.stdlib_module_names)]
    files = (getattr(module, "__file__", None) for module in modules)  # typed at a prompt: none
    return tuple(str(Path(file).parent) for file in files if file)


def interrupts(store: EventStore) -> Generator[Interrupt]:
    """An interrupt at each moment inside the store, one after the other, until one comes too late."""
    for moment in count(1):
        assert moment < MOMENTS_MAX, "an operation never ends"
        interrupt = Interrupt(moment, folders_of(store))
        yield interrupt
        if not interrupt.happened:
            return


def elsewhere(work: Callable[[], object]) -> None:
    """Do this in another thread, which gets no lock that the interrupted one has kept."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(timeout=30)


class InterruptContract:
    """An interrupt at any moment leaves an operation done or not done, and the store in working order."""

    def test_an_interrupted_append_is_there_whole_or_not_at_all(self, store: EventStore) -> None:
        version = store.append(T, many(2), expected_version=0)
        for interrupt in interrupts(store):
            events: list[Event] = [said(f"{interrupt.moment} a"), said(f"{interrupt.moment} b")]
            with interrupt.armed():
                store.append(T, events, expected_version=version)
            whole = [(version + 1, events[0]), (version + 2, events[1])]
            assert list(store.read(T, after=version)) in ([], whole)
            assert store.head(T) in (version, version + 2)
            elsewhere(partial(store.append, T, events, expected_version=version))
            assert list(store.read(T, after=version)) == whole
            assert store.load_window(T).events[-2:] == tuple(whole)
            version += 2

    def test_an_interrupted_fork_is_there_whole_or_not_at_all(self, store: EventStore) -> None:
        store.append(T, many(3), expected_version=0)
        for interrupt in interrupts(store):
            name = type(U)(f"fork {interrupt.moment}")
            with interrupt.armed():
                store.fork(T, name, forked(T, 2), at=2)
            assert store.head(name) in (0, 3)
            if not store.head(name):
                elsewhere(partial(store.fork, T, name, forked(T, 2), at=2))
            assert list(store.read(name)) == [*store.read(T, limit=2), (3, forked(T, 2))]

    @where_it_can
    def test_an_interrupted_removal_of_the_oldest_is_done_or_not_done(
        self, store: RetainingStore
    ) -> None:
        events = many(MOMENTS_MAX)
        store.append(T, events, expected_version=0)
        store.append(T, [compacted("c", cut=MOMENTS_MAX)], expected_version=MOMENTS_MAX)
        for interrupt in interrupts(store):
            before = interrupt.moment + 1
            with interrupt.armed():
                store.trim(T, before)
            first = store.kept(T).first
            assert first in (before - 1, before)
            assert list(store.read(T, after=first - 1, limit=1)) == [(first, events[first - 1])]
            elsewhere(partial(store.trim, T, before))

    @where_it_can
    def test_an_interrupted_replacement_is_done_or_not_done(self, store: RetainingStore) -> None:
        old, other = said("1"), msgspec.structs.replace(said("1"), block=said("other").block)
        store.append(T, [old, said("2")], expected_version=0)
        for interrupt in interrupts(store):
            new = other if interrupt.moment % 2 else said("1")
            with interrupt.armed():
                store.rewrite(T, {1: new})
            events = [event for _, event in store.read(T)]
            assert events in ([old, said("2")], [new, said("2")])
            elsewhere(partial(store.rewrite, T, {1: new}))
            old = new

    @where_it_can
    def test_an_interrupted_removal_of_a_timeline_is_done_or_not_done(
        self, store: RetainingStore
    ) -> None:
        for interrupt in interrupts(store):
            store.append(T, many(2), expected_version=0)
            with interrupt.armed():
                store.remove(T)
            assert store.head(T) in (0, 2)
            assert len(store.read(T)) == store.head(T)
            if store.head(T):
                elsewhere(partial(store.remove, T))
