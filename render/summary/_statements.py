"""What a statement is worth, and what it does to earlier ones.

The worth is computed from its form (names and numbers, which every language has) and from a few English words, which only
add: in other languages, form and position decide.
"""

import re
from functools import lru_cache
from typing import Final

import attrs

from render.summary._identifiers import identifiers

# The worth of a statement.


NAMES_MAX: Final = 2
"""The most names, and the most numbers, that count."""
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\w.:%-]*")
_CAUSE: Final = re.compile(
    r"\b(?:causes?|caused|because|since|due to|reasons?|culprit|turns out|means that|that(?:'|’)?s why|root|found"
    r"|confirm(?:s|ed)|missing|wrong|incorrect|bug|issue|problem|regression|fix(?:ed)?)\b",
    re.IGNORECASE,
)
"""English words for causes and corrections: what a successor needs first, to not look for them again."""
_DECISION: Final = re.compile(
    r"\b(?:decided?|decision|instead of|rather than|reject(?:s|ed)?|chose|prefer|better|safer|simpler|should(?:n(?:'|’)t| not)"
    r"|must|policy|approach|keep|option|so that|not needed|no need)\b",
    re.IGNORECASE,
)
"""English words for decisions, their reasons and alternatives."""
_RESULT: Final = re.compile(
    r"\b(?:pass(?:es|ed)?|fail(?:s|ed|ure)?|done|committed|pushed|merged|verified|reproduced|works?|removed|renamed|reverted"
    r"|created|added|updated|succeed(?:s|ed)?|blocked|skipped|resolved|returns?|shows?|no longer|never|only)\b",
    re.IGNORECASE,
)
"""English words for results and limits."""
_GUESS: Final = re.compile(
    r"\b(?:maybe|perhaps|might|could|probably|likely|possibly|i (?:think|guess|suspect|wonder)|hmm)\b",
    re.IGNORECASE,
)
_ANNOUNCED: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|good|great|perfect|so|and|but|wait|next|now|first|then|also|interesting|finally)\b\W*)*"
    r"(?:let me|let(?:'|’)?s|let us|i(?:'|’)?(?:ll| will|m going to| am going to| need to| want to| should|d like to)\b"
    r"|(?:i(?:'|’)m|i am|we(?:'|’)re) (?:\w+ly )?(?:also |now |just |still )?\w+ing\b|still \w+ing\b"
    r"|(?:now|next),? (?:to |i |we |add|update|fix|run|implement|create|write|check|read|look|test|verify|clear|set)\b"
    r"|(?:running|checking|looking|waiting|trying|reading|continuing)\b)",
    re.IGNORECASE,
)
"""The beginning of an English sentence that says what the agent is about to do."""
_OFFER: Final = re.compile(
    r"\W*(?:(?:so|ok(?:ay)?|now|or|just|and)[,\s]+)*(?:if you(?:(?:'|’)d)? (?:want|like|prefer|need|wish)\b|would you like|do you want|want me to|shall i"
    r"|should i|let me know|feel free|happy to|i can (?:also )?(?:do|help|make|start|add|walk)|what would you like"
    r"|is there anything|anything else|ready (?:for|when)|you(?:'|’)re welcome|hello\b|hi\b)",
    re.IGNORECASE,
)
"""The beginning of an English offer or greeting."""

_EXCLAIMED: Final = re.compile(r"\W*\w+(?:['’ ]\w+)?\s*[!！]\W*")
"""One or two words with an exclamation mark."""


@lru_cache(maxsize=4096)
def worth(statement: str) -> int:
    """How much a statement tells: by its names and numbers, which every language has, and by English words."""
    named = min(len(identifiers(statement)), NAMES_MAX) + min(
        len(_NUMBER.findall(statement)), NAMES_MAX
    )
    cues = 3 * bool(_CAUSE.search(statement)) + 3 * bool(_DECISION.search(statement))
    cues += 2 * bool(_RESULT.search(statement))
    unsure = 2 * bool(_GUESS.search(statement)) + 3 * statement.endswith(("?", "？"))
    announced = announces(statement) * (2 if _DECISION.search(statement) else 4)
    return named + cues - unsure - announced


def announces(statement: str) -> bool:
    """Whether it only says what the agent is about to do."""
    return bool(_ANNOUNCED.match(statement))


def offers(statement: str) -> bool:
    """Whether it offers, greets, exclaims or announces, without a reason or decision in it."""
    if _EXCLAIMED.fullmatch(statement):
        return True
    has_reason = _DECISION.search(statement) or _CAUSE.search(statement)
    return bool(_OFFER.match(statement) or (announces(statement) and not has_reason))


def is_guess(statement: str) -> bool:
    """Whether it is not sure, or not yet done."""
    is_sure = _CAUSE.search(statement) or _RESULT.search(statement)
    return announces(statement) or bool(_GUESS.search(statement) and not is_sure)


# What a later statement does to an earlier one.


NEAR_SHARE: Final = 0.7
"""A statement repeats another if it has this share of its words."""
OPPOSITE_SHARE: Final = 0.6
"""It denies another if only one of the two has a denial, and they share this share of the shorter one's words."""
TAKEN_BACK_SHARE: Final = 0.5
"""It takes another back if it says that something was wrong, and has this share of the other's words."""
WORDS_MIN: Final = 4
"""Statements with fewer words are not compared."""
LETTERS_MIN: Final = 3
"""Shorter words are not compared."""
_WORD: Final = re.compile(r"\w[\w./-]*\w|\w")
_DENIAL: Final = re.compile(
    r"\b(?:not|no|never|nothing|none|cannot|without|isn|aren|wasn|doesn|don|didn|won|can)(?:'|’)?t?\b",
    re.IGNORECASE,
)
_TAKES_BACK: Final = re.compile(
    r"^\W*actually\b|\b(?:i was wrong|i misread|i was mistaken|my mistake|you(?:'|’)re (?:absolutely )?right|correction|scratch that"
    r"|on second thought|not (?:actually )?the (?:cause|problem|issue))",
    re.IGNORECASE,
)
"""English words with which a statement takes back an earlier one."""


@attrs.frozen
class Claim:
    """What of a statement is compared."""

    words: frozenset[str]
    is_denial: bool
    takes_back: bool
    """Whether it says that something earlier was wrong."""

    def repeats(self, earlier: "Claim") -> bool:
        """Whether it says the same, and perhaps more."""
        shared, most = len(self.words & earlier.words), len(earlier.words)
        return min(most, len(self.words)) >= WORDS_MIN and shared >= NEAR_SHARE * most

    def denies(self, earlier: "Claim") -> bool:
        """Whether it says the opposite, or takes the earlier one back."""
        shared, least = len(self.words & earlier.words), min(len(self.words), len(earlier.words))
        if least < WORDS_MIN:
            return False
        if self.takes_back and not earlier.takes_back:
            return shared >= TAKEN_BACK_SHARE * len(earlier.words)
        return self.is_denial != earlier.is_denial and shared >= OPPOSITE_SHARE * least


@lru_cache(maxsize=4096)
def claim_of(statement: str) -> Claim:
    """The claim of a statement, of one or several lines."""
    told = _DENIAL.sub(" ", statement.casefold())
    words = frozenset(word for word in _WORD.findall(told) if len(word) >= LETTERS_MIN)
    return Claim(words, bool(_DENIAL.search(statement)), bool(_TAKES_BACK.search(statement)))
