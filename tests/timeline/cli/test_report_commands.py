"""`foldline report`, `foldline replay --html` and `foldline serve`."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests._sizes import PATIENCE
from tests.timeline.cli.conftest import Run
from tests.timeline.report.pages import Page
from timeline import Timeline

SMALL = ("--window", 3000, "--counter", "estimate")


def test_a_replay_writes_a_report_and_says_where(run: Run, session: Path) -> None:
    ran = run("replay", session, *SMALL, "--html", "out.html")
    assert (ran.code, ran.err) == (0, "")
    assert "report: out.html" in ran.out
    page = Page.of(Path("out.html").read_bytes())
    assert page.json("overview-0")["window"] == 3_000
    assert page.json("report")["runs"][0]["session"] == "invented"


def test_several_policies_are_one_report(run: Run, session: Path) -> None:
    policies = ("--policy", "default", "--policy", "frugal")
    ran = run("replay", session, *SMALL, *policies, "--html", "out.html", "--json")
    assert [json.loads(line)["policy"] for line in ran.out.splitlines()] == ["default", "frugal"]
    assert len(Page.of(Path("out.html").read_bytes()).json("report")["runs"]) == 2


def test_a_timeline_of_a_store_is_reported(run: Run, session: Path) -> None:
    assert run("replay", session, *SMALL, "--store", "s.duckdb").code == 0
    ran = run("report", "invented", "--store", "s.duckdb", *SMALL)
    assert (ran.code, ran.out) == (0, "report: invented.html\n")
    overview = Page.of(Path("invented.html").read_bytes()).json("overview-0")
    assert len(overview["calls"]["tokens"]) == 24
    ran = run("report", "invented", "--store", "s.duckdb", "--output", "other.html", "--json")
    said = json.loads(ran.out)
    assert said == {"report": "other.html", "bytes": Path("other.html").stat().st_size}


def test_a_name_that_is_no_file_name_is_made_one(run: Run, tmp_path: Path) -> None:
    with Timeline.open("../ticket: 4711", store=tmp_path / "s.duckdb") as timeline:
        timeline.user("Hello")
    assert (
        run("report", "../ticket: 4711", "--store", "s.duckdb").out == "report: _ticket_4711.html\n"
    )


def test_what_is_hidden_is_reported_only_if_asked_for(run: Run, tmp_path: Path) -> None:
    with Timeline.open("x", store=tmp_path / "s.duckdb") as timeline:
        timeline.user("hunter2hunter2")
        timeline.hide("v2")
    assert run("report", "x", "--store", "s.duckdb").code == 0
    assert "hunter2hunter2" not in Page.of(Path("x.html").read_bytes()).everything
    assert run("report", "x", "--store", "s.duckdb", "--with-hidden").code == 0
    assert "hunter2hunter2" in Page.of(Path("x.html").read_bytes()).everything


def test_a_report_that_cannot_be_written_leaves_nothing(run: Run, session: Path) -> None:
    assert run("import", session, "--store", "s.duckdb").code == 0
    ran = run("report", "invented", "--store", "s.duckdb", "--output", "missing/out.html")
    assert ran.code == 1
    assert "missing/out.html: No such file or directory" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "none"), "no timeline 'none'"),
        (("serve", "--port", "70000"), "--port 70000: give a number from 0 to 65535"),
        (("serve", "--store", "none.duckdb"), "no store at none.duckdb"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    run: Run, session: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert run("import", session, "--store", "foldline.duckdb").code == 0
    ran = run(*arguments)
    assert ran.code in {1, 2}
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_without_its_packages_it_names_them_and_no_url(
    run: Run, session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("import", session, "--store", "s.duckdb").code == 0
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ran = run("serve", "--store", "s.duckdb")
    assert (ran.code, ran.out) == (2, "")
    assert "this server needs more packages: pip install " in ran.err
    assert "uvicorn" in ran.err


@pytest.mark.network
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 -- what it is about
def test_it_serves_until_it_is_interrupted(run: Run, session: Path, host: str) -> None:
    assert run("import", session, "--store", "s.duckdb").code == 0
    command = [sys.executable, "-c", "from timeline.cli import main; raise SystemExit(main())"]
    asked = ["serve", "--store", "s.duckdb", "--port", "0", "--host", host]
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, *asked], stdout=subprocess.PIPE, text=True, env=environment
    ) as served:
        assert served.stdout
        line = served.stdout.readline()
        found = re.match(r"http://[\d.]+:(\d+)/(\?token=[\w-]+)?  \(Ctrl-C ends it\)\n", line)
        assert found, line
        assert bool(found[2]) == (host == "0.0.0.0"), "a token for others"  # noqa: S104
        token = (found[2] or "").removeprefix("?token=")
        request = urllib.request.Request(
            f"http://127.0.0.1:{found[1]}/timelines.json",
            headers={"Authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 -- ours
            assert json.load(answer)["rows"][0]["id"] == "invented"
        served.send_signal(signal.SIGINT)
        assert served.wait(PATIENCE) in {0, 130, -signal.SIGINT}
