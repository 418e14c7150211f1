"""agent-framework: SummarizationStrategy within TokenBudgetComposedStrategy.

It cuts by a number of messages; its only target in tokens is the budget.
"""

import asyncio
import re
from importlib.metadata import version

from agent_framework import ChatResponse, Content, Message
from agent_framework._compaction import (
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    apply_compaction,
)
from common import Peer, serve

KEPT_MESSAGES = 20
_NUMBERED = re.compile(r"^\d+\. \[(user|assistant|tool)\] ", re.MULTILINE)
_CALL = re.compile(r"(?:^|; )function_call .*", re.DOTALL)


class AgentFramework(Peer):
    """Also acts as tokenizer and client; excluded messages stay in its list."""

    def __init__(self, task):
        super().__init__(task)
        self.loop = asyncio.new_event_loop()
        self.messages, self.sent = [], []
        summarizing = SummarizationStrategy(
            client=self, target_count=KEPT_MESSAGES, max_summary_input_tokens=None
        )
        self.strategy = TokenBudgetComposedStrategy(
            token_budget=self.trigger, tokenizer=self, strategies=[summarizing]
        )

    def count_tokens(self, text):
        """Count tokens, as the tokenizer."""
        return self.counts.text(text)

    async def get_response(self, messages, **kwargs):
        """Answer as the client; the last message numbers what to summarise."""
        parts = _NUMBERED.split(messages[-1].text)
        found = [
            {"role": role, "text": _CALL.sub("", text)}
            for role, text in zip(parts[1::2], parts[2::2])
        ]
        tokens = sum(self.counts.text(message.text) for message in messages)
        return ChatResponse(
            messages=[Message(role="assistant", contents=[self.summarize(found, tokens)])]
        )

    def take(self, messages):
        self.messages += [_to(message) for message in messages]

    def manage(self):
        self.sent = self.loop.run_until_complete(
            apply_compaction(self.messages, strategy=self.strategy, tokenizer=self)
        )

    def give(self):
        return [one for message in self.sent for one in _back(message)]


def _to(message):
    text = message["text"]
    match message["role"]:
        case "user":
            return Message(role="user", contents=[text])
        case "assistant":
            calls = [
                Content.from_function_call(call_id=c["id"], name=c["name"], arguments=c["input"])
                for c in message["calls"]
            ]
            said = [Content.from_text(text)] if text else []
            return Message(role="assistant", contents=[*said, *calls])
    result = Content.from_function_result(call_id=message["id"], result=text)
    return Message(role="tool", contents=[result])


def _back(message):
    if message.role == "tool":
        return [
            {"role": "tool", "id": c.call_id, "text": str(c.result), "error": False}
            for c in message.contents
            if c.type == "function_result"
        ]
    if message.role == "assistant":
        calls = [
            {"id": c.call_id, "name": c.name, "input": c.arguments}
            for c in message.contents
            if c.type == "function_call"
        ]
        return [{"role": "assistant", "text": message.text, "calls": calls}]
    return [{"role": "user", "text": message.text}]


serve(
    AgentFramework,
    f"agent-framework-core {version('agent-framework-core')}, SummarizationStrategy in a budget",
)
