"""Generated logs of agents that talk to OpenAI, in the words of its two APIs."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from render import Model, Rendered
from tests.render.providers._play import Api, OwnPlay
from tests.strategies import TOOLS, settings

MARKED = Model(
    name="gpt-marked",
    provider="openai.responses",
    cache_kind="marks",
    cache_ttls=(1_800, 43_200),
    cache_tokens_min=0,
    token_factor=1.0,
    tool_overhead_tokens=12,
)
PLAIN = attrs.evolve(MARKED, name="gpt-plain", cache_kind="prefix", cache_ttls=(300,))
CHAT = attrs.evolve(MARKED, name="chat-marked", provider="openai.chat")
LOCAL = attrs.evolve(PLAIN, name="chat-plain", provider="openai.chat")
MODELS = (MARKED, PLAIN, CHAT, LOCAL)


def kwargs_of(rendered: Rendered) -> dict[str, Any]:
    """What the client is called with."""
    if rendered.provider.name == "openai.chat":
        return rendered.openai_chat(max_completion_tokens=1000)
    return rendered.openai_responses(max_output_tokens=1000)


def items_of(rendered: Rendered) -> list[dict[str, Any]]:
    """Its items or messages."""
    request = kwargs_of(rendered)
    found: list[dict[str, Any]] = request.get("input") or request["messages"]
    return found


def plain(value: Any) -> Any:
    """Without cache marks."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "prompt_cache_breakpoint"}
    return value


def words_of(rendered: Rendered) -> list[Any]:
    """The items; of a chat, what stands in them: a message of the user's grows as long as nobody answers."""
    items: list[Any] = plain(items_of(rendered))
    if rendered.provider.name != "openai.chat":
        return items
    found: list[Any] = []
    for item in items:
        content = item.get("content")
        parts = content.split("\n\n") if isinstance(content, str) else content or ()
        found += [(item["role"], part) for part in parts]
        found += [(item["role"], call) for call in item.get("tool_calls", ())]
    return found


def returned_in(rendered: Rendered) -> Iterator[tuple[str, str]]:
    for item in items_of(rendered):
        if call_id := item.get("tool_call_id") or (item.get("output") and item["call_id"]):
            yield call_id, str(item.get("output") or item["content"])


@attrs.define
class OpenAIPlay(OwnPlay):
    """Its model answers as OpenAI does."""

    def response(self, name: str, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
        chat = self.options["model"].provider == "openai.chat"
        return self._chat(name, made) if chat else self._response(name, made)

    def _response(self, name: str, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
        items = [_item(content) for content in made]
        if name and items:
            self._marks += 1
            items.insert(self._marks % len(items), _reasoning(f"sealed {self._marks}"))
        return {"id": name, "object": "response", "output": items}

    def _chat(self, name: str, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
        texts = [content["text"] for content in made if content["type"] == "text"]
        thoughts = [content["thinking"] for content in made if content["type"] == "thinking"]
        calls = [_call(content) for content in made if content["type"] == "tool_use"]
        message = {"role": "assistant", "content": "".join(texts) or None, "tool_calls": calls}
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        choices = [{"index": 0, "finish_reason": "stop", "message": message}] if made else []
        return {"id": name, "object": "chat.completion", "choices": choices}


def _item(content: dict[str, Any]) -> dict[str, Any]:
    match content["type"]:
        case "text":
            part = {"type": "output_text", "text": content["text"], "annotations": []}
            said = {"id": "msg_1", "role": "assistant", "content": [part], "phase": "commentary"}
            return {"type": "message", **said, "status": "completed"}
        case "thinking":
            return _reasoning(content["thinking"] if "signature" in content else None)
        case "tool_use" if content["name"] == TOOLS["c3"]:
            text = content["input"]["command"]
            named = {"call_id": content["id"], "name": content["name"]}
            return {"type": "custom_tool_call", "id": "ct_1", **named, "input": text}
        case "tool_use":
            spaced = json.dumps(content["input"], indent=1)
            named = {"call_id": content["id"], "name": content["name"]}
            return {"type": "function_call", "id": "fc_1", **named, "arguments": spaced}
        case _:
            return {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}


def _reasoning(sealed: str | None) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed}


def _call(content: dict[str, Any]) -> dict[str, Any]:
    function = {"name": content["name"], "arguments": json.dumps(content["input"], indent=1)}
    return {"id": content["id"], "type": "function", "function": function}


API = Api(
    name="openai",
    play=OpenAIPlay,
    options=st.builds(
        lambda options, model: {**options, "model": model}, settings(), st.sampled_from(MODELS)
    ),
    sent=kwargs_of,
    words=words_of,
    returned=returned_in,
    own=("encrypted_content", "prompt_cache"),
)
