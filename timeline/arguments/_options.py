"""Checks of the options of `open`, names and values, before anything is opened."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, TypeAlias, cast

from blocks import ArgumentError, did_you_mean, in_words
from render import Model, Policy
from timeline.observe._hooks import Hooks

_Rule: TypeAlias = tuple[Callable[[Any], bool], str]

COUNTERS: Final = ("model", "o200k", "estimate")
RETENTIONS: Final = ("keep", "archive", "forget")


def _has(*names: str) -> Callable[[Any], bool]:
    """A check that a value has these attributes. It also accepts classes with `__getattr__`, which is not called."""

    def has(value: object) -> bool:
        kind, own = value.__class__, getattr(value, "__dict__", {})
        return not isinstance(value, type) and (
            hasattr(kind, "__getattr__") or all(hasattr(kind, n) or n in own for n in names)
        )

    return has


def _is_place(value: Any) -> bool:
    return isinstance(value, PathLike) or (isinstance(value, str) and bool(value.strip()))


def _is_store(value: Any) -> bool:
    return _is_place(value) or _has("append", "load_window", "read", "head", "fork")(value)


def _are_callables(value: Any) -> bool:
    return isinstance(value, Sequence) and all(map(callable, cast("Sequence[Any]", value)))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_RULES: Final[Mapping[str, _Rule]] = {
    "store": (_is_store, "a store, or the path or URL of one"),
    "model": (lambda v: _is_name(v) or isinstance(v, Model), "a model's name, or a Model"),
    "policy": (lambda v: _is_name(v) or isinstance(v, Policy), "a policy's name, or a Policy"),
    "window": (_is_whole, "a positive number of tokens"),
    "counter": (
        lambda v: isinstance(v, str) or _has("name", "count", "part")(v),
        f"a counter, or one of {', '.join(COUNTERS)}",
    ),
    "count_tokens": (callable, "a function from a request to a number of tokens"),
    "summarizer": (callable, "a function from a SummaryRequest to a Summary"),
    "hooks": (_is(Hooks), "Hooks(on_before_compaction=[...], on_after_compaction=[...])"),
    "observers": (_are_callables, "a list of functions, each given a Step"),
    "tracer": (_has("start_as_current_span"), "an OpenTelemetry tracer"),
    "clock": (callable, "a function that returns seconds since the epoch"),
    "ids": (callable, "a function that returns a new id"),
    "keep_thinking": (_is(bool), "True or False"),
    "validate": (_is(bool), "True or False"),
    "artifacts": (
        lambda v: _is_place(v) or _has("put", "read", "describe")(v),
        "an artifact store, a folder or a URL",
    ),
    "keys": (_has("current", "key"), "a key ring, as Keys(...)"),
    "requester": (_has("id", "tenant", "permissions"), "a Requester(...)"),
    "probe": (callable, "a function from a ToolCall to a Determinism or None"),
    "retention": (lambda v: v in RETENTIONS, f"one of {', '.join(RETENTIONS)}"),
    "archive": (_is_place, "a folder"),
}
_NONE_SAYS: Final = frozenset({"artifacts"})
"""Options for which None has a meaning of its own; for all others it means the default."""


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, without those that are None.

    Raises:
        ArgumentError: there is no such option, or its value is not valid; the message names it.
    """
    unknown = [f"{n!r}{did_you_mean(n, _RULES)}" for n in options if n not in _RULES]
    if unknown:
        raise ArgumentError(
            f"open() takes no option {', nor '.join(unknown)} (there are {', '.join(_RULES)})"
        )
    for name, value in options.items():
        is_right, wanted = _RULES[name]
        if value is not None and not is_right(value):
            raise ArgumentError(f"open(): {name} is {wanted}, not {in_words(value)}")
    return {k: v for k, v in options.items() if v is not None or k in _NONE_SAYS}
