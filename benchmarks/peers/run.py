"""Runs engines over sessions in several processes, one engine and one session at a time; prints progress."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import TypeAlias

import attrs
import msgspec

from benchmarks.peers.driver import Child, Peer, PeerFailedError
from benchmarks.peers.gateways import our_gateway, theirs, untouched
from benchmarks.peers.measure import Recording, Row, full_history, masked, measured, ours, recorded
from blocks import FoldlineError
from persistence.sessions import read_session

POLICIES = ("default", "frugal", "generous")
Ran: TypeAlias = tuple[Row, str]
"""The figures, and the version of the peer."""


@attrs.frozen(kw_only=True)
class Engine:
    """One engine to be measured."""

    name: str
    run: Callable[[Recording], Ran]


def _own(measure: Callable[[Recording], Row], recording: Recording) -> Ran:
    return measure(recording), ""


def _peer(peer: Peer, recording: Recording) -> Ran:
    with Child(peer) as child:
        row = (theirs if peer.is_gateway else measured)(child, recording)
        return row, child.ready


def engines(peers: Sequence[Peer]) -> list[Engine]:
    """The engines of the first class: those for comparison, then the peers."""
    own = {"full history": full_history, "masking": masked}
    own |= {f"foldline {policy}": partial(ours, policy) for policy in POLICIES}
    return _together(own, peers)


def gateways(peers: Sequence[Peer]) -> list[Engine]:
    """The same for the second class, gateways."""
    return _together({"no gateway": untouched, "foldline proxy": our_gateway}, peers)


def _together(own: Mapping[str, Callable[[Recording], Row]], peers: Sequence[Peer]) -> list[Engine]:
    first = [Engine(name=name, run=partial(_own, measure)) for name, measure in own.items()]
    return [*first, *(Engine(name=peer.name, run=partial(_peer, peer)) for peer in peers)]


@attrs.frozen(kw_only=True)
class Candidate:
    """A session, and whether it can be measured."""

    path: Path
    window: int
    calls: int = 0
    """The number of calls; 0 if it always fits, or never needs anything far back."""
    unreadable: str = ""


def candidate(path: Path, window: int) -> Candidate:
    """Read a session and find whether recall can be measured in this window."""
    try:
        recording = _recording(path, window)
    except FoldlineError as error:
        return Candidate(path=path, window=window, unreadable=str(error))
    is_telling = bool(recording.moments) and recording.is_long and full_history(recording).far
    return Candidate(path=path, window=window, calls=len(recording.moments) if is_telling else 0)


@lru_cache(maxsize=1)
def _recording(path: Path, window: int) -> Recording:
    return recorded(read_session(path), window)


@attrs.frozen(kw_only=True)
class Piece:
    """The result of one engine on one session, as saved in a file; `failed` is why there are no figures."""

    session: str
    window: int
    engine: str
    calls: int
    seconds: float
    row: Row | None = None
    ran: str = ""
    failed: str = ""


def piece(session: Candidate, engine: Engine) -> Piece:
    """Measure one engine on one session."""
    began = perf_counter()
    made = partial(
        Piece,
        session=session.path.name,
        window=session.window,
        engine=engine.name,
        calls=session.calls,
    )
    recording = _recording(session.path, session.window)
    try:
        row, ran = engine.run(recording)
    except PeerFailedError as error:
        return made(seconds=perf_counter() - began, failed=str(error))
    return made(seconds=perf_counter() - began, row=row, ran=ran)


@attrs.define(kw_only=True)
class Run:
    """The measured pieces; with a file, each is saved there and not measured again."""

    jobs: int
    file: Path | None = None
    pieces: list[Piece] = attrs.field(factory=list[Piece])

    def __attrs_post_init__(self) -> None:
        """Read the pieces that an earlier run saved."""
        if self.file and self.file.exists():
            lines = self.file.read_bytes().splitlines()
            self.pieces += [msgspec.json.decode(line, type=Piece) for line in lines]

    def candidates(self, paths: Sequence[Path], window: int) -> list[Candidate]:
        """The sessions that can be measured, those with few calls first."""
        with ProcessPoolExecutor(self.jobs) as pool:
            found = pool.map(partial(candidate, window=window), paths)
            return sorted(found, key=lambda session: (session.calls, session.path.name))

    def measure(self, sessions: Sequence[Candidate], chosen: Sequence[Engine]) -> list[Piece]:
        """Measure every engine on every session, except pieces measured before; returns all pieces."""
        wanted = [(session, engine) for session in sessions for engine in chosen]
        known = {_key(each) for each in self.pieces}
        new = [pair for pair in wanted if _named(*pair) not in known]
        with ProcessPoolExecutor(self.jobs) as pool:
            for number, done in enumerate(as_completed(_begun(pool, new)), 1):
                self._keep(done.result())
                print(f"{number:3}/{len(new)}  {self._told(new)}", file=sys.stderr, flush=True)
        asked = {_named(*pair) for pair in wanted}
        return [each for each in self.pieces if _key(each) in asked]

    def _keep(self, done: Piece) -> None:
        self.pieces.append(done)
        if self.file and not done.failed:  # failed pieces are tried again
            with self.file.open("ab") as file:
                file.write(msgspec.json.encode(done) + b"\n")

    def _told(self, new: Sequence[tuple[Candidate, Engine]]) -> str:
        """The latest piece, and the estimated time for the rest."""
        last = self.pieces[-1]
        left = timedelta(seconds=round(self._seconds_left(new)))
        how = f"failed: {last.failed}" if last.failed else f"{last.seconds:.0f} s"
        return f"{last.engine} on {last.session} ({last.calls} calls): {how}; about {left} left"

    def _seconds_left(self, new: Sequence[tuple[Candidate, Engine]]) -> float:
        """Estimated from each engine's time per call so far."""
        done = {_key(each) for each in self.pieces}
        paces = {e: _pace([p for p in self.pieces if p.engine == e]) for _, _, e in done}
        usual = fmean(paces.values())
        left = (pair for pair in new if _named(*pair) not in done)
        return sum(paces.get(e.name, usual) * session.calls for session, e in left) / self.jobs


def _begun(
    pool: ProcessPoolExecutor, pairs: Sequence[tuple[Candidate, Engine]]
) -> Iterator[Future[Piece]]:
    return (pool.submit(piece, session, engine) for session, engine in pairs)


def _named(session: Candidate, engine: Engine) -> tuple[str, int, str]:
    return session.path.name, session.window, engine.name


def _key(done: Piece) -> tuple[str, int, str]:
    return done.session, done.window, done.engine


def _pace(pieces: Sequence[Piece]) -> float:
    return sum(each.seconds for each in pieces) / max(1, sum(each.calls for each in pieces))
