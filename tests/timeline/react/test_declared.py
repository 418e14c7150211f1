"""What tools declare about their results ends in the envelopes, whichever agent runs them."""

import asyncio
import logging
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blocks import (
    BlockId,
    CallId,
    Determinism,
    Envelope,
    MisuseError,
    TextPart,
    ToolCall,
    ToolResult,
    TurnId,
)
from tests._practice import Practice
from tests._table import for_each
from timeline import tool
from timeline.fake_provider import Call, Reply
from timeline.react import AgentSettings, Tool, ToolReply, file_state
from timeline.react._tools import RESULT_BYTES_MAX, Caller, CallResult

from .both import Agents


class Order(msgspec.Struct):
    id: int
    lines: list[str]


def call_of(name: str, given: dict[str, Any]) -> ToolCall:
    block, turn = BlockId("b"), TurnId("t1")
    return ToolCall(id=block, turn=turn, call_id=CallId("c"), name=name, input=given)


def both(made: Tool, **given: Any) -> list[CallResult]:
    """A call as the sync and as the async agent do it."""
    caller = Caller(tools={made.name: made}, clock=lambda: 1.0)
    asked = call_of(made.name, given)
    done = [caller.call(asked), asyncio.run(caller.acall(asked))]
    return [each for each in done if isinstance(each, CallResult)]


def both_now(made: Tool, **given: Any) -> list[Determinism | None]:
    caller = Caller(tools={made.name: made}, clock=lambda: 1.0)
    asked = call_of(made.name, given)
    done = asyncio.run(caller.acall(asked))
    assert isinstance(done, CallResult)
    return [caller.current(asked), done.envelope.determinism]


def test_an_output_that_no_store_takes_is_told_to_the_model() -> None:
    """So the turn goes on, and the model can ask for less."""

    @tool(preserve=["all"])
    def read(much: int) -> dict[str, str]:
        """Both the output and what is preserved of it count."""
        return {"all": "x" * much}

    for done in both(read, much=RESULT_BYTES_MAX // 2):
        assert done.is_error
        assert done.envelope.key_fields == {}
        assert isinstance(done.output, str)
        assert "TooLargeError: the output has" in done.output
        assert "return less" in done.output
    for done in both(read, much=1_000):
        assert not done.is_error


# A run.


def test_what_a_tool_declares_is_in_the_log(practice: Practice, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text", encoding="utf-8")

    @tool(durability="replayable", capture=file_state)
    def read(path: str, lines: int = 10) -> str:
        return Path(path).read_text(encoding="utf-8")[:lines]

    @tool(preserve=["id", "customer.name"], sensitivity="confidential")
    def create_order() -> dict[str, Any]:
        return {"id": 7, "customer": {"name": "Ada", "street": "x"}, "lines": ["a"]}

    calls = [Call("read", {"path": str(file)}), Call("create_order")]
    script = [Reply(text="I do.", calls=calls), Reply(text="Done.")]
    for ran in Agents(practice).run(script, tools=[read, create_order], clock=lambda: 5.0):
        names = {block.call_id: block.name for block in ran.blocks(ToolCall)}
        envelopes = {names[r.call_id]: r.envelope for r in ran.blocks(ToolResult)}
        assert envelopes["read"] == Envelope(
            durability="replayable",
            determinism=Determinism(
                content_hash=sha256(b"text").hexdigest()[:16], mtime=file.stat().st_mtime
            ),
            started_at=5.0,
            ended_at=5.0,
        )
        assert envelopes["create_order"] == Envelope(
            key_fields={"id": 7, "customer.name": "Ada"},
            sensitivity="confidential",
            started_at=5.0,
            ended_at=5.0,
        )


def test_the_probe_of_an_agent_sees_that_a_file_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text", encoding="utf-8")

    @tool(durability="replayable", capture=file_state)
    def read(path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def plain() -> str:
        return ""

    probe = AgentSettings(tools=[read, plain]).probe
    asked = call_of("read", {"path": str(file)})
    then, now = both(read, path=str(file))[0].envelope.determinism, probe(asked)
    assert now is not None
    assert not then.has_changed(now)
    os.utime(file, (1.0, 1.0))
    touched = probe(asked)
    assert touched is not None
    assert not then.has_changed(touched), "the content decides"
    file.write_text("other", encoding="utf-8")
    changed = probe(asked)
    assert changed is not None
    assert then.has_changed(changed)
    file.unlink()
    assert probe(asked) == Determinism(), "no mark at all: changed"
    assert probe(call_of("read", {"file": "x"})) == Determinism()
    assert probe(call_of("plain", {})) is None
    assert probe(call_of("unknown", {})) is None


# Captures.


def test_the_source_is_looked_at_before_it_is_read() -> None:
    """Else a change in between would make a stale result pass for a fresh one."""
    seen: list[str] = []

    def look(at: str) -> Determinism:
        seen.append(f"look at {at}")
        return Determinism(version="1")

    @tool(capture=look)
    def read(at: str) -> str:
        seen.append(f"read {at}")
        return ""

    assert [done.envelope.determinism.version for done in both(read, at="x")] == ["1", "1"]
    assert seen == ["look at x", "read x"] * 2


def test_captures_may_be_async() -> None:
    async def look(at: str) -> Determinism:
        await asyncio.sleep(0)  # others have their turn
        return Determinism(etag=at)

    @tool(capture=look)
    def fetch(at: str) -> str:
        return at

    assert [done.envelope.determinism.etag for done in both(fetch, at="x")] == ["x", "x"]
    assert both_now(fetch, at="y") == [Determinism(etag="y")] * 2


def broken(path: str) -> Determinism:
    raise PermissionError(path)


async def abroken(path: str) -> Determinism:
    raise PermissionError(path)


def silent(path: str) -> None:
    assert path


async def acancelled(path: str) -> Determinism:
    raise asyncio.CancelledError(path)


def test_a_tool_that_cancels_itself_has_failed_and_nothing_else_is_cancelled() -> None:
    async def waits(path: str) -> str:
        raise asyncio.CancelledError(path)

    for done in both(tool(waits), path="x"):
        assert (done.output, done.is_error) == ("CancelledError: x", True)


@pytest.mark.parametrize("capture", [broken, abroken, acancelled, silent, file_state])
def test_a_capture_that_fails_breaks_nothing_and_counts_as_changed(
    capture: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    @tool(durability="replayable", capture=capture)
    def read(path: str) -> str:
        return f"text of {path}"

    with caplog.at_level(logging.WARNING, "foldline"):
        for done in both(read, path="/nowhere/at/all"):
            assert (done.output, done.is_error) == ("text of /nowhere/at/all", False)
            assert done.envelope.determinism == Determinism()
    assert caplog.text.count("the capture of tool read failed") == 2
    assert both_now(read, path="/nowhere/at/all") == [Determinism()] * 2


def test_a_capture_gets_the_arguments_that_it_has_parameters_for() -> None:
    def everything(**given: object) -> Determinism:
        return Determinism(version=",".join(f"{k}={v}" for k, v in given.items()))

    def one(*, lines: int) -> Determinism:
        return Determinism(version=str(lines))

    def read(path: str, lines: int = 10) -> str:
        return path * lines

    for capture, seen in ((everything, "path=a,lines=10"), (one, "10")):
        made = tool(capture=capture)(read)
        assert both_now(made, path="a") == [Determinism(version=seen)] * 2


def test_a_capture_that_needs_what_the_tool_is_not_given_is_refused_at_once() -> None:
    def read(file: str) -> str:
        return file

    with pytest.raises(MisuseError, match=r"tool read: its capture needs path, .* \(file\)"):
        tool(capture=file_state)(read)


def test_what_failed_has_no_mark() -> None:
    @tool(capture=lambda: Determinism(version="1"))
    def read() -> str:
        raise OSError

    for done in both(read):
        assert (done.envelope.outcome, done.envelope.determinism) == ("failure", Determinism())


def test_what_a_reply_says_goes_before_what_was_declared() -> None:
    marked = Determinism(version="2")

    @tool(preserve=["id", "n"], sensitivity="public", capture=lambda: Determinism(version="1"))
    def read() -> ToolReply:
        return ToolReply(
            output='{"id": 1, "n": 2}',
            key_fields={"id": "one"},
            determinism=marked,
            outcome="partial",
            sensitivity="restricted",
        )

    for done in both(read):
        envelope = done.envelope
        assert envelope.key_fields == {"id": "one", "n": 2}
        assert (envelope.outcome, envelope.sensitivity) == ("partial", "restricted")
        assert envelope.determinism == marked
        assert not done.is_error


def test_a_reply_without_a_mark_leaves_it_to_the_capture() -> None:
    made = tool(name="read", capture=lambda: Determinism(version="1"))(
        lambda: ToolReply(output="text")
    )
    assert [done.envelope.determinism.version for done in both(made)] == ["1", "1"]


# Fields.


@for_each(
    ("returned", "kept"),
    [
        ({"id": 7, "lines": ["a"]}, {"id": 7, "lines.0": "a"}),
        (Order(id=7, lines=["a", "b"]), {"id": 7, "lines.0": "a"}),
        ('{"id": 7}', {"id": 7}),
        (TextPart(text='{"id": 7}'), {"id": 7}),
        (ToolReply(output='{"id": 7}', is_error=True), {"id": 7}),
        ("Order 7", {}),
        (None, {}),
        ([1, 2], {}),
    ],
    ids=str,
)
def test_the_fields_to_preserve_are_taken_from_replies_with_json(
    returned: object, kept: dict[str, Any]
) -> None:
    made = tool(name="order", preserve=["id", "lines.0"])(lambda: returned)
    assert [done.envelope.key_fields for done in both(made)] == [kept, kept]


@for_each("durability", ["ephemeral", "anchoring", "replayable", "non-replayable"])
def test_every_durability_can_be_declared(durability: Any) -> None:
    made = tool(name="do", durability=durability)(lambda: "done")
    assert [done.envelope.durability for done in both(made)] == [durability] * 2


def test_kind_and_target_reach_the_log() -> None:
    """A summary made from a reopened log lists the call as the live one does."""

    def book(order: int) -> str:
        return f"booked {order}"

    def broken(order: int) -> str:
        raise OSError(order)

    for function in (book, broken):
        made = tool(name="book", kind="write", target="order")(function)
        for done in both(made, order=7):
            assert (done.envelope.kind, done.envelope.target) == ("write", "order")
    for done in both(tool(book), order=7):
        assert (done.envelope.kind, done.envelope.target) == (None, "")


def test_a_target_must_be_a_parameter() -> None:
    def book(order: int) -> int:
        return order

    with pytest.raises(
        MisuseError, match=r"tool book: its target 'id' is not a parameter of the tool"
    ):
        tool(target="id")(book)


@for_each(
    "declared",
    [
        {"durability": "forever"},
        {"sensitivity": "secret"},
        {"preserved": ["id"]},
        {"check": dict},
        {"kind": "reads"},
    ],
    ids=str,
)
def test_what_cannot_be_declared_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        tool(**declared)(lambda: "")


def test_one_field_need_not_be_a_list() -> None:
    assert tool(name="order", preserve="id")(lambda: "").preserve == ("id",)
