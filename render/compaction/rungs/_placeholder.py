"""The durability of a tool result, and the placeholder that replaces a cleared one: a line that says what
it was, with excerpts around the identifiers that the agent has used."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from blocks import (
    Durability,
    Index,
    Sensitivity,
    Term,
    ToolCall,
    ToolResult,
    fields_in,
    is_sealed,
    text_of,
    tool_target,
)
from render.policy._policy import ToolPolicy
from render.summary._artifacts import one_line
from render.summary._identifiers import searched
from render.summary._index import build_index
from render.summary._market import IndexBudget
from render.summary._reading import Reader
from render.view._group import Entry

_LINE_MAX: Final = 160
_TARGET_MIN: Final = 40
"""Characters of the target when space is short."""
HEAD_CHARACTERS: Final = 3
"""Characters per token for the beginning of a text in which no identifier was found."""


class Answered(Protocol):
    """A result with its call, and the policy for its tool."""

    @property
    def entry(self) -> Entry: ...
    @property
    def result(self) -> ToolResult: ...
    @property
    def call(self) -> ToolCall: ...
    @property
    def policy(self) -> ToolPolicy: ...


def durability_of(result: ToolResult, policy: ToolPolicy) -> Durability:
    """The policy's durability, or else the one the tool declared."""
    return policy.durability or result.envelope.durability


def sensitivity_of(result: ToolResult, policy: ToolPolicy) -> Sensitivity:
    """The policy's sensitivity, or else the one the tool declared."""
    return policy.sensitivity or result.envelope.sensitivity


def key_fields_of(result: ToolResult, policy: ToolPolicy) -> dict[str, Any]:
    """The key fields that the tool declared, and those that the policy keeps of a JSON result."""
    wanted = fields_in(text_of(result), policy.key_fields) if policy.key_fields else {}
    return {**wanted, **result.envelope.key_fields}


def placeholder(found: Answered, tokens_max: int, count: Callable[[str], int]) -> str:
    """The text that replaces a cleared result, in at most `tokens_max` tokens if possible.

    It has the tool, its target, the outcome, the key fields, the first line of an error, and the path. What
    does not fit is left out: the largest fields first, then the error, then the target. The path always
    stays.
    """
    fitting = (text for text in _versions(found) if count(text) <= tokens_max)
    return next(fitting, _cleared(found))


def _versions(found: Answered) -> Iterator[str]:
    """The placeholder, each time shorter."""
    target = one_line(tool_target(found.call.input, found.result.envelope), _LINE_MAX)
    asked = f"{found.call.name} {target}".strip()
    short = f"{found.call.name} {one_line(target, _TARGET_MIN)}".strip()
    outcome, error = found.result.envelope.outcome, _error(found.result)
    for fields in _fewer(key_fields_of(found.result, found.policy)):
        yield _cleared(found, asked, outcome, fields, error)
    yield _cleared(found, asked, outcome, error)
    yield _cleared(found, asked, outcome)
    yield _cleared(found, short, outcome)
    yield _cleared(found, found.call.name, outcome)


def _cleared(found: Answered, *said: str) -> str:
    known = "; ".join(filter(None, said))
    about = f": {known}" if known else ""
    return f"[cleared{about}; read back at {found.entry.path}]"


def _fewer(fields: Mapping[str, Any]) -> Iterator[str]:
    """The fields as JSON, sorted by name; each time without the largest remaining one."""
    encoded = {name: f"{_json(name)}:{_json(value)}" for name, value in sorted(fields.items())}
    largest = sorted(encoded, key=lambda name: (-len(encoded[name]), name))
    for gone, name in enumerate(largest):
        more = f" (+{gone} more)" if gone else ""
        yield f"{{{','.join(encoded.values())}}}{more}"
        del encoded[name]


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _error(result: ToolResult) -> str:
    is_failure = result.is_error or result.envelope.outcome == "failure"
    if not is_failure or is_sealed(result):
        return ""
    said = text_of(result).strip()
    return f"error: {one_line(said.splitlines()[0], _LINE_MAX)}" if said else ""


def excerpts_of(entry: Entry, used: Mapping[str, int], tokens_max: int, reader: Reader) -> str:
    """Excerpts of a block's text in at most `tokens_max` tokens, verbatim and in text order."""
    text = text_of(entry.block)
    if tokens_max <= 0 or is_sealed(entry.block) or not text.strip():
        return ""
    names = {name for piece in searched(text) for name in reader.names(piece) & used.keys()}
    known = Index(terms=tuple(Term(term=name, seen=0, uses=used[name]) for name in sorted(names)))
    budget = IndexBudget(tokens=tokens_max, is_naming=False)
    index = build_index(known, [entry], (), budget, reader)
    return (
        "\n…\n".join(excerpt.text for excerpt in index.excerpts)
        or text.strip()[: HEAD_CHARACTERS * tokens_max]
    )
