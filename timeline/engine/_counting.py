"""Asks the provider, only on request, for the token count of a request, to correct the estimate."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from blocks import EventId, MisuseError, TokensCounted, in_words
from render import Account, Context, Json, account, show
from timeline._flow import AskSummarizer, Flow
from timeline.engine._engine import Engine


def calibrate(
    engine: Engine, context: Context, count: Callable[[Json], Any] | None
) -> Flow[Account]:
    """Let the provider count the next request, record the count, and return the corrected account."""
    engine.check_open()
    if count is None:
        raise MisuseError(
            "calibrate(): nobody counts; open the timeline with count_tokens=, a function of a request"
        )
    rendered = show(engine.view, context)
    request = {"model": rendered.model, **rendered.request()}
    answer: object = yield AskSummarizer(
        partial(_asked, count, request), partial(_awaited, count, request)
    )
    fact = TokensCounted(
        id=EventId(engine.ids()),
        at=engine.clock(),
        model=rendered.model,
        input=_checked(answer),
        estimated=rendered.account.estimated,
    )
    yield from engine.commit(fact)
    return account(engine.view, context)


def _asked(count: Callable[[Json], Any], request: Json) -> object:
    answer = count(request)
    if inspect.iscoroutine(answer):
        answer.close()
        raise MisuseError("count_tokens is async and this timeline is not; use AsyncTimeline")
    return answer


async def _awaited(count: Callable[[Json], Any], request: Json) -> object:
    answer: object | Awaitable[object] = count(request)
    return await answer if inspect.isawaitable(answer) else answer


def _checked(answer: object) -> int:
    if not isinstance(answer, int) or isinstance(answer, bool) or answer <= 0:
        raise MisuseError(
            f"count_tokens returns a number of tokens, not {in_words(answer)}; of an SDK's answer, "
            "its input_tokens"
        )
    return answer
