"""`foldline replay`: a recorded session through the engine, and what it would have cost."""

import argparse
import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timeline.cli._errors import DONE

if TYPE_CHECKING:
    from timeline.replay import Dump, ReplayOptions, ReplayResult

NAME = "replay"
HELP = "feed recorded sessions through the engine, call by call"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a session file of a known format")
    add("--window", type=int, metavar="N", help="tokens that a prompt may have")
    add("--counter", default="model", metavar="NAME", help="model (default), o200k or estimate")
    add("--policy", action="append", metavar="NAME|FILE.toml", help="repeat it to compare")
    add("--model", default="", metavar="NAME", help="whose prices and rules count")
    add(
        "--summarizer",
        choices=("extractive", "stand-in", "anthropic"),
        default="extractive",
        help="who writes summaries (default: extractive, no model)",
    )
    add("--thinking", choices=("keep", "drop"), default="keep", help="recorded thinking")
    add("--store", type=Path, metavar="PATH", help="keep the timeline in this DuckDB file")
    add("--name", default="", metavar="NAME", help="name of the timeline in the store")
    add("--dump", type=Path, metavar="FILE", help="write every request, a JSON line each")
    add("--format", default="auto", metavar="NAME", help="format of the session file")
    add("--system", type=Path, metavar="FILE", help="system prompt: JSON string or text blocks")
    add("--tools", type=Path, metavar="FILE", help="tool definitions: a JSON list")


def run(options: argparse.Namespace) -> int:
    """Replay every file under every policy."""
    results = [
        _replayed(file, policy, options)
        for file in options.files
        for policy in options.policy or ["default"]
    ]
    for result in results:
        print(json.dumps(result.to_json(), ensure_ascii=False))
    return DONE


def _replayed(file: str, policy: str, options: argparse.Namespace) -> "ReplayResult":
    from persistence.sessions import read_session
    from timeline.replay import replay

    session = read_session(file, format=options.format)
    with _dump(options.dump) as dump:
        return replay(session, _options(policy, options), store=options.store, dump=dump)


def _dump(path: Path | None) -> "AbstractContextManager[Dump | None]":
    from timeline.replay import dump_to

    return dump_to(path) if path else nullcontext()


def _options(policy: str, options: argparse.Namespace) -> "ReplayOptions":
    from timeline.replay import ReplayOptions

    return ReplayOptions(
        window=options.window,
        counter=options.counter,
        policy=policy,
        model=options.model,
        summarizer=options.summarizer,
        keep_thinking=options.thinking == "keep",
        system=_json(options.system),
        tools=_json(options.tools),
        name=options.name,
    )


def _json(path: Path | None) -> Any:
    return json.loads(path.read_text()) if path else None
