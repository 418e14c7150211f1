"""Passwords, keys and confidential contents are in nothing that is printed, logged, raised or reported.

Each test puts a word that occurs nowhere else where a secret goes, provokes what can go wrong, and looks for
the word in all that came out.
"""

from collections.abc import Generator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from traceback import format_exception
from typing import Any
from urllib.parse import quote

import pytest

from blocks import AccessRefusedError, Envelope, FoldlineError, MisuseError, TimelineId
from persistence import (
    ArtifactDescription,
    EventStore,
    Keys,
    Requester,
    SQLiteStore,
    locate_store,
    open_artifacts,
    open_store,
    verify,
)
from persistence.artifacts import ArtifactStore, KeyRing
from tests._table import for_each
from tests.persistence.contract import T, many, new_store
from timeline import Timeline
from timeline.cli import main

CANARY = "c4nary/p@ss w0rd%?"
FORMS = (CANARY, quote(CANARY, safe=""), quote(CANARY), "c4nary", "w0rd")
KEY = b"c4nary c4nary c4nary c4nary c4na"


def leaked(text: str) -> list[str]:
    return [form for form in (*FORMS, KEY.hex()) if form in text]


def told(error: BaseException) -> str:
    """All that a log shows of an error, but not the lines of this file."""
    lines = "".join(format_exception(error)).splitlines()
    ours = f'File "{__file__}"'
    kept = [line for n, line in enumerate(lines) if ours not in line and ours not in lines[n - 1]]
    return "\n".join([str(error), repr(error), *kept])


def with_secret(url: str, way: str) -> str:
    """The URL of a database, with the password at one of the places that libpq takes it from."""
    secret = quote(CANARY, safe="")
    if way == "in front":
        return url.replace("postgres@", f"postgres:{secret}@")
    return f"{url}&password={secret}" if way == "option" else f"{url}&sslpassword={secret}"


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[EventStore]:
    with closing(new_store(request, tmp_path)) as made:
        yield made


@pytest.fixture(params=["in front", "option", "key of a certificate", "environment"])
def secret_url(request: pytest.FixtureRequest, url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "environment":
        monkeypatch.setenv("PGPASSWORD", CANARY)
        return url
    return with_secret(url, request.param)


def test_the_password_of_a_server_is_nowhere(
    secret_url: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    place = locate_store(secret_url)
    shown = [str(place), repr(place), repr(vars(place) if hasattr(place, "__dict__") else place)]
    with closing(open_store(secret_url)) as store:
        store.append(T, many(2), expected_version=0)
        with Timeline.open("talk", store=store) as talk:
            shown += [repr(talk), str(talk.user("Hello."))]
        shown += [repr(store), repr(store.artifacts()), repr(verify(store))]
    nowhere = secret_url.replace("host=", "host=/nowhere")
    for wrong in (nowhere, secret_url.replace("/postgres?", "/no database?"), f"{secret_url}&no=1"):
        with pytest.raises(FoldlineError) as caught:
            open_store(wrong)
        shown.append(told(caught.value))
        for flags in ([], ["--debug"], ["--json"]):
            assert main(["list", *flags, "--store", wrong]) > 0
    for command in (
        ["list"],
        ["show", str(T)],
        ["verify"],
        ["list", "--json"],
        ["verify", "--json"],
    ):
        assert main([*command, "--store", secret_url]) == 0, command
    printed = capsys.readouterr()
    assert leaked("\n".join([*shown, caplog.text, printed.out, printed.err])) == []
    assert "postgresql://postgres@" in shown[0]


class _Ring:
    """A caller's own key ring, which does not care what it shows."""

    current = "k1"

    def key(self, key_id: str) -> bytes | None:
        return KEY if key_id == "k1" else None

    def __repr__(self) -> str:
        return f"_Ring({KEY!r})"


@pytest.mark.parametrize("ring", [Keys({"k1": KEY}, current="k1"), _Ring()])
@pytest.mark.parametrize("place", ["memory", "duckdb", "sqlite", "folder"])
def test_keys_and_what_they_protect_are_nowhere(ring: KeyRing, place: str, tmp_path: Path) -> None:
    where = tmp_path / "there"
    with _artifacts(place, where, ring) as artifacts:
        about = ArtifactDescription(timeline=T, sensitivity="restricted")
        name = artifacts.put(CANARY.encode(), about)
        shown = [repr(artifacts), repr(artifacts.backend), repr(artifacts.audit())]
        with pytest.raises(AccessRefusedError) as refused:
            artifacts.read(name, Requester("me"))
        shown += [told(refused.value), repr(artifacts.verify(keys=ring))]
        with pytest.raises(MisuseError) as none:
            ArtifactStore(artifacts.backend).put(CANARY.encode(), about)
        shown.append(told(none.value))
    assert leaked("\n".join(shown)) == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"c4nary" in path.read_bytes() for path in files)


@pytest.mark.parametrize("store", ["memory", "duckdb", "sqlite", "postgres"], indirect=True)
def test_a_confidential_result_is_in_no_row_no_file_and_no_message(
    store: EventStore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("DEBUG")
    keys, clock = Keys({"k1": KEY}, current="k1"), count(1_000, 100)
    shown: list[str] = []
    with Timeline.open(
        "talk", store=store, keys=keys, clock=lambda: float(next(clock)), window=20_000
    ) as talk:
        for n in range(8):
            talk.user("What is it?")
            call: dict[str, Any] = {"type": "tool_use", "id": f"c{n}", "name": "ask", "input": {}}
            talk.record({"id": f"m{n}", "role": "assistant", "content": [call]})
            known = Envelope(sensitivity="confidential")
            talk.tool_result(f"c{n}", f"{n}: {CANARY} " * 400, envelope=known)
            shown.append(repr(talk.render()))
        shown += [repr(talk.compact()), repr(talk.view), repr(talk.propose())]
        shown += [str(talk.search("c4nary")), str(talk.events()), repr(talk.snapshot())]
        with pytest.raises(FoldlineError) as refused:
            talk.tool_result("c0", CANARY, envelope=Envelope(sensitivity="restricted"))
        shown += [told(refused.value), str(talk.forget("tc:t1.c0.result"))]
        shown += [line.decode() for _, line in store.read_bytes(TimelineId("talk"))]
        shown.append(repr(verify(store)))
    printed = capsys.readouterr()
    assert leaked("\n".join([*shown, caplog.text, printed.out, printed.err])) == []
    with SQLiteStore(tmp_path / "copy.sqlite") as copied:
        store.copy_to(copied)
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"c4nary" in path.read_bytes() for path in files)


@contextmanager
def _artifacts(place: str, where: Path, ring: KeyRing) -> Generator[ArtifactStore]:
    if place == "folder":
        with open_artifacts(where, keys=ring) as artifacts:
            yield artifacts
    else:
        name = "memory:" if place == "memory" else f"{place}:///{where}"
        with closing(open_store(name)) as store:
            held = store.artifacts(keys=ring)
            assert isinstance(held, ArtifactStore)
            yield held


@for_each("url", ["nothing://me:c4nary@host/x", "ftp://me:c4nary@[host/x"])
def test_the_password_of_a_place_for_artifacts_is_not_shown(url: str) -> None:
    for opening in (open_artifacts, verify):
        with pytest.raises(MisuseError, match=r"contains a password|cannot be") as caught:
            opening(url)
        assert "c4nary" not in told(caught.value)


def test_a_key_that_is_refused_is_not_shown() -> None:
    with pytest.raises(MisuseError) as caught:
        Keys({"k1": KEY[:-1]}, current="k1")
    assert leaked(told(caught.value)) == []
    assert "c4nary" not in told(caught.value)
