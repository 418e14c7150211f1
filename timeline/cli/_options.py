"""The options that commands share, and what they name: a store, a timeline's log, the parts of a request."""

import json
import os
import re
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any, Final, cast

import click
from click.shell_completion import CompletionItem

from blocks import (
    FoldlineError,
    Recorded,
    StoreError,
    TimelineId,
    UnknownTimelineError,
    did_you_mean,
)
from persistence import EventStore, StoreLocation, locate_store, look
from timeline import Options, policy_named
from timeline.cli._terminal import DONE, FAILED, complain, listed

AUTO: Final = "auto"
DEBUG: Final = "foldline.debug"
"""Where a context's `meta` says whether to show tracebacks."""
OPTIONS: Final = "foldline.options"
"""Where it says which options the command has."""
DEFAULT: Final = "foldline.duckdb"
SHARED: Final = "sqlite:///foldline.sqlite"
VARIABLE: Final = "FOLDLINE_STORE"
MEANT_MAX: Final = 5
"""The most timelines that are listed if a short name could be any of them."""
NAMES_MAX: Final = 1_000
"""The most timelines that completion offers, newest first."""
PATIENCE_SECONDS: Final = 2.0
"""After this time completion offers none, so that an unreachable server does not block the prompt."""
_PLAIN: Final = re.compile(r"[\w.@%+=/-]+", re.ASCII)
"""A name that every shell, and its script, reads as one plain word; other names are not offered."""
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_TOKENS: Final = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)([km]?)", re.IGNORECASE)
_NAME_MAX, _HASH = 60, 8


class UsageError(click.UsageError):
    """The command line is wrong; the message says all, and gets no hint where to read more."""


class Values(SimpleNamespace):
    """What a command was given: an attribute for each of its options and arguments."""


# Making a command


def command(
    name: str,
    *parameters: click.Parameter,
    epilog: str = "",
    kind: type[click.Command] = click.Command,
) -> Callable[[Callable[[Values], int]], click.Command]:
    """Make a command of a function.

    The function gets one object with an attribute for each parameter, and for `--json`; it returns the exit status.
    The command's sentence of help is in the table of commands, in `_main`.
    """

    def decorate(function: Callable[[Values], int]) -> click.Command:
        def callback(**values: Any) -> int:
            return function(Values(**values))

        return kind(
            name,
            params=[_JSON, _DEBUG, *parameters],
            callback=callback,
            epilog=f"\b\n{epilog}" if epilog else None,  # \b: click keeps the lines as they are
        )

    return decorate


def option(*names: str, **about: Any) -> click.Option:
    """An option; its metavar says what completes it: files, or names of timelines."""
    return click.Option(names, shell_complete=_COMPLETED.get(about.get("metavar", "")), **about)


class Argument(click.Argument):
    """An argument whose usage line shows whether it is needed, and whether there may be several."""

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        name = f"{self.make_metavar(ctx)}{'...' if self.nargs != 1 else ''}"
        return [name if self.required else f"[{name}]"]


def argument(name: str, **about: Any) -> Argument:
    """An argument that is no option; completed as in `option`."""
    return Argument([name], shell_complete=_COMPLETED.get(about["metavar"]), **about)


class OneOf(click.Choice[str]):
    """One of some words; a wrong one is answered with the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            near = did_you_mean(value, self.choices)
            near = near or f" (choose from {', '.join(self.choices)})"
            self.fail(f"invalid choice: {value!r}{near}", param, ctx)
        return str(value)


def tokens(text: str) -> int:
    """Parse a number of tokens: `30000`, `30k`, `1.5m`.

    Raises:
        BadParameter: the text is not a number of tokens.
    """
    if match := _TOKENS.fullmatch(text.strip()):
        number = float(match[1].replace(",", "").replace("_", ""))
        return round(number * _UNITS[match[2].lower()])
    if re.fullmatch(r"-\d+", text):  # still a number: whoever uses it reports a better error
        return int(text)
    raise click.BadParameter(f"{text!r} is not a number of tokens; write 30000, 30k or 1m")


def tokens_or_auto(text: str) -> int | str:
    """Parse a number of tokens, or `auto`.

    Raises:
        BadParameter: the text is neither.
    """
    return text if text == AUTO else tokens(text)


def _files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(incomplete, type="file")]


def _timelines(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """The newest timelines of the store; none if it is missing, locked or slow to answer."""
    limit = Timer(PATIENCE_SECONDS, os._exit, (DONE,))
    limit.daemon = True
    limit.start()
    where = context.params.get("store")
    try:
        place = existing_store(Values(store=where and os.path.expanduser(where)))  # noqa: PTH111 -- no shell has done it
        if not place.is_writable():  # to read it, it would have to be copied first
            return []
        with closing(place.open()) as store:
            newest = sorted(store.list(), key=lambda info: -info.updated_at)[:NAMES_MAX]
    except (FoldlineError, OSError):
        return []
    finally:
        limit.cancel()
    names = [str(info.id) for info in newest if _PLAIN.fullmatch(info.id)]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


_COMPLETED: Final = {
    "ID": _timelines,
    **dict.fromkeys(("FILE", "WHERE", "NAME|FILE.toml", "TARGET", "FOLDER"), _files),
}
"""By metavar: what completes the value."""


# The options


def _note_debug(context: click.Context, _: click.Parameter, value: Any) -> None:
    context.meta[DEBUG] = value
    context.meta[OPTIONS] = [name for param in context.command.params for name in param.opts]


_JSON: Final = option("--json", is_flag=True, help="print JSON")
_DEBUG: Final = option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=_note_debug,
    help="show the traceback of an error",
)
ID: Final = argument(
    "id", metavar="ID", help="the timeline; the beginning of its name, if no other has it"
)
STORE: Final = option(
    "--store",
    metavar="WHERE",
    help=f"path or URL of the store (default: ${VARIABLE}, or foldline.duckdb or foldline.sqlite"
    " in this folder, or what a gateway keeps of this folder)",
)
HIDDEN: Final = option(
    "--hidden", is_flag=True, help="also show blocks hidden on request, with their original text"
)
SIZE: Final = (
    option("--window", type=tokens, metavar="N", help="largest prompt in tokens: 30000, 30k, 1m"),
    option("--policy", default="default", metavar="NAME", help="name or .toml file of a policy"),
    option("--model", default="", metavar="NAME", help="model whose window and rules apply"),
    option(
        "--counter",
        type=OneOf(("model", "o200k", "estimate")),
        default="model",
        help="token counter",
    ),
)
"""The window, the policy, the model and the token counter: see `sized`."""
PROVIDER: Final = option(
    "--provider",
    default="",
    metavar="NAME",
    help="request format: anthropic, openai.responses, openai.chat or gemini (default: the model's)",
)
THINKING: Final = option(
    "--thinking", type=OneOf(("keep", "drop")), default="keep", help="recorded thinking blocks"
)
FIXED: Final = (
    option(
        "--system", type=Path, metavar="FILE", help="system prompt: a JSON string or text blocks"
    ),
    option("--tools", type=Path, metavar="FILE", help="tool definitions: a JSON list"),
)
"""What a request has besides messages: see `fixed_parts`."""


# What they name


def sized(options: Values) -> Options:
    """The values of `SIZE`, as options of `Timeline.open`.

    Raises:
        MisuseError: there is no such policy.
    """
    sizes: Options = {"policy": policy_named(options.policy), "counter": options.counter}
    if options.model:
        sizes["model"] = options.model
    if options.window is not None:
        sizes["window"] = options.window
    return sizes


def fixed_parts(
    options: Values,
) -> tuple[str | list[dict[str, Any]] | None, list[dict[str, Any]] | None]:
    """System prompt and tool definitions, as the options of `FIXED` say.

    Raises:
        UsageError: the system prompt is neither a JSON string nor a list of text blocks, or the tools
            are no list of objects with a name.
    """
    system, tools = _json(options.system), _json(options.tools)
    if system is not None and not isinstance(system, str):
        wanted = "give a JSON string or a list of text blocks"
        system = _objects(system, "text", f"--system {options.system}: {wanted}")
    if tools is not None:
        wanted = "give a JSON list of objects with a name"
        tools = _objects(tools, "name", f"--tools {options.tools}: {wanted}")
    return system, tools


def _json(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path}: not valid JSON ({error})") from error


def _objects(value: Any, key: str, complaint: str) -> list[dict[str, Any]]:
    """A list of objects that have a text under the key."""
    if isinstance(value, list):
        items = cast("list[dict[str, Any]]", value)
        if all(isinstance(item, dict) and isinstance(item.get(key), str) for item in items):  # pyright: ignore[reportUnnecessaryIsInstance] -- a user's
            return items
    raise UsageError(complaint)


def gateway_store() -> Path:
    """The file in which a gateway keeps the sessions of this folder.

    It is not in the folder: what anybody said would be committed, copied and searched with the project. It is SQLite:
    several gateways can have it open at the same time, and so can commands that read.
    """
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        data = data if data.is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:  # a user without a home
        return Path("foldline.sqlite")
    here = Path.cwd()
    name = re.sub(r"[^\w.-]+", "_", here.name)[:_NAME_MAX]
    return data / "foldline" / f"{name}-{sha256(os.fsencode(here)).hexdigest()[:_HASH]}.sqlite"


def store_location(options: Values, new: str | Path = DEFAULT) -> StoreLocation:
    """Where the store is: as `--store` says, or the variable, or the one of this folder or of its gateway.

    `new`: where it will be if there is none of these.

    Raises:
        MisuseError: there cannot be one.
    """
    if options.store is not None:
        return locate_store(options.store)
    if named := os.environ.get(VARIABLE):
        return locate_store(named)
    here = [locate_store(each) for each in (DEFAULT, SHARED, gateway_store())]
    return next((place for place in here if place.exists()), locate_store(new))


def existing_store(options: Values) -> StoreLocation:
    """Where the store is, which must be there already.

    Raises:
        StoreError: it is not.
    """
    where = store_location(options)
    if not where.exists():
        raise StoreError(
            f"there is no store at {where}; `foldline import FILE` creates one, --store chooses another"
        )
    return where


@contextmanager
def store_to_write(options: Values, destroying: str = "") -> Generator[EventStore]:
    """The store, which must be there already; `options.id`, if there is one, is then a whole name: see `checked_name`.

    Raises:
        StoreError: it is not.
    """
    with closing(existing_store(options).open()) as store:
        _complete_id(store, options, destroying)
        yield store


@contextmanager
def store_to_read(options: Values) -> Generator[EventStore]:
    """As `store_to_write`; where it is in use or read-only, a copy of it as it is now, and a line on stderr says so.

    Raises:
        StoreError: it is not there, or cannot be read.
    """
    place = existing_store(options)
    with look(place) as (store, is_copy):
        if is_copy:
            tell_copy(place)
        _complete_id(store, options)
        yield store


def _complete_id(store: EventStore, options: Values, destroying: str = "") -> None:
    if hasattr(options, "id"):
        options.id = checked_name(store, options.id, destroying=destroying)


def tell_copy(place: StoreLocation) -> None:
    """Say that it is not the store itself that is shown."""
    complain(f"{place} is in use or read-only: this is what it holds at this moment")


def checked_name(store: EventStore, name: str, *, destroying: str = "") -> TimelineId:
    """The timeline of this name, or the only one whose name begins so.

    `destroying`: what will be done to it, if that cannot be undone; then only the whole name is accepted.

    Raises:
        UnknownTimelineError: there is none.
        UsageError: the name is only a beginning, and that of several timelines or not enough.
    """
    if name and store.head(TimelineId(name)):
        return TimelineId(name)
    names = [info.id for info in store.list()]
    matches = sorted(each for each in names if name and each.startswith(name))
    if not matches:
        raise UnknownTimelineError(name, names)
    if len(matches) > 1:
        few = listed(matches, MEANT_MAX)
        raise UsageError(
            f"{len(matches):,} timelines begin with {name!r}: {few}; give more of the name"
        )
    if destroying:
        raise UsageError(f"{destroying} needs the whole name of the timeline: {matches[0]}")
    return matches[0]


def log_of(store: EventStore, name: str, *, whole: bool = True) -> list[Recorded]:
    """The log of a timeline, all that is left of it; says on stderr what is gone. Unless the whole is needed, without
    what cannot be read now."""
    tell_forgotten(store, name)
    left, away = store.at_hand(TimelineId(name))
    if away and not whole:
        complain(f"{name}: {away}")
    return [*store.log(TimelineId(name), after=0 if whole else left.forgotten)]


def tell_away(store: EventStore) -> int:
    """Say on stderr which archives cannot be read; return the exit status."""
    status = DONE
    for name in store.trimmed():
        if away := store.at_hand(name)[1]:
            complain(f"{name}: {away}")
            status = FAILED
    return status


def tell_forgotten(store: EventStore, name: str) -> None:
    """Say on stderr which events of a timeline are gone."""
    if last := store.kept(TimelineId(name)).forgotten:
        complain(f"{name}: events 1 to {last:,} are forgotten; what is left begins at {last + 1:,}")
