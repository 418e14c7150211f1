"""What only a folder can promise: what lies where, who may look, and what a crash leaves."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blocks import DamagedStoreError, StoreError
from persistence import open_artifacts

from .places import ALICE, KEYS, NOW, Clock, about, put_until_killed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "artifacts"


def files(root: Path) -> list[str]:
    """The topmost names, once a file."""
    return sorted(path.relative_to(root).parts[0] for path in root.rglob("*") if path.is_file())


def test_one_file_a_content_one_an_entry_and_one_audit(root: Path) -> None:
    with open_artifacts(root) as store:
        store.put(b"abc", about())
        store.put(b"abc", about())
    assert files(root) == ["audit.jsonl", "content", "entries"]
    [content] = (root / "content").iterdir()
    assert content.read_bytes() == b"abc"


def test_a_file_url_is_a_folder(root: Path) -> None:
    with open_artifacts(root) as store:
        artifact = store.put(b"abc", about())
    with open_artifacts(f"file://{root}") as store:
        assert store.read(artifact, ALICE) == b"abc"


def test_only_the_owner_may_look(root: Path) -> None:
    with open_artifacts(root) as store:
        store.put(b"abc", about())
    modes = {path.stat().st_mode & 0o077 for path in (root, *root.rglob("*"))}
    assert modes == {0}


def test_a_sweep_leaves_no_content_and_no_entry(root: Path) -> None:
    clock = Clock()
    with open_artifacts(root, clock=clock) as store:
        store.put(b"abc", about(expires_at=NOW + 1))
        clock.now = NOW + 1
        store.sweep()
    assert files(root) == ["audit.jsonl"]


def test_two_openings_share_a_folder(root: Path) -> None:
    with open_artifacts(root) as one, open_artifacts(root) as other:
        artifact = one.put(b"abc", about())
        assert other.read(artifact, ALICE) == b"abc"
        assert [record.action for record in one.audit()] == ["put", "read"]


@pytest.mark.parametrize("harm", ["altered", "cut short", "gone"])
def test_content_that_is_not_what_was_put_is_not_handed_out(root: Path, harm: str) -> None:
    with open_artifacts(root) as store:
        artifact = store.put(b"abcdef", about())
        [content] = (root / "content").iterdir()
        match harm:
            case "altered":
                content.write_bytes(b"abcdeg")
            case "cut short":
                content.write_bytes(b"abc")
            case _:
                content.unlink()
        with pytest.raises(
            DamagedStoreError, match=r"(?s)differs from what was stored|bytes are missing"
        ):
            store.read(artifact, ALICE)


def test_a_range_that_is_not_all_there_is_not_handed_out_in_part(root: Path) -> None:
    with open_artifacts(root) as store:
        artifact = store.put(b"abcdef", about())
        [content] = (root / "content").iterdir()
        content.write_bytes(b"abc")
        assert store.read(artifact, ALICE, start=1, size=2) == b"bc"
        with pytest.raises(DamagedStoreError, match="2 bytes are missing"):
            store.read(artifact, ALICE, start=1, size=4)


def test_an_entry_that_is_none_is_named(root: Path) -> None:
    with open_artifacts(root) as store:
        artifact = store.put(b"abc", about())
        [entry] = (root / "entries").rglob("*.json")
        entry.write_bytes(b"{")
        with pytest.raises(DamagedStoreError, match=entry.name):
            store.read(artifact, ALICE)


def test_a_record_that_a_crash_tore_spoils_no_other(root: Path) -> None:
    with open_artifacts(root) as store:
        artifact = store.put(b"abc", about())
    with (root / "audit.jsonl").open("ab") as audit:
        audit.write(b'\n{"at":1,"acti')
    with open_artifacts(root) as store:
        store.read(artifact, ALICE)
        assert [record.action for record in store.audit()] == ["put", "read"]


def test_a_record_that_somebody_wrote_over_is_named(root: Path) -> None:
    with open_artifacts(root) as store:
        store.put(b"abc", about())
        (root / "audit.jsonl").write_bytes(b'{"at":1}')
        with pytest.raises(DamagedStoreError, match=r"audit\.jsonl"):
            store.audit()


def test_what_a_killed_put_left_goes_with_a_sweep_a_day_later(root: Path) -> None:
    clock = Clock(time.time())
    with open_artifacts(root, clock=clock) as store:
        artifact = store.put(b"abc", about())
        (root / "content" / ("0" * 32)).write_bytes(b"half")
        (root / "entries" / artifact / "0.new").write_bytes(b"{")
        store.sweep()
        assert len(files(root)) == 5, "somebody may still be writing it"
        clock.now += 25 * 3600
        store.sweep()
        assert len(files(root)) == 3
        assert store.read(artifact, ALICE) == b"abc"


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file/artifacts"):
        open_artifacts(tmp_path / "file" / "artifacts")


FULL_DISK = """
import resource, sys
from blocks import StoreError
from persistence import ArtifactDescription, Requester, open_artifacts
store = open_artifacts(sys.argv[1])
about = ArtifactDescription(timeline="t")
small = store.put(b"small", about)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    store.put(b"x" * 500_000, about)
except StoreError:
    assert [found.id for found in store.list(Requester("me"))] == [small]
    print("refused")
"""


def test_a_full_disk_is_an_error_and_leaves_nothing_half(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(root)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "refused\n", done.stderr


def test_a_killed_process_loses_nothing_acknowledged(root: Path) -> None:
    for round_ in range(3):
        acknowledged = put_until_killed(root, round_)
        assert acknowledged
        with open_artifacts(root, keys=KEYS) as store:
            for artifact in acknowledged:
                store.read(artifact, ALICE)  # which checks the hash
            put = {record.artifact for record in store.audit() if record.action == "put"}
            assert put >= set(acknowledged)
            for metadata in store.list(ALICE):
                store.read(metadata.id, ALICE)


def test_audit_and_content_are_on_the_disk_when_the_call_returns(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only written: a real `fsync` of the audit, the content and the entry."""
    synced: list[str] = []
    really = os.fsync

    def noted(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        really(handle)

    with open_artifacts(root) as store:
        monkeypatch.setattr(os, "fsync", noted)
        store.put(b"abc", about())
    [content] = (root / "content").iterdir()
    [entry] = (root / "entries").rglob("*.json")
    assert str(content) in synced
    assert str(entry.with_suffix(".new")) in synced
    assert str(root / "audit.jsonl") in synced
    assert synced[-1] == str(entry.parent), "the entry's folder last: it is the commit"
