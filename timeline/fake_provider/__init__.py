"""A fake provider: a local server that speaks Anthropic's Messages API and OpenAI's two, by their rules.

    python -m timeline.fake_provider --port 8787 --window 30000

or in a test

    with FakeServer(FakeProvider(responder=[Reply(text="Hello."), Fault.overloaded()])) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="test")
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="test")

It refuses what the provider refuses, counts and caches as the provider does, signs thinking, and misbehaves on
demand.  Needs the extra `foldline[fake-provider]`.
"""

from timeline.fake_provider._provider import FakeProvider, FakeServer
from timeline.fake_provider._reply import Call, Fault, Reply
from timeline.fake_provider._responder import summary_reply, wants_summary

__all__ = ["Call", "FakeProvider", "FakeServer", "Fault", "Reply", "summary_reply", "wants_summary"]

# For the rooms of this house; not public.
from timeline.fake_provider._provider import Exchange as Exchange
from timeline.fake_provider._responder import ParsedRequest as ParsedRequest
from timeline.fake_provider._responder import Player as Player
from timeline.fake_provider._responder import tutorial_responder as tutorial_responder
