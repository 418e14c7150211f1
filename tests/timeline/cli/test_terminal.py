"""No name, time or text in a store ends a command in a traceback, or steers the terminal that shows it."""

import io
import json
import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blocks import (
    AssistantCompletion,
    Block,
    BlockAppended,
    BlockId,
    CallId,
    EventId,
    FoldlineError,
    Note,
    TextPart,
    TimelineId,
    ToolCall,
    ToolResult,
    TurnHeader,
    TurnId,
    UserAttachment,
    UserPrompt,
)
from persistence import DuckDBStore
from tests._table import for_each
from timeline.cli import main
from timeline.cli._terminal import line, visible, when

CLI = Path(__file__).parents[3] / "timeline/cli"
STEERING = ("Cc", "Cs", "Zl", "Zp")
TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
RICH = re.compile(r"\x1b\[[0-9;?]*[mhlKAG]|\r(?=\x1b)")
"""What rich itself writes: colours, and the moves of a progress bar."""

PROMPT = UserPrompt(id=BlockId("b"), turn=TurnId("t1"), text="hi")
HOSTILE = (
    *("report [/draft]", "[bold]x", "[link=http://x]a[/]", ":smile:", "%s {0} %", "--json", "\\[x]", "[@click=x]"),
    *("a\x1b[2J\x1b]0;owned\x07", "\x9b2J", "a\nb", "a\r\nb", "over\rwritten", "a\tb", "\x7f", "\x08\x08", "nul\0"),
    *("\u202egnp.exe", "\u200b", "\ufeff", "\u3164", "\u2028", "\U000e0041", " ", "   x ", "\u0301", "\U0001f600"),
    *("\ud800", "\udcff", "'", 'a"b\'', "a/b#3", "; DROP TABLE events", "語" * 40, "x" * 3_000, ".", ""),
)  # fmt: skip
TIMES = (
    0.0,
    -1.0,
    1.7e12,
    1e18,
    1e308,
    -1e18,
    253_402_300_800.0,
    -62_135_596_801.0,
    2.0**63,
    1e-300,
)
WRONG = (math.nan, math.inf, -math.inf)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(), max_size=20))
times = st.sampled_from(TIMES + WRONG)


def is_steered(text: str) -> bool:
    """Whether a terminal would do something else with a text than show it."""
    plain = text.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    return any(unicodedata.category(sign) in STEERING or sign in TURNING for sign in plain)


class Stream(io.TextIOWrapper):
    """What a command writes to: a terminal or a pipe."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def text(self) -> str:
        self.flush()
        written = self.buffer.raw if isinstance(self.buffer, io.BufferedWriter) else self.buffer
        assert isinstance(written, io.BytesIO)
        return written.getvalue().decode()


def ran(*arguments: str, is_terminal: bool) -> tuple[int, str, str]:
    """The exit code of a command, and what it wrote."""
    out, err = Stream(is_terminal=is_terminal), Stream(is_terminal=is_terminal)
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return code, out.text(), err.text()


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    ids: dict[str, Any] = {"id": BlockId(draw(texts)), "turn": TurnId(draw(texts))}
    text, name, call = draw(texts), draw(texts), CallId(draw(texts))
    made: list[Block] = [
        TurnHeader(**ids, started_at=draw(times)),
        UserPrompt(**ids, text=text),
        AssistantCompletion(**ids, text=text),
        ToolCall(**ids, call_id=call, name=name, input={name: text}),
        ToolResult(**ids, call_id=call, parts=(TextPart(text=text),)),
        Note(**ids, text=text),
        UserAttachment(**ids, name=name, part=TextPart(text=text)),
    ]
    return draw(st.sampled_from(made))


logs = st.lists(st.tuples(blocks(), times), min_size=1, max_size=5)


def stored(path: Path, name: str, log: list[tuple[Block, float]]) -> bool:
    """Whether a store took this log."""
    with DuckDBStore(path) as store:
        events = [
            BlockAppended(id=EventId(f"e{number}"), at=at, block=block)
            for number, (block, at) in enumerate(log)
        ]
        try:
            store.append(TimelineId(name), events, expected_version=0)
        except FoldlineError:
            return False
    return True


def commands(store: str, name: str, other: str) -> Iterator[tuple[str, ...]]:
    """Every command that looks at a store, and what is made of an export; ids may begin with a dash."""
    at, small = ("--store", store), ("--window", "3000", "--counter", "estimate")
    yield "list", *at
    yield "verify", *at
    yield "search", *at, "--", "x"
    yield "search", *at, f"--timeline={name}", "--", name or "x"
    yield "show", *at, "--", name
    yield "show", *at, "--", name, other
    yield "stats", *at, "--", name
    yield "propose", *at, *small, "--", name
    yield "render", *at, "--", name
    yield "export", *at, "--", name
    yield "export", *at, f"--out={store}.jsonl", "--", name
    yield "fork", *at, "--", name, f"{other}2"
    yield "import", *at, f"--name={other}3", f"{store}.jsonl"
    yield "import", *at, f"{store}.jsonl"
    yield "replay", *small, f"{store}.jsonl"
    yield "replay", *small, f"{store}.jsonl", f"{store}.jsonl"
    yield "list", *at
    yield "stats", *at, "--", other


@given(texts.filter(bool), texts, logs, st.booleans())
@settings(max_examples=4)
@example("report [/draft]", "[/x]", [(PROMPT, 1.7e12)], True)  # noqa: FBT003 -- drawn like the others
def test_every_command_shows_every_store(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    other: str,
    log: list[tuple[Block, float]],
    is_terminal: object,
) -> None:
    store = tmp_path_factory.mktemp("hostile") / "s.duckdb"
    if not stored(store, name, log):
        return
    for command in commands(str(store), name, other):
        code, out, err = ran(*command, is_terminal=bool(is_terminal))
        assert code in {0, 1, 2}
        assert "Traceback" not in err
        if is_terminal:
            assert not is_steered(RICH.sub("", out)), command
            assert not is_steered(RICH.sub("", err)), command


@given(texts.filter(bool), logs)
@settings(max_examples=4)
def test_json_is_json_on_a_terminal_and_in_a_pipe(
    tmp_path_factory: pytest.TempPathFactory, name: str, log: list[tuple[Block, float]]
) -> None:
    store = tmp_path_factory.mktemp("json") / "s.duckdb"
    if not stored(store, name, log):
        return
    at = ("--json", "--store", str(store))
    for command in (("list", *at), ("show", *at, "--", name), ("stats", *at, "--", name)):
        shown = [ran(*command, is_terminal=is_terminal)[1] for is_terminal in (True, False)]
        assert json.loads(shown[0], parse_constant=pytest.fail) == json.loads(shown[1])
        assert not is_steered(shown[0])
    assert json.loads(ran("list", *at, is_terminal=False)[1])[0]["id"] == name
    exported = ran("export", "--store", str(store), "--", name, is_terminal=True)[1]
    assert [json.loads(each) for each in exported.split("\n")[:-1]]


def test_a_pipe_gets_what_a_tool_wrote_and_a_terminal_sees_it(tmp_path: Path) -> None:
    said = "\x1b[2J\x1b]0;owned\x07 hello\r\n\u202eolleh"
    block = UserPrompt(id=BlockId("b"), turn=TurnId("t1"), text=said)
    store = tmp_path / "s.duckdb"
    assert stored(store, "esc", [(block, 1.0)])
    command = ("show", "esc", "ar:t1.user.prompt", "--store", str(store))
    assert ran(*command, is_terminal=False)[1] == said + "\n"
    assert ran(*command, is_terminal=True)[1] == (
        "\\u001b[2J\\u001b]0;owned\\u0007 hello\r\n\\u202eolleh\n"
    )


def test_names_are_shown_whole_on_one_line(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    for name in ("report [/draft]", ":smile:", "a\nb", "\u200b", " ", "\x1b[31mred"):
        assert stored(store, name, [(PROMPT, 1.7e12)])
    shown = ran("list", "--store", str(store), is_terminal=False)[1]
    rows = [row.split("  ")[0].strip() for row in shown.splitlines()[2:8]]
    assert rows == ["report [/draft]", ":smile:", "a\\nb", "\\u200b", "\\u0020", "\\u001b[31mred"]
    assert shown.count("@1.7e+12") == 6


@for_each("at", [*TIMES, *WRONG])
def test_every_time_can_be_shown(at: float) -> None:
    assert when(at)
    assert when(0.0).startswith(("1970", "1969"))


@given(texts)
def test_what_is_visible_steers_nothing_and_stays_the_same(text: str) -> None:
    for shown in (visible(text), line(text)):
        assert not is_steered(shown)
        assert visible(shown) == shown
    assert "\n" not in line(text)
    assert not text or line(text).strip()
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text


def test_a_stream_of_another_encoding_fails_at_no_character(tmp_path: Path) -> None:
    store = tmp_path / "s.duckdb"
    block = UserPrompt(id=BlockId("b"), turn=TurnId("t1"), text="語\U0001f600")
    assert stored(store, "é", [(block, 1.0)])
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with redirect_stdout(out):
        assert main(["show", "é", "ar:t1.user.prompt", "--store", str(store)]) == 0
        assert main(["show", "é", "--json", "--store", str(store)]) == 0
        assert main(["list", "--store", str(store)]) == 0
    out.flush()
    raw = out.buffer
    assert isinstance(raw, io.BytesIO)
    shown, rows = raw.getvalue().decode().split("\n")[:2]
    assert shown == "\\u8a9e\\ud83d\\ude00"
    assert json.loads(rows)[0]["text"] == "語\U0001f600"


@for_each("name", sorted(path.name for path in CLI.glob("*.py")))
def test_no_command_goes_around_the_console(name: str) -> None:
    """Others may name rich's console in types, and make none; nor may they read markup."""
    text = (CLI / name).read_text(encoding="utf-8")
    assert name == "_screen.py" or not re.search(
        r"\bConsole\(|from_markup|__stdout__|__stderr__", text
    )
    assert "TextColumn(" not in text or "markup=False" in text
