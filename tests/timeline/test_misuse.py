"""Wrong use: one error of ours, and nothing in the log; what is accepted is shown, and reopens equal."""

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import (
    AlreadyRecordedError,
    ArgumentError,
    BlockId,
    BlocksHidden,
    CodecError,
    DocumentPart,
    EventId,
    FoldlineError,
    Hidden,
    ImagePart,
    MisuseError,
    Note,
    OpaqueBlock,
    ProviderPart,
    StructuredSummary,
    TextPart,
    TimelineId,
    TurnId,
    UnknownCallError,
    UnknownPathError,
    UsageRecorded,
    UserPrompt,
    VersionConflictError,
    clean_json,
)
from blocks._errors import QUOTED_MAX
from blocks.formats._formats import FORMATS
from persistence import MemoryStore
from render import Policy, Summary
from tests import _builders as make
from tests._builders import Clock, open_timeline, response, text, text_in, tool_use
from tests._table import for_each
from timeline import AsyncTimeline, Hooks, Timeline

HALF = "cut \ud83d"
FOUND = {
    "type": "search_result",
    "source": "https://example.org/a",
    "title": "A",
    "content": [{"type": "text", "text": "found it"}],
}


def begun(store: MemoryStore | None = None) -> Timeline:
    """A timeline that waits for the results of two calls."""
    timeline = open_timeline(store=store)
    timeline.user("Look.")
    timeline.record(response(text("I look."), tool_use("call_1"), tool_use("call_2"), id="r1"))
    return timeline


# Any junk, for every verb.

texts = st.text(max_size=8) | st.sampled_from(("", " ", "\0", HALF, "call_1", "ar:t1.user.prompt"))
scalars = st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats() | texts
junk = st.recursive(
    scalars | st.binary(max_size=4) | st.sampled_from((object(), len, print, Timeline, 1j)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=3)
        | st.tuples(inner)
        | st.builds(TextPart, text=inner)
        | st.builds(ImagePart, data=inner, url=inner, media_type=inner | st.just("image/png"))
        | st.builds(DocumentPart, data=inner, url=inner, name=inner)
        | st.builds(ProviderPart, value=inner)
    ),
    max_leaves=5,
)
contents = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("text", "tool_use", "thinking", "image", "compaction", "new"))
        | junk
    },
    optional=dict.fromkeys(("text", "id", "name", "input", "thinking", "content"), junk),
)
responses = junk | st.fixed_dictionaries(
    {"content": st.lists(contents | junk, max_size=3) | junk},
    optional={
        "id": st.just("r1") | junk,
        "type": st.sampled_from(("message", "error")) | junk,
        "role": st.sampled_from(("assistant", "user")) | junk,
        "usage": st.dictionaries(st.sampled_from(("input_tokens", "output_tokens")), junk) | junk,
        "stop_reason": st.just("max_tokens") | junk,
    },
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(("text", "image", "document", "search_result")) | junk},
    optional={
        "text": junk,
        "title": junk,
        "content": st.lists(contents, max_size=2) | junk,
        "citations": st.just({"enabled": True}) | junk,
        "source": junk
        | st.fixed_dictionaries(
            {"type": st.sampled_from(("base64", "url", "text", "file", "content"))},
            optional=dict.fromkeys(("data", "url", "media_type", "file_id", "content"), junk),
        ),
    },
)
blocks = junk | st.one_of(
    st.builds(UserPrompt, id=junk, turn=junk, text=junk, parts=junk),
    st.builds(Note, id=texts, turn=texts, text=junk),
    st.builds(OpaqueBlock, junk, st.dictionaries(texts, junk, max_size=3) | junk),
)
versions = st.integers(-2, 9) | junk
system = st.lists(contents, max_size=2) | junk
tools = (
    st.lists(st.fixed_dictionaries({}, optional={"name": junk, "type": junk}), max_size=2) | junk
)

VERBS: dict[str, st.SearchStrategy[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    name: st.tuples(arguments, st.fixed_dictionaries({}, optional=named))
    for name, arguments, named in (
        ("append", st.lists(blocks, max_size=2).map(tuple), {"at": junk}),
        ("user", st.tuples(junk) | st.tuples(texts, parts | junk), {}),
        ("steer", st.tuples(junk), {}),
        ("followup", st.tuples(junk), {}),
        ("attach", st.tuples(texts | junk, parts | junk), {"mime": junk}),
        ("record", st.tuples(responses), {}),
        (
            "tool_result",
            st.tuples(st.just("call_1") | junk, st.lists(parts | junk, max_size=2) | junk),
            {"is_error": st.booleans(), "envelope": junk},
        ),
        ("notice", st.tuples(junk), {}),
        ("close_calls", st.tuples(junk), {}),
        ("learn", st.tuples(junk | st.builds(UsageRecorded, id=junk, at=junk, uncached=junk)), {}),
        ("note", st.tuples(junk), {}),
        ("plan", st.tuples(junk), {}),
        ("hide", st.lists(texts | junk, max_size=2).map(tuple), {"replacement": junk}),
        ("restore", st.lists(texts | junk, max_size=2).map(tuple), {}),
        ("render", st.just(()), {"system": system, "tools": tools}),
        ("compact", st.just(()), {"system": system, "tools": tools}),
        ("propose", st.just(()), {"system": system, "tools": tools}),
        ("upgrade_summary", st.just(()), {"system": system, "tools": tools}),
        ("expand", st.just(()), {}),
        ("commit_draft", st.tuples(junk), {"system": system, "tools": tools}),
        ("read", st.tuples(junk), {}),
        ("search", st.tuples(junk), {"limit": versions}),
        ("events", st.just(()), {"after": versions}),
        ("at", st.tuples(versions), {}),
        ("render_at", st.tuples(versions), {"system": system, "tools": tools}),
        ("fork", st.tuples(junk | st.just("other")), {"at": versions}),
    )
}


def said_in(verb: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
    """The texts that a verb was given to be shown, as JSON can hold them."""
    given: list[Any] = []
    match verb:
        case "hide" if named.get("replacement"):
            given = [named["replacement"]]
        case "record":
            given = [item.get("text") for item in arguments[0]["content"] if item["type"] == "text"]
        case "tool_result" | "attach":
            given = arguments[1] if isinstance(arguments[1], list) else [arguments[1]]
            given = [item.get("text") if isinstance(item, dict) else item for item in given]
            given = [item.text if isinstance(item, TextPart) else item for item in given]
        case "user" | "steer" | "followup" | "notice" | "note" | "plan":
            given = [arguments[0]]
        case _:
            pass
    return [clean_json(words) for words in given if isinstance(words, str) and words.strip()]


@pytest.mark.parametrize("verb", VERBS)
@given(st.data())
def test_junk_is_refused_whole_or_shown(verb: str, data: st.DataObject) -> None:
    arguments, named = data.draw(VERBS[verb])
    store = MemoryStore()
    timeline = begun(store)
    before, head = timeline.version, store.head(TimelineId("talk"))
    try:
        getattr(timeline, verb)(*arguments, **named)
    except FoldlineError:
        assert (timeline.version, store.head(TimelineId("talk"))) == (before, head)
    else:
        shown = text_in(timeline.render())
        assert all(words in shown for words in said_in(verb, arguments, named))
    rendered = timeline.render()
    assert rendered.violations == ()
    assert open_timeline(store=store).render().content_hash == rendered.content_hash


@for_each("verb", [*VERBS, "snapshot", "flush", "close"])
@for_each("kind", [Timeline, AsyncTimeline])
def test_a_misspelt_argument_is_one_error(verb: str, kind: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"{kind.__name__}\.{verb}\(\) takes no 'systm'"):
        _asked(kind, verb)


def _asked(kind: Any, verb: str) -> None:
    answer = getattr(kind, verb)(begun(), systm="x")
    answer.send(None)  # of the async one, the first step


# Options.

WRONG: dict[str, tuple[Any, ...]] = {
    "store": (5, b"x", "", " ", [], MemoryStore, {"path": "x"}),
    "model": (3, "", ["claude"], b"claude"),
    "policy": (3, "", {}, Policy),
    "window": (0, -1, "30000", 3.5, True, [1]),
    "counter": (5, len, "tiktoken", [1]),
    "summarizer": ("extractive", 5),
    "hooks": ([print], print, {}, Hooks),
    "observers": (print, [5], "abc", 5),
    "tracer": (5, "otel", print),
    "meter": (5, "otel", print),
    "clock": (5, 1e9, "now"),
    "ids": ("id", 5),
    "keep_thinking": ("no", 0, 1),
    "validate": ("yes", 0, 1),
    "artifacts": (5, b"x", [], ""),
    "keys": ({"k": b"x"}, "key"),
    "requester": ("me", 5),
    "probe": ("same", 5),
}


@for_each(("name", "value"), [(n, v) for n in WRONG for v in WRONG[n]], ids=repr)
def test_an_option_that_holds_what_it_cannot_is_named(name: str, value: Any) -> None:
    with pytest.raises(MisuseError, match=name):
        Timeline.open("x", **{name: value})


@for_each("name", WRONG)
def test_none_stands_for_the_default(name: str) -> None:
    options: dict[str, Any] = {name: None}
    Timeline.open("x", **options).close()


@for_each("name", [None, 3, "", " ", b"x", "nul\0", HALF, ["x"]])
def test_a_name_that_is_none_is_refused_where_it_is_given(name: Any) -> None:
    with pytest.raises(MisuseError, match="name"):
        Timeline.open(name)
    with pytest.raises(MisuseError, match="name"):
        begun().fork(name)


# Wrong on purpose, also in their types: each call must raise an error with this text.
WRONG_CALLS: list[tuple[Callable[[], object], str]] = [
        (lambda: Timeline.open("x", stor="a", windw=3), "'stor'; did you mean 'store'.*'windw'; did you mean 'window'"),  # type: ignore[call-arg]
        (lambda: Timeline.open("x", zzz=3), "'zzz' .there are store, model"),  # type: ignore[call-arg]
        (lambda: Timeline.open("x", policy="defalt"), "'defalt'; did you mean 'default'"),
        (lambda: Timeline.open("x", counter="estimte"), "'estimte'; did you mean 'estimate'"),
        (lambda: Policy(keep_rato=0.5), "'keep_rato'; did you mean 'keep_ratio'"),  # type: ignore[call-arg]
        (lambda: Policy(keep_ratio="much"), "'keep_ratio' must be a number"),  # type: ignore[arg-type]
        (lambda: Hooks(on_before_compation=[print]), "did you mean 'on_before_compaction'"),  # type: ignore[call-arg]
        (lambda: Hooks(on_before_compaction=print), "on_before_compaction must be a list"),  # type: ignore[arg-type]
        (lambda: Hooks(on_after_compaction=[5]), "on_after_compaction must be a list"),  # type: ignore[list-item]
        (lambda: begun().render(tool=[]), "'tool'; did you mean 'tools'"),  # type: ignore[call-arg]
        (lambda: begun().render().anthropic(max_token=5), "did you mean 'max_tokens'"),  # type: ignore[call-arg]
        (lambda: begun().render().anthropic(max_tokens="5"), "max_tokens"),  # type: ignore[arg-type]
        (lambda: begun().hide("ar:t1.user.promt"), "did you mean 'ar:t1.user.prompt'"),
        (lambda: begun().read("ar:t1.user.promt"), "did you mean 'ar:t1.user.prompt'"),
        (lambda: begun().hide(), "at least one"),
        (lambda: begun().hide(["ar:t1.user.prompt"]), "separate arguments"),  # type: ignore[arg-type]
        (lambda: begun().tool_result("call1", "x"), "no call 'call1'; did you mean 'call_1'"),
        (lambda: begun().tool_result("zzz", "x"), "open calls: call_1, call_2"),
        (lambda: begun().render(tools=[{"input_schema": {}}]), "tools.0 has no name"),
        (lambda: begun().render(tools="bash"), "tools must be a list"),  # type: ignore[arg-type]
        (lambda: begun().render(tools=[{"type": "function", "function": {}}]), "tools.0 has no name"),
        (lambda: begun().render(system=5), "system must be a text"),  # type: ignore[arg-type]
        (lambda: begun().render(system=HALF), "JSON"),
        (lambda: begun().append("x"), "must be a block"),  # type: ignore[arg-type]
        (lambda: begun().append(Note(id=BlockId(""), turn=TurnId("t1"), text="x")), "id is empty"),
        (lambda: begun().append(Note(id=BlockId("b"), turn=TurnId("t1"), text=5)), "Expected `str`, got `int`"),  # type: ignore[arg-type]
        (lambda: begun().user("x", "y"), "TextPart"),  # type: ignore[arg-type]
        (lambda: begun().attach("its text"), "needs a name and a part"),
        (lambda: begun().attach("a.png", ImagePart(data="aGk="), standing=True), "is a text"),
        (lambda: begun().attach("a.png", ImagePart(data=b"\x89PNG")), "base64"),  # type: ignore[arg-type]
        (lambda: begun().attach("a.png", ImagePart(data="no base64!")), "not base64"),
        (lambda: begun().attach("a.bmp", ImagePart(data="aGk=", media_type="image/bmp")), "image/bmp"),
        (lambda: begun().tool_result("call_1", None), "text, or a list"),  # type: ignore[arg-type]
        (lambda: begun().tool_result("call_1", [{"type": "serch_result"}]), "did you mean 'search_result'"),
]  # fmt: skip


@for_each(("do", "said"), WRONG_CALLS, ids=[str(number) for number in range(len(WRONG_CALLS))])
def test_the_message_says_what_where_and_the_nearest_right_name(
    do: Callable[[], object], said: str
) -> None:
    with pytest.raises(MisuseError, match=said):
        do()


def test_a_fork_onto_a_used_name_says_so() -> None:
    timeline = begun()
    timeline.fork("taken")
    with pytest.raises(VersionConflictError, match="timeline 'taken' already exists"):
        timeline.fork("taken")


def test_an_error_of_a_wrong_argument_is_also_what_python_would_raise() -> None:
    for expected in (TypeError, ValueError, ArgumentError, MisuseError):
        with pytest.raises(expected):
            Policy(keep_ratio=-1)


LONG = "Qq " * 2_000
UNBROKEN = "Qq_" * 2_000


def long_values(text: str) -> list[Any]:
    """Values of many shapes that hold a long text."""
    call = {"type": "tool_use", "id": text, "name": text, "input": text}
    return [
        text,
        text.encode(),
        [text] * 30,
        (text, text),
        {text: text},
        {"type": "error", "error": {"type": text, "message": text}},
        {"id": text, "role": text, "content": [call]},
        {"id": "r9", "content": [{"type": "text", "text": "a"}], "usage": text},
        ImagePart(data=text, media_type=text),
        Note(id=BlockId(text), turn=TurnId(text), text=5),  # type: ignore[arg-type]  # what is wrong here
    ]


def refused_briefly(do: Callable[..., object], *arguments: Any, **named: Any) -> None:
    said = ""
    try:
        do(*arguments, **named)
    except (FoldlineError, TypeError) as error:
        said = str(error) if isinstance(error, FoldlineError) else ""
    assert 3 * said.count("Qq") <= QUOTED_MAX + 2, said  # it is cut anywhere


@for_each("long", [LONG, UNBROKEN], ids=["words", "unbroken"])
def test_no_error_quotes_more_than_200_characters_of_what_was_given(long: str) -> None:
    for value in long_values(long):
        for verb in [*VERBS, "retain", "forget", "sync", "recording"]:
            method = getattr(begun(), verb)
            refused_briefly(method, value)
            refused_briefly(method, "call_1", value)
            for name in signature(method).parameters:
                refused_briefly(method, **{name: value})
        for name in attrs.fields_dict(Policy):
            refused_briefly(Policy, **{name: value})
        for format_ in FORMATS:
            refused_briefly(begun().record, value, format=format_)
            refused_briefly(begun().sync, [value], format=format_)
        refused_briefly(Timeline.open, "talk", model=value)
        refused_briefly(Timeline.open, "talk", policy=value)
        refused_briefly(Timeline.open, value, store=value)
        refused_briefly(Timeline.open, "talk", store=value)
    refused_briefly(begun().user, "x", **{long: 1})
    timeline = begun()
    timeline.record(response(*(tool_use(f"Qq{number}" * 9) for number in range(99)), id="m"))
    refused_briefly(timeline.tool_result, "unknown", "x")


# Responses.

FOREIGN: dict[str, tuple[Any, str]] = {
    "chat completion": (
        {"id": "x", "object": "chat.completion", "choices": [{"message": {"content": "hi"}}]},
        "Chat Completions",
    ),
    "responses": ({"id": "x", "object": "response", "output": []}, "Responses API"),
    "gemini": ({"candidates": [{"content": {"parts": []}}]}, "Gemini"),
    "text": ("hello", "'hello'"),
    "nothing": (None, "None"),
    "empty": ({}, "content must be a list"),
    "no content": (response(id="r2"), "empty"),
    "list": ([text("hi")], "a list"),
    "error": ({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}, "Busy"),
    "user": (response(text("hi"), role="user"), "role must be 'assistant'"),
    "event": ({"type": "message_start", "message": {}}, "type must be 'message'"),
    "content as text": ({"role": "assistant", "content": "hi"}, "content must be a list"),
    "text of no type": (response({"text": "hi"}), "content.0"),
    "text that is none": (response({"type": "text", "text": 5}), "content.0.*text.text"),
    "openai item": (response({"type": "output_text", "text": "hi"}), "output_text"),
    "request content": (response({"type": "tool_result", "content": "x"}), "tool_result"),
    "call without an id": (response({"type": "tool_use", "name": "f", "input": {}}), "tool_use.id"),
    "call without a name": (response({"type": "tool_use", "id": "a", "name": " "}), "tool_use.name"),
    "id": (response(text("hi")) | {"id": 5}, "id must be a text"),
    "usage": (response(text("hi"), usage=5), "not 5"),
    "class": (Timeline, "a type"),
}  # fmt: skip


@for_each(("given", "said"), FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_response_is_refused_and_says_whose_it_is(given: Any, said: str) -> None:
    timeline = begun()
    before = timeline.version
    with pytest.raises(MisuseError, match=said):
        timeline.record(given)
    assert timeline.version == before


async def _later() -> None:
    pass


def test_a_response_that_was_not_awaited_says_so() -> None:
    waiting = _later()
    with pytest.raises(MisuseError, match="await it"):
        begun().record(waiting)
    waiting.close()


def test_an_answer_without_a_word_counts_if_it_was_paid_for() -> None:
    """The provider sends such; its usage is a fact."""
    timeline = begun()
    before = timeline.version
    assert timeline.record(response(id="r2", usage={"output_tokens": 2})) == before + 1


def test_a_kind_of_content_of_tomorrow_is_kept_and_told() -> None:
    timeline = open_timeline()
    timeline.user("go")
    timeline.record(response({"type": "hologram", "x": 1}, text("Look."), id="m", type="message"))
    rendered = timeline.render()
    assert "provider.hologram" in str(rendered.notices)
    assert text_in(rendered).endswith("Look.\n[continue]")


def test_content_may_be_the_sdks_objects() -> None:
    class Block:
        def to_dict(self) -> dict[str, Any]:
            return text("from an object")

    timeline = open_timeline()
    timeline.user("go")
    timeline.record({"content": [Block()]})
    assert "from an object" in text_in(timeline.render())


def test_a_response_is_recorded_once() -> None:
    timeline = begun()
    said = text("I look."), tool_use("call_1"), tool_use("call_2")
    with pytest.raises(AlreadyRecordedError, match="'r1' is already recorded, at version 5") as one:
        timeline.record(response(*said, id="r1"))
    assert one.value.version == 5
    for _ in timeline.open_calls:
        timeline.tool_result(timeline.open_calls[0], "ok")
    timeline.record(response(id="r2", usage={"input_tokens": 3}))
    with pytest.raises(AlreadyRecordedError):
        timeline.record(response(id="r2", usage={"input_tokens": 3}))


def test_a_call_has_one_result() -> None:
    timeline = begun()
    version = timeline.tool_result("call_1", "one")
    with pytest.raises(AlreadyRecordedError, match=f"version {version}"):
        timeline.tool_result("call_1", "two")
    timeline.render()  # answers call_2 as interrupted
    late = timeline.tool_result("call_2", "late")
    with pytest.raises(AlreadyRecordedError, match=f"version {late}"):
        timeline.tool_result("call_2", "later")
    with pytest.raises(UnknownCallError):
        timeline.tool_result("call_3", "three")


def test_a_repeated_id_takes_as_many_results_as_there_are_calls() -> None:
    """Recorded logs repeat them; so may a provider, in another turn."""
    timeline = begun()
    timeline.tool_result("call_1", "one")
    timeline.user("again")
    timeline.record(response(tool_use("call_1"), tool_use("call_1"), id="r2"))
    timeline.tool_result("call_1", "two")
    timeline.tool_result("call_1", "three")
    with pytest.raises(AlreadyRecordedError):
        timeline.tool_result("call_1", "four")
    assert timeline.render().violations == ()


def test_who_was_slower_is_told_though_the_view_did_not_know() -> None:
    """Two objects on one timeline: the check is repeated with what the other one wrote."""
    store = MemoryStore()
    one = begun(store)
    two = open_timeline(store=store, ids=make.Ids("two"))
    one.tool_result("call_1", "one")
    one.record(response(text("so"), id="r2"))
    with pytest.raises(AlreadyRecordedError):
        two.tool_result("call_1", "two")
    two = open_timeline(store=store, ids=make.Ids("two"))
    one.record(response(text("there"), id="r3"))
    with pytest.raises(AlreadyRecordedError):
        two.record(response(text("there"), id="r3"))
    assert two.version == one.version
    assert [type(b).__name__ for _, b in make.blocks_in(two)].count("ToolResult") == 1


def test_append_takes_what_was_recorded_elsewhere() -> None:
    """Results without calls, repeated ids, broken images: the request repairs them and tells."""
    timeline = begun()
    timeline.append(make.result("nobody", "x"), make.call("call_1"), make.call("call_1"))
    timeline.append(make.prompt("see", "t2", ImagePart(data="[redacted]")))
    assert timeline.render().violations == ()
    with pytest.raises(MisuseError, match="not an http"):
        timeline.append(make.prompt("see", "t2", ImagePart(url="file:///etc/passwd")))


# Texts that JSON cannot hold.


def test_half_a_character_is_refused_in_what_the_caller_writes() -> None:
    timeline = begun()
    for verb in ("user", "steer", "followup", "notice", "note", "plan", "close_calls"):
        with pytest.raises(MisuseError, match="surrogate pair at character 4"):
            getattr(timeline, verb)(HALF)
    with pytest.raises(MisuseError, match="replacement has half of a surrogate"):
        timeline.hide("ar:t1.user.prompt", replacement=HALF)


def test_half_a_character_of_a_model_or_a_tool_is_spelled_out() -> None:
    """What others wrote was paid for: nothing of it is lost for one character."""
    timeline = begun()
    timeline.tool_result("call_1", HALF)
    timeline.record(response(text(f"said {HALF}"), tool_use("a", x=HALF), id="r2"))
    shown = text_in(timeline.render())
    assert shown.count("ud83d") == 3


def test_an_old_log_with_half_a_character_still_renders() -> None:
    block = make.prompt("secret")
    hidden = Hidden(block=block.id, replacement=HALF)
    event = BlocksHidden(id=EventId("h"), at=1.0, hidden=(hidden,), reason="requested")
    live = make.shown(make.view_of(block, event))
    assert text_in(live) == clean_json(HALF)
    store = MemoryStore()
    store.append(TimelineId("talk"), [make.appended(block), event], expected_version=0)
    assert text_in(open_timeline(store=store).render()) == clean_json(HALF)


@for_each(
    "written",  # the second has a wrong type on purpose
    [StructuredSummary(task=HALF), StructuredSummary(task=5), "text", None],  # type: ignore[arg-type]
    ids=repr,
)
def test_a_summariser_of_ones_own_cannot_break_a_request(written: Any) -> None:
    """Half a character is spelled out; a summary that is none counts as a failure."""
    store = MemoryStore()
    options: dict[str, Any] = {"store": store, "window": 2000}
    summary = Summary(summary=written) if written else written
    timeline = open_timeline(summarizer=lambda _: summary, **options)
    timeline.user("Do it.")
    for number in range(20):
        timeline.record(response(tool_use(f"c{number}"), id=f"r{number}"))
        timeline.tool_result(f"c{number}", "x" * 400)
    rendered = timeline.compact()
    assert rendered.violations == ()
    assert timeline.view.compaction is not None
    assert open_timeline(**options).render().content_hash == timeline.render().content_hash


def test_an_input_that_is_nested_too_deeply_is_refused() -> None:
    deep = make.deep(100_000)
    timeline = begun()
    with pytest.raises(CodecError, match="nested"):
        timeline.record(response({"type": "tool_use", "id": "a", "name": "f", "input": deep}))
    assert timeline.version == begun().version
    while deep:  # Python's own clean-up would recurse
        deep = deep["x"]


@for_each("at", ["now", None, True, math.nan])
def test_a_clock_that_tells_no_time_is_refused(at: Any) -> None:
    with pytest.raises(MisuseError, match="seconds since the epoch"):
        Timeline.open("x", clock=lambda: at).note("x")


# What is printed.


def test_what_is_printed_is_short_and_says_nothing_of_the_content() -> None:
    timeline = open_timeline("talk", window=3000, clock=Clock(1e9))
    secret = "hunter2"  # noqa: S105 -- what must not be shown
    timeline.user(f"The password is {secret}. " * 50)
    for number in range(20):
        call = tool_use(f"c{number}", "bash", command=f"login {secret} " * 20)
        timeline.record(response(text(secret), call, id=f"r{number}"))
        timeline.tool_result(f"c{number}", secret * 100)
    rendered = timeline.compact(system=secret)
    assert repr(timeline) == "<Timeline 'talk': version 64, model loose, window 3,000>"
    view = timeline.view
    assert view.compaction is not None
    draft = timeline.propose()
    printed = [timeline, rendered, view, view.compaction, view.groups[-1], view.entries[-1], draft]
    printed += [timeline.snapshot(), timeline.settings, timeline._operations, MemoryStore()]
    for thing in printed:
        assert secret not in repr(thing)
        assert len(repr(thing)) < 3000


def test_a_timeline_is_itself_and_no_other() -> None:
    one, two = begun(), begun()
    assert len({one, one, two}) == 2
    assert one != two


def test_an_unknown_path_keeps_its_type() -> None:
    with pytest.raises(UnknownPathError, match="foldline show"):
        begun().read("zzz")
