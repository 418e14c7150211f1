"""pydantic-ai-harness: TieredCompaction, which clears tool results first, then SummarizingCompaction."""

import asyncio
from importlib.metadata import version

from common import Peer, serve
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SummarizingCompaction,
    TieredCompaction,
    compact_now,
)

KEPT_PAIRS = 3


class Noting(SummarizingCompaction):
    """Records which messages are summarised, since the model sees them as one text."""

    async def _summarize(self, messages, ctx, **kwargs):
        self.noted = messages
        return await super()._summarize(messages, ctx, **kwargs)


class Pydantic(Peer):
    """Keeps the messages as the history of the next run."""

    def __init__(self, task):
        super().__init__(task)
        self.loop = asyncio.new_event_loop()
        self.messages = []
        count = self.counts.text
        self.last = Noting(max_tokens=self.trigger, keep_tokens=self.keep, tokenizer=count)
        clear = ClearToolResults(max_tokens=1, keep_pairs=KEPT_PAIRS, tokenizer=count)
        self.strategy = TieredCompaction(
            tiers=[clear, self.last], target_tokens=self.trigger, tokenizer=count
        )
        self.model = FunctionModel(self._answer)

    def _answer(self, messages, info):
        asked = [str(getattr(p, "content", "")) for m in messages for p in m.parts]
        tokens = sum(map(self.counts.text, asked)) + self.counts.text(info.instructions or "")
        text = self.summarize(_back(self.last.noted), tokens)
        return ModelResponse(parts=[TextPart(text)])

    def take(self, messages):
        self.messages += [_to(message) for message in messages]

    def manage(self):
        compacting = compact_now(
            self.strategy, self.messages, model=self.model, tokenizer=self.counts.text
        )
        self.messages = list(self.loop.run_until_complete(compacting))

    def give(self):
        return _back(self.messages)


def _to(message):
    match message["role"]:
        case "user":
            return ModelRequest(parts=[UserPromptPart(message["text"])])
        case "assistant":
            parts = [TextPart(message["text"])] if message["text"] else []
            calls = [
                ToolCallPart(c["name"], c["input"], tool_call_id=c["id"]) for c in message["calls"]
            ]
            return ModelResponse(parts=[*parts, *calls])
    part = ToolReturnPart(message["name"], message["text"], tool_call_id=message["id"])
    return ModelRequest(parts=[part])


def _back(messages):
    out = []
    for message in messages:
        if isinstance(message, ModelResponse):
            said = [part.content for part in message.parts if isinstance(part, TextPart)]
            calls = [
                {"id": part.tool_call_id, "name": part.tool_name, "input": part.args}
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ]
            out.append({"role": "assistant", "text": "".join(said), "calls": calls})
            continue
        out += [_part(part) for part in message.parts if getattr(part, "content", None)]
    return out


def _part(part):
    text = part.content if isinstance(part.content, str) else str(part.content)
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "id": part.tool_call_id, "text": text, "error": False}
    return {"role": "user", "text": text}


serve(Pydantic, f"pydantic-ai-harness {version('pydantic-ai-harness')}, TieredCompaction")
