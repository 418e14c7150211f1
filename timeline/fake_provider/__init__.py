"""A fake provider: a local server that speaks Anthropic's Messages API and OpenAI's two, by their rules.

    python -m timeline.fake_provider --port 8787 --window 30000

or in a test

    with FakeServer(FakeProvider(responder=[Reply(text="Hello."), Fault.overloaded()])) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="test")
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="test")

It refuses what the provider refuses, counts and caches as the provider does, signs thinking, and misbehaves on
demand.  Needs the extra `foldline[fake-provider]`.
"""

from timeline.fake_provider._provider import Exchange as Exchange
from timeline.fake_provider._provider import FakeProvider as FakeProvider
from timeline.fake_provider._provider import FakeServer as FakeServer
from timeline.fake_provider._provider import HttpRequest as HttpRequest
from timeline.fake_provider._reply import ApiError as ApiError
from timeline.fake_provider._reply import Call as Call
from timeline.fake_provider._reply import Fault as Fault
from timeline.fake_provider._reply import Reply as Reply
from timeline.fake_provider._responder import Responder as Responder
from timeline.fake_provider._responder import Script as Script
from timeline.fake_provider._responder import summary_reply as summary_reply
from timeline.fake_provider._responder import tutorial_responder as tutorial_responder
from timeline.fake_provider._responder import wants_summary as wants_summary
