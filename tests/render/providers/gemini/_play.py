"""Generated logs of agents that talk to Gemini: as `tests.strategies.Play`, in the words of its API."""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from blocks import BlockId, MisuseError
from blocks.formats import answer_of, response_in
from render import Model, Rendered
from tests.strategies import Play, settings

MODEL = Model(
    name="gemini-9-flash",
    provider="gemini",
    cache_kind="prefix",
    cache_ttls=(300,),
    cache_tokens_min=0,
    token_factor=1.0,
    tool_overhead_tokens=0,
)
OLD = attrs.evolve(MODEL, name="gemini-2.5-pro")
SEALED = b64encode(b"sealed").decode()


def gemini_settings() -> st.SearchStrategy[dict[str, Any]]:
    """Options of a timeline whose model is the one above."""
    return settings().map(lambda options: {**options, "model": MODEL})


def parts_of(rendered: Rendered) -> list[tuple[str, dict[str, Any]]]:
    """The parts of its contents, each with its role."""
    contents: list[dict[str, Any]] = rendered.gemini()["contents"]
    return [(content["role"], part) for content in contents for part in content["parts"]]


def bytes_of(rendered: Rendered) -> bytes:
    return json.dumps(rendered.gemini(max_output_tokens=99), ensure_ascii=False).encode()


@attrs.define
class GeminiPlay(Play):
    """Does steps to a timeline whose model answers as Gemini does."""

    native: bool = True
    """Whether what the model says is recorded as this API has it, and not as another's."""

    def _do_respond(self, named: bool, contents: Sequence[tuple[Any, ...]]) -> None:  # noqa: FBT001 -- data
        made = [self._content(*content) for content in contents]
        name = self._ids() if named else ""
        parts = [_part(content, signed=named and n == 0) for n, content in enumerate(made)]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        try:
            if self.native:
                self.timeline.record({"responseId": name, "candidates": [candidate]})
                return
        except MisuseError:  # empty, or a call twice: logs from elsewhere have such, too
            pass
        said = response_in({"id": name, "content": list(made)}, "anthropic")
        read = said and answer_of(said, lambda: BlockId(self._ids()), self.timeline.view.turn)
        if read and read.blocks:
            self.timeline.append(*read.blocks)


def _part(content: dict[str, Any], *, signed: bool) -> dict[str, Any]:
    seal = {"thoughtSignature": SEALED} if signed else {}
    match content["type"]:
        case "text":
            return {"text": content["text"], **seal}
        case "thinking" if "signature" in content:
            return {"text": "", **seal}
        case "thinking":
            return {"text": content["thinking"], "thought": True}
        case "tool_use":
            call = {"name": content["name"], "args": content["input"]}
            named = {"id": content["id"]} if content["id"] else {}
            return {"functionCall": {**named, **call}, **seal}
        case _:
            return {"executableCode": {"language": "PYTHON", "code": "1 + 1"}, **seal}
