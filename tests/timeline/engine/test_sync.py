"""A timeline agrees with the history of another program, however that grows, is repeated or is edited."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from blocks import (
    ArgumentError,
    AssistantCompletion,
    Block,
    BlockAppended,
    HistoryDivergedError,
    ToolCall,
    ToolResult,
    UserAttachment,
    UserPrompt,
    UserSteer,
    encode_event,
    text_of,
)
from blocks.formats import Format, Json, messages_from
from persistence import MemoryStore
from render import Rendered
from tests._builders import Ids, blocks_in, open_timeline, steady
from tests._table import for_each
from tests.foreign import Line, Model, Talk, Tool, User, responded, talks, told, written
from timeline import Timeline
from timeline.engine._hiding import said_by
from timeline.engine._operations import OnDivergence

FORMATS: tuple[Format, ...] = get_args(Format)
formats = st.sampled_from(FORMATS)
HOWS: tuple[OnDivergence, ...] = ("fork", "follow", "append")


def held(timeline: Timeline) -> list[tuple[str, ...]]:
    """What a log holds of a conversation, from its first event on."""
    return lines(e.block for _, e in timeline.events() if isinstance(e, BlockAppended))


def lines(blocks: Iterable[Block]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for each in blocks:
        match each:
            case UserPrompt() as block:
                found.append(("user", block.text))
            case AssistantCompletion(text=text):
                found.append(("said", text))
            case ToolCall(call_id=call_id):
                found.append(("call", call_id))
            case ToolResult(call_id=call_id) as block:
                found.append(("result", call_id, text_of(block)))
            case _:
                pass
    return found


def opened(store: MemoryStore, prefix: str = "") -> Timeline:
    return open_timeline(store=store, ids=Ids(prefix), window=400, policy=steady())


def is_open(talk: Sequence[Line]) -> set[str]:
    """The calls at the end of a conversation that have no result."""
    calls = {call for line in talk if isinstance(line, Model) for call in line.calls}
    return calls - {line.call for line in talk if isinstance(line, Tool)}


@given(talks(), formats, st.data())
def test_however_a_history_grows_and_repeats_each_message_is_there_once(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    store, longest = MemoryStore(), 0
    timeline = opened(store)
    for number, length in enumerate(data.draw(st.lists(st.integers(0, len(talk)), max_size=6))):
        if data.draw(st.booleans()):
            timeline = opened(store, f"{number}-")
        timeline.sync(written(talk[:length], name), format=name)
        longest = max(longest, length)
        assert held(timeline) == told(talk[:longest])
        if data.draw(st.booleans()):
            assert timeline.render().violations == ()
    assert timeline.sync(written(talk, name), format=name).timeline is timeline
    assert held(timeline) == told(talk)
    assert set(timeline.open_calls) == is_open(talk)
    version = timeline.version
    again = timeline.sync(written(talk, name), format=name)
    assert (again.appended, again.diverged_at, timeline.version) == (0, None, version)


@given(talks(), formats, st.data())
def test_what_is_synced_is_sent_in_its_order_whenever_requests_were_made(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    """A history says what came after what, also where a request of another part of it still waits for its answer."""
    timeline = open_timeline(store=MemoryStore(), window=100_000)
    ends = data.draw(st.lists(st.integers(1, len(talk)), max_size=5).map(sorted))
    for end in (*ends, len(talk)):
        timeline.sync(written(talk[:end], name), format=name)
        if not is_open(talk[:end]):
            timeline.render()
    if is_open(talk):
        reject()
    request = timeline.render()
    texts = [c["text"] for m in request.messages for c in m["content"] if c["type"] == "text"]
    spoken = [line[1] for line in told(talk) if line[0] in {"user", "said"}]
    assert [text for text in texts if text != "[continue]"] == spoken


@given(talks(), formats, st.data())
def test_what_was_recorded_by_other_means_is_known(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    store = MemoryStore()
    timeline = opened(store)
    for number, line in enumerate(talk):
        how = data.draw(st.sampled_from(["sync", "own", "wait"]))
        if how == "sync":
            timeline.sync(written(talk[: number + 1], name), format=name)
        elif how == "own" and held(timeline) == told(talk[:number]):
            match line:
                case User(text):
                    timeline.user(text)
                case Tool(call, text):
                    timeline.tool_result(call, text)
                case Model():
                    timeline.record(responded(line, name, f"r{number}"), format=name)
        if data.draw(st.booleans()):
            assert timeline.render().violations == ()
        if data.draw(st.booleans()):
            timeline = opened(store, f"{number}-")
    timeline.sync(written(talk, name), format=name)
    assert held(timeline) == told(talk)


@given(talks(), formats, st.data())
def test_an_edited_history_is_refused_or_goes_on_in_a_fork(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    timeline = opened(MemoryStore())
    timeline.sync(written(talk, name), format=name)
    if data.draw(st.booleans()):
        timeline.compact()
    index = data.draw(st.integers(0, len(talk) - 1))
    line = talk[index]
    changed = attrs.evolve(line, text="something else")
    other = (*talk[:index], changed, *data.draw(st.sampled_from([talk[index + 1 :], ()])))
    version, before = timeline.version, held(timeline)
    with pytest.raises(HistoryDivergedError) as caught:
        timeline.sync(written(other, name), format=name)
    assert (timeline.version, held(timeline)) == (version, before)
    synced = timeline.sync(written(other, name), format=name, on_divergence="fork")
    assert synced.diverged_at == caught.value.message
    assert written(other, name)[: synced.diverged_at] == written(talk, name)[: synced.diverged_at]
    assert held(synced.timeline) == told(other)
    assert held(timeline) == before
    longer = (*other, User("and then?"))
    again = timeline.sync(written(longer, name), format=name, on_divergence="fork")
    assert again.timeline.id == synced.timeline.id
    assert held(again.timeline) == told(longer)
    assert again.timeline.render().violations == ()


@given(talks(), formats, st.data())
def test_a_history_may_begin_where_the_timeline_was(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    """Whoever begins anew gives what came behind a version; whoever has it all gives it all, in between."""
    store = MemoryStore()
    timeline = opened(store)
    longest = data.draw(st.integers(0, len(talk)))
    begun = written(talk[:longest], name)
    timeline.sync(begun, format=name)
    version = timeline.version
    for number in range(data.draw(st.integers(1, 5))):
        longest = data.draw(st.integers(longest, len(talk)))
        start, after = data.draw(st.sampled_from([(len(begun), version), (0, 0)]))
        messages = written(talk[:longest], name)[start:]
        synced = timeline.sync(messages, format=name, after=after)
        assert held(synced.timeline) == told(talk[:longest])
        assert synced.timeline is timeline
        match data.draw(st.sampled_from(["go on", "render", "compact", "reopen"])):
            case "render":
                assert timeline.render().violations == ()
            case "compact":
                timeline.compact()
            case "reopen":
                timeline = opened(store, f"{number}-")
            case _:
                pass
    assert timeline.sync(written(talk, name), format=name).timeline is timeline
    assert held(timeline) == told(talk)


@given(talks(), formats, st.data())
def test_what_came_behind_a_version_is_refused_when_it_was_edited(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    timeline = opened(MemoryStore())
    timeline.user("Before.")
    after, before = timeline.version, held(timeline)
    timeline.sync(written(talk, name), format=name, after=after)
    if data.draw(st.booleans()):
        timeline.compact()
    index = data.draw(st.integers(0, len(talk) - 1))
    changed = attrs.evolve(talk[index], text="something else")
    other = (*talk[:index], changed, *talk[index + 1 :])
    with pytest.raises(HistoryDivergedError):
        timeline.sync(written(other, name), format=name, after=after)
    synced = timeline.sync(written(other, name), format=name, after=after, on_divergence="fork")
    assert held(synced.timeline) == [*before, *told(other)]
    assert held(timeline) == [*before, *told(talk)]


@given(talks(), formats, st.data())
def test_a_history_that_went_back_is_followed_into_a_fork_that_is_found_again(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    store = MemoryStore()
    timeline = opened(store)
    timeline.sync(written(talk, name), format=name)
    if data.draw(st.booleans()):
        timeline.compact()
    before = held(timeline)
    earlier = talk[: data.draw(st.integers(1, len(talk)))]
    seen = {timeline.id}
    other: Talk = earlier
    for number in range(data.draw(st.integers(1, 3))):  # going back again from where that led
        here = opened(store, f"{number}-")
        synced = here.sync(written(earlier, name), format=name, on_divergence="follow")
        went_back = earlier != talk
        assert (synced.timeline is here) is not went_back
        assert synced.diverged_at == (len(written(earlier, name)) if went_back else None)
        assert held(synced.timeline) == told(earlier)
        assert (synced.timeline.id in seen) is not went_back
        seen.add(synced.timeline.id)
        said = Model(f"answer {number}")
        synced.timeline.record(responded(said, name, f"r{number}"), format=name)
        other = (*earlier, said, User("and then?"))
        where = synced.timeline.id
        again = opened(store, f"{number}+").sync(
            written(other, name), format=name, on_divergence="follow"
        )
        assert again.timeline.id == (where if went_back else timeline.id)
        assert held(again.timeline) == told(other)
        assert again.timeline.render().violations == ()
        if not went_back:
            return
    assert held(timeline) == before


@given(talks(), formats, st.data())
def test_what_was_read_before_changes_nothing_in_what_is_written(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    """A timeline reads only what is new; an object that has read nothing yet writes the same, byte by byte."""
    each: list[dict[str, Any]] = [
        {"store": MemoryStore(), "ids": Ids(), "clock": lambda: 1.0, "window": 400}
        for _ in range(2)
    ]
    timelines = [open_timeline(**options) for options in each]
    for _ in range(data.draw(st.integers(1, 6))):
        lines = talk[: data.draw(st.integers(0, len(talk)))]
        is_edited = data.draw(st.booleans())
        if lines and is_edited:
            index = data.draw(st.integers(0, len(lines) - 1))
            edited = attrs.evolve(lines[index], text="something else")
            lines = (*lines[:index], edited, *lines[index + 1 :])
        how = data.draw(st.sampled_from(HOWS))
        does_compact = data.draw(st.booleans())
        for place, timeline in enumerate(timelines):
            found = timeline.sync(written(lines, name), format=name, on_divergence=how).timeline
            if does_compact:
                found.compact()
            timelines[place] = open_timeline(found.id, **each[1]) if place else found
        here, anew = ([encode_event(e) for _, e in one.events()] for one in timelines)
        assert here == anew


@for_each("name", FORMATS)
def test_of_a_history_that_has_grown_only_what_is_new_is_read(name: Format) -> None:
    """The rest is only compared, by a hash of each message; counted in calls of functions."""
    talk = [line for n in range(100) for line in (User(f"Why {n}?"), Model(f"So {n}."))]
    timeline, calls = open_timeline(), list[int]()
    for length in (190, 200):
        messages = written(talk[:length], name)
        with counted(calls):
            timeline.sync(messages, format=name)
    assert calls[1] * 5 < calls[0]


@contextmanager
def counted(found: list[int]) -> Iterator[None]:
    """Adds how many functions are called inside."""
    names = Counter[str]()
    sys.setprofile(lambda _, event, __: names.update([event]))
    try:
        yield
    finally:
        sys.setprofile(None)
    found.append(names["call"])


@given(talks(), formats, st.data())
def test_whoever_keeps_a_part_has_what_the_log_lacks_appended_and_nothing_diverges(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    """It gives its part piece by piece, late, and some of it again, while others append to the timeline."""
    store = MemoryStore()
    timeline = opened(store)
    timeline.user("Before.")
    after, said, longest = timeline.version, ["Before."], 0
    for number in range(data.draw(st.integers(1, 5))):
        longest = data.draw(st.integers(longest, len(talk)))
        part = written(talk[:longest], name)
        synced = timeline.sync(part, format=name, after=after, on_divergence="append")
        assert synced.timeline is timeline
        own = [line for line in held(timeline) if line not in [("user", text) for text in said]]
        assert own == [line for line in told(talk[:longest]) if line[1] not in said]
        if data.draw(st.booleans()):
            said.append(f"Meanwhile {number}.")
            timeline.user(said[-1])
        if data.draw(st.booleans()):
            timeline = opened(store, f"{number}-")


@given(
    st.lists(st.sampled_from(["yes", "Go on.", "Done."]), min_size=2, max_size=12),
    st.integers(2, 6),
)
def test_who_keeps_only_the_newest_messages_loses_none_that_says_the_same_as_an_earlier_one(
    words: Sequence[str], size: int
) -> None:
    timeline, said = open_timeline(store=MemoryStore()), list[Json]()
    for number, text in enumerate(words):
        content = text if number % 2 else f"{text} Number {number}?"
        said.append({"role": ("user", "assistant")[number % 2], "content": content})
        timeline.sync(said[-size - 1 :], format="anthropic", on_divergence="append")
    assert [line[1] for line in held(timeline)] == [each["content"] for each in said]


def test_a_history_that_a_database_gave_back_with_sorted_keys_is_the_same() -> None:
    call = {
        "type": "tool_use",
        "id": "c1",
        "name": "run",
        "input": {"path": "a.py", "line": {"to": 9, "from": 1}},
    }
    history = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": [call]}]
    timeline = open_timeline(store=MemoryStore())
    timeline.sync(history, format="anthropic")
    back = json.loads(json.dumps(history, sort_keys=True))
    assert timeline.sync(back, format="anthropic").appended == 0


@for_each("behind", [[], [{"type": "tool_use", "id": "c1", "name": "run", "input": {}}]])
def test_an_answer_that_only_its_provider_reads_is_kept(behind: list[Json]) -> None:
    """Also when the user speaks next: a summary by the server, a search that it made."""
    summary = {"type": "compaction", "content": "So far: a lot."}
    answer = {"role": "assistant", "content": [*behind, summary]}
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"} for _ in behind]
    words = {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}
    history = [{"role": "user", "content": "Hi."}, answer, words]
    timeline = open_timeline(store=MemoryStore())
    timeline.sync(history, format="anthropic")
    told = [c for m in timeline.render().messages for c in m["content"]]
    assert any(each.get("content") == summary["content"] for each in told)
    assert timeline.sync(history, format="anthropic").appended == 0
    grown = [*history, {"role": "assistant", "content": "Now this."}]
    assert timeline.sync(grown, format="anthropic").appended == 1


def test_a_call_that_waits_is_known_to_whoever_keeps_only_what_came_later() -> None:
    timeline = open_timeline(store=MemoryStore())
    timeline.user("Restart it.")
    call: Json = {"type": "tool_use", "id": "c1", "name": "restart", "input": {}}
    timeline.record(responded(Model("", ("c1",)), "anthropic", "r1"), format="anthropic")
    result: Json = {"type": "tool_result", "tool_use_id": "c1", "content": "It is up."}
    later: list[Json] = [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    timeline.sync(later, format="anthropic", after=timeline.version, on_divergence="append")
    assert [line[0] for line in held(timeline)] == ["user", "call", "result"]


@for_each("on_divergence", ["fork", "follow"])
def test_a_fork_has_nothing_of_an_answer_that_is_gone(on_divergence: OnDivergence) -> None:
    timeline = open_timeline(store=MemoryStore())
    asked = {"role": "user", "content": "Why?"}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said = {"role": "assistant", "content": [thought, {"type": "text", "text": "So."}]}
    timeline.sync([asked, said], format="anthropic")
    gone = [asked, *([{"role": "assistant", "content": "No."}] if on_divergence == "fork" else [])]
    fork = timeline.sync(gone, format="anthropic", on_divergence=on_divergence).timeline
    assert fork is not timeline
    assert thought not in [c for m in fork.render().messages for c in m["content"]]


@given(talks(), formats, st.data())
def test_two_who_sync_the_same_history_append_it_once(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    store = MemoryStore()
    both = [opened(store, "a-"), opened(store, "b-")]
    for length in range(1, len(talk) + 1):
        sync = partial(Timeline.sync, messages=written(talk[:length], name), format=name)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(sync, both))
        if data.draw(st.booleans()):
            both[0].render()
    assert held(both[0]) == told(talk) == held(both[1])


words = st.sampled_from(["", " ", "yes", "go on"])
ids = st.sampled_from(["", "c1", "c2", "m1"])
odd = st.none() | words | st.integers() | st.just({"a": float("nan")})
contents = odd | st.lists(
    odd
    | st.fixed_dictionaries({"type": st.just("text"), "text": odd})
    | st.fixed_dictionaries({"type": st.sampled_from(["tool_use", "new", "image"]), "id": ids})
    | st.fixed_dictionaries({"type": st.just("thinking"), "thinking": words})
    | st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": ids, "content": odd}),
    max_size=3,
)
odd_messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "assistant", "tool"]),
        "type": st.sampled_from(["message", "human", "ai", "tool", "function_call", "reasoning"]),
        "kind": st.sampled_from(["request", "response"]),
        "id": ids,
        "content": contents,
        "tool_call_id": ids,
        "call_id": ids,
        "tool_calls": st.lists(st.fixed_dictionaries({"id": ids, "function": odd}), max_size=2),
        "parts": st.lists(
            st.fixed_dictionaries(
                {
                    "part_kind": st.sampled_from(
                        ["user-prompt", "tool-return", "tool-call", "text"]
                    ),
                    "content": contents,
                    "tool_call_id": ids,
                }
            ),
            max_size=2,
        ),
    }
)


@given(st.lists(odd_messages, max_size=8), formats, st.data())
def test_a_history_that_makes_no_sense_is_there_once_too(
    messages: list[dict[str, object]], name: Format, data: st.DataObject
) -> None:
    store = MemoryStore()
    timeline = opened(store)
    try:
        list(messages_from(messages, name))
    except ArgumentError:  # of a role that this format does not have
        reject()
    for number, length in enumerate(data.draw(st.lists(st.integers(0, 8), max_size=3))):
        timeline.sync(messages[:length], format=name)
        assert timeline.render().violations == ()
        if data.draw(st.booleans()):
            timeline = opened(store, f"{number}-")
    timeline.sync(messages, format=name)
    version = timeline.version
    assert timeline.sync(messages, format=name).appended == 0
    assert timeline.version == version
    timeline.render()
    assert opened(store, "z-").sync(messages, format=name).appended == 0
    fresh = opened(MemoryStore())
    fresh.sync(messages, format=name)
    assert held(fresh) == held(timeline)


@for_each("named", [0, 1, None])
def test_the_newest_answer_belongs_to_the_request_that_is_named(named: int | None) -> None:
    timeline = open_timeline(model="claude-sonnet-5-5")
    said: list[object] = [{"role": "user", "content": "Look."}]
    requests: list[Rendered] = []
    for words in ("Are you there?", "Please."):
        timeline.sync(said, format="anthropic")
        requests.append(timeline.render())
        said.append({"role": "user", "content": words})
    thought = {"type": "thinking", "thinking": "So.", "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Here."}]}
    history = [*said[:2], answer, said[-1]]
    timeline.sync(history, format="anthropic", rendered=None if named is None else requests[named])
    asked = {entry.request for entry in timeline.view.entries if entry.request}
    assert {each.sent for each in asked} == {"?" if named is None else requests[named].sent}


def test_a_placeholder_is_no_id() -> None:
    """The Agents SDK gives all items of another API's models the same one."""
    said = [
        {
            "id": "__fake_id__",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        }
        for text in ("One.", "Two.")
    ]
    timeline = opened(MemoryStore())
    history = [{"role": "user", "content": "Go."}, said[0]]
    timeline.sync(history, format="openai.responses")
    timeline.sync([*history, said[1]], format="openai.responses")
    assert held(timeline) == [("user", "Go."), ("said", "One."), ("said", "Two.")]
    assert all(not entry.block.source for entry in timeline.view.entries)


def test_the_texts_of_one_message_are_sent_again_as_so_many() -> None:
    """A provider's cache knows a message by its blocks: one that is put together anew is another one."""
    texts = ["Be brief.", "Fix the parser.", "It is in src."]
    said = [{"type": "text", "text": text} for text in texts]
    timeline = opened(MemoryStore())
    timeline.sync([{"role": "user", "content": said}], format="anthropic")
    [message] = timeline.render().messages
    assert [block["text"] for block in message["content"]] == texts


def test_a_message_of_several_texts_is_carried_over_a_compaction_as_one_quotation() -> None:
    texts = ["Be brief.", "Fix the parser."]
    history = [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}]
    timeline = open_timeline(store=MemoryStore(), ids=Ids(), window=600, policy=steady())
    for number in range(14):
        call = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "ok " * 30}
        history.append({"role": "assistant", "content": [call]})
        history.append({"role": "user", "content": [result]})
        timeline.sync(history, format="anthropic")
        timeline.render()
    shown = [block.get("text", "") for block in timeline.render().messages[0]["content"]]
    [quoted] = [text for text in shown if text.startswith("<earlier-message")]
    assert "\n".join(texts) in quoted
    assert not set(texts) & set(shown)


def test_what_an_agents_program_puts_beside_the_users_words_is_context() -> None:
    """As in an imported log: it need not be kept to the letter, and opens no turn."""
    reminder, instructions = (
        "<system-reminder>Be brief.</system-reminder>",
        "# AGENTS.md instructions for /app\n\nUse tabs.",
    )
    history = [
        {"role": "user", "content": instructions},
        {
            "role": "user",
            "content": [{"type": "text", "text": text} for text in (reminder, "Fix it.")],
        },
    ]
    timeline = opened(MemoryStore())
    timeline.sync(history, format="openai.chat")
    blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
    assert [b.name for b in blocks if isinstance(b, UserAttachment)] == [
        "AGENTS.md",
        "system-reminder",
    ]
    assert [b.text for b in blocks if isinstance(b, UserPrompt)] == ["Fix it."]
    assert {b.turn for b in blocks} == {"t1"}
    sent = [block["text"] for m in timeline.render().messages for block in m["content"]]
    assert sent == [instructions, reminder, "Fix it."]
    assert timeline.sync(history, format="openai.chat").appended == 0


def test_what_a_user_says_behind_an_interruption_is_a_prompt_of_its_own() -> None:
    """An agent's program sends what was begun, interrupted and begun anew as one message."""
    texts = ["Fix it.", "[Request interrupted by user]", "Fix the tests first.", "Then lint."]
    history = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": text} for text in texts]},
    ]
    timeline = opened(MemoryStore())
    timeline.sync(history, format="anthropic")
    blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
    prompts = [(b.turn, b.text) for b in blocks if isinstance(b, UserPrompt)]
    assert prompts == [("t1", "Hello."), ("t2", "Fix it."), ("t3", "Fix the tests first.")]
    assert [b.turn for b in blocks if isinstance(b, UserAttachment)] == ["t2"]
    last = timeline.render().messages[-1]["content"]
    assert [block["text"] for block in last] == texts
    assert timeline.sync(history, format="anthropic").appended == 0


def test_beside_results_it_is_one_too_and_other_words_reach_an_agent_at_work() -> None:
    def said(*texts: str) -> list[Json]:
        return [{"type": "text", "text": text} for text in texts]

    history: list[Json] = [{"role": "user", "content": "Fix it."}]
    for number, texts in enumerate([("Hurry.",), ("[Request interrupted by user]", "Stop it.")]):
        call = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "ok"}
        history.append({"role": "assistant", "content": [call]})
        history.append({"role": "user", "content": [result, *said(*texts)]})
    timeline = opened(MemoryStore())
    timeline.sync(history, format="anthropic")
    blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
    words = [b for b in blocks if isinstance(b, UserPrompt | UserSteer)]
    assert [(type(b), b.turn, b.text) for b in words] == [
        (UserPrompt, "t1", "Fix it."),
        (UserSteer, "t1", "Hurry."),
        (UserPrompt, "t2", "Stop it."),
    ]


# What is hidden on request.


def marked(talk: Talk) -> Talk:
    """The conversation with a mark in each text, which is in no other."""
    return tuple(
        attrs.evolve(line, text=f"{line.text} mark_{number:04}") for number, line in enumerate(talk)
    )


def marks_in(text: str) -> set[str]:
    return set(re.findall(r"mark_\d{4}", text))


def sent(timeline: Timeline) -> set[str]:
    return marks_in(json.dumps(timeline.render().request()))


def hide_some(timeline: Timeline, data: st.DataObject) -> set[str]:
    """Hide some blocks; return their marks."""
    said = {block.id: marks_in(said_by(block)) for _, block in blocks_in(timeline)}
    marked_blocks = [name for name in said if said[name]]
    chosen = data.draw(st.sets(st.sampled_from(marked_blocks), min_size=1)) if marked_blocks else ()
    if not chosen:  # all lines were edited
        return set()
    timeline.hide(*sorted(chosen))
    return {mark for name in chosen for mark in said[name]}


def elsewhere(talks: Sequence[Talk], number: int, data: st.DataObject) -> tuple[Talk, OnDivergence]:
    """The newest conversation after an edit, with or without what came behind it; or as it was some time ago."""
    if data.draw(st.booleans()):
        return data.draw(st.sampled_from(talks)), "follow"
    talk = talks[-1]
    index = data.draw(st.integers(0, len(talk) - 1))
    if index and data.draw(st.booleans()):
        return talk[:index], "follow"
    text = f"something else {number}"
    rest = data.draw(st.sampled_from([talk[index + 1 :], ()]))
    how: OnDivergence = data.draw(st.sampled_from(["fork", "follow"]))
    return (*talk[:index], attrs.evolve(talk[index], text=text), *rest), how


@given(talks(), formats, st.data())
def test_what_is_hidden_stays_hidden_wherever_its_history_goes_on(
    talk: Talk, name: Format, data: st.DataObject
) -> None:
    """Edited before it or behind it, from the timeline, its fork or a copy, before or after it was hidden."""
    store, talks = MemoryStore(), [marked(talk)]
    timeline, hidden = opened(store), set[str]()
    timeline.sync(written(talks[0], name), format=name)
    for number in range(data.draw(st.integers(1, 5))):
        match data.draw(st.sampled_from(["hide", "compact", "reopen", "copy", "pass"])):
            case "hide":
                hidden |= hide_some(timeline, data)
            case "compact":
                timeline.compact()
            case "reopen":
                timeline.flush()
                timeline = open_timeline(
                    timeline.id, store=store, ids=Ids(f"{number}-"), window=400, policy=steady()
                )
            case "copy":
                at = data.draw(st.integers(1, timeline.version))
                timeline = timeline.fork(f"copy{number}", at=at)
            case _:
                pass
        talk, how = elsewhere(talks, number, data)
        talks.append(talk)
        timeline = timeline.sync(written(talk, name), format=name, on_divergence=how).timeline
        assert held(timeline) == told(talk)
        assert sent(timeline).isdisjoint(hidden)
        withheld = timeline.view.state.withheld
        said = (said_by(block) for _, block in blocks_in(timeline) if block.id in withheld)
        assert marks_in(" ".join(said)) <= hidden


@for_each("name", FORMATS)
def test_a_fork_that_was_there_before_the_hide_hides_it_too(name: Format) -> None:
    talk = marked((User("Log in"), Model("done"), User("And now?"), Model("it works")))
    other = (*talk[:2], User("And then?"))
    timeline = opened(MemoryStore())
    timeline.sync(written(talk, name), format=name)
    fork = timeline.sync(written(other, name), format=name, on_divergence="fork").timeline
    timeline.hide("ar:t1.user.prompt", replacement="[a secret]")
    again = timeline.sync(written(other, name), format=name, on_divergence="fork").timeline
    assert again.id == fork.id
    assert "mark_0000" not in sent(again)
    assert "[a secret]" in json.dumps(again.render().request())


@for_each("name", FORMATS)
def test_what_is_restored_is_shown_in_a_fork_that_begins_while_it_was_hidden(name: Format) -> None:
    talk = marked((User("Log in"), Model("done"), User("And now?")))
    timeline = opened(MemoryStore())
    timeline.sync(written(talk, name), format=name)
    timeline.hide("ar:t1.user.prompt", "ar:t2.user.prompt")
    version = timeline.version
    timeline.restore("ar:t1.user.prompt")
    fork = timeline.fork("other", at=version)
    assert sent(fork) == {"mark_0000", "mark_0001"}


def test_the_same_words_as_in_a_hidden_message_are_shown_where_they_are_new() -> None:
    talk = (User("Go on."), Model("so"), User("Go on."), Model("done"))
    timeline = opened(MemoryStore())
    timeline.sync(written(talk, "openai.chat"), format="openai.chat")
    timeline.hide("ar:t1.user.prompt")
    other = (*talk[:3], Model("not yet"), User("Go on."))
    fork = timeline.sync(
        written(other, "openai.chat"), format="openai.chat", on_divergence="fork"
    ).timeline
    assert json.dumps(fork.render().request()).count("Go on.") == 2


def test_a_history_that_parts_reads_the_log_once_to_see_where_and_never_for_its_origin() -> None:
    class Counting(MemoryStore):
        events_read = 0

        def read(self, *given: Any, **options: Any) -> Any:
            page = super().read(*given, **options)
            self.events_read += len(page)
            return page

    store = Counting()
    timeline = open_timeline(store=store, window=2_000)
    history: list[dict[str, Any]] = []
    for number in range(40):
        history += [
            {"role": "user", "content": f"Question {number}? " + "word " * 40},
            {"role": "assistant", "content": [{"type": "text", "text": f"Answer {number}."}]},
        ]
        timeline.sync(history, format="anthropic")
        timeline.render()
    assert timeline.view.compaction is not None, "its beginning is folded"
    store.events_read = 0
    parted = [*history[:-2], {"role": "user", "content": "Another question?"}]
    fork = timeline.sync(parted, format="anthropic", on_divergence="fork").timeline
    assert fork.id != timeline.id
    assert fork.view.state.parent == timeline.id
    assert store.events_read <= timeline.version, store.events_read
