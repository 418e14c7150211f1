"""`foldline` alone: the bill of the sessions of agents on this machine, and where the money went."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from tests.timeline.cli.conftest import Ran, Run
from timeline.cli._bill import short_ids

FOLDERS = {
    "Claude Code": ".claude/projects/-home-me/1.jsonl",
    "Codex": ".codex/sessions/2026/07/01/rollout-1.jsonl",
    "pi": ".pi/agent/sessions/--me--/1.jsonl",
    "Gemini CLI": ".gemini/tmp/abc/chats/session-1.json",
}
VARIABLES = {
    "CLAUDE_CONFIG_DIR": ("Claude Code", "projects/p/1.jsonl"),
    "CODEX_HOME": ("Codex", "sessions/rollout-1.jsonl"),
    "PI_CODING_AGENT_DIR": ("pi", "sessions/1.jsonl"),
    "PI_CODING_AGENT_SESSION_DIR": ("pi", "1.jsonl"),
    "GEMINI_CLI_HOME": ("Gemini CLI", ".gemini/tmp/x/chats/1.json"),
}
OPUS = "claude-opus-4-6"
"""A million tokens: input $5, cache read $0.50, write for five minutes $6.25, output $25."""


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any session."""
    found = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(found))
    for name in (*VARIABLES, "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return found


# Logs of agents, as they write them.


def stamp(day: int, second: int) -> str:
    return f"2026-07-{day:02}T12:{second // 60:02}:{second % 60:02}Z"


def claude(day: int = 1, prompts: int = 3, **about: Any) -> list[dict[str, Any]]:
    """Lines of Claude Code: a prompt, reads of a file, and an answer; each call writes 10,000 tokens more."""
    model, name = about.pop("model", OPUS), about.pop("name", f"d{day}")
    common = {"sessionId": name, "cwd": "/home/me/shop", **about}
    lines: list[dict[str, Any]] = [
        _line("user", day, 0, "Add a cart to the shop.", **common),
    ]
    for n in range(prompts):
        content: list[dict[str, Any]] = [{"type": "text", "text": "done"}]
        if n < prompts - 1:
            call = {"file_path": f"/home/me/shop/{n}.py"}
            content = [{"type": "tool_use", "id": f"{name}{n}", "name": "Read", "input": call}]
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": 10_000 * n,
            "cache_creation_input_tokens": 10_000,
            "output_tokens": 100,
        }
        message = {"id": f"msg_{name}_{n}", "model": model, "usage": usage}
        lines.append(_line("assistant", day, 2 * n + 1, content, **message, **common))
        if n < prompts - 1:
            result = {
                "type": "tool_result",
                "tool_use_id": f"{name}{n}",
                "content": "x = 1\n" * 5_000,
            }
            lines.append(_line("user", day, 2 * n + 2, [result], **common))
    return lines


def _line(role: str, day: int, second: int, content: Any, **more: Any) -> dict[str, Any]:
    keys = ("id", "model", "usage")
    message = {key: more.pop(key) for key in keys if key in more}
    at = stamp(day, second)
    body = {"role": role, "content": content, **message}
    return {"type": role, "uuid": f"{at}{role}", "timestamp": at, "message": body, **more}


def codex(day: int = 1) -> list[dict[str, Any]]:
    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": stamp(day, 0), "type": kind, "payload": payload}

    def said(role: str, kind: str) -> dict[str, Any]:
        content = [{"type": kind, "text": "go"}]
        return line("response_item", type="message", role=role, content=content)

    last = {"input_tokens": 20_000, "cached_input_tokens": 0, "output_tokens": 10}
    info = {"total_token_usage": last, "last_token_usage": last}
    return [
        line("session_meta", id="c", cwd="/home/me/site"),
        line("turn_context", model="gpt-5.5"),
        said("user", "input_text"),
        said("assistant", "output_text"),
        line("event_msg", type="token_count", info=info),
    ]


def put(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def uuid_of(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def of_claude(home: Path, name: str, lines: list[dict[str, Any]]) -> str:
    """Put a session of Claude Code there; its id."""
    put(home / f".claude/projects/-home-me-shop/{uuid_of(name)}.jsonl", lines)
    return uuid_of(name)


def found(run: Run, *options: object) -> dict[str, Any]:
    """The bill as JSON."""
    ran = run("bill", "--json", "--compare", 0, *options)
    assert (ran.code, ran.err) == (0, "")
    bill: dict[str, Any] = json.loads(ran.out)
    return bill


# What it says.


ONCE = 0.00005 + 0.0625 + 0.0025
"""The first call of `claude`: 10 tokens of input, 10,000 written, 100 of output."""
THREE = 3 * ONCE + 0.005 + 0.01
"""All three: the second reads 10,000 tokens, the third 20,000."""


def test_the_bill_is_the_first_line_and_then_comes_where_the_money_went(
    run: Run, home: Path
) -> None:
    name = of_claude(home, "a", claude())
    put(home / ".codex/sessions/2026/07/01/rollout-1.jsonl", codex())
    ran = run()
    assert (ran.code, ran.err) == (0, "")
    first, *lines = ran.out.splitlines()
    total = THREE + 0.1003
    assert first == f"bill ${total:.3f} recorded  2 sessions, 2026-07-01 to 2026-07-01"
    rows = {" ".join(line.split()) for line in lines}
    assert f"/home/me/shop 3 60k 50% 300 ${THREE:.3f}" in rows
    assert "Codex 1 20k 0% 10 $0.100" in rows
    assert f"{OPUS} 3 60k 50% 300 ${THREE:.3f}" in rows
    assert any(
        row.startswith(f"{name[:8]} 2026-07-01 3 ${THREE:.3f} Claude Code: Add a cart")
        for row in rows
    )
    assert any("10,000 new tokens, most of them of Read /home/me/shop/0.py" in row for row in rows)
    assert any(row.startswith("Read ") for row in rows)
    assert any(row.startswith("/home/me/shop/0.py ") for row in rows)


def test_the_sums_are_those_of_the_calls(run: Run, home: Path) -> None:
    name = of_claude(home, "a", claude())
    of_claude(home, "b", claude(day=2, prompts=2, model="claude-sonnet-4-5"))
    bill = found(run)
    assert [day["name"] for day in bill["days"]] == ["2026-07-02", "2026-07-01"]
    for each in ("days", "projects", "agents", "models", "sessions", "parts"):
        assert sum(row["dollars"] for row in bill[each]) == pytest.approx(bill["bill"]["dollars"])
    assert bill["sessions"][0]["dollars"] == pytest.approx(THREE)
    assert (
        bill["sessions"][0] | {"id": name, "short": name[:8], "title": "Add a cart to the shop."}
        == bill["sessions"][0]
    )
    assert {part["name"] for part in bill["parts"]} >= {"tool Read", "the user's words"}


def test_what_is_printed_to_look_closer_can_be_run(run: Run, home: Path) -> None:
    of_claude(home, "a", claude())
    commands = [line for line in run().out.splitlines() if line.startswith("foldline replay")]
    words = shlex.split(commands[0].partition("  ")[0])
    assert json.loads(run(*words[1:], "--json").out)["calls"] == 3
    words = shlex.split(commands[1].partition("  ")[0])
    assert run(*words[1:]).code == 0
    assert Path("report.html").exists()


def test_a_title_is_the_one_in_the_log(run: Run, home: Path) -> None:
    of_claude(home, "a", [*claude(), {"type": "ai-title", "aiTitle": "The cart"}])
    assert found(run)["sessions"][0]["title"] == "The cart"


def test_the_calls_of_sub_agents_belong_to_their_session(run: Run, home: Path) -> None:
    of_claude(home, "a", claude(name="main"))
    helper = [line | {"isSidechain": True} for line in claude(day=2, name="main", prompts=2)]
    folder = home / ".claude/projects/-home-me-shop"
    put(folder / "main/subagents/agent-1.jsonl", helper)
    bill = found(run)
    assert [each["calls"] for each in bill["sessions"]] == [5]
    assert bill["bill"]["dollars"] == pytest.approx(THREE + 2 * ONCE + 0.005)
    assert bill["bill"]["aside"] == 2
    assert [day["calls"] for day in bill["days"]] == [2, 3]


def test_a_sub_agent_without_its_session_is_a_session_by_itself(run: Run, home: Path) -> None:
    folder = home / ".claude/projects/-home-me-shop"
    put(folder / "gone/subagents/agent-1.jsonl", claude(name="gone", prompts=2))
    assert [(each["id"], each["calls"]) for each in found(run)["sessions"]] == [("agent-1", 2)]


def test_a_session_that_repeats_another_is_counted_once(run: Run, home: Path) -> None:
    """As a resumed session does, which begins with a copy."""
    of_claude(home, "a", claude(name="a"))
    longer = claude(name="a") + claude(day=2, prompts=1, name="b")
    of_claude(home, "b", [line | {"sessionId": "b"} for line in longer])
    ran = run("bill", "--json", "--compare", 0)
    assert "3 calls found in several sessions counted once" in ran.err
    bill = json.loads(ran.out)
    assert bill["bill"]["dollars"] == pytest.approx(THREE + ONCE)
    assert sum(row["dollars"] for row in bill["parts"]) == pytest.approx(THREE + ONCE)


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        (("--since", "2026-07-02"), 3),
        (("--until", "2026-07-01"), 3),
        (("--since", "2026-07-02", "--until", "9999-12-31"), 3),
        (("--since", "2026-07-02", "--until", "2026-07-02"), 2),
        (("--project", "SITE"), 1),
        (("--agent", "codex"), 1),
        (("--model", "sonnet"), 2),
        (("--model", "nobody"), 0),
    ],
)
def test_it_can_be_of_some_days_projects_agents_or_models(
    run: Run, home: Path, options: tuple[str, ...], calls: int
) -> None:
    of_claude(home, "a", claude())
    of_claude(home, "b", claude(day=2, prompts=2, model="claude-sonnet-4-5"))
    put(home / ".codex/sessions/rollout-1.jsonl", codex(day=3))
    bill = found(run, *options)
    assert bill["bill"]["calls"] == calls
    for each in ("sessions", "parts"):
        assert sum(row["dollars"] for row in bill[each]) == pytest.approx(bill["bill"]["dollars"])
    assert calls or "nothing in these sessions matches" in run("bill", *options).out


def test_calls_at_unknown_prices_are_said_to_be_left_out(run: Run, home: Path) -> None:
    of_claude(home, "a", claude(model="nobodys-model"))
    ran = run()
    assert ran.out.startswith("no bill: 3 calls at unknown prices (nobodys-model)")


def test_files_from_elsewhere_are_read_in_place_of_those(run: Run, home: Path) -> None:
    of_claude(home, "a", claude())
    put(Path("logs/b.jsonl"), claude(day=2, prompts=2))
    put(Path("logs/broken.jsonl"), [{"no": "session"}])
    ran = run("bill", "logs", "--compare", 0)
    assert "2 calls" in ran.out
    assert "1 file passed over" in ran.err
    assert "foldline replay logs/b.jsonl" in ran.out


def test_a_named_file_that_cannot_be_read_is_an_error_and_the_others_are_read(
    run: Run, home: Path
) -> None:
    put(home / "logs/b.jsonl", claude())
    (home / "logs/c.jsonl").symlink_to("gone.jsonl")
    Path("text.txt").write_text("no session")
    for name in ("none.jsonl", "none.jsonl#1", "text.txt", home / "logs/c.jsonl"):
        ran = run("bill", name, home / "logs/b.jsonl", "--compare", 0)
        assert (ran.code, ran.out[:12]) == (1, f"bill ${THREE:.3f} ")
        assert f"foldline: {str(name).removesuffix('#1')}: " in ran.err
        ran = run("bill", name)
        assert (ran.code, ran.out) == (1, "no calls: none in these files\n")
    ran = run("bill", home / "logs", "--compare", 0)
    assert (ran.code, ran.out[:12]) == (0, f"bill ${THREE:.3f} ")
    assert f"1 file passed over: {home}/logs/c.jsonl: no such file" in ran.err


def test_every_conversation_of_a_file_is_counted_and_each_has_its_own_name(run: Run) -> None:
    """A proxy's log, in which two agents take turns."""
    log = Path("two.jsonl")
    put(log, [line for n in range(3) for who in ("a", "b") for line in asked(n, who)])
    bill = found(run, log)
    assert bill["bill"]["calls"] == 6
    assert {each["id"]: each["path"] for each in bill["sessions"]} == {
        "two": "two.jsonl",
        "two#1": "two.jsonl#1",
    }
    assert sum(each["dollars"] for each in bill["sessions"]) == pytest.approx(
        bill["bill"]["dollars"]
    )
    one = found(run, f"{log}#1")
    assert [each["path"] for each in one["sessions"]] == ["two.jsonl#1"]
    assert one["bill"]["calls"] == 3
    assert "foldline replay two.jsonl" in run("bill", log).out
    assert json.loads(run("bill", log, "--json").out)["compared"]["sessions"] == 2


def asked(number: int, who: str) -> list[dict[str, Any]]:
    """One request of an agent, with its whole history, and the answer."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": f"I am {who}. Go on."}]
    for n in range(number):
        talk.append({"role": "assistant", "content": [{"type": "text", "text": f"{who}{n}"}]})
        talk.append({"role": "user", "content": "And?"})
    usage = {"input_tokens": 1_000 * (number + 1), "output_tokens": 100}
    text = {"type": "text", "text": f"{who}{number}"}
    answer = {"type": "message", "id": f"msg_{who}{number}", "model": OPUS, "content": [text]}
    request = {"model": OPUS, "system": "Be kind.", "messages": talk}
    response = {**answer, "role": "assistant", "usage": usage}
    at = stamp(1, 10 * number + (who == "b"))
    return [{"timestamp": at, "request": request, "response": response}]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--since", "yesterday"), "write a day as 2026-07-01"),
        (("--limit", "0"), "at least 1"),
        (("--compare", "-1"), "at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, options: tuple[str, ...], why: str) -> None:
    ran = run("bill", *options)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err


# Where sessions are found, and by what names.


def searched(run: Run) -> dict[str, int]:
    """How many session files were found of each agent."""
    folders = json.loads(run("bill", "--json", "--compare", 0).out)["folders"]
    return {each["agent"]: each["sessions"] for each in folders if each["sessions"]}


def test_the_sessions_of_all_agents_are_found(run: Run, home: Path) -> None:
    for path in FOLDERS.values():
        put(home / path, claude())
    assert searched(run) == dict.fromkeys(FOLDERS, 1)


@pytest.mark.parametrize("variable", VARIABLES)
def test_agents_may_have_been_told_another_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    agent, path = VARIABLES[variable]
    put(tmp_path / "there" / path, claude())
    assert searched(run) == {}
    monkeypatch.setenv(variable, str(tmp_path / "there"))
    assert searched(run) == {agent: 1}


def test_where_there_is_none_it_says_where_it_looked(run: Run) -> None:
    ran = run()
    assert ran.code == 0
    assert "no session found in ~/.claude/projects" in ran.out


def test_the_beginning_of_an_id_names_a_session(run: Run, home: Path) -> None:
    name = of_claude(home, "a", claude())
    of_claude(home, "b", claude(day=2, prompts=2))

    def replayed(text: str) -> Ran:
        return run("replay", text, "--json")

    assert json.loads(replayed(name[:6]).out)["calls"] == 3
    assert json.loads(replayed(name).out)["calls"] == 3
    assert "no such file" in replayed("ffffffff").err.lower()
    shutil.copytree(home / ".claude/projects/-home-me-shop", home / ".claude/projects/other")
    ran = replayed(name[:6])
    assert ran.code == 2
    assert f"the ids of several sessions begin with this: {name}" in ran.err


def test_short_ids_are_as_short_as_they_can_be() -> None:
    end = "-0000-0000-0000-000000000000"
    ids = [f"abcdefab{end}", f"abcdef12{end}", f"abcdefab{end[:-1]}1", "a name that is no UUID"]
    whole = {0: ids[0], 2: ids[2], 3: ids[3]}
    assert short_ids(ids) == {1: "abcdef12", **whole}
    assert short_ids([ids[0], ids[0]]) == {0: ids[0], 1: ids[0]}


# What foldline would have saved.


def test_the_dearest_are_compared_and_the_result_is_kept(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_claude(home, "a", claude())
    of_claude(home, "b", claude(day=2, prompts=2))
    said = json.loads(run("bill", "--json", "--compare", 1).out)["compared"]
    assert said["sessions"] == 1
    assert said["dollars"] == pytest.approx(THREE)
    assert "the dearest, replayed with policy default" in run("bill", "--compare", 1).out
    [kept] = (home / ".cache/foldline").iterdir()
    results = json.loads(kept.read_bytes())
    assert len(results) == 1
    kept.write_text(json.dumps({key: [2.0, 1.0] for key in results}))
    assert "saved $1.00 (50%)" in run("bill", "--compare", 1).out, "it is not replayed again"
    models = home / "models.toml"
    models.write_text("")
    monkeypatch.setenv("FOLDLINE_MODELS", str(models))
    assert "saved $1.00" not in run("bill", "--compare", 1).out, "prices may have changed"
    results = json.loads(kept.read_bytes())
    kept.write_text(json.dumps({key: [2.0, 1.0] for key in results}))
    assert "saved $1.00 (50%)" in run("bill", "--compare", 1).out
    of_claude(home, "a", claude(prompts=4))
    assert "$1.00" not in run("bill", "--compare", 1).out, "the file has changed"


def test_what_was_replayed_is_said_if_it_is_not_what_is_billed(run: Run, home: Path) -> None:
    """Of a session and its resumed copy, the dearer one is replayed: whole, and without its sub-agents."""

    def compared(*options: str) -> tuple[dict[str, Any], str]:
        lines = run("bill", *options).out.splitlines()
        place = next(n for n, each in enumerate(lines) if "replayed" in each)
        data: dict[str, Any] = json.loads(run("bill", "--json", *options).out)["compared"]
        return data, "\n".join(lines[place : place + 3])

    of_claude(home, "a", claude(name="a"))
    data, said = compared()
    assert data["billed"] == pytest.approx(data["dollars"])
    assert "the dearest, replayed with policy" in said
    assert "of them" not in said
    longer = claude(name="a") + claude(day=2, prompts=2, name="b")
    of_claude(home, "b", [line | {"sessionId": "b"} for line in longer])
    helper = [line | {"isSidechain": True} for line in claude(day=3, name="a", prompts=1)]
    put(home / ".claude/projects/-home-me-shop/a/subagents/agent-1.jsonl", helper)
    data, said = compared()
    assert data["sessions"] == 1
    assert data["dollars"] == pytest.approx(THREE)
    assert data["billed"] == pytest.approx(THREE + ONCE)
    assert "the dearest, copies left out, replayed whole, without sub-agents, with policy" in said
    assert f"the bill above has ${THREE + ONCE:.3f} of them: chosen calls" in said
    data, said = compared("--since", "2026-07-02", "--until", "2026-07-02")
    assert data["billed"] == pytest.approx(2 * ONCE + 0.005)
    assert data["dollars"] == pytest.approx(THREE + 2 * ONCE + 0.005)
    assert "replayed whole" in said


@pytest.mark.parametrize("width", [20, 30, 40, 60, 72, 80, 110])
def test_on_any_screen_amounts_and_commands_are_whole(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    path = Path("a folder with a name that is rather long/session.jsonl")
    put(path, claude())
    lines = run("bill", path, "--compare", 0).out.splitlines()
    rows = [each for each in lines if not each.startswith(("foldline", "bill", " "))]
    start = next(n for n, each in enumerate(rows) if each.startswith("by day"))
    for row in rows[start:]:
        assert len(row) <= width
    assert any(row.startswith("2026-07-01") and row.endswith(f" ${THREE:.3f}") for row in rows)
    bill = found(run, path)
    for part in bill["parts"][:5]:
        assert any(row.endswith(f" ${part['dollars']:.3f}") for row in rows), part
    for call in bill["calls"]:
        assert any(f" ${call['dollars']:.3f}" in row for row in rows), call
    commands = [each.partition("  ")[0] for each in lines if each.startswith("foldline replay")]
    name = shlex.quote(str(path))
    assert commands == [f"foldline replay {name}", f"foldline replay {name} --html report.html"]


def test_the_printed_name_of_a_session_leads_to_it_whatever_was_chosen(
    run: Run, home: Path
) -> None:
    """Where another session that is not billed begins alike; where it is a sub-agent's; where two have one id."""

    def replayed(*options: str) -> Ran:
        lines = run("bill", "--compare", 0, *options).out.splitlines()
        command = next(each for each in lines if each.startswith("foldline replay"))
        return run(*shlex.split(command.partition("  ")[0])[1:], "--json")

    folder = home / ".claude/projects/-home-me-shop"
    for n, day in (("1", 1), ("2", 2)):
        put(folder / f"11111111-2222-4333-8444-{n * 12}.jsonl", claude(day=day, prompts=day))
    assert json.loads(replayed("--since", "2026-07-02").out)["calls"] == 2
    put(folder / "gone/subagents/agent-1.jsonl", claude(day=4, name="gone", prompts=4))
    assert json.loads(replayed("--since", "2026-07-04").out)["calls"] == 4
    copy = claude(day=5, name="e", prompts=5)
    for project in ("x", "y"):
        put(home / f".claude/projects/{project}/{uuid_of('e')}.jsonl", copy)
    assert json.loads(replayed("--since", "2026-07-05").out)["calls"] == 5


def test_a_session_that_cannot_be_replayed_is_billed_all_the_same(run: Run, home: Path) -> None:
    lines = codex()
    lines[0]["payload"]["base_instructions"] = {"text": "Be kind. " * 4_000}
    lines[-1]["payload"]["info"]["model_context_window"] = 100
    path = put(home / ".codex/sessions/rollout-1.jsonl", lines)
    ran = run()
    assert (ran.code, ran.out[:20]) == (0, "bill $0.100 recorded")
    assert f"{path}: " in ran.err
    assert "replayed with policy" not in ran.out


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "{"])
def test_a_broken_cache_is_as_good_as_none(run: Run, home: Path, content: str) -> None:
    of_claude(home, "a", claude())
    path = home / ".cache/foldline/compared.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    ran = run("bill", "--compare", 1)
    assert (ran.code, ran.err) == (0, "")
    assert "the dearest, replayed" in ran.out
