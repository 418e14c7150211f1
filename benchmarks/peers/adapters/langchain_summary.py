"""langchain: SummarizationMiddleware, with trigger and kept part given in tokens."""

from importlib.metadata import version

from common import Peer, serve
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage


class Langchain(Peer):
    """Keeps the messages as the agent's state."""

    def __init__(self, task):
        super().__init__(task)
        self.messages = []
        self.middleware = SummarizationMiddleware(
            FakeListChatModel(responses=[""]),
            trigger=("tokens", self.trigger),
            keep=("tokens", self.keep),
            token_counter=lambda messages: sum(self.counts.message(_back(m)) for m in messages),
            summarizer=lambda messages: self.summarize([_back(m) for m in messages]),
            trim_tokens_to_summarize=None,
        )

    def take(self, messages):
        self.messages += [_to(message) for message in messages]

    def manage(self):
        update = self.middleware.before_model({"messages": self.messages}, None)
        if update:
            self.messages = [m for m in update["messages"] if m.type != "remove"]

    def give(self):
        return [_back(message) for message in self.messages]


def _to(message):
    match message["role"]:
        case "user":
            return HumanMessage(message["text"])
        case "assistant":
            calls = [
                {"id": c["id"], "name": c["name"], "args": c["input"]} for c in message["calls"]
            ]
            return AIMessage(message["text"], tool_calls=calls)
    status = "error" if message["error"] else "success"
    return ToolMessage(
        message["text"], tool_call_id=message["id"], name=message["name"], status=status
    )


def _back(message):
    match message.type:
        case "ai":
            calls = [
                {"id": c["id"], "name": c["name"], "input": c["args"]} for c in message.tool_calls
            ]
            return {"role": "assistant", "text": message.content, "calls": calls}
        case "tool":
            error = message.status == "error"
            return {
                "role": "tool", "id": message.tool_call_id, "name": message.name,
                "text": message.content, "error": error,
            }  # fmt: skip
    return {"role": "user", "text": message.content}


serve(Langchain, f"langchain {version('langchain')}, SummarizationMiddleware")
