"""Damaged files: read what can be read, name what cannot, and never a traceback."""

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from blocks import MisuseError, SessionFormatError, UserPrompt
from persistence.sessions import read_session
from persistence.sessions._read import FORMATS
from tests._sizes import sized
from tests._table import for_each

Write = Callable[..., Path]

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
ASK = {"role": "user", "content": "hello"}
KEYS = (
    *("type", "content", "role", "timestamp", "id", "usage", "kind", "action", "cause", "traj"),
    *("observation", "args", "toolCalls", "parentId", "function_call", "tokens", "system", "extra"),
    *("tool_call_ids", "tool_call_metadata", "toolCallId", "uuid", "parentUuid", "stepUuid"),
    *("text", "time", "name", "input", "origin", "tool"),
)
HELD = ("message", "payload", "data", "event", "part", "info", "state", "request", "response")
"""Fields that are objects."""
LISTED = ("history", "parts", "toolRequests", "tool_calls")
SAY = {"role": "assistant", "content": "hi"}
KINDS = (
    *("user", "assistant", "message", "response_item", "gemini", "session", "tool_result"),
    *("assistant.message", "tool.execution_complete", "reasoning"),
    *("context.append_message", "context.append_loop_event"),
)


def test_broken_lines_are_skipped_and_reported_with_their_number(write: Write) -> None:
    session = read_session(write(ASK, '{"role": "assis', "[1, 2]", "", SAY))
    assert len(session.calls) == 1
    assert [notice.line for notice in session.notices] == [2, 3]
    assert session.notices[0].text.startswith("broken JSON, skipped")


def is_lines(data: bytes) -> bool:
    """Whether a file is JSON lines, and not one document."""
    begin, _, rest = data.strip().partition(b"\n")
    with suppress(ValueError):
        return bool(rest) and isinstance(json.loads(begin), dict)
    return False


@for_each("sample", CORPUS, ids=lambda path: path.name)
def test_no_sample_needs_the_name_of_its_format(write: Write, sample: Path) -> None:
    """Whatever stands before it: lines of another program, in JSON or not, few or many."""
    data = sample.read_bytes()
    whole = read_session(sample)
    assert whole.format == sample.name.rpartition("-")[0]
    for before in ((b"Loading ...",), (b'{"level": "info"}',) * 300, (b'{"type": "banner"}', b"")):
        found = read_session(write(*before, data))
        assert (found.format, len(found.calls)) == (whole.format, len(whole.calls))


@for_each("sample", [p for p in CORPUS if is_lines(p.read_bytes())], ids=lambda path: path.name)
def test_a_log_without_its_first_lines_is_recognised_while_an_answer_is_left(
    write: Write, sample: Path
) -> None:
    named = read_session(sample).format
    lines = sample.read_bytes().strip().split(b"\n")
    for first in range(1, len(lines)):
        path = write(*lines[first:])
        with suppress(SessionFormatError):
            if (told := read_session(path, format=named)).calls:
                found = read_session(path)
                assert (found.format, len(found.calls)) == (named, len(told.calls)), first


def test_glued_objects_are_two(write: Write) -> None:
    session = read_session(write(json.dumps(ASK) + json.dumps(SAY) + " " + json.dumps(ASK)))
    assert len(session.items) == 3
    assert not session.notices


def test_what_stands_before_the_break_of_a_glued_line_survives(write: Write) -> None:
    session = read_session(write(json.dumps(ASK) + '{"role": ', SAY))
    assert len(session.items) == 2
    assert [notice.line for notice in session.notices] == [1]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (b"\\ud800", "\\ud800"),
        (b"caf\xe9 \\ud800", "caf\ufffd \\ud800"),
    ],
)
def test_what_is_no_text_becomes_visible(write: Write, content: bytes, shown: str) -> None:
    session = read_session(write(b'{"role": "user", "n": NaN, "content": "%b"}' % content, SAY))
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert prompt.text == shown
    again = write(b'{"role": "user", "content": "%b"}' % content)
    assert len(read_session(again).items) == 1


def test_a_document_with_nan_over_many_lines_is_read(write: Write) -> None:
    text = json.dumps({"messages": [ASK, SAY], "cost": float("nan")}, indent=1)
    assert len(read_session(write(text)).calls) == 1


def test_a_compressed_file_is_read_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps([ASK, SAY]).encode()))
    assert read_session(path).name == "talk"


def test_deep_nesting_is_a_broken_line(write: Write) -> None:
    session = read_session(write(ASK, "[" * 100_000, SAY))
    assert [notice.line for notice in session.notices] == [2]


@for_each(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"\x00\x01\x02", "binary"),
        (b"\x1f\x8b\x08\x00broken", "damaged gzip"),
        (b"just some text\n", "line 1: broken JSON"),
        (b'{"messages": [{"role": "user", "cont', "may be cut off"),
        (b"[1, 2, 3]", "contains no object"),
        (b'{"a": 1}', "unknown session format"),
        (b'{"a": 1}\n{"b": 2}', ", ".join(FORMATS)),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(SessionFormatError) as caught:
        read_session(path)
    message = str(caught.value)
    assert words in message
    assert str(path) in message
    assert "\n" not in message


def test_a_missing_file_and_a_folder_say_so(tmp_path: Path) -> None:
    with pytest.raises(SessionFormatError, match="no such file"):
        read_session(tmp_path / "nothing.jsonl")
    with pytest.raises(SessionFormatError, match="cannot be read"):
        read_session(tmp_path)


def test_an_unknown_format_name_is_the_callers_mistake(write: Write) -> None:
    with pytest.raises(MisuseError, match="no session format 'word'; known: auto, foldline"):
        read_session(write(ASK), format="word")


@for_each("name", FORMATS)
def test_a_file_of_another_format_gives_no_session(write: Write, name: str) -> None:
    with pytest.raises(SessionFormatError):
        read_session(write({"kind": "weather", "degrees": 3}), format=name)


@for_each("name", ["auto", *FORMATS])
@for_each("value", [None, 3, "x", [], {}, [None], [3, "x", [], {}], {"type": []}])
def test_fields_of_any_type_are_survived(write: Write, name: str, value: object) -> None:
    spoken = {**dict.fromkeys(KEYS, value), "role": "assistant"}
    held = {**dict.fromkeys(HELD, spoken), **{key: [spoken] for key in LISTED}}
    keys = ("type", *HELD, "")
    whole = range(len(keys) // 3)
    for turn in sized(whole[len(name) % len(whole) :][:1], whole):
        hit = [keys[(3 * turn + n) % len(keys)] for n in range(len(KINDS))]
        lines = [
            {**spoken, **held, "type": kind, key: value}
            for kind, key in zip(KINDS, hit, strict=True)
        ]
        with suppress(SessionFormatError):
            read_session(write(*lines), format=name)
        with suppress(SessionFormatError):
            read_session(write({**lines[0], "messages": lines, "samples": lines}), format=name)
