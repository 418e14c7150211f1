"""A practice provider: a local server that speaks the Messages API, by the provider's rules.

    python -m timeline.practice --port 8787 --window 30000

or in a test

    with PracticeServer(Provider(brain=[Reply(text="Hello."), Fault.overloaded()])) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="test")

It refuses what the provider refuses, counts and caches as the provider does, signs thinking, and
misbehaves on demand.  Needs the extra `foldline[practice]`.
"""

from timeline.practice._brain import Brain as Brain
from timeline.practice._brain import tutorial_brain as tutorial_brain
from timeline.practice._fault import ApiError as ApiError
from timeline.practice._fault import Fault as Fault
from timeline.practice._provider import Exchange as Exchange
from timeline.practice._provider import Provider as Provider
from timeline.practice._reply import Call as Call
from timeline.practice._reply import Reply as Reply
from timeline.practice._script import Script as Script
from timeline.practice._server import PracticeServer as PracticeServer
from timeline.practice._summary import summary_reply as summary_reply
from timeline.practice._summary import wants_summary as wants_summary
