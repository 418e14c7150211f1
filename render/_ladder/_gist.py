"""What is worth knowing of a result that leaves the prompt: excerpts around the names in it, first
those that the agent itself has used."""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from blocks import Index, Term, text_of
from render._group import Entry
from render._hidden import stand_in
from render._identifiers import identifiers
from render._index import IndexBudget, build_index

WIDE_SHARE: Final = 0.7
"""Of the tokens, what goes to lines with their neighbours; the rest to single lines."""
TEXT_MAX: Final = 200_000
"""Characters that are searched for names, half of them from the end: more says little more."""
HEAD_CHARACTERS: Final = 3
"""For each token, where there are no names: its beginning."""


def gist(
    entry: Entry, used: Mapping[str, int], tokens_max: int, count: Callable[[str], int]
) -> str:
    """Excerpts of a block's text within `tokens_max` tokens, verbatim, in its order."""
    text = _ends(text_of(entry.block))
    if tokens_max <= 0 or not text.strip():
        return ""
    entry = attrs.evolve(entry, block=stand_in(entry.block, text))
    names = identifiers(text) & used.keys()
    known = Index(terms=tuple(Term(term=name, seen=0, uses=used[name]) for name in sorted(names)))
    wide = int(WIDE_SHARE * tokens_max)
    budget = IndexBudget(wide=wide, line=tokens_max - wide, names=0)
    index = build_index(known, [entry], (), budget, count)
    excerpts = [excerpt.text for excerpt in index.excerpts]
    return "\n…\n".join(excerpts) or text.strip()[: HEAD_CHARACTERS * tokens_max]


def _ends(text: str) -> str:
    """The beginning and the end of a text that is too long to be searched for a few excerpts."""
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX // 2]}\n{text[-TEXT_MAX // 2 :]}"
