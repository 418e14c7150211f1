"""A session file has a limit, and what unpacks beyond it never takes the memory for it."""

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import MisuseError, SessionFormatError
from persistence.sessions import read_session
from persistence.sessions._source import NOTICES_MAX, VALUES_MIN, open_source

MB = 2**20
LIMIT = MB
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


@pytest.fixture(params=sorted(BOMBS))
def bomb(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A small file that unpacks to twelve times the limit."""
    before, unit, behind = BOMBS[request.param]
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(before)
        for _ in range(12):
            file.write(unit * (MB // len(unit)))
        file.write(behind)
    return path


def test_what_unpacks_beyond_the_limit_is_one_clear_error_and_no_memory(bomb: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(SessionFormatError, match="unpacks to more than") as caught:
            read_session(bomb, bytes_max=LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * LIMIT
    message = str(caught.value)
    assert "\n" not in message
    assert f"{LIMIT:,} bytes" in message
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
