"""strands: SummarizingConversationManager, called before a call that would exceed the trigger.

It cuts by a share of the messages and has no target in tokens; 0.6 leaves about a third.
"""

from importlib.metadata import version
from types import SimpleNamespace

from common import Peer, serve
from strands.agent.conversation_manager import SummarizingConversationManager

RATIO = 0.6
KEPT_MESSAGES = 4
TRIES = 4


class Strands(Peer):
    """Acts as the agent and as its model."""

    def __init__(self, task):
        super().__init__(task)
        self.agent = SimpleNamespace(messages=[], aux_model=self, model=self)
        self.counted = {}
        self.manager = SummarizingConversationManager(
            summary_ratio=RATIO, preserve_recent_messages=KEPT_MESSAGES
        )

    def take(self, messages):
        for message in messages:
            _append(self.agent.messages, message)

    def manage(self):
        for _ in range(TRIES):
            before = len(self.agent.messages)
            if sum(map(self._tokens, self.agent.messages)) <= self.trigger:
                return
            self.manager.reduce_context(self.agent)
            if len(self.agent.messages) == before:
                return

    def give(self):
        return _back(self.agent.messages)

    async def stream(self, messages, *args, **kwargs):
        """Answer as the model; the last message is the instruction."""
        text = self.summarize(_back(messages[:-1]))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    def _tokens(self, message):
        known = self.counted.get(id(message))
        if known is None or known[0] is not message or known[1] != len(message["content"]):
            tokens = sum(map(self.counts.message, _back([message])))
            known = self.counted[id(message)] = (message, len(message["content"]), tokens)
        return known[2]


def _append(messages, message):
    """Append a message; the results of one response are joined into one message."""
    last = messages[-1] if messages else None
    block = _block(message)
    if message["role"] == "tool" and last and "toolResult" in last["content"][-1]:
        last["content"].append(block[0])
    elif block:
        role = "assistant" if message["role"] == "assistant" else "user"
        messages.append({"role": role, "content": block})


def _block(message):
    text = [{"text": message["text"]}] if message["text"] else []
    if message["role"] == "tool":
        result = {"toolUseId": message["id"], "content": [{"text": message["text"]}]}
        return [{"toolResult": {**result, "status": "error" if message["error"] else "success"}}]
    calls = [
        {"toolUse": {"toolUseId": c["id"], "name": c["name"], "input": c["input"]}}
        for c in message.get("calls", ())
    ]
    return text + calls


def _back(messages):
    out = []
    for message in messages:
        texts = [block["text"] for block in message["content"] if "text" in block]
        results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
        uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        calls = [{"id": u["toolUseId"], "name": u["name"], "input": u["input"]} for u in uses]
        for r in results:
            text, error = r["content"][0]["text"], r["status"] == "error"
            out.append({"role": "tool", "id": r["toolUseId"], "text": text, "error": error})
        if message["role"] == "assistant":
            out.append({"role": "assistant", "text": "\n".join(texts), "calls": calls})
        elif texts:
            out.append({"role": "user", "text": "\n".join(texts)})
    return out


serve(Strands, f"strands-agents {version('strands-agents')}, SummarizingConversationManager")
