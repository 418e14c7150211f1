"""A host: a process with an agent on a shared store, to be killed in the middle of a round.

    python -m tests.timeline.react.host STORE PROVIDER run 8      # hangs inside a tool of round 8
    python -m tests.timeline.react.host STORE PROVIDER resume     # another host goes on

It prints `inside` once it hangs, and else what the agent said last.
"""

import sys
from collections.abc import Callable
from contextlib import suppress

import anthropic

from timeline import ReactAgent, Timeline
from timeline.fake_provider import Call, Reply
from timeline.react import Outcome

NAME = "night"
PROMPT = "Look through the logs, two at a time."
LINES = "12:00:01 invoice service: posting ledger entry, no error so far. " * 60
WINDOW = 6_000
"""So small that the logs are compacted before and after the kill."""
ROUNDS = 28
KILLED_IN = 18


def replies() -> list[Reply]:
    """What the model says in one whole run."""
    looks = (
        Reply(
            text=f"I look at {number}.",
            calls=[Call("read_log", {"number": number, "half": half}) for half in (1, 2)],
        )
        for number in range(1, ROUNDS)
    )
    return [*looks, Reply(text="The disk is full.")]


def agent(
    timeline: Timeline, client: anthropic.Anthropic, inside: Callable[[int, int], object]
) -> ReactAgent:
    """The agent of every host; `inside` is called in its tool."""

    def read_log(number: int, half: int) -> str:
        """Read one half of a log."""
        inside(number, half)
        return f"log {number}, half {half}: {LINES}"

    return ReactAgent(timeline, client, tools=[read_log], system="You are on call.", parallel_max=1)


def opened(store: str) -> Timeline:
    """The conversation, as any host opens it; they agree on the time."""
    return Timeline.open(
        NAME,
        store=store,
        window=WINDOW,
        counter="estimate",
        clock=lambda: 1.7e9,
        validate=True,
    )


def client_of(provider: str) -> anthropic.Anthropic:
    """To be closed."""
    return anthropic.Anthropic(base_url=provider, api_key="any", max_retries=0)


def uninterrupted(provider: str) -> None:
    """The same on one host that lives on: Ctrl-C at that moment, and on it goes."""

    def inside(number: int, half: int) -> None:
        if (number, half) == (KILLED_IN, 2):
            raise KeyboardInterrupt

    with client_of(provider) as client, opened("memory:") as timeline:
        one = agent(timeline, client, inside)
        with suppress(KeyboardInterrupt):
            one.run(PROMPT)
        one.resume()


def main(store: str, provider: str, verb: str, hangs_in: str = "0") -> None:
    """Run or go on."""

    def inside(number: int, half: int) -> None:
        if (number, half) == (int(hangs_in), 2):
            sys.stdout.write("inside\n")
            sys.stdout.flush()
            sys.stdin.read()

    with client_of(provider) as client, opened(store) as timeline:
        one = agent(timeline, client, inside)
        outcome: Outcome = one.run(PROMPT) if verb == "run" else one.resume()
        sys.stdout.write(f"{outcome.text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
