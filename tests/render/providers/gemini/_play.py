"""Generated logs of agents that talk to Gemini, in the words of its API."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from render import Model, Rendered
from tests.render.providers._play import Api, OwnPlay
from tests.strategies import settings

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


def parts_of(rendered: Rendered) -> list[tuple[str, dict[str, Any]]]:
    """The parts of its contents, each with its role."""
    contents: list[dict[str, Any]] = rendered.gemini()["contents"]
    return [(content["role"], part) for content in contents for part in content["parts"]]


def sent_of(rendered: Rendered) -> dict[str, Any]:
    return rendered.gemini(max_output_tokens=1000)


def returned_in(rendered: Rendered) -> Iterator[tuple[str, str]]:
    for _, part in parts_of(rendered):
        if returned := part.get("functionResponse"):
            yield returned["id"], str(returned["response"])


@attrs.define
class GeminiPlay(OwnPlay):
    """Its model answers as Gemini does."""

    def response(self, name: str, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
        parts = [_part(content, signed=bool(name) and n == 0) for n, content in enumerate(made)]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return {"responseId": name, "candidates": [candidate]}


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


API = Api(
    name="gemini",
    play=GeminiPlay,
    options=settings().map(lambda options: {**options, "model": MODEL}),
    sent=sent_of,
    words=parts_of,
    returned=returned_in,
    own=(SEALED, "thoughtSignature"),
)
