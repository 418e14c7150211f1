"""Checks whether the artifact tables of a database agree with each other, row by row, without reading contents."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from blocks import DamagedStoreError
from persistence._store import StoreProblem
from persistence.artifacts._backend import Entry, decoded, decoded_record
from persistence.artifacts._verify import pieces_of

COUNTED = {"put": 1, "expire": -1, "forget": -1}
"""How each action in the audit changes the number of entries."""


@attrs.frozen(kw_only=True)
class ArtifactTables:
    """All rows of the tables at one moment.  A slot without an entry is the rest of an interrupted put; the next sweep
    removes it."""

    rows: Sequence[tuple[str, str, bytes | str]] = ()
    """Rows of the table `artifacts`: artifact, slot, entry."""
    pieces: Mapping[str, int] = {}
    """The number of pieces of each slot."""
    records: Sequence[bytes | str] = ()
    """The JSON of each audit record."""

    def examined(self) -> tuple[Sequence[Entry], Sequence[StoreProblem]]:
        """The readable entries, and the problems of the rows."""
        entries: list[Entry] = []
        problems: list[StoreProblem] = []
        for artifact, slot, data in self.rows:
            try:
                entry = decoded(data, "table artifacts")
            except DamagedStoreError as damage:
                problems.append(_of(artifact, str(damage)))
                continue
            problems += [_of(artifact, what) for what in self._wrong(entry, artifact, slot)]
            entries.append(entry)
        return entries, [*problems, *self._miscounted()]

    def _wrong(self, entry: Entry, artifact: str, slot: str) -> Iterator[str]:
        for name, there, due in (
            ("artifact", artifact, entry.metadata.id),
            ("slot", slot, entry.slot),
        ):
            if there != due:
                yield f"column {name} has {there!r:.100}, the entry has {due!r:.100}"
        count, held = pieces_of(entry.metadata), self.pieces.get(entry.slot, 0)
        if held > count:
            yield f"{held} pieces are there, its content has {count}"

    def _miscounted(self) -> Iterator[StoreProblem]:
        """Artifacts with more or fewer entries than the audit says."""
        due = Counter[str]()
        for data in self.records:
            try:
                record = decoded_record(data, "table artifact_audit")
            except DamagedStoreError as damage:
                yield StoreProblem(what=str(damage))
                return
            due[record.artifact] += COUNTED.get(record.action, 0)
        held = Counter(artifact for artifact, _, _ in self.rows)
        for artifact in sorted(due.keys() | held.keys()):
            if due[artifact] != held[artifact]:
                what = f"it was put {due[artifact]} times and is there {held[artifact]} times"
                yield _of(artifact, what)


def _of(artifact: str, what: str) -> StoreProblem:
    return StoreProblem(artifact=artifact, what=f"artifact {artifact}: {what}")
