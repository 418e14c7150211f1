"""The extractive summariser: deterministic, without a model.

It quotes: the first request, what the user demanded in texts too long to be carried whole, where
the agent said it stood.  Files, commands, errors and names are the digest's.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from blocks import (
    AssistantCompletion,
    StructuredSummary,
    UserFollowup,
    UserPrompt,
    UserSteer,
)
from render._group import Entry
from render._identifiers import searched

STATE_CHARACTERS = 1200
PREFIX_CHARACTERS = 900
CONSTRAINT_CHARACTERS = 240
CONSTRAINTS_MAX = 12
SEARCHED_CHARACTERS = 1_000_000
"""Of one text that is searched for demands: of a longer one its beginning and its end."""
_DEMAND = re.compile(
    r"\b(?:must(?: not)?|never|always|do not|don't|only|no longer|required?|make sure|ensure)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_MARKS = ".!?\n"
"""What ends a sentence."""


def extract_summary(
    folded: Sequence[Entry], prefix: Sequence[Entry], is_carried: Callable[[Entry], bool]
) -> StructuredSummary:
    """What can be said about `folded` blocks by quoting them.

    `prefix` are the folded blocks of a split turn; `is_carried` tells which user texts stay
    visible whole, so that nothing is said twice.
    """
    split = {entry.version for entry in prefix}
    demands = (demand for entry in folded if not is_carried(entry) for demand in _demands(entry))
    return StructuredSummary(
        task="",
        constraints=tuple(islice(_distinct(demands), CONSTRAINTS_MAX)),
        state=_last_words([e for e in folded if e.version not in split], STATE_CHARACTERS),
        turn_context=_last_words(prefix, PREFIX_CHARACTERS),
    )


def _distinct(texts: Iterable[str]) -> Iterator[str]:
    """Each text once, where it first comes."""
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _demands(entry: Entry) -> Iterator[str]:
    """The sentences of a user's text that ask for something to be so, or not to be."""
    if not isinstance(entry.block, UserPrompt | UserFollowup | UserSteer):
        return
    for piece in searched(entry.block.text, SEARCHED_CHARACTERS):
        for sentence in _demanding(piece):
            if len(sentence) <= CONSTRAINT_CHARACTERS:
                yield sentence


def _demanding(text: str) -> Iterator[str]:
    """The sentences of a text in which a demand is; only around those is it looked at closely."""
    end = 0
    while found := _DEMAND.search(text, end):
        start = max(end, *(text.rfind(mark, end, found.start()) + 1 for mark in _MARKS))
        sentence = _SENTENCE.match(text, start)
        if sentence is None:
            break
        end = sentence.end()
        yield sentence[0].strip()


def _last_words(entries: Sequence[Entry], characters: int) -> str:
    """The newest of what the agent said, oldest first, in at most so many characters."""
    kept: list[str] = []
    left = characters
    for entry in reversed(entries):
        if isinstance(entry.block, AssistantCompletion) and entry.block.text.strip():
            text = entry.block.text.strip()
            if len(text) > left:
                text = text[: max(left - 1, 0)].rstrip() + "…"
            kept.append(text)
            left -= len(text)
            if left <= characters // 4:
                break
    return "\n\n".join(reversed(kept))
