"""A session file has a limit, and what unpacks beyond it never takes the memory for it."""

import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import MisuseError, SessionFormatError, UserPrompt
from persistence.sessions import read_session
from persistence.sessions._read import FORMATS
from persistence.sessions._source import NOTICES_MAX, VALUES_MIN, open_source
from tests._sizes import sized
from tests._table import for_each

MB = 2**20
LIMIT = MB
BOMB_LIMIT = MB // 4
SAY = b'{"role": "user", "content": "hello"}'
ANSWER = b'{"role": "assistant", "content": "hi"}'
BOMBS = {
    "one string": (b'{"messages": [{"role": "user", "content": "', b"a", b'"}]}'),
    "one string, cut off": (b'{"messages": [{"role": "user", "content": "', b"a", b""),
    "lines": (b"", SAY + b"\n", b""),
    "a document over many lines": (b"[\n", SAY + b",\n", SAY + b"]"),
    "spaces": (b"", b" ", b""),
    "empty lines": (SAY, b"\n", b""),
    "lines that say nothing": (SAY, b"\n{}", b""),
    "numbers": (SAY + b"\n", b"1\n", b""),
    "empty objects": (b"[", b"{},", b"{}]"),
    "open brackets": (b"", b"[", b""),
    "glued objects": (b"", b"{}", b""),
}


def packed(path: Path, name: str) -> Path:
    """A small file that unpacks to twelve times the limit."""
    before, unit, behind = BOMBS[name]
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(before)
        for _ in range(12):
            file.write(unit * (BOMB_LIMIT // len(unit)))
        file.write(behind)
    return path


@for_each("name", sorted(BOMBS))
def test_what_unpacks_beyond_the_limit_is_one_clear_error_and_no_memory(
    name: str, tmp_path: Path
) -> None:
    bomb = packed(tmp_path / "bomb.json.gz", name)
    tracemalloc.start()
    try:
        with pytest.raises(SessionFormatError, match="unpacks to more than") as caught:
            read_session(bomb, bytes_max=BOMB_LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * BOMB_LIMIT
    message = str(caught.value)
    assert "\n" not in message
    assert f"{BOMB_LIMIT:,} bytes" in message
    assert "--bytes-max N" in message
    assert "(bytes_max, or --bytes-max N)" in message


def test_a_plain_file_has_the_same_limit(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    path.write_bytes((SAY + b"\n") * 1000)
    with pytest.raises(SessionFormatError, match="has more than 1,000 bytes"):
        read_session(path, bytes_max=1000)
    assert len(read_session(path, bytes_max=path.stat().st_size).items) == 1000


def test_a_file_of_values_has_a_limit_for_them(tmp_path: Path) -> None:
    path = tmp_path / "values.json"
    path.write_bytes(b'{"messages": [' + SAY + b'], "x": [' + b"0," * VALUES_MIN + b"0]}")
    with pytest.raises(SessionFormatError, match=f"{VALUES_MIN:,} JSON values"):
        read_session(path, bytes_max=LIMIT)
    assert len(read_session(path, bytes_max=8 * LIMIT).items) == 1


def test_an_endless_file_is_told_by_its_beginning() -> None:
    with pytest.raises(SessionFormatError, match="binary"):
        read_session("/dev/zero")


def test_a_limit_below_one_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="bytes_max=0"):
        read_session(tmp_path / "x.jsonl", bytes_max=0)


def test_a_file_cut_off_while_it_is_unpacked_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress((SAY + b"\n") * 10_000)[:-20])
    with pytest.raises(SessionFormatError, match="damaged gzip"):
        read_session(path)


def test_many_broken_lines_are_counted_and_not_all_listed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(SAY + b"\n" + b"{\n" * (NOTICES_MAX + 5) + ANSWER)
    notices = read_session(path).notices
    assert len(notices) == NOTICES_MAX + 1
    assert "5 more such places, skipped" in {notice.text for notice in notices}


LINES = st.sampled_from(
    [SAY, ANSWER, b"", b"  ", b"{", b"[1]", b"{}", b'{"a": NaN}', SAY + SAY, b"[", b"]", b",", b"x"]
)


@given(st.lists(LINES, max_size=6), st.sampled_from([b"\n", b"\r\n"]), st.integers(0, 2))
def test_line_by_line_gives_what_all_at_once_gives(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bytes, last: int
) -> None:
    data = end.join(lines) + end * last
    folder = tmp_path_factory.mktemp("source")
    plain, packed = folder / "a.jsonl", folder / "b.jsonl.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    assert found(plain) == found(packed)
    try:
        whole = json.loads(data, parse_constant=str)
    except ValueError:
        numbers = [number for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        assert {number for number, _ in found(plain)} <= {0, *numbers}
    else:
        objects = [item for item in (whole if isinstance(whole, list) else [whole]) if item]
        assert [value for _, value in found(plain)] == [i for i in objects if isinstance(i, dict)]


def found(path: Path) -> list[tuple[int, object]]:
    """Each object with its number; none if there is none."""

    def records() -> Iterator[tuple[int, object]]:
        try:
            yield from open_source(str(path)).records
        except SessionFormatError:
            return

    return list(records())


# Damaged files: read what can be read, name what cannot, and never a traceback.


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
REPLY = {"role": "assistant", "content": "hi"}
KINDS = (
    *("user", "assistant", "message", "response_item", "gemini", "session", "tool_result"),
    *("assistant.message", "tool.execution_complete", "reasoning"),
    *("context.append_message", "context.append_loop_event"),
)


def test_broken_lines_are_skipped_and_reported_with_their_number(write: Write) -> None:
    session = read_session(write(ASK, '{"role": "assis', "[1, 2]", "", REPLY))
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
    session = read_session(write(json.dumps(ASK) + json.dumps(REPLY) + " " + json.dumps(ASK)))
    assert len(session.items) == 3
    assert not session.notices


def test_what_stands_before_the_break_of_a_glued_line_survives(write: Write) -> None:
    session = read_session(write(json.dumps(ASK) + '{"role": ', REPLY))
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
    session = read_session(write(b'{"role": "user", "n": NaN, "content": "%b"}' % content, REPLY))
    prompt = session.items[0].blocks[1]
    assert isinstance(prompt, UserPrompt)
    assert prompt.text == shown
    again = write(b'{"role": "user", "content": "%b"}' % content)
    assert len(read_session(again).items) == 1


def test_a_document_with_nan_over_many_lines_is_read(write: Write) -> None:
    text = json.dumps({"messages": [ASK, REPLY], "cost": float("nan")}, indent=1)
    assert len(read_session(write(text)).calls) == 1


def test_a_compressed_file_is_read_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps([ASK, REPLY]).encode()))
    assert read_session(path).name == "talk"


def test_deep_nesting_is_a_broken_line(write: Write) -> None:
    session = read_session(write(ASK, "[" * 100_000, REPLY))
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
        (b'{"role": "system", "content": "evaluated"}', f"give its name: {', '.join(FORMATS)}"),
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


VALUES: list[object] = [None, 3, "x", [], {}, [None], [3, "x", [], {}], {"type": []}]
FIELDS = [(name, value) for name in ("auto", *FORMATS) for value in VALUES]


# Usually every third, so each format with other values than its neighbours, and each value in several formats.
@for_each(("name", "value"), sized(FIELDS[::3], FIELDS))
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
