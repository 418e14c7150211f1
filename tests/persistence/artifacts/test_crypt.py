"""Encryption: whoever can write to the place can still neither read nor change what lies there."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blocks import AccessRefusedError, DamagedStoreError, MisuseError
from persistence import ArtifactDescription, ArtifactStore, Keys, MemoryArtifacts, open_artifacts
from persistence.artifacts._crypt import cipher_for
from tests._table import for_each

from .places import ALICE, KEYS, T, about, noise

PIECE = 2**20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def store(root: Path) -> Iterator[ArtifactStore]:
    with open_artifacts(root, keys=KEYS) as store:
        yield store


def content_of(root: Path) -> Path:
    [content] = (root / "content").iterdir()
    return content


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def swapped(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[PIECE : 2 * PIECE] + data[:PIECE] + data[2 * PIECE :])


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:PIECE])


@pytest.mark.parametrize("harm", [flipped, swapped, shortened])
def test_content_that_was_altered_is_not_handed_out(
    store: ArtifactStore, root: Path, harm: Callable[[Path], None]
) -> None:
    artifact = store.put(noise("secret", 2 * PIECE), about("restricted"))
    harm(content_of(root))
    with pytest.raises(DamagedStoreError, match=artifact):
        store.read(artifact, ALICE)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        (b'"restricted"', b'"confidential"'),
        (b'"expires_at":5000000000.0', b'"expires_at":9000000000.0'),
        (b'"size":6', b'"size":5'),
    ],
)
def test_a_description_that_was_altered_opens_nothing(
    store: ArtifactStore, root: Path, said: bytes, instead: bytes
) -> None:
    artifact = store.put(b"abcdef", about("restricted", 5e9))
    [entry] = (root / "entries").rglob("*.json")
    before = entry.read_bytes()
    assert said in before
    entry.write_bytes(before.replace(said, instead))
    with pytest.raises(AccessRefusedError) as caught:
        store.read(artifact, ALICE)
    assert caught.value.reason == "key"


def test_calling_it_internal_hands_out_no_plain_text(store: ArtifactStore, root: Path) -> None:
    artifact = store.put(b"abcdef", about("restricted"))
    [entry] = (root / "entries").rglob("*.json")
    before = entry.read_bytes()
    lowered = before.replace(b'"restricted"', b'"internal"')
    for said in (lowered, before.replace(b'"key":"k1"', b'"key":""')):
        assert said != before
        entry.write_bytes(said)
        with pytest.raises(AccessRefusedError, match="key"):
            store.read(artifact, ALICE)
    entry.write_bytes(lowered.replace(b'"key":"k1"', b'"key":""'))
    with pytest.raises(DamagedStoreError):
        store.read(artifact, ALICE)


def test_an_entry_moved_to_another_tenant_opens_nothing(store: ArtifactStore, root: Path) -> None:
    store.put(b"abcdef", ArtifactDescription(timeline=T, tenant="globex", sensitivity="restricted"))
    [entry] = (root / "entries").rglob("*.json")
    entry.write_bytes(entry.read_bytes().replace(b'"globex"', b'"acme"'))
    with pytest.raises(AccessRefusedError) as caught:
        store.read(entry.parent.name, ALICE)
    assert caught.value.reason == "key"


def test_the_content_of_another_slot_does_not_open(store: ArtifactStore, root: Path) -> None:
    store.put(b"abcdef", about("restricted"))
    first = content_of(root)
    artifact = store.put(b"ghijkl", about("restricted"))
    [second] = [path for path in (root / "content").iterdir() if path != first]
    shutil.copy(first, second)
    with pytest.raises(DamagedStoreError, match="altered"):
        store.read(artifact, ALICE)


def test_equal_content_is_encrypted_differently_every_time(root: Path) -> None:
    with open_artifacts(root, keys=KEYS) as store:
        store.put(b"abcdef", about("restricted"))
        store.put(b"abcdef", about("confidential"))
    one, other = (path.read_bytes() for path in (root / "content").iterdir())
    assert one != other


def test_the_random_bytes_are_the_callers() -> None:
    """So a test can have the same ciphertext twice, and nothing else is random."""

    def encrypted() -> object:
        store = MemoryArtifacts(keys=KEYS, clock=lambda: 0.0, random=lambda size: b"r" * size)
        store.put(b"abcdef", about("restricted"))
        backend = store.backend
        return [*backend.pieces("72" * 16, 0, 0)], backend.entries()[0].seal

    assert encrypted() == encrypted()


def test_the_cipher_is_aes_gcm_under_a_derived_key() -> None:
    """Computed here from first principles, so that stored content stays readable for ever."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    slot = "00112233445566778899aabbccddeeff"
    derived = HKDF(SHA256(), 32, bytes.fromhex(slot), b"foldline artifact\0acme").derive(b"k" * 32)
    sealed = cipher_for(b"k" * 32, slot, "acme").sealed(3, b"abc")
    assert AESGCM(derived).decrypt(bytes(11) + b"\3", sealed, b"acme") == b"abc"


def test_a_key_ring_does_not_show_its_keys() -> None:
    assert repr(KEYS) == "Keys(current='k1')"
    assert str(b"1" * 8) not in repr(MemoryArtifacts(keys=KEYS))


@for_each(
    ("keys", "current", "complaint"),
    [
        ({"k1": b"short"}, "k1", "exactly 32 bytes"),
        ({"": b"1" * 32}, "", "must have a name"),
        ({"k1": b"1" * 32}, "k2", "'k2' is not among"),
        ({}, "k1", "'k1' is not among"),
    ],
)
def test_a_key_ring_that_cannot_work_is_refused(
    keys: dict[str, bytes], current: str, complaint: str
) -> None:
    with pytest.raises(MisuseError, match=complaint):
        Keys(keys, current=current)


USES: dict[str, Callable[[], object]] = {
    "cryptography": lambda: MemoryArtifacts(keys=KEYS).put(b"abc", about("restricted")),
    "obstore": lambda: open_artifacts("s3://bucket/artifacts"),
}


@pytest.mark.parametrize("missing", USES)
def test_a_missing_library_is_one_error_that_names_the_extra(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MisuseError, match=rf"needs more packages: pip install .*{missing}"):
        USES[missing]()


def test_importing_loads_neither_of_them() -> None:
    code = (
        "import sys, persistence; persistence.MemoryArtifacts();"
        " sys.exit(bool({'cryptography', 'obstore', 'duckdb'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
