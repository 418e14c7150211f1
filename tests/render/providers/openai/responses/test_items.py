"""Every item of the Responses API goes back in the next request, or a notice says that it does not."""

import re
from collections.abc import Sequence
from typing import Any, Final

import attrs
from hypothesis import given
from hypothesis import strategies as st

from blocks import ToolCall, ToolResult
from blocks.formats import SHAPES
from render import Json
from tests import _builders as make
from tests._table import for_each
from tests.render.providers.openai._play import MARKED
from timeline import Timeline
from timeline.engine._sync import Synced

PICTURE: Final = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"


@attrs.frozen
class Exchange:
    """What the model's response contains, and what the client adds."""

    said: Sequence[Json]
    given: Sequence[Json] = ()
    is_sent: bool = True


def shell(*chunks: Json, **more: Any) -> Exchange:
    """Commands that the client ran."""
    most = {"max_output_length": 900}
    call = {"type": "shell_call", "action": {"commands": ["ls", "pwd"], **most}, **more}
    return Exchange([call], [{"type": "shell_call_output", "output": list(chunks), **most}])


def printed(out: str, err: str = "", code: int = 0) -> Json:
    return {"stdout": out, "stderr": err, "outcome": {"type": "exit", "exit_code": code}}


def patch(status: str, **operation: str) -> Exchange:
    """A patch that the client applied, or could not."""
    call = {"type": "apply_patch_call", "status": "completed", "operation": operation}
    return Exchange(
        [call], [{"type": "apply_patch_call_output", "status": status, "output": "log"}]
    )


def computer(checks: Sequence[Json], output: Json, **asked: Any) -> Exchange:
    """What was done with a computer, and what it looked like then."""
    call = {"type": "computer_call", "pending_safety_checks": list(checks), **asked}
    answer: Json = {
        "type": "computer_call_output",
        "output": {"type": "computer_screenshot", **output},
    }
    return Exchange(
        [call], [answer | ({"acknowledged_safety_checks": list(checks)} if checks else {})]
    )


def alone(kind: str, **fields: Any) -> Exchange:
    return Exchange([{"type": kind, "id": f"{kind}_1", **fields}])


def unsent(kind: str, **fields: Any) -> Exchange:
    return attrs.evolve(alone(kind, **fields), is_sent=False)


FUNCTION: Final = {"type": "function_call", "name": "read", "arguments": '{"path":"a"}'}
EXCHANGES: Final[Sequence[Exchange]] = [
    shell(printed("a.py\nb.py")),
    shell(printed("a.py", "no such file", 2), printed("/srv")),
    shell({"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}),
    shell(printed('[{"stdout": 1}]'), environment={"type": "local"}),
    patch("completed", type="create_file", path="a.py", diff="+x"),
    patch("failed", type="delete_file", path="a.py"),
    computer([], {"image_url": PICTURE}, action={"type": "screenshot"}),
    computer([{"id": "sc_1"}], {"file_id": "file_1"}, actions=[{"type": "wait"}]),
    Exchange(
        [{"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}}],
        [{"type": "local_shell_call_output", "output": "a.py"}],
    ),
    Exchange(
        [{**FUNCTION, "caller": {"type": "program", "caller_id": "p"}}],
        [{"type": "function_call_output", "output": [{"type": "input_text", "text": "a"}]}],
    ),
    Exchange(
        [{"type": "custom_tool_call", "name": "sql", "input": "select 1"}],
        [{"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "1"}]}],
    ),
    alone("web_search_call", status="completed", action={"type": "search", "query": "weather"}),
    alone("file_search_call", status="completed", queries=["a"]),
    alone("code_interpreter_call", status="completed", code="1", container_id="c"),
    alone("image_generation_call", status="completed", result="aGk="),
    alone("mcp_list_tools", server_label="s", tools=[]),
    alone("mcp_call", name="n", arguments="{}", server_label="s", output="out"),
    alone("tool_search_call", arguments={}, execution="server", status="completed"),
    alone("tool_search_output", tools=[], execution="server", status="completed"),
    alone("program", code="x", fingerprint="f"),
    alone("program_output", result="x", status="completed"),
    Exchange(
        [{"type": "mcp_approval_request", "id": "r_1", "name": "n", "arguments": "{}"}],
        [{"type": "mcp_approval_response", "approval_request_id": "r_1", "approve": True}],
    ),
    Exchange([], [{"type": "configuration_update", "reasoning": {"effort": "low"}}]),
    unsent("item_reference"),
    unsent("compaction_trigger"),
    unsent("brand_new_item", words="of tomorrow"),
]


def numbered(exchange: Exchange, number: int) -> Exchange:
    """With ids of its own, where its kind has them."""
    call_id, paired = f"c{number}", any("output" in item for item in exchange.given)

    def own(item: Json, *, is_said: bool) -> Json:
        is_local = item["type"] == "local_shell_call_output"
        known = {"id" if is_local else "call_id": call_id} if paired else {}
        identity = {"id": f"{item.get('id', item['type'])}_{number}"} if is_said else {}
        return {**item, **identity, **known}

    return attrs.evolve(
        exchange,
        said=[own(item, is_said=True) for item in exchange.said],
        given=[own(item, is_said=False) for item in exchange.given],
    )


def message(number: int, text: str) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"m{number}", "role": "assistant", "content": [part]}


def essence(item: Json) -> Json:
    """An item without cache marks, and without the id by which nothing refers to it."""
    is_call = item["type"] in SHAPES["openai.responses"].calls
    known = {key: value for key, value in item.items() if not (is_call and key == "id")}
    if isinstance(known.get("output"), list):
        marks = "prompt_cache_breakpoint"
        known["output"] = [{k: v for k, v in p.items() if k != marks} for p in known["output"]]
    return known


@given(st.lists(st.sampled_from(EXCHANGES), min_size=1, max_size=5), st.booleans())
def test_whatever_goes_in_goes_back_or_a_notice_says_that_it_does_not(
    chosen: Sequence[Exchange],
    is_recorded: bool,  # noqa: FBT001 -- drawn
) -> None:
    timeline = make.open_timeline(model=MARKED)
    history: list[Json] = [{"type": "message", "role": "user", "content": "Go."}]
    wanted: list[Json] = []
    left = 0
    for number, exchange in enumerate(numbered(e, n) for n, e in enumerate(chosen)):
        output = [*exchange.said, message(number, f"Done {number}.")]
        synced(timeline, history)
        timeline.render()
        if is_recorded:
            timeline.record({"id": f"r{number}", "output": output})
        history += [*output, *exchange.given]
        wanted += [*exchange.said, *exchange.given] if exchange.is_sent else []
        left += 0 if exchange.is_sent else len(exchange.said)
    synced(timeline, history)
    assert synced(timeline, history).appended == 0
    rendered = timeline.render()
    sent = list(map(essence, rendered.openai_responses()["input"]))
    for item in map(essence, wanted):
        assert item in sent
        sent.remove(item)
    told = [notice for notice in rendered.notices if "refuses" in notice]
    more = (re.search(r"and (\d+) more", notice) for notice in told)
    assert len(told) + sum(int(found[1]) for found in more if found) == left
    assert rendered.violations == ()
    assert not timeline.open_calls


def synced(timeline: Timeline, history: Sequence[Json]) -> Synced[Timeline]:
    return timeline.sync(history, format="openai.responses")


@for_each("exchange", [each for each in EXCHANGES if any("output" in i for i in each.given)])
def test_a_tool_that_the_client_runs_is_a_call_with_a_result(exchange: Exchange) -> None:
    """Whoever runs it, also answers it; hidden, both are shown as those of a function."""
    own = numbered(exchange, 1)
    timeline = make.open_timeline(model=MARKED)
    timeline.user("Go.")
    timeline.record({"id": "r1", "output": own.said})
    assert list(timeline.open_calls) == ["c1"]
    timeline.tool_result("c1", "It is done.")
    assert not timeline.open_calls
    assert timeline.render().violations == ()
    call, result = (
        e.block for e in timeline.view.entries if isinstance(e.block, ToolCall | ToolResult)
    )
    timeline.hide(call.id, result.id)
    rendered = timeline.render()
    assert rendered.violations == ()
    assert "It is done." not in str(rendered.openai_responses())


def test_what_the_server_ran_is_no_open_call() -> None:
    call, result = (
        numbered(shell(printed("a.py")), 1).said,
        numbered(shell(printed("a.py")), 1).given,
    )
    timeline = make.open_timeline(model=MARKED)
    timeline.user("Go.")
    timeline.record({"id": "r1", "output": [*call, *result, message(1, "Done.")]})
    assert not timeline.open_calls
    timeline.user("And?")
    rendered = timeline.render()
    kinds = [item["type"] for item in rendered.openai_responses()["input"]]
    assert kinds == ["message", "shell_call", "shell_call_output", "message", "message"]
    assert rendered.violations == ()
