"""Measures writing and reading artifacts, by place and encryption, and that memory does not grow with size.

The baseline is the minimum for durable content: write a file and fsync it, or read it back and hash it.
"""

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from benchmarks.figures import Figures, Meter
from blocks import Sensitivity, TimelineId
from persistence import (
    ArtifactDescription,
    ArtifactStore,
    DuckDBStore,
    Keys,
    MemoryArtifacts,
    Requester,
    open_artifacts,
)

KEYS = Keys({"k1": b"1" * 32}, current="k1")
ME = Requester("me", permissions={"read", "read:restricted"})
PLACES = ("memory", "duckdb", "folder")
SIZES = (20_000, 5_000_000)
SENSITIVITIES: tuple[Sensitivity, ...] = ("internal", "restricted")
ROUNDS = 30
LARGE_PIECES = 100
MEBIBYTE = 2**20
PEAK_MAX = 16 * MEBIBYTE


def about(sensitivity: Sensitivity) -> ArtifactDescription:
    return ArtifactDescription(timeline=TimelineId("t"), sensitivity=sensitivity)


@contextmanager
def opened(place: str, folder: Path) -> Iterator[ArtifactStore]:
    with ExitStack() as stack:
        match place:
            case "memory":
                yield MemoryArtifacts(keys=KEYS)
            case "duckdb":
                store = stack.enter_context(DuckDBStore(folder / "store.duckdb"))
                yield store.artifacts(keys=KEYS)
            case _:
                yield stack.enter_context(open_artifacts(folder / "artifacts", keys=KEYS))


def written(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", PLACES)
def test_putting(
    meter: Meter, tmp_path: Path, place: str, size: int, sensitivity: Sensitivity
) -> None:
    numbers = count()

    def prepare() -> tuple[bytes, bytes]:
        content = os.urandom(size)
        return content, content

    with opened(place, tmp_path) as store:
        sample = meter.compare(
            lambda content: store.put(content, about(sensitivity)),
            lambda content: written(tmp_path / str(next(numbers)), content),
            prepare,
            rounds=ROUNDS,
        )
    what = f"{size / 1e6:g} MB, {place}, {sensitivity}"
    meter.note("put an artifact", what, sample, against="file + fsync")


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", PLACES)
def test_reading(
    meter: Meter, tmp_path: Path, place: str, size: int, sensitivity: Sensitivity
) -> None:
    """Read an artifact among a thousand others of usual size."""
    content = os.urandom(size)
    bare = tmp_path / "bare"
    written(bare, content)
    with opened(place, tmp_path) as store:
        for _ in range(1000):
            store.put(os.urandom(2000), about("internal"))
        artifact = store.put(content, about(sensitivity))
        sample = meter.compare(
            lambda _: store.read(artifact, ME),
            lambda _: sha256(bare.read_bytes()).digest(),
            lambda: (None, None),
            rounds=ROUNDS,
        )
    what = f"{size / 1e6:g} MB, {place}, {sensitivity}"
    meter.note("read an artifact", what, sample, against="file + sha256")


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("place", ["duckdb", "folder"])
def test_a_hundred_megabytes_pass_through_a_few(
    figures: Figures, tmp_path: Path, place: str, sensitivity: Sensitivity
) -> None:
    piece = os.urandom(MEBIBYTE)
    with opened(place, tmp_path) as store:
        tracemalloc.start()
        artifact = store.put_stream((piece for _ in range(LARGE_PIECES)), about(sensitivity))
        for start in range(0, LARGE_PIECES * MEBIBYTE, MEBIBYTE):
            store.read(artifact, ME, start=start, size=MEBIBYTE)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    what, kept = f"105 MB, {place}, {sensitivity}", f"{peak / 1e6:.1f} MB at most"
    target = f"<= {PEAK_MAX / 1e6:.0f} MB"
    figures.note("memory of a streamed artifact", what, "", kept, "", "", "", "", target)
    assert peak <= PEAK_MAX
