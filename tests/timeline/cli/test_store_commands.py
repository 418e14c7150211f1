"""The commands that work on a store: import, list, show, search, stats, render, export, ..."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest

from blocks import TimelineId
from persistence import ArtifactDescription, DuckDBStore, MemoryStore, open_artifacts
from tests._table import for_each
from tests.persistence._full_disk import full_disk
from tests.timeline.cli.conftest import Run
from timeline import Timeline
from timeline.cli._options import gateway_store


@pytest.fixture
def replayed(run: Run, replayed_sqlite: Path) -> None:
    """A replayed timeline in the store of the folder."""
    del run  # has gone to the folder
    shutil.copy(replayed_sqlite, "foldline.sqlite")


@pytest.fixture
def in_duckdb(run: Run, replayed_store: Path) -> None:
    """A replayed timeline in the default store."""
    del run  # has gone to the folder
    shutil.copy(replayed_store, "foldline.duckdb")


def test_import_then_list(run: Run, session: Path) -> None:
    ran = run("import", session)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "invented: 92 events, 24 calls (foldline) in foldline.duckdb\n"
    assert "invented" in run("list").out
    assert run("import", session, "--name", "other", "--json").code == 0
    assert [row["id"] for row in json.loads(run("list", "--json").out)] == ["invented", "other"]


def test_an_import_keeps_what_was_reported_beside_the_blocks(run: Run) -> None:
    """The window, the model, the calls outside the conversation, and which calls reported nothing."""

    def said(text: str, role: str = "assistant") -> tuple[str, dict[str, Any]]:
        content = [{"type": "output_text", "text": text}]
        return "response_item", {"type": "message", "role": role, "content": content}

    def used(total: int, tokens: int) -> tuple[str, dict[str, Any]]:
        last = {"input_tokens": tokens, "output_tokens": 0}
        about = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
        return "event_msg", {
            "type": "token_count",
            "info": {**about, "model_context_window": 9_000},
        }

    log = [
        ("turn_context", {"model": "gpt-5.5"}),
        said("one"),
        used(1, 1_000_000),
        used(2, 2_000_000),
        said("And now?", "user"),
        said("two"),
    ]
    lines = [json.dumps({"timestamp": 5.0, "type": kind, "payload": data}) for kind, data in log]
    Path("rollout.jsonl").write_text("\n".join(lines))
    assert run("import", "rollout.jsonl").code == 0
    bill = json.loads(run("stats", "rollout", "--json").out)["recorded_bill"]
    replayed = json.loads(run("replay", "rollout.jsonl", "--json").out)["recorded_bill"]
    assert (bill["calls"], bill["aside"], bill["without_usage"]) == (2, 1, 1)
    assert bill["dollars"] == replayed["dollars"] > 0
    account = json.loads(run("account", "rollout", "--json").out)
    assert (account["model"], account["limit"]) == ("gpt-5.5", 9_000)


def test_a_long_list_is_whole_and_a_limit_shows_the_newest(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDLINE_STORE", "several.sqlite")
    for name in ("first", "second", "third"):
        run("import", session, "--name", name)
    table = run("list").out
    assert run("list", "--limit", 3).out == table
    ran = run("list", "--limit", 2)
    shown = [row.split()[0] for row in ran.out.splitlines() if row]
    assert [name in shown for name in ("first", "second", "third")] == [False, True, True]
    assert ran.out.endswith("1 older timeline not shown; --all shows all\n")
    assert [row["id"] for row in json.loads(run("list", "--json", "--limit", 1).out)] == ["third"]
    monkeypatch.setattr("timeline.cli._inspect.TABLE_MAX", 2)
    plain = run("list").out.splitlines()
    assert [row.split() for row in plain] == [
        row.split() for row in table.splitlines() if row.strip() and "──" not in row
    ]
    assert run("list", "--limit", 0).code == 2


def test_a_name_is_imported_once(run: Run, session: Path) -> None:
    run("import", session)
    ran = run("import", session)
    assert (ran.code, ran.out) == (2, "")
    assert "already has a timeline 'invented'" in ran.err


def test_a_failed_import_leaves_nothing(run: Run) -> None:
    Path("bad.jsonl").write_text("not a session")
    assert run("import", "bad.jsonl").code == 1
    assert [path.name for path in Path().iterdir()] == ["bad.jsonl"]


def test_the_store_is_named_by_option_or_environment(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", session, "--store", "a.duckdb")
    monkeypatch.setenv("FOLDLINE_STORE", "b.duckdb")
    run("import", session, "--name", "b")
    assert "invented" in run("list", "--store", "a.duckdb").out
    assert "invented" not in run("list").out
    assert not Path("foldline.duckdb").exists()


def test_the_store_may_be_named_by_its_url(run: Run, session: Path) -> None:
    url = "duckdb:///a.duckdb"
    assert "in a.duckdb" in run("import", session, "--store", url).out
    assert "invented" in run("list", "--store", "a.duckdb").out
    assert "holds together" in run("verify", "--store", url).out
    again = ("--window", 3000, "--counter", "estimate", "--name", "again")
    assert run("replay", session, *again, "--store", url).code == 0
    assert "again" in run("list", "--store", url).out


@for_each("command", ["import", "list", "replay", "verify"])
@for_each(
    ("store", "said"),
    [
        ("", "the path of a store is empty"),
        (".", "is a folder; give the path of a file in it"),
        (
            "mysql://host/a",
            "mysql:// is not a known kind of store; give one of: a path, duckdb:///path",
        ),
    ],
)
def test_what_cannot_be_a_store_is_one_line(
    run: Run, session: Path, command: str, store: str, said: str
) -> None:
    arguments = [session] if command in {"import", "replay"} else []
    ran = run(command, *arguments, "--store", store)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


@for_each(
    "command",
    [
        ("list",),
        ("show", "x"),
        ("search", "x"),
        ("stats", "x"),
        ("render", "x"),
        ("export", "x"),
        ("verify",),
    ],
)
def test_a_store_that_is_not_there_is_not_made(run: Run, command: tuple[str, ...]) -> None:
    ran = run(*command)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        "foldline: there is no store at foldline.duckdb; `foldline import FILE`"
    )
    assert list(Path().iterdir()) == []


def test_the_store_of_a_folder_is_found_whichever_kind_it_is(run: Run, session: Path) -> None:
    kept = ("--store", "sqlite:///foldline.sqlite")
    assert run("import", session, *kept).code == 0
    assert "invented" in run("list").out
    assert run("import", session, "--name", "other").out.endswith(" in foldline.sqlite\n")
    assert not Path("foldline.duckdb").exists()
    assert run("import", session, "--name", "third", "--store", "foldline.duckdb").code == 0
    assert [row["id"] for row in json.loads(run("list", "--json").out)] == ["third"]


@for_each("command", ["show", "stats", "render", "export"])
@pytest.mark.usefixtures("replayed")
def test_a_timeline_that_is_not_there(run: Run, command: str) -> None:
    ran = run(command, "nobody")
    assert (ran.code, ran.out) == (1, "")
    assert "no timeline 'nobody' in this store; `foldline list`" in ran.err


@pytest.mark.usefixtures("replayed")
def test_show_tells_where_every_block_is(run: Run) -> None:
    rows = json.loads(run("show", "invented", "--json").out)
    assert {"visible", "folded", "carried"} <= {row["state"] for row in rows}
    assert rows[1]["path"] == "ar:t1.user.prompt"
    assert rows[1]["text"].startswith("Please look into module_1.py")
    assert [row["version"] for row in rows] == sorted(row["version"] for row in rows)
    table = run("show", "invented").out
    assert "ar:t1.user.prompt" in table
    early = json.loads(run("show", "invented", "--at", 5, "--json").out)
    assert {row["state"] for row in early} == {"visible"}


class Interrupted(MemoryStore):
    """Whenever somebody looks again and there is nothing new, another timeline goes on; at the end comes Ctrl-C."""

    later: list[str] | None = None
    """What the other timeline says; None: it is not there yet."""
    seen = 0

    def tip(self, timeline_id: TimelineId) -> tuple[int, str]:
        newest = super().tip(timeline_id)
        if self.later is not None and newest[0] == self.seen:
            if not self.later:
                raise KeyboardInterrupt
            text, *later = self.later
            self.later = None
            Timeline.open(timeline_id, store=self, counter="estimate").steer(text)
            newest, self.later = super().tip(timeline_id), later
        self.seen = newest[0]
        return newest


@pytest.mark.parametrize("form", ["table", "json"])
def test_show_follows_what_comes_until_it_is_interrupted(
    run: Run, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    store = Interrupted()
    with Timeline.open("live", store=store, counter="estimate") as timeline:
        timeline.user("Begin.")
        timeline.steer("The word is xyzzy.")
        timeline.hide("ar:t1.user.steer")
    monkeypatch.setattr(
        "timeline.cli._inspect.log_of", lambda *_, **__: store.read(TimelineId("live"))
    )
    monkeypatch.setattr("timeline.cli._inspect.store_to_write", lambda _: nullcontext(store))
    store.later = ["First,", "second."]
    ran = run("show", "live", "--follow", *(["--json"] if form == "json" else []))
    assert (ran.code, ran.err) == (130, "foldline: interrupted\n")
    if form == "json":
        rows = [json.loads(line) for line in ran.out.splitlines()]
        assert [(row["version"], row["path"]) for row in rows[-2:]] == [
            (5, "ar:t1.user.steer.2"),
            (6, "ar:t1.user.steer.3"),
        ]
    assert ran.out.count("version") == (5 if form == "json" else 1), "one table"
    assert ran.out.index("Begin.") < ran.out.index("First,") < ran.out.index("second.")
    assert "xyzzy" not in ran.out


def test_show_follows_no_past_and_no_single_block(run: Run) -> None:
    for more in (["ar:t1.user.prompt"], ["--at", "3"]):
        ran = run("show", "live", *more, "--follow")
        assert (ran.code, ran.out) == (2, "")
        assert "neither a PATH nor --at" in ran.err


@pytest.mark.usefixtures("replayed")
def test_show_one_block_whole(run: Run) -> None:
    ran = run("show", "invented", "ar:t1.user.prompt")
    assert ran.out == "Please look into module_1.py and never touch settings_1.toml.\n"
    fields = json.loads(run("show", "invented", "tc:t1.call_t1.0.call", "--json").out)
    assert fields["input"] == {"path": "src/part_t1.0.py"}
    ran = run("show", "invented", "ar:t1.nothing")
    assert (ran.code, ran.out) == (2, "")
    assert "no block at path 'ar:t1.nothing'" in ran.err


@pytest.mark.usefixtures("replayed")
def test_search_finds_what_is_folded_and_show_reads_it(run: Run) -> None:
    (hit,) = json.loads(run("search", "never", "settings_1.toml", "--json").out)
    assert (hit["timeline"], hit["path"]) == ("invented", "ar:t1.user.prompt")
    assert [hit["snippet"][start:end] for start, end in hit["matches"]] == [
        "never",
        "settings_1.toml",
    ]
    assert hit["snippet"] in run("show", hit["timeline"], hit["path"]).out
    rows = json.loads(run("show", "invented", "--json").out)
    states = {row["path"]: row["state"] for row in rows}
    (folded,) = json.loads(run("search", "line_t1.0_50", "--json").out)
    assert states[folded["path"]] == "folded"
    table = run("search", '"look into" -module_1.py -module_2.py').out
    assert "ar:t3.user.prompt" in table
    assert "2 hits" in table


@pytest.mark.usefixtures("replayed")
def test_search_can_be_limited(run: Run) -> None:
    assert len(json.loads(run("search", "word", "--limit", 3, "--json").out)) == 3
    run("fork", "invented", "copy", "--at", 10)
    both = json.loads(run("search", "settings_1.toml", "--json").out)
    assert {hit["timeline"] for hit in both} == {"invented", "copy"}
    one = json.loads(run("search", "settings_1.toml", "--timeline", "copy", "--json").out)
    assert [hit["timeline"] for hit in one] == ["copy"]


@pytest.mark.usefixtures("replayed")
def test_a_search_that_cannot_be_done(run: Run) -> None:
    assert run("search", "no such words").out == "nothing matches 'no such words'\n"
    assert json.loads(run("search", "absent", "--json").out) == []
    ran = run("search", "x", "--timeline", "nobody")
    assert (ran.code, ran.out) == (1, "")
    assert "no timeline 'nobody'" in ran.err
    for wrong in (("-type:x",), ("--", "-x"), ("x", "--limit", 0)):
        ran = run("search", *wrong)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("replayed")
def test_stats_count(run: Run) -> None:
    stats = json.loads(run("stats", "invented", "--json").out)
    assert stats["turns"] == 4
    assert stats["blocks"]["react.tool.call"] == 20
    assert stats["events"]["RequestRendered"] == 24
    assert stats["tools"] == {"bash": 12, "read file": 8}
    quality = stats["quality"]
    assert quality["compactions"] == stats["events"]["RangeCompacted"]
    assert quality["asked_again"] == {"count": 0, "per_compaction": 0.0}
    assert quality["task_end"] == {"count": 4, "completed": 4}
    table = run("stats", "invented").out
    assert "react.tool.call" in table
    assert "asked again (0.00 per compaction)" in table
    assert "4 of 4" in table


@pytest.mark.usefixtures("replayed")
def test_render_prints_the_request_of_any_version(run: Run) -> None:
    request = json.loads(run("render", "invented", "--json").out)
    assert "<summary-" in json.dumps(request["messages"][0])
    first = json.loads(run("render", "invented", "--at", 2).out)
    assert len(first["messages"]) == 1
    assert run("render", "invented", "--at", 9999).code == 2


@pytest.mark.usefixtures("replayed")
def test_looking_changes_nothing(run: Run) -> None:
    before = json.loads(run("list", "--json").out)
    for command in ("show", "stats", "render", "export"):
        assert run(command, "invented").code == 0
    assert json.loads(run("list", "--json").out) == before


@pytest.mark.usefixtures("replayed")
def test_an_export_is_a_session_file(run: Run) -> None:
    exported = run("export", "invented").out
    Path("copy.jsonl").write_text(exported)
    assert run("export", "invented", "--out", "second.jsonl").code == 0
    assert Path("second.jsonl").read_text() == exported
    assert run("import", "copy.jsonl", "--name", "copy").code == 0


@pytest.mark.usefixtures("replayed")
def test_a_disk_without_room_is_named_with_the_file(run: Run) -> None:
    for command in (("export", "invented", "--out", "x"), ("report", "invented", "--output", "x")):
        with full_disk(40_000):  # enough to open the store
            ran = run(*command)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("foldline: x: File too large; free disk space and repeat")
        assert not Path("x").exists()


@pytest.mark.usefixtures("replayed")
def test_fork_copies_up_to_a_version(run: Run) -> None:
    assert json.loads(run("fork", "invented", "early", "--at", 10, "--json").out) == {
        "timeline": "early",
        "parent": "invented",
        "at": 10,
        "version": 11,
    }
    assert run("fork", "invented", "early").code == 2
    assert run("fork", "nobody", "other").code == 1
    assert run("fork", "invented", "other", "--at", 9999).code == 2


@pytest.mark.usefixtures("replayed")
def test_verify_says_so_when_a_store_holds_together(run: Run) -> None:
    ran = run("verify")
    assert ran.code == 0
    assert "holds together" in ran.out
    assert json.loads(run("verify", "--json").out)["ok"] is True


@pytest.mark.usefixtures("in_duckdb")
def test_verify_ends_with_1_when_it_does_not(run: Run) -> None:
    lock = Path("foldline.duckdb.lock")
    lock.write_text(f"pid {0:>10}\nevents {99_999:>20}\n")  # more than are there
    ran = run("verify")
    assert ran.code == 1
    assert "events but 99999 were acknowledged" in ran.out
    assert json.loads(run("verify", "--json").out)["ok"] is False


def test_verify_reads_a_folder_of_artifacts(run: Run, tmp_path: Path) -> None:
    for where in ("arts", f"file://{tmp_path}/at-url"):
        with open_artifacts(where) as artifacts:
            artifacts.put(b"what was said", ArtifactDescription(timeline=TimelineId("t")))
        ran = run("verify", "--store", where)
        assert (ran.code, ran.out) == (0, f"{where}: 1 artifact, holds together\n")
    [content] = Path("arts/content").iterdir()
    content.write_bytes(b"what was not")
    ran = run("verify", "--store", "arts")
    assert (ran.code, ran.out.startswith("problem: t version 0: artifact art-")) == (1, True)
    Path("other").mkdir()
    assert "is a folder; give the path of a file in it" in run("verify", "--store", "other").err


@pytest.mark.usefixtures("replayed")
def test_a_receipt_finds_what_an_older_copy_lacks(run: Run, session: Path) -> None:
    """The copy is whole in itself; only the receipt of a later time tells."""
    run("copy", "older.sqlite")
    assert run("import", session, "--name", "later").code == 0
    assert run("verify", "--receipt", "later.receipt").code == 0
    assert run("verify", "--expect", "later.receipt").code == 0
    assert run("verify", "--store", "older.sqlite").code == 0
    ran = run("verify", "--store", "older.sqlite", "--expect", "later.receipt", "--receipt", "no")
    assert ran.code == 1
    assert "problem: later version 0: the receipt has 92 events, and there are 0" in ran.out
    assert not Path("no").exists(), "a receipt of what does not hold together is of no use"


@pytest.mark.usefixtures("replayed")
@for_each("text", ["", "not a receipt", b"\xff\xfe"])
def test_what_is_no_receipt_is_refused(run: Run, text: str | bytes) -> None:
    Path("given").write_bytes(text if isinstance(text, bytes) else text.encode())
    ran = run("verify", "--expect", "given")
    assert ran.code == 2
    assert "receipt" in ran.err
    assert run("verify", "--expect", "missing").code == 1


@pytest.mark.usefixtures("in_duckdb")
def test_a_store_that_somebody_holds_is_one_line(run: Run, session: Path) -> None:
    with DuckDBStore("foldline.duckdb"):
        for command in (("list",), ("verify",), ("import", session, "--name", "n")):
            ran = run(*command)
            assert (ran.code, ran.out) == (1, "")
            assert "foldline.duckdb is already open" in ran.err
            assert ran.err.count("\n") == 1


def test_what_is_hidden_on_request_is_shown_when_it_is_asked_for(run: Run) -> None:
    with Timeline.open("secrets", store="foldline.sqlite") as timeline:
        timeline.user("The word is xyzzy.")
        timeline.hide("ar:t1.user.prompt")
    for command in (
        ("show", "secrets"),
        ("show", "secrets", "ar:t1.user.prompt"),
        ("show", "secrets", "ar:t1.user.prompt", "--json"),
        ("search", "word", "--json"),
        ("export", "secrets"),
    ):
        shown, asked = run(*command), run(*command, "--hidden")
        assert (shown.code, asked.code) == (0, 0)
        assert "xyzzy" not in shown.out
        assert "xyzzy" in asked.out


@pytest.mark.usefixtures("replayed")
def test_an_imported_export_is_the_timeline_again(run: Run) -> None:
    run("export", "invented", "--hidden", "--out", "log.jsonl")
    assert run("import", "log.jsonl", "--store", "other.sqlite").code == 0
    assert run("export", "invented", "--hidden", "--store", "other.sqlite").out == (
        Path("log.jsonl").read_text()
    )
    for command in ("show", "stats"):
        there = run(command, "invented", "--json", "--store", "other.sqlite").out
        assert there == run(command, "invented", "--json").out


@pytest.mark.usefixtures("replayed")
def test_what_is_left_of_a_broken_export_is_imported_as_a_session(run: Run) -> None:
    lines = run("export", "invented").out.splitlines()
    lines[5] = lines[5][:-20]
    Path("cut.jsonl").write_text("\n".join(lines))
    ran = run("import", "cut.jsonl", "--name", "cut")
    assert ran.code == 0
    assert "line 6: broken JSON" in ran.err


@pytest.mark.usefixtures("replayed")
def test_copy_takes_what_is_new_into_another_store(run: Run) -> None:
    ran = run("copy", "other.sqlite")
    assert ran.code == 0
    assert ran.out.startswith("1 timeline, ")
    assert run("copy", "other.sqlite").out.startswith("0 timelines, 0 events, 0 artifacts copied")
    assert run("show", "invented", "--store", "other.sqlite").out == run("show", "invented").out
    assert run("copy", "third.sqlite", "nobody").code == 1
    assert not Path("third.sqlite").exists()
    for itself in ("foldline.sqlite", f"./../{Path.cwd().name}/foldline.sqlite"):
        ran = run("copy", itself)
        assert (ran.code, "is the store itself; give another target" in ran.err) == (2, True)


@pytest.mark.usefixtures("in_duckdb")
def test_repair_saves_what_can_be_read_into_a_new_store(run: Run) -> None:
    ran = run("repair", "new.duckdb")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("0 artifacts of foldline.duckdb saved in new.duckdb\n")
    with DuckDBStore("foldline.duckdb") as store:
        head = store.head(TimelineId("invented"))
    with duckdb.connect("foldline.duckdb") as connection:
        connection.execute("UPDATE events SET payload = '[1]' WHERE seq = 9")
    ran = run("repair", "newer.duckdb")
    assert ran.code == 1
    assert ran.out.startswith("lost: invented: events 9 to 9: ")
    assert f"1 timeline, {head - 1} events, 0 artifacts" in ran.out
    assert "holds together" in run("verify", "--store", "newer.duckdb").out
    assert run("repair", "newer.duckdb").code == 2


# Where a gateway keeps what is said in a folder.


def place_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    return gateway_store()


def test_what_a_gateway_keeps_is_outside_the_project_one_store_for_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder, it would be committed and copied with the project."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for data, expected in [
        ("", tmp_path / "home/.local/share/foldline"),
        ("relative", tmp_path / "home/.local/share/foldline"),  # as the XDG specification says
        (str(tmp_path / "data"), tmp_path / "data/foldline"),
    ]:
        monkeypatch.setenv("XDG_DATA_HOME", data)
        folders = [
            "a/app",
            "b/app",
            "b/app/sub",
            "b/my app; rm",
            "b/" + 200 * "x",
            "b/\u00e9\u4e16",
        ]
        places = [place_in(tmp_path / name, monkeypatch) for name in folders]
        assert {place.parent for place in places} == {expected}
        assert len(set(places)) == len(folders)
        assert places[0].name.startswith("app-")
        assert max(len(place.name) for place in places) < 100
        assert place_in(tmp_path / "a/app", monkeypatch) == places[0]


def test_a_store_in_the_folder_comes_before_the_gateways(run: Run, session: Path) -> None:
    place = gateway_store()
    place.parent.mkdir(parents=True)
    assert run("import", session, "--name", "here", "--store", str(place)).code == 0
    assert "here" in run("list").out
    assert run("import", session, "--name", "other", "--store", "foldline.duckdb").code == 0
    assert "here" not in run("list").out


def test_a_place_that_cannot_be_made_is_one_clear_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    ran = run("proxy", "--port", "0")
    assert ran.code == 1
    assert ran.err == (
        f"foldline: {tmp_path}/data/foldline cannot be created: Not a directory; choose another folder with --store or"
        " FOLDLINE_STORE\n"
    )


SHORT = (
    ("show", "once"),
    ("stats", "once"),
    ("account", "once"),
    ("propose", "once"),
    ("render", "once"),
    ("report", "once"),
    ("export", "once"),
    ("fork", "once", "copy"),
    ("search", "look", "--timeline", "once"),
    ("copy", "other.sqlite", "once"),
    ("forget", "once-upon-a-time", "--yes"),
)


def test_the_beginning_of_a_name_is_enough_if_no_other_begins_so(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDLINE_STORE", "names.sqlite")
    for name in ("once-upon-a-time", "talk", *(f"talk-{number}" for number in range(7))):
        assert run("import", session, "--name", name).code == 0
    for command in SHORT:
        ran = run(*command, *(["--json"] if command[0] in {"show", "stats"} else []))
        assert (ran.code, "once-upon-a-time" in run("list").out) == (0, command[0] != "forget")
    assert json.loads(run("stats", "talk", "--json").out)["timeline"] == "talk", "a whole name wins"
    ran = run("stats", "talk-")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "foldline: 7 timelines begin with 'talk-': talk-0, talk-1, talk-2, talk-3, talk-4 and 2 more;"
        " give more of the name\n"
    )
    ran = run("stats", "tlak")
    assert (ran.code, "did you mean 'talk'?" in ran.err) == (1, True)
    assert run("stats", "").code == 1


@pytest.mark.parametrize("command", [("forget", "--yes"), ("retain", "--forget")])
def test_what_cannot_be_undone_needs_the_whole_name(
    run: Run, session: Path, command: tuple[str, ...]
) -> None:
    run("import", session)
    name, *more = command
    ran = run(name, "inv", *more)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(" needs the whole name of the timeline: invented\n")
    assert "invented" in run("list").out
    assert run("retain", "inv", "--archive", ".").code == 0
