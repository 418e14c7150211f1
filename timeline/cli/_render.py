"""`foldline render`: print the request that a timeline renders to."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from timeline.cli._console import DONE, print_json, tell_guess
from timeline.cli._store import (
    checked_name,
    fixed_from,
    fixed_options,
    hidden_option,
    looked_at,
    store_option,
)

if TYPE_CHECKING:
    from render import Model
    from timeline import Options

NAME = "render"
HELP = "print the request that a timeline renders to, without recording anything"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add = parser.add_argument
    add("id", metavar="ID", help="the timeline")
    add("--at", type=int, metavar="VERSION", help="render the timeline as it was at this version")
    add(
        "--provider",
        default="",
        metavar="NAME",
        help="request format: anthropic, openai.responses, openai.chat or gemini (default: the model's)",
    )
    add("--model", default="", metavar="NAME", help="model whose rules apply")
    add("--thinking", choices=("keep", "drop"), default="keep", help="recorded thinking blocks")
    fixed_options(parser)
    hidden_option(parser)
    store_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print only the request, as JSON; indented unless `--json` is given."""
    from timeline import Timeline

    system, tools = fixed_from(options)
    with looked_at(options) as store:
        last = store.head(checked_name(store, options.id))
        chosen: Options = {"store": store, "keep_thinking": options.thinking == "keep"}
        if options.model or options.provider:
            chosen["model"] = _model(options.model, options.provider)
        with Timeline.open(options.id, **chosen) as timeline:
            version = last if options.at is None else options.at
            rendered = timeline.render_at(
                version, system=system, tools=tools, hidden=options.hidden
            )
            request = rendered.request()
            tell_guess(timeline.settings.model, sys.stderr)
    if options.json:
        print_json(request)
    else:
        sys.stdout.write(json.dumps(request, ensure_ascii=False, indent=2) + "\n")
    return DONE


def _model(name: str, provider: str) -> "Model | str":
    """The model; with a provider given, the model as that provider serves it."""
    import attrs

    from timeline import model_named

    return attrs.evolve(model_named(name), provider=provider) if provider else name
