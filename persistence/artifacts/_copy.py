"""Copies artifacts from one artifact store into another without decrypting them."""

from collections.abc import Callable, Iterator

from persistence.artifacts._artifacts import Artifacts
from persistence.artifacts._backend import Backend, Entry
from persistence.artifacts._types import ArtifactMetadata
from persistence.artifacts._verify import Examination, pieces_of


def copy_artifacts(
    source: Artifacts,
    target: Artifacts,
    is_wanted: Callable[[ArtifactMetadata], bool],
    on_damage: Callable[[str], None],
    artifact: str | None = None,
) -> int:
    """Copy the undamaged artifacts that `is_wanted` accepts, of all or only `artifact`, and return how many were new.

    `on_damage` receives a sentence for each damaged one.  A copy keeps its slot, because its encryption depends on it,
    and because a repeated copy recognizes it by its slot.
    """
    examination = Examination(source.backend)
    entries, problems = examination.entries(artifact)
    for problem in problems:
        on_damage(problem.what)
    wanted = [entry for entry in entries if is_wanted(entry.metadata)]
    there = {entry.slot for entry in target.backend.entries(artifact)} if wanted else set[str]()
    copied = 0
    for entry in (entry for entry in wanted if entry.slot not in there):
        if damage := examination.wrong(entry):
            on_damage(f"artifact {entry.metadata.id}: {damage}")
            continue
        target.backend.discard(entry.slot)  # what an interrupted copy left
        target.backend.fill(entry.slot, _pieces(source.backend, entry))
        target.enter(entry)
        copied += 1
    return copied


def _pieces(backend: Backend, entry: Entry) -> Iterator[bytes]:
    return backend.pieces(entry.slot, 0, pieces_of(entry.metadata) - 1)
