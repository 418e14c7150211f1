"""What is worth knowing of a result that leaves the prompt: excerpts around the names in it, first
those that the agent itself has used."""

from collections.abc import Callable, Mapping
from typing import Final

from blocks import Index, Term, text_of
from render.summary._identifiers import identifiers, searched
from render.summary._index import build_index
from render.summary._market import IndexBudget
from render.view._group import Entry

HEAD_CHARACTERS: Final = 3
"""For each token, where there are no names: its beginning."""


def excerpts_of(
    entry: Entry, used: Mapping[str, int], tokens_max: int, count: Callable[[str], int]
) -> str:
    """Excerpts of a block's text within `tokens_max` tokens, verbatim, in its order."""
    text = text_of(entry.block)
    if tokens_max <= 0 or not text.strip():
        return ""
    names = {name for piece in searched(text) for name in identifiers(piece) & used.keys()}
    known = Index(terms=tuple(Term(term=name, seen=0, uses=used[name]) for name in sorted(names)))
    budget = IndexBudget(tokens=tokens_max, is_naming=False)
    index = build_index(known, [entry], (), budget, count)
    return (
        "\n…\n".join(excerpt.text for excerpt in index.excerpts)
        or text.strip()[: HEAD_CHARACTERS * tokens_max]
    )
