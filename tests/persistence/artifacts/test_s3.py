"""Artifacts in a bucket of a real S3 server."""

import os
from collections.abc import Iterator

import pytest

from blocks import DamagedStoreError, MisuseError, StoreError
from persistence import open_artifacts, verify
from persistence._bucket import Objects
from tests._s3 import Bucket
from tests._table import for_each

from .contract import ArtifactContract, MemoryContract
from .places import ALICE, KEYS, NOW, Clock, Place, about, in_bucket, noise


class TestInBucket(ArtifactContract, MemoryContract):
    few = 16  # two parts of 5 MB, the smallest that S3 takes, are on their way

    @pytest.fixture
    def place(self, bucket: Bucket) -> Place:
        return in_bucket(bucket.url)


def test_what_one_process_put_another_one_reads(bucket: Bucket) -> None:
    with open_artifacts(bucket.url, keys=KEYS) as one, open_artifacts(bucket.url, keys=KEYS) as two:
        large = noise("large", 12_000_000)
        artifact = one.put(large, about("confidential"))
        assert two.read(artifact, ALICE) == large
        assert two.read(artifact, ALICE, start=5_000_000, size=10) == large[5_000_000:5_000_010]
        assert [record.action for record in one.audit(artifact)] == ["put", "read", "read"]
    assert verify(bucket.url, keys=KEYS).ok


def test_a_list_is_one_request_an_artifact(bucket: Bucket) -> None:
    with open_artifacts(bucket.url) as artifacts:
        for number in range(20):
            artifacts.put(b"%d" % number, about())
        before = bucket.requests()
        assert len(artifacts.list(ALICE)) == 20
        assert bucket.requests() - before == 20 + 1 + 1, "the entries, their names, the audit"


def test_a_read_of_any_size_is_four_requests(bucket: Bucket) -> None:
    with open_artifacts(bucket.url) as artifacts:
        artifact = artifacts.put(noise("large", 12_000_000), about())
        before = bucket.requests()
        artifacts.read(artifact, ALICE)
        assert bucket.requests() - before == 4, "the entry and its name, the audit, the content"


def test_the_audit_of_one_artifact_reads_no_other(bucket: Bucket) -> None:
    with open_artifacts(bucket.url) as artifacts:
        one, *_ = [artifacts.put(b"%d" % number, about()) for number in range(10)]
        artifacts.list(ALICE)
        before = bucket.requests()
        assert [record.action for record in artifacts.audit(one)] == ["put"]
        assert bucket.requests() - before == 2
        assert [record.action for record in artifacts.audit()] == ["put"] * 10 + ["list"]


def test_a_sweep_removes_leftovers_of_a_killed_put_a_day_later(bucket: Bucket) -> None:
    [left] = [Objects.at(bucket.url)]
    left.put("content/0123", [b"half"])
    clock = Clock(left.list("content")[0]["last_modified"].timestamp())
    with open_artifacts(bucket.url, clock=clock) as artifacts:
        kept = artifacts.put(b"kept", about())
        artifacts.put(b"gone", about(expires_at=NOW))
        assert (artifacts.sweep(), len(left.list("content"))) == (1, 2)
        clock.now += 25 * 3600
        assert (artifacts.sweep(), len(left.list("content"))) == (0, 1)
        assert artifacts.read(kept, ALICE) == b"kept"


@for_each("size", [3, 5_000_000])
def test_content_that_was_cut_or_is_gone_is_damage(bucket: Bucket, size: int) -> None:
    objects = Objects.at(bucket.url)
    with open_artifacts(bucket.url) as artifacts:
        artifact = artifacts.put(noise("cut", size), about())
        [content] = objects.list("content")
        objects.put(content["path"], [b"x"])
        with pytest.raises(DamagedStoreError, match="bytes are missing"):
            artifacts.read(artifact, ALICE)
        with pytest.raises(DamagedStoreError, match="bytes are missing"):
            artifacts.read(artifact, ALICE, start=size - 1)
        objects.delete(content["path"])
        with pytest.raises(DamagedStoreError, match="bytes are missing"):
            artifacts.read(artifact, ALICE)
        objects.delete(content["path"])


def test_an_error_of_the_pieces_is_raised_as_it_is_and_stores_nothing(bucket: Bucket) -> None:
    def broken() -> Iterator[bytes]:
        yield noise("a", 9_000_000)
        raise FileNotFoundError("mine")

    with open_artifacts(bucket.url) as artifacts:
        with pytest.raises(FileNotFoundError, match=r"^mine$"):
            artifacts.put_stream(broken(), about())
        assert Objects.at(bucket.url).list("") == []


# ---------------------------------------------------------------- what goes wrong


def test_a_bucket_that_does_not_exist_is_refused_and_not_made(bucket: Bucket) -> None:
    del bucket
    for _ in range(2):
        with pytest.raises(MisuseError, match=r"^s3://nobody/x: there is no such bucket; create"):
            open_artifacts("s3://nobody/x")


def test_a_bucket_that_goes_away_is_named_and_is_no_damage(bucket: Bucket) -> None:
    with open_artifacts(bucket.url) as artifacts:
        artifact = artifacts.put(b"abc", about())
        bucket.remove()
        for use in (
            lambda: artifacts.read(artifact, ALICE),
            lambda: artifacts.put(b"more", about()),
            lambda: artifacts.put_stream([b"more"], about()),
            lambda: artifacts.audit(artifact),
        ):
            with pytest.raises(MisuseError, match="there is no such bucket"):
                use()


def test_a_missing_permission_is_named(bucket: Bucket) -> None:
    with open_artifacts(bucket.url) as artifacts:
        artifacts.put(b"before", about())
        bucket.deny("s3:PutObject")
        with pytest.raises(
            StoreError, match=rf"^{bucket.url}/content/.*: permission denied .*let these"
        ):
            artifacts.put(b"abc", about())
        bucket.deny("s3:GetObject")
        with pytest.raises(StoreError, match=r"/entries/.*: permission denied"):
            artifacts.list(ALICE)


def test_a_server_that_is_gone_is_named_after_the_given_time(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts = open_artifacts(bucket.url, wait_seconds=0.2)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreError, match=r"does not answer .*check the network and the endpoint"):
        open_artifacts(bucket.url, wait_seconds=0.2)
    assert artifacts.list(ALICE) == []


@for_each(
    "url",
    [
        "nothing://b/x",
        "s3://",
        "s3://b/x?versionId=1",
        "s3://me:topsecret@b/x",
        "memory://x",
        "az://b/x",
    ],
)
def test_a_url_that_cannot_be_one_is_refused_without_its_password(url: str) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(MisuseError) as caught:
        open_artifacts(url)
    assert "topsecret" not in str(caught.value)


def test_no_error_tells_a_secret(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "topsecret456")
    artifacts = open_artifacts(bucket.url)
    bucket.deny("s3:PutObject")
    with pytest.raises(StoreError) as caught:
        artifacts.put(b"abc", about())
    assert "topsecret" not in f"{caught.value!r} {artifacts!r} {caught.getrepr()}".replace(
        '"topsecret456"', ""
    )


def test_a_forked_process_is_told_and_does_not_wait_for_ever(bucket: Bucket) -> None:
    artifacts = open_artifacts(bucket.url)
    child = os.fork()
    if child == 0:
        try:
            artifacts.list(ALICE)
        except MisuseError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
