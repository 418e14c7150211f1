"""What every artifact store promises. A store's tests derive from this and provide `place`."""

import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import ClassVar

import msgspec
import pytest

from blocks import (
    AccessRefusedError,
    ArtifactId,
    ClosedError,
    MisuseError,
    Sensitivity,
    TooLargeError,
    artifact_id,
)
from persistence import ArtifactDescription, ArtifactStore, Keys, Requester
from tests._table import for_each

from .places import (
    ALICE,
    EVERYTHING,
    LATER_KEYS,
    NOW,
    SENSITIVITIES,
    Clock,
    Place,
    T,
    U,
    about,
    noise,
)

PIECE = 2**20
LARGE = noise("large", 3 * PIECE + 17)
BOB = Requester("bob", tenant="globex", permissions=EVERYTHING)


class Base:
    @pytest.fixture
    def place(self) -> Place:
        raise NotImplementedError

    @pytest.fixture
    def store(self, place: Place) -> Iterator[ArtifactStore]:
        yield place.open()
        place.close()

    @pytest.fixture
    def clock(self, place: Place) -> Clock:
        return place.clock


def refusal(store: ArtifactStore, artifact: str, requester: Requester) -> AccessRefusedError:
    with pytest.raises(AccessRefusedError) as caught:
        store.read(artifact, requester)
    return caught.value


class ContentContract(Base):
    """What was put is what is read, whole or in part."""

    @for_each("sensitivity", SENSITIVITIES)
    @for_each("content", [b"", b"\0", b"a", LARGE], ids=["0", "NUL", "1", "3 MB"])
    def test_content_comes_back_as_it_was(
        self, store: ArtifactStore, sensitivity: Sensitivity, content: bytes
    ) -> None:
        artifact = store.put(content, about(sensitivity))
        assert artifact == artifact_id(content)
        assert store.read(artifact, ALICE) == content
        found = store.describe(artifact, ALICE)
        assert (found.id, found.size, found.created_at) == (artifact, len(content), NOW)
        assert bool(found.key) == (sensitivity in {"confidential", "restricted"})

    @pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
    def test_ranges_meet_where_pieces_do(
        self, store: ArtifactStore, sensitivity: Sensitivity
    ) -> None:
        artifact = store.put(LARGE, about(sensitivity))
        for start in (0, 1, PIECE - 17, PIECE - 16, PIECE - 1, PIECE, 2 * PIECE - 32, len(LARGE)):
            for size in (0, 1, 16, 33, PIECE + 40):
                got = store.read(artifact, ALICE, start=start, size=size)
                assert got == LARGE[start : start + size], (start, size)

    @pytest.mark.parametrize(("start", "size"), [(-1, None), (0, -1)])
    def test_a_range_that_nobody_can_mean_is_refused(
        self, store: ArtifactStore, start: int, size: int | None
    ) -> None:
        artifact = store.put(b"abc", about())
        with pytest.raises(MisuseError, match="at least 0"):
            store.read(artifact, ALICE, start=start, size=size)

    @pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
    def test_a_stream_is_the_same_artifact_however_it_is_cut(
        self, store: ArtifactStore, place: Place, sensitivity: Sensitivity
    ) -> None:
        for size in (1_000_003, 3 * PIECE, len(LARGE)):
            chunks = (LARGE[at : at + size] for at in range(0, len(LARGE), size))
            assert store.put_stream(chunks, about(sensitivity)) == artifact_id(LARGE)
        assert store.read(artifact_id(LARGE), ALICE) == LARGE
        assert len(store.list(ALICE)) == place.slots() == 1

    def test_a_description_that_is_too_long_is_refused(self, store: ArtifactStore) -> None:
        with pytest.raises(TooLargeError, match=r"the limit is 64,000.*shorten"):
            store.put(b"x", msgspec.structs.replace(about(), path="p" * 64_000))
        assert list(store.list(ALICE)) == []
        name = store.put(b"x", msgspec.structs.replace(about(), path="p" * 60_000))
        assert store.describe(name, ALICE).path == "p" * 60_000

    def test_a_stream_that_breaks_leaves_nothing(self, store: ArtifactStore, place: Place) -> None:
        marker = b"half of it, "

        def breaks() -> Iterator[bytes]:
            yield marker * 100_000
            raise ConnectionError("gone")

        with pytest.raises(ConnectionError):
            store.put_stream(breaks(), about())
        assert store.list(ALICE) == []
        assert place.slots() == 0

    def test_the_same_put_again_changes_nothing(self, store: ArtifactStore, clock: Clock) -> None:
        artifact = store.put(b"abc", about())
        before = store.describe(artifact, ALICE)
        clock.now += 1
        assert store.put(b"abc", about()) == artifact
        assert store.list(ALICE) == [before]

    def test_eight_threads_put_the_same_and_the_different(self, store: ArtifactStore) -> None:
        def put(worker: int) -> list[ArtifactId]:
            same, own = b"the same", f"by {worker}".encode()
            return [store.put(same, about()), store.put(own, about("confidential"))]

        with ThreadPoolExecutor(8) as pool:
            put_by_all = list(pool.map(put, range(8)))
        for worker, (same, own) in enumerate(put_by_all):
            assert store.read(same, ALICE) == b"the same"
            assert store.read(own, ALICE) == f"by {worker}".encode()
        assert len(store.list(ALICE)) == 9
        assert sum(record.action == "put" for record in store.audit()) == 9

    def test_everything_is_still_there_after_reopening(
        self, store: ArtifactStore, place: Place
    ) -> None:
        plain, secret = store.put(b"plain", about()), store.put(LARGE, about("restricted"))
        store.read(plain, ALICE)
        refusal(store, secret, BOB)
        listed, audited = store.list(ALICE), store.audit()
        again = place.open()
        assert again.audit() == audited
        assert again.list(ALICE) == listed
        assert again.read(plain, ALICE) == b"plain"
        assert again.read(secret, ALICE) == LARGE

    @for_each(
        "wrong",
        [
            {"sensitivity": "secret"},
            {"expires_at": float("nan")},
            {"expires_at": -1.0},
            {"timeline": ""},
            {"about": "\ud800"},
            {"tenant": 7},
        ],
        ids=str,
    )
    def test_what_cannot_be_said_is_refused(
        self, store: ArtifactStore, wrong: dict[str, object]
    ) -> None:
        said = msgspec.structs.replace(about(), **wrong)
        with pytest.raises(MisuseError):
            store.put(b"abc", said)
        assert store.list(ALICE) == []

    def test_a_closed_store_says_so(self, store: ArtifactStore) -> None:
        artifact = store.put(b"abc", about())
        store.close()
        store.close()
        for use in (store.audit, store.sweep, lambda: store.read(artifact, ALICE)):
            with pytest.raises(ClosedError):
                use()


PERMISSIONS = {
    "none": frozenset[str](),
    "read": frozenset({"read"}),
    "read:confidential": frozenset({"read:confidential"}),
    "read:restricted": frozenset({"read:restricted"}),
    "all": EVERYTHING,
}
MAY_READ = {
    ("read", "public"),
    ("read", "internal"),
    ("read:confidential", "confidential"),
    ("read:restricted", "restricted"),
    ("all", "public"),
    ("all", "internal"),
    ("all", "confidential"),
    ("all", "restricted"),
}
"""For a requester of the same tenant, while the artifact has not expired."""
EXPIRIES = {"never": 0.0, "future": NOW + 60, "past": NOW - 60}
MARK = "xyzzy-"
"""Every content contains it, and nothing else may."""


class AccessContract(Base):
    """Who gets what; every cell of the matrix."""

    def test_exactly_the_allowed_cells_hand_out_content(self, store: ArtifactStore) -> None:
        content = {(s, e): f"{MARK}{s} {e}".encode() for s, e in product(SENSITIVITIES, EXPIRIES)}
        ids = {(s, e): store.put(text, about(s, EXPIRIES[e])) for (s, e), text in content.items()}
        puts = len(store.audit())
        told: list[str] = []
        for tenant, (name, permissions), (s, e) in product(
            ("acme", "globex", ""), PERMISSIONS.items(), content
        ):
            who = Requester("r", tenant=tenant, permissions=permissions)
            if tenant == "acme" and (name, s) in MAY_READ and e != "past":
                assert store.read(ids[s, e], who) == content[s, e]
                assert store.describe(ids[s, e], who).sensitivity == s
                expected = ""
            else:
                told.append(str(error := refusal(store, ids[s, e], who)))
                with pytest.raises(AccessRefusedError) as caught:
                    store.describe(ids[s, e], who)
                told.append(str(caught.value))
                expected = "permission" if (name, s) not in MAY_READ else "expired"
                expected = expected if tenant == "acme" else "tenant"
                assert error.reason == ("unknown" if expected == "tenant" else expected)
            read, described = store.audit(ids[s, e])[-2:]
            assert (read.action, described.action) == ("read", "describe")
            for record in (read, described):
                assert (record.requester, record.tenant) == ("r", tenant)
                assert (record.reason, record.allowed) == (expected, not expected)
        records = store.audit()
        assert len(records) - puts == 2 * 3 * 5 * 12
        assert sum(not record.allowed for record in records) == len(told)
        assert MARK not in "".join(told)
        assert MARK.encode() not in msgspec.json.encode(records)

    def test_what_belongs_to_another_is_told_like_what_nobody_has(
        self, store: ArtifactStore
    ) -> None:
        there, nowhere = store.put(b"theirs", about()), artifact_id(b"nobody's")
        told = refusal(store, there, BOB)
        missing = refusal(store, nowhere, BOB)
        assert told.reason == missing.reason == "unknown"
        assert str(told).replace(there, "") == str(missing).replace(nowhere, "")
        assert [r.reason for r in store.audit() if not r.allowed] == ["tenant", "unknown"]
        assert store.list(BOB) == []

    def test_no_tenant_is_a_tenant_like_any_other(self, store: ArtifactStore) -> None:
        artifact = store.put(b"abc", ArtifactDescription(timeline=T))
        assert store.read(artifact, Requester("me")) == b"abc"
        assert refusal(store, artifact, ALICE).reason == "unknown"

    def test_tenants_with_the_same_content_do_not_touch_each_other(
        self, store: ArtifactStore, clock: Clock
    ) -> None:
        theirs = ArtifactDescription(
            timeline=U, tenant="globex", sensitivity="restricted", expires_at=NOW + 5
        )
        mine = ArtifactDescription(timeline=T, tenant="acme", about="mine")
        artifact = store.put(b"shared", mine)
        before = store.describe(artifact, ALICE)
        assert store.put(b"shared", theirs) == artifact
        assert store.describe(artifact, ALICE) == before
        assert store.describe(artifact, BOB).sensitivity == "restricted"
        clock.now = NOW + 5
        assert refusal(store, artifact, BOB).reason == "expired"
        assert store.sweep() == 1
        assert store.read(artifact, Requester("reader", tenant="acme")) == b"shared"
        assert store.list(ALICE) == [before]

    def test_within_a_tenant_the_strictest_counts_and_the_longest_lasts(
        self, store: ArtifactStore, clock: Clock
    ) -> None:
        reader = Requester("reader", tenant="acme")
        artifact = store.put(b"abc", about("internal"))
        assert store.read(artifact, reader) == b"abc"
        store.put(b"abc", about("restricted", NOW + 5))
        assert refusal(store, artifact, reader).reason == "permission"
        assert store.describe(artifact, ALICE).sensitivity == "restricted"
        assert {m.sensitivity for m in store.list(ALICE)} == {"internal", "restricted"}
        assert store.list(reader) == []
        clock.now = NOW + 5
        assert store.read(artifact, reader) == b"abc", "what has expired says nothing any more"

    def test_a_list_shows_what_could_be_read_and_is_on_record(
        self, store: ArtifactStore, clock: Clock
    ) -> None:
        reader = Requester("reader", tenant="acme")
        store.put(b"a", about())
        clock.now += 1
        store.put(b"b", msgspec.structs.replace(about(), timeline=U))
        store.put(b"c", about("confidential"))
        store.put(b"d", about(expires_at=NOW))
        store.put(b"e", ArtifactDescription(timeline=T, tenant="globex"))
        assert [m.id for m in store.list(reader)] == [artifact_id(b"a"), artifact_id(b"b")]
        assert [m.id for m in store.list(reader, U)] == [artifact_id(b"b")]
        assert len(store.list(ALICE)) == 3
        listed = [r for r in store.audit() if r.action == "list"]
        assert [(r.requester, r.timeline) for r in listed[:2]] == [("reader", ""), ("reader", U)]

    @for_each(
        "asked", ["", "../../etc/passwd", "art-", "*", "\ud800", "'; --", "x" * 10_000], ids=repr
    )
    def test_what_is_no_id_is_unknown_and_on_record(self, store: ArtifactStore, asked: str) -> None:
        assert refusal(store, asked, ALICE).reason == "unknown"
        *_, record = store.audit()
        assert record.reason == "unknown"
        assert len(record.artifact) <= 100

    def test_a_requester_cannot_write_lines_into_the_audit(self, store: ArtifactStore) -> None:
        forger = Requester('x"}\n{"at":0,"action":"read"}\n\0\ud800', tenant="acme")
        store.read(store.put(b"abc", about()), forger)
        assert [record.action for record in store.audit()] == ["put", "read"]


class ExpiryContract(Base):
    """What has expired is refused at once, and removed by a sweep."""

    def test_expired_content_is_refused_before_any_sweep_and_gone_after_it(
        self, store: ArtifactStore, clock: Clock
    ) -> None:
        artifact, stays = store.put(b"abc", about(expires_at=NOW + 5)), store.put(b"x", about())
        assert store.sweep() == 0
        clock.now = NOW + 4.9
        assert store.read(artifact, ALICE) == b"abc"
        clock.now = NOW + 5
        assert refusal(store, artifact, ALICE).reason == "expired"
        assert store.sweep() == 1
        assert store.sweep() == 0
        assert refusal(store, artifact, ALICE).reason == "unknown"
        assert store.read(stays, ALICE) == b"x"
        [expired] = [record for record in store.audit() if record.action == "expire"]
        assert (expired.artifact, expired.timeline, expired.at) == (artifact, T, NOW + 5)

    def test_expired_content_can_be_put_again(self, store: ArtifactStore, clock: Clock) -> None:
        artifact = store.put(b"abc", about(expires_at=NOW + 5))
        clock.now = NOW + 5
        store.put(b"abc", about(expires_at=NOW + 9))
        assert store.read(artifact, ALICE) == b"abc"
        store.sweep()
        assert store.read(artifact, ALICE) == b"abc"

    def test_a_sweep_is_final(self, store: ArtifactStore, clock: Clock, place: Place) -> None:
        store.put(b"abc", about(expires_at=NOW + 5))
        clock.now = NOW + 5
        store.sweep()
        assert place.slots() == 0
        clock.now = NOW
        assert place.open().list(ALICE) == []


class KeyContract(Base):
    """From confidential on, content is encrypted with the caller's key, and gone with it."""

    def test_nothing_confidential_lies_there_in_the_clear(
        self, store: ArtifactStore, place: Place
    ) -> None:
        texts = {s: noise(s, 200).hex().encode() for s in SENSITIVITIES}
        for sensitivity, text in texts.items():
            store.put(text, about(sensitivity))
            store.read(artifact_id(text), ALICE)
        lying = place.lying()
        found = {s for s, text in texts.items() if text in lying or text[100:140] in lying}
        assert found == {"public", "internal"}, "the others are found, so the search does find"

    @pytest.mark.parametrize("sensitivity", ["confidential", "restricted"])
    def test_without_keys_it_is_not_even_put(self, place: Place, sensitivity: Sensitivity) -> None:
        store = place.open(keys=None)
        with pytest.raises(MisuseError, match=r"open it with keys=Keys\("):
            store.put(b"abc", about(sensitivity))
        assert store.read(store.put(b"abc", about()), ALICE) == b"abc", "plain content needs none"
        place.close()

    def test_after_a_rotation_old_and_new_are_read(
        self, store: ArtifactStore, place: Place
    ) -> None:
        old = store.put(b"old", about("confidential"))
        again = place.open(LATER_KEYS)
        new = again.put(b"new", about("confidential"))
        assert [again.describe(each, ALICE).key for each in (old, new)] == ["k1", "k2"]
        assert (again.read(old, ALICE), again.read(new, ALICE)) == (b"old", b"new")

    @pytest.mark.parametrize(
        "keys",
        [None, Keys({"k2": b"2" * 32}, current="k2"), Keys({"k1": b"!" * 32}, current="k1")],
        ids=["none", "destroyed", "another of the same name"],
    )
    def test_a_key_that_is_gone_takes_the_content_with_it(
        self, store: ArtifactStore, place: Place, keys: Keys | None
    ) -> None:
        artifact, plain = store.put(b"abc", about("restricted")), store.put(b"plain", about())
        place.clock.now += 1
        again = place.open(keys)
        assert refusal(again, artifact, ALICE).reason == "key"
        assert again.audit(artifact)[-1].reason == "key"
        assert [metadata.id for metadata in again.list(ALICE)] == [plain]
        assert refusal(again, artifact, BOB).reason == "unknown"

    def test_a_weaker_copy_does_not_answer_for_one_whose_key_is_gone(
        self, store: ArtifactStore, place: Place
    ) -> None:
        store.put(b"abc", about("restricted"))
        artifact = store.put(b"abc", about("internal"))
        again = place.open(None)
        assert refusal(again, artifact, ALICE).reason == "key"
        assert again.list(ALICE) == []

    def test_content_whose_key_is_gone_can_be_put_again(
        self, store: ArtifactStore, place: Place
    ) -> None:
        store.put(b"abc", about("restricted"))
        again = place.open(Keys({"k2": b"2" * 32}, current="k2"))
        artifact = again.put(b"abc", about("restricted"))
        assert again.read(artifact, ALICE) == b"abc"


class MemoryContract(Base):
    """A large artifact costs no more memory than a few of its pieces."""

    few: ClassVar = 8

    @pytest.mark.parametrize("sensitivity", ["internal", "restricted"])
    def test_a_stream_and_a_range_take_a_few_pieces(
        self, store: ArtifactStore, sensitivity: Sensitivity
    ) -> None:
        store.put(b"warm", about(sensitivity))
        chunk = noise("chunk", PIECE // 2)
        tracemalloc.start()
        try:
            artifact = store.put_stream((chunk for _ in range(40)), about(sensitivity))
            for at in range(0, 20 * PIECE, PIECE):
                store.read(artifact, ALICE, start=at, size=PIECE)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < self.few * PIECE


class ArtifactContract(ContentContract, AccessContract, ExpiryContract, KeyContract):
    """All of it but what memory itself cannot keep."""
