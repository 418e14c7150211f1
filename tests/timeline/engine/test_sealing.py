"""A confidential result is shown to the model and to nobody else: the log holds no word of it.

The canary is a word that occurs nowhere else. It is looked for in every file of a store, and in every event.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks import (
    ENCRYPTED,
    BlockAppended,
    BlockId,
    Envelope,
    ImagePart,
    MisuseError,
    Provenance,
    StructuredSummary,
    TextPart,
    ToolResult,
    UnknownCallError,
    encode_event,
    text_of,
)
from persistence import (
    EventStore,
    Keys,
    MemoryStore,
    Requester,
    SQLiteStore,
    open_artifacts,
    open_store,
)
from render import Policy, Summary, ToolPolicy
from tests._table import for_each
from tests.persistence.contract import STORES, new_store
from timeline import Timeline
from timeline.cli import main
from timeline.engine._artifacts import ABSENT, NO_KEY, REMOVED
from timeline.engine._engine import counted
from timeline.react import AgentSettings, ReactAgent, ToolReply, reading_tools, tool
from timeline.summarizers._summarizer import SummaryRequest

CANARY = "c4nary"
SECRET = f"{CANARY} the salary of Ann is {CANARY}52000"
KEYS = Keys({"k1": b"0" * 32}, current="k1")
CONFIDENTIAL = Envelope(sensitivity="confidential")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    with closing(new_store(request, tmp_path)) as made:
        yield made


@attrs.define
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def opened(store: EventStore, name: str = "talk", **options: Any) -> Timeline:
    given: dict[str, Any] = {
        "keys": KEYS,
        "clock": Clock(),
        "window": 40_000,
        "validate": True,
        **options,
    }
    return Timeline.open(name, store=store, **given)


def calling(timeline: Timeline, call: str, name: str = "salary") -> None:
    content = {"type": "tool_use", "id": call, "name": name, "input": {"who": "Ann"}}
    timeline.record({"id": f"m-{call}", "role": "assistant", "content": [content]})


def asked(timeline: Timeline, output: Any = SECRET, call: str = "c1", **known: Any) -> None:
    timeline.user("What does Ann earn?")
    calling(timeline, call)
    said: dict[str, Any] = {"sensitivity": "confidential", **known}
    timeline.tool_result(call, output, envelope=Envelope(**said))


def log_of(store: EventStore, name: str = "talk") -> bytes:
    return b"\n".join(encode_event(event) for _, event in store.read(name))  # type: ignore[arg-type]


def sent(timeline: Timeline) -> bytes:
    return msgspec.json.encode(timeline.render().anthropic(max_tokens=1000))


def artifact_in(timeline: Timeline) -> str:
    blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
    return next(b.artifact for b in blocks if isinstance(b, ToolResult) and b.artifact)


# What is where.


def test_the_model_sees_what_it_would_see_of_any_result(store: EventStore) -> None:
    with opened(store) as secret, opened(MemoryStore()) as open_:
        asked(secret)
        asked(open_, sensitivity="internal")
        assert sent(secret) == sent(open_)
        assert CANARY.encode() in sent(secret)
        shown = sent(open_)
    with opened(store) as again:
        assert sent(again) == shown, "live and reopened are the same, byte for byte"


def test_the_log_holds_no_word_of_it(store: EventStore) -> None:
    with opened(store) as timeline:
        asked(timeline)
        sent(timeline)
        assert CANARY.encode() not in log_of(store)
        assert timeline.search(CANARY) == []
        assert CANARY not in repr([timeline.events(), timeline.view, timeline])
        assert SECRET in text_of(timeline.read("tc:t1.c1.result"))
        assert SECRET in text_of(timeline.read("v4"))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_no_file_of_a_store_holds_a_word_of_it(kind: str, tmp_path: Path) -> None:
    where = f"{kind}:///{tmp_path}/talks.{kind}"
    for _ in range(2):  # written, and rewritten
        with closing(open_store(where)) as made, opened(made) as timeline:
            asked(timeline, call=f"c{timeline.version}")
            timeline.compact()
            files = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert files
            assert not any(CANARY.encode() in path.read_bytes() for path in files)
    for command in (["show", "talk", "--json"], ["show", "talk"], ["export", "talk"], ["verify"]):
        assert main([*command, "--store", where]) == 0, command


def test_no_command_prints_a_word_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    where = f"sqlite:///{tmp_path}/talks.sqlite"
    with closing(open_store(where)) as made, opened(made) as timeline:
        asked(timeline)
        asked(timeline, "plain", call="c2", sensitivity="internal")
        timeline.compact()
    for command in (
        ["show", "talk", "--json"],
        ["show", "talk", "--block", "tc:t1.c1.result"],
        ["export", "talk"],
        ["list"],
        ["stats", "talk"],
        ["render", "talk"],
        ["search", CANARY],
        ["verify"],
    ):
        main([*command, "--store", where])
    printed = capsys.readouterr()
    said = f"{printed.out}{printed.err}{caplog.text}".replace(f"search {CANARY}", "")
    assert "salary of Ann" not in said
    assert f"{CANARY}52000" not in said


def test_parts_of_every_kind_come_back(store: EventStore) -> None:
    parts = [TextPart(text=SECRET), ImagePart(data="aGk="), TextPart(text="語 \0 end")]
    with opened(store) as timeline:
        asked(timeline, parts)
        found = timeline.read("tc:t1.c1.result")
        assert isinstance(found, ToolResult)
        assert list(found.parts) == parts
        before = sent(timeline)
    with opened(store) as again:
        assert sent(again) == before


def test_a_policy_says_what_is_confidential(store: EventStore) -> None:
    policy = Policy(name="own", tools={"salary": ToolPolicy(sensitivity="restricted")})
    with opened(store, policy=policy) as timeline:
        asked(timeline, sensitivity="internal")
        assert CANARY.encode() not in log_of(store)
        found = timeline.read("tc:t1.c1.result")
        assert isinstance(found, ToolResult)
        assert found.envelope.sensitivity == "restricted"


def test_the_id_of_a_short_content_is_no_way_to_guess_it(store: EventStore) -> None:
    """A hash of "yes" could be looked up; that of what is kept cannot."""
    with opened(store) as timeline:
        asked(timeline, "yes", "c1")
        asked(timeline, "yes", "c2")
        blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
        ids = {b.artifact for b in blocks if isinstance(b, ToolResult)}
        assert len(ids) == 2


# Where nothing keeps it.


def test_without_keys_it_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with (
        SQLiteStore(tmp_path / "talks.sqlite") as made,
        Timeline.open("talk", store=made) as timeline,
    ):
        timeline.user("What does Ann earn?")
        calling(timeline, "c1")
        before = timeline.version
        with pytest.raises(MisuseError, match=r"keys=Keys.*sensitivity=") as refused:
            timeline.tool_result("c1", SECRET, envelope=CONFIDENTIAL)
        assert CANARY not in str(refused.value)
        assert timeline.version == before
        timeline.tool_result("c1", "nothing", is_error=True)  # the call is still open
    with SQLiteStore(tmp_path / "talks.sqlite") as made, opened(made) as timeline:
        asked(timeline, call="c2")  # the advice is true


def test_what_is_in_memory_only_needs_no_keys() -> None:
    with Timeline.open("talk") as timeline:
        asked(timeline)
        assert CANARY.encode() in sent(timeline)


def test_a_result_that_is_refused_leaves_no_artifact(store: EventStore) -> None:
    with opened(store) as timeline:
        timeline.user("Hello.")
        with pytest.raises(UnknownCallError):
            timeline.tool_result("nobody asked", SECRET, envelope=CONFIDENTIAL)
        artifacts = store.artifacts(keys=KEYS)
        everything = Requester("me", permissions={"read", "read:confidential"})
        assert artifacts.list(everything) == []


def test_an_agent_says_at_once_that_it_cannot_keep_what_a_tool_returns(tmp_path: Path) -> None:
    @tool(sensitivity="confidential")
    def salary(who: str) -> str:
        """What somebody earns."""
        return f"{who}: {SECRET}"

    class Client:
        messages: Any = None

    with (
        SQLiteStore(tmp_path / "talks.sqlite") as made,
        Timeline.open("talk", store=made) as timeline,
    ):
        with pytest.raises(MisuseError, match="what salary returns is confidential"):
            ReactAgent(timeline, Client(), tools=[salary]).run("What does Ann earn?")
        assert timeline.version == 0


def test_a_reply_that_turns_out_to_be_confidential_does_not_end_the_turn(tmp_path: Path) -> None:
    from timeline.react._agent import _append
    from timeline.react._tools import Caller

    @tool
    def salary(who: str) -> ToolReply:
        """What somebody earns."""
        return ToolReply(output=f"{who}: {SECRET}", sensitivity="restricted")

    class Client:
        messages: Any = None

    with (
        SQLiteStore(tmp_path / "talks.sqlite") as made,
        Timeline.open("talk", store=made) as timeline,
    ):
        timeline.user("What does Ann earn?")
        calling(timeline, "c1")
        agent = ReactAgent(timeline, Client(), tools=[salary])
        assert isinstance(agent, AgentSettings)
        call = timeline.read("tc:t1.c1.call")
        made_caller: Caller = agent.caller
        _append(agent, made_caller.call(call))  # type: ignore[arg-type]  # it is a call
        assert CANARY.encode() not in log_of(made)
        assert b"is confidential, and there is nowhere to keep it" in sent(timeline)


def test_what_is_read_back_is_as_confidential_as_it_was() -> None:
    everything = Requester("me", permissions={"read", "read:confidential"})
    with opened(MemoryStore(), requester=everything) as timeline:
        asked(timeline)
        by_path, by_id = reading_tools(timeline)
        for reply in (
            by_path.call(path="tc:t1.c1.result"),
            by_id.call(artifact_id=artifact_in(timeline)),
        ):
            assert isinstance(reply, ToolReply)
            assert CANARY in str(reply.output)
            assert reply.sensitivity == "confidential"


# Once it is gone.


def test_forgetting_the_artifact_forgets_the_result(store: EventStore) -> None:
    with opened(store) as timeline:
        asked(timeline)
        artifact = artifact_in(timeline)
        told = timeline.forget(artifact=artifact)
        assert not any("block that it was made of" in place for place in told.may_remain)
        live = sent(timeline)
        assert CANARY.encode() not in live
        assert REMOVED.encode() in live
        assert artifact.encode() in live
    with opened(store) as again:
        assert sent(again) == live


def test_forgetting_the_block_takes_the_artifact_with_it(store: EventStore) -> None:
    with opened(store) as timeline:
        asked(timeline)
        assert timeline.forget("tc:t1.c1.result").artifacts == 1
        live = sent(timeline)
        assert CANARY.encode() not in live
        assert b"forgotten on request" in live
        assert "forgotten on request" in text_of(timeline.read("tc:t1.c1.result"))


def asked_with_its_artifact_in(store: EventStore, place: Path) -> str:
    """The reference of the artifact, which is in another place than the log."""
    with opened(store, artifacts=place) as timeline:
        asked(timeline)
        return artifact_in(timeline)


@pytest.mark.parametrize("path", ["tc:t1.c1.result", None])
def test_what_would_stay_in_another_place_is_not_forgotten_without_it(
    tmp_path: Path, path: str | None
) -> None:
    with SQLiteStore(tmp_path / "talks.sqlite") as made:
        artifact = asked_with_its_artifact_in(made, tmp_path / "artifacts")
        before = log_of(made)
        with opened(made) as other, pytest.raises(MisuseError, match=f"{artifact} is not in this"):
            other.forget(path)
        assert log_of(made) == before
        with opened(made, artifacts=tmp_path / "artifacts") as timeline:
            assert timeline.forget(path).artifacts == 1
    assert not any((tmp_path / "artifacts" / "content").iterdir())


@pytest.mark.parametrize("path", ["tc:t1.c1.result", None])
def test_who_says_that_there_are_no_artifacts_is_told_what_may_remain(
    tmp_path: Path, path: str | None
) -> None:
    with SQLiteStore(tmp_path / "talks.sqlite") as made:
        artifact = asked_with_its_artifact_in(made, tmp_path / "artifacts")
        with Timeline.open("talk", store=made, artifacts=None) as other:
            assert (
                f"artifact {artifact}, if it is in another store" in other.forget(path).may_remain
            )


def test_a_result_whose_artifact_is_gone_is_forgotten_as_any_other(store: EventStore) -> None:
    with opened(store) as timeline:
        asked(timeline)
        timeline.forget(artifact=artifact_in(timeline))
        assert timeline.forget("tc:t1.c1.result").blocks == 1


def test_another_artifact_store_is_not_taken_for_a_removal(
    store: EventStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(store, artifacts=tmp_path / "artifacts") as timeline:
        asked(timeline)
        asked(timeline, "more", "c2")
    with opened(store, artifacts=tmp_path / "artefacts") as other:
        shown = sent(other)
        assert sent(other) == shown
    assert ABSENT.encode() in shown
    assert REMOVED.encode() not in shown
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "not in the artifact store that was given" in caplog.text


def test_what_has_expired_is_shown_no_more_live_or_reopened(store: EventStore) -> None:
    clock = Clock()
    policy = Policy(name="own", artifact_seconds=60.0)
    with opened(store, policy=policy, clock=clock) as timeline:
        asked(timeline)
        clock.now += 59
        assert CANARY.encode() in sent(timeline)
        clock.now += 1
        live = sent(timeline)
        assert CANARY.encode() not in live
        assert REMOVED.encode() in live
        with opened(store, policy=policy, clock=clock) as again:
            assert sent(again) == live
        timeline.retain("keep")
        artifacts = store.artifacts(keys=KEYS)
        assert "expire" in {record.action for record in artifacts.audit(artifact_in(timeline))}
        assert sent(timeline) == live


def test_without_the_key_the_rest_of_the_log_is_shown(store: EventStore) -> None:
    with opened(store) as timeline:
        asked(timeline)
    with Timeline.open("talk", store=store) as other:
        shown = sent(other)
        assert CANARY.encode() not in shown
        assert NO_KEY.encode() in shown
        assert b"What does Ann earn?" in shown


def test_a_hidden_result_is_gone_from_the_request_and_comes_back(store: EventStore) -> None:
    with opened(store) as timeline:
        asked(timeline)
        before = timeline.render().messages
        timeline.hide("tc:t1.c1.result")
        assert CANARY.encode() not in sent(timeline)
        timeline.restore("tc:t1.c1.result")
        assert timeline.render().messages == before


# Where it goes with the log.


def test_a_copy_has_it_and_a_fork_shows_it(store: EventStore, tmp_path: Path) -> None:
    with opened(store) as timeline:
        asked(timeline)
        live = timeline.render().messages
        assert timeline.fork("other").render().messages == live
    with SQLiteStore(tmp_path / "copy.sqlite") as target:
        store.copy_to(target, ["talk"])
        with opened(target) as copied:
            assert copied.render().messages == live


def test_a_copy_forgets_it_with_the_next_copy(store: EventStore, tmp_path: Path) -> None:
    with opened(store) as timeline, SQLiteStore(tmp_path / "copy.sqlite") as target:
        asked(timeline)
        asked(timeline, "another", "c2")
        store.copy_to(target)
        timeline.forget("tc:t1.c1.result")
        assert store.copy_to(target).replaced == 1
        left, *more = target.artifacts(keys=KEYS).backend.entries()
        assert (left.metadata.path, more) == ("tc:t2.c2.result", [])


def test_it_may_lie_in_a_folder(tmp_path: Path) -> None:
    with (
        SQLiteStore(tmp_path / "talks.sqlite") as made,
        open_artifacts(tmp_path / "artifacts", keys=KEYS) as artifacts,
    ):
        for _ in range(2):
            with opened(made, artifacts=artifacts) as timeline:
                if not timeline.version:
                    asked(timeline)
                assert CANARY.encode() in sent(timeline)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(CANARY.encode() in path.read_bytes() for path in files)


def test_another_process_sees_it_when_it_catches_up(store: EventStore) -> None:
    with opened(store) as mine, opened(store) as other:
        asked(mine)
        assert CANARY.encode() in sent(other)


# Compaction, pruning, clipping: what they write quotes nothing of it.

WAYS: dict[str, dict[str, Any]] = {
    "clip": {"clip_ratio": 0.01},
    "prune": {"turns_intact": 1, "prune_tokens_min": 1, "prune_block_tokens": 20},
    "externalize": {"rungs": ("externalize",), "externalize_tokens": 50, "target_ratio": 0.05},
    "summarize": {"rungs": ("summarize",), "target_ratio": 0.05, "keep_ratio": 0.05},
    "clear": {"rungs": ("clear",), "target_ratio": 0.05, "prune_block_tokens": 20},
    "drop": {"rungs": ("drop",), "target_ratio": 0.05},
    "all": {"target_ratio": 0.05, "externalize_tokens": 50},
}


def working(timeline: Timeline, clock: Clock, numbers: Sequence[int], known: Envelope) -> None:
    """Turns with long results, which the agent names the words of."""
    for turn in numbers:
        timeline.user(f"Question {turn}.")
        calling(timeline, f"c{turn}")
        lines = "\n".join(f"{CANARY}_{turn}_{n} = {CANARY}.value_{n}" for n in range(200))
        timeline.tool_result(f"c{turn}", lines, envelope=known)
        clock.now += 1000
        timeline.render()
        answer = [{"type": "text", "text": f"Done {turn}."}]
        timeline.record({"id": f"a-{turn}", "role": "assistant", "content": answer})


@for_each("way", WAYS)
def test_nothing_that_makes_room_quotes_it(way: str) -> None:
    policy = attrs.evolve(Policy(name="own", cold_ratio=0.2), **WAYS[way])
    made, clock = MemoryStore(), Clock()
    with opened(made, policy=policy, clock=clock, window=30_000) as timeline:
        working(timeline, clock, range(6), CONFIDENTIAL)
        timeline.compact()
        events = log_of(made)
        assert b"BlocksHidden" in events or b"RangeCompacted" in events
        assert CANARY.encode() not in events
        live = timeline.render().messages
    with opened(made, policy=policy, clock=clock, window=30_000) as again:
        assert again.render().messages == live


def test_a_clipped_one_shows_its_ends_as_any_other() -> None:
    """The log says how long they are, and not what they say."""
    requests: list[bytes] = []
    for known in (CONFIDENTIAL, Envelope()):
        made = MemoryStore()
        with opened(made, window=4_000, ids=counted()) as timeline:
            timeline.user("Read it.")
            calling(timeline, "c1")
            text = "".join(f"{CANARY} line {n}\n" for n in range(3_000))
            timeline.tool_result("c1", text, envelope=known)
            requests.append(sent(timeline))
            is_hidden = b'"clipped"' in log_of(made)
            assert is_hidden
            assert (CANARY.encode() in log_of(made)) == (known is not CONFIDENTIAL)
    assert requests[0] == requests[1]


def test_a_models_summary_loses_what_it_quotes() -> None:
    def quoting(_: SummaryRequest) -> Summary:
        facts = (f"Ann earns {CANARY}52000", "She works in Turin")
        return Summary(summary=StructuredSummary(task="What does Ann earn?", facts=facts))

    made = MemoryStore()
    with opened(made, summarizer=quoting, window=3_000) as timeline:
        asked(timeline)
        for n in range(6):
            timeline.user(f"And what of Turin? {'word ' * 300} {n}")
            answer = [{"type": "text", "text": "She works in Turin. " * 20}]
            timeline.record({"id": f"a{n}", "role": "assistant", "content": answer})
        timeline.compact()
        events = log_of(made)
        assert b"RangeCompacted" in events
        assert b"She works in Turin" in events
        assert CANARY.encode() not in events


def test_a_summary_that_is_prepared_ahead_loses_it_too() -> None:
    class Quoting:
        name = "a-model"

        def __call__(self, request: SummaryRequest) -> Summary:
            known = Provenance(source_hash=request.range.source_hash, model=self.name)
            facts = (f"Ann earns {CANARY}52000", "She works in Turin")
            return Summary(summary=StructuredSummary(facts=facts), provenance=known)

    made, early = MemoryStore(), Policy(prepare_ratio=0.1)
    with opened(made, summarizer=Quoting(), window=3_000, policy=early) as timeline:
        asked(timeline)
        for n in range(6):
            timeline.user(f"And what of Turin? {'word ' * 60} {n}")
            answer = [{"type": "text", "text": "She works in Turin. " * 20}]
            timeline.record({"id": f"a{n}", "role": "assistant", "content": answer})
        timeline.render()
    assert b"SummaryPrepared" in log_of(made)
    assert CANARY.encode() not in log_of(made)


def test_the_pointer_says_what_is_true() -> None:
    policy = Policy(name="own", rungs=("externalize",), externalize_tokens=50, target_ratio=0.05)
    made, clock = MemoryStore(), Clock()
    with opened(made, policy=policy, clock=clock) as timeline:
        working(timeline, clock, range(4), CONFIDENTIAL)
        timeline.compact()
        shown = str(timeline.render().messages)
        assert "moved to the artifact store" in shown
        assert "read back at tc:t1.c0.result" in shown
        assert CANARY in text_of(timeline.read("tc:t1.c0.result"))


# Whatever happens.


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.sampled_from(["ask", "plain", "compact", "render", "hide", "reopen", "wait", "forget"]),
        max_size=12,
    ),
    st.sampled_from(sorted(ENCRYPTED)),
)
def test_the_log_never_holds_it_and_live_is_reopened(steps: list[str], sensitivity: Any) -> None:
    made, clock, numbers = MemoryStore(), Clock(), count(1)
    policy = Policy(name="own", artifact_seconds=5_000.0, cold_ratio=0.1, target_ratio=0.05)
    options: dict[str, Any] = {"policy": policy, "clock": clock, "window": 20_000}
    timeline = opened(made, **options)
    for step in steps:
        if step in ("ask", "plain"):
            known = Envelope(sensitivity=sensitivity if step == "ask" else "internal")
            number = next(numbers)
            timeline.user(f"Question {number}.")
            calling(timeline, f"c{number}")
            word = CANARY if step == "ask" else "open"
            text = "\n".join(f"{word}_{number}_{n} = value" for n in range(100))
            timeline.tool_result(f"c{number}", text, envelope=known)
        elif step == "compact":
            timeline.compact()
        elif step == "render":
            timeline.render()
        elif step == "wait":
            clock.now += 2_000
        elif step == "reopen":
            timeline.close()
            timeline = opened(made, **options)
        else:
            blocks = [e.block for _, e in timeline.events() if isinstance(e, BlockAppended)]
            results = [b for b in blocks if isinstance(b, ToolResult) and b.parts]
            for block in results[-1:]:
                if step == "hide":
                    timeline.hide(block.id)
                elif block.artifact:
                    _forgotten(timeline, block.artifact)
        assert CANARY.encode() not in log_of(made)
    live = timeline.render().messages
    timeline.close()
    with opened(made, **options) as again:
        assert again.render().messages == live
        assert CANARY.encode() not in log_of(made)


def _forgotten(timeline: Timeline, artifact: str) -> None:
    with suppress(MisuseError):  # it is gone already
        timeline.forget(artifact=artifact)


def test_a_result_that_comes_from_elsewhere_is_in_no_log_either(store: EventStore) -> None:
    policy = Policy(tools={"salary": ToolPolicy(sensitivity="confidential")})
    asked_for = {"id": "c1", "function": {"name": "salary", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "What does Ann earn?"},
        {"role": "assistant", "content": None, "tool_calls": [asked_for]},
        {"role": "tool", "tool_call_id": "c1", "content": SECRET},
    ]
    with opened(store, policy=policy) as timeline:
        timeline.sync(history, format="openai.chat")
        assert CANARY.encode() in sent(timeline)
        block = timeline.read("tc:t1.c1.result")
        assert isinstance(block, ToolResult)
        again = msgspec.structs.replace(block, id=BlockId("other"), source="m1", artifact="")
        timeline.append(again)
        timeline.append(again)
        assert timeline.sync(history, format="openai.chat").appended == 0
    assert CANARY.encode() not in log_of(store)
