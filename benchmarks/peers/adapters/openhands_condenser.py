"""openhands: LLMSummarizingCondenser, by tokens; by design it condenses to half of its trigger."""

import json
import os
from functools import cache
from importlib.metadata import version

os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it accesses the network at import

from common import Peer, serve
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.condenser.base import NoCondensationAvailableException
from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent
from openhands.sdk.event.base import LLMConvertibleEvent
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool.schema import Action, Observation

NO_LIMIT = 10**6
TRIES = 3


class Recorded(Action):
    """A recorded call of any tool; its arguments are in the event's tool call."""


class Returned(Observation):
    """A recorded result of any tool."""


class StandIn(TestLLM):
    """A model that counts as the driver does and answers with the stand-in summary."""

    def get_token_count(self, messages, tools=None, **kwargs):
        counts = peer().counts
        texts = sum(counts.text(c.text) for m in messages for c in m.content if c.text)
        return texts + sum(counts.calls[c.id] for m in messages for c in m.tool_calls or ())

    def generate(self, messages, **kwargs):
        tokens = sum(peer().counts.text(c.text) for m in messages for c in m.content)
        text = peer().summarize(peer().noted, tokens)
        self._scripted_responses.append(_message("assistant", text))
        return self.completion(messages)


class Noting(LLMSummarizingCondenser):
    """Records which events are forgotten, since the model sees them as one text."""

    def _generate_condensation(self, forgotten_events, *args, **kwargs):
        peer().noted = _back(LLMConvertibleEvent.events_to_messages(list(forgotten_events)))
        return super()._generate_condensation(forgotten_events, *args, **kwargs)


_peers = []


def peer():
    """The running peer, which pydantic models cannot hold as a field."""
    return _peers[-1]


class OpenHands(Peer):
    """Keeps the messages as the view."""

    def __init__(self, task):
        super().__init__(task)
        _peers.append(self)
        self.noted, self.actions, self.responses = [], {}, 0
        self.llm = StandIn.from_messages([])
        self.view = View.from_events([])
        self.condenser = Noting(llm=self.llm, max_size=NO_LIMIT, max_tokens=self.trigger)

    def take(self, messages):
        for message in messages:
            for event in self._events(message):
                self.view.append_event(event)

    def manage(self):
        for _ in range(TRIES):
            try:
                condensed = self.condenser.condense(self.view, agent_llm=self.llm)
            except NoCondensationAvailableException:
                return
            if not isinstance(condensed, Condensation):
                return
            self.view.append_event(condensed)

    def give(self):
        return _back(LLMConvertibleEvent.events_to_messages(list(self.view.events)))

    def _events(self, message):
        text = message["text"]
        if message["role"] == "tool":
            return [self._observation(message)]
        if message["role"] == "assistant" and message["calls"]:
            self.responses += 1
            thoughts = [text] + [""] * len(message["calls"])
            return [self._action(call, t) for call, t in zip(message["calls"], thoughts)]
        source = "user" if message["role"] == "user" else "agent"
        return [MessageEvent(source=source, llm_message=_message(message["role"], text))]

    def _action(self, call, thought):
        asked = MessageToolCall(
            id=call["id"],
            name=call["name"],
            arguments=json.dumps(call["input"], ensure_ascii=False),
            origin="completion",
        )
        event = ActionEvent(
            thought=[TextContent(text=thought)] if thought else [],
            action=Recorded(),
            tool_name=call["name"],
            tool_call_id=call["id"],
            llm_response_id=f"response{self.responses}",
            tool_call=asked,
        )
        self.actions[call["id"]] = event.id
        return event

    def _observation(self, message):
        return ObservationEvent(
            observation=Returned.from_text(message["text"]),
            action_id=self.actions[message["id"]],
            tool_name=message["name"],
            tool_call_id=message["id"],
        )


def _message(role, text):
    return Message(role=role, content=[TextContent(text=text)])


@cache
def _input(arguments):
    return json.loads(arguments)


def _back(messages):
    out = []
    for message in messages:
        text = "".join(c.text for c in message.content if isinstance(c, TextContent))
        if message.role == "tool":
            out.append({"role": "tool", "id": message.tool_call_id, "text": text, "error": False})
        elif message.role == "assistant":
            calls = [
                {"id": c.id, "name": c.name, "input": _input(c.arguments)}
                for c in message.tool_calls or []
            ]
            out.append({"role": "assistant", "text": text, "calls": calls})
        else:
            out.append({"role": "user", "text": text})
    return out


serve(OpenHands, f"openhands-sdk {version('openhands-sdk')}, LLMSummarizingCondenser")
