"""Shared by all adapters: the protocol, the counting and the stand-in summary.

An adapter runs in its peer's own environment, without our packages.  It reads one JSON object per
line and answers each with one line:

    {"begin": {"window": W, "trigger": T, "keep": K}}   ->  {"ready": "name version"}
    {"new": [message, ...], "wanted": true}             ->  {"ms": 1.2, "messages": [...],
                                                             "summaries": [{"input_tokens": ...}]}

A message is `{"role": "user" | "assistant" | "tool", "text": ...}`; an assistant's has `calls` (`id`,
`name`, `input`), a tool's has `id` and `error`, and gets its `name` here.  `tokens` are the driver's counts.
"""

import json
import logging
import re
import sys
import time

SUMMARY_TOKENS = 760
TITLE = "Summary of the earlier conversation."
INSTRUCTION_TOKENS = 300
"""The assumed instruction of a summary call whose real prompt the adapter does not see."""
_FIRST_CHARACTERS = 1_200
_LINE_CHARACTERS = 200
_TEXT_CHARACTERS = 300
_TEXTS_MAX = 12
_ENTRY = re.compile(r"^\* (user|assistant): ", re.MULTILINE)


class Counts:
    """Token counts from the driver; a text that it never sent is estimated by the ratio so far."""

    def __init__(self):
        self.known = {}
        self.calls = {}
        self.names = {}
        self.characters = 4
        self.tokens = 1

    def learn(self, message):
        """Note the tokens of a message that the driver sent."""
        self.known[message["text"]] = message["tokens"]
        self.characters += len(message["text"])
        self.tokens += message["tokens"]
        for call in message.get("calls", ()):
            self.calls[call["id"]] = call["tokens"]
            self.names[call["id"]] = call["name"]
        if message["role"] == "tool":
            message["name"] = self.names.get(message["id"], "tool")

    def text(self, text):
        """The tokens of a text."""
        known = self.known.get(text)
        return known if known is not None else int(len(text) * self.tokens / self.characters) + 1

    def message(self, message):
        """The tokens of a neutral message."""
        calls = message.get("calls", ())
        counted = self.text(message["text"]) if message["text"] else 0
        return counted + sum(self.calls.get(call["id"], 20) for call in calls)


def stand_in(messages, counts):
    """The summary that every peer gets: the beginnings of user texts, and the last assistant texts."""
    entries = [entry for message in messages for entry in _entries(message)]
    users = list(dict.fromkeys(text for role, text in entries if role == "user"))
    said = [text[:_TEXT_CHARACTERS] for role, text in entries if role == "assistant"][-_TEXTS_MAX:]
    lines = [f"* user: {text[:_FIRST_CHARACTERS]}" for text in users[:1]]
    rest = [f"* user: {text[:_LINE_CHARACTERS]}" for text in users[1:]]
    lines += _newest(rest, counts, SUMMARY_TOKENS // 2 - sum(map(counts.text, lines)))
    left = SUMMARY_TOKENS - sum(map(counts.text, lines))
    return "\n".join([TITLE, *lines, *_newest([f"* assistant: {t}" for t in said], counts, left)])


def _entries(message):
    """Role and text of each line; those of an earlier summary are kept."""
    text = message["text"].strip()
    if message["role"] == "tool" or not text:
        return
    if TITLE in text:
        parts = _ENTRY.split(text.partition(TITLE)[2])
        yield from zip(parts[1::2], (part.strip() for part in parts[2::2]))
    elif message["role"] == "user":
        yield "user", text
    else:
        yield "assistant", text


def _newest(lines, counts, tokens):
    """As many of the last lines as fit into `tokens`."""
    taken = []
    for line in reversed(lines):
        tokens -= counts.text(line)
        if tokens < 0:
            break
        taken.insert(0, line)
    return taken


class Peer:
    """The methods that an adapter implements; only `manage` is timed."""

    def __init__(self, task):
        self.window, self.trigger, self.keep = task["window"], task["trigger"], task["keep"]
        self.counts = Counts()
        self.summaries = []

    def take(self, messages):
        """Append new messages to the peer's list, in its own types."""
        raise NotImplementedError

    def manage(self):
        """Do what the peer does before a call."""
        raise NotImplementedError

    def give(self):
        """The messages that the peer would send, in neutral form."""
        raise NotImplementedError

    def summarize(self, messages, prompt_tokens=0):
        """Simulate a summary call; without `prompt_tokens` its input is the messages."""
        text = stand_in(messages, self.counts)
        asked = prompt_tokens or sum(map(self.counts.message, messages)) + INSTRUCTION_TOKENS
        self.summaries.append({"input_tokens": asked, "output_tokens": self.counts.text(text)})
        return text


def _step(peer, asked):
    for message in asked["new"]:
        peer.counts.learn(message)
    peer.summaries = []
    peer.take(asked["new"])
    began = time.perf_counter()
    peer.manage()
    ms = (time.perf_counter() - began) * 1000
    messages = peer.give() if asked["wanted"] else []
    return {"ms": ms, "messages": messages, "summaries": peer.summaries}


def serve(make, ready, step=_step):
    """Answer until the input ends; `step` handles each request with the peer that `make` made last."""
    logging.disable(logging.CRITICAL)
    out, sys.stdout = sys.stdout, sys.stderr  # output that a peer prints must not mix with answers
    made = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "begin" in asked:
            made = make(asked["begin"])
            answer = {"ready": ready}
        else:
            answer = step(made, asked)
        out.write(json.dumps(answer) + "\n")
        out.flush()
