"""The next request of a timeline: its account of tokens, what a compaction would do to it, the request itself."""

import json
import sys
from pathlib import Path
from typing import Final, TextIO

import attrs
from rich import box
from rich.table import Table
from rich.text import Text

from blocks import StoreError, VersionConflictError
from persistence import EventStore
from render import CompactionDraft, format_account
from timeline import Options, Timeline, model_named
from timeline._models import guess_about
from timeline.billing import plural
from timeline.cli._console import answer, print_json, screen
from timeline.cli._inspect import size_of
from timeline.cli._options import (
    FIXED,
    HIDDEN,
    ID,
    PROVIDER,
    SIZE,
    STORE,
    THINKING,
    Values,
    command,
    fixed_parts,
    option,
    sized,
    store_to_read,
    store_to_write,
)
from timeline.cli._terminal import DONE, line
from timeline.report import Description, description_of

PROPOSALS_SHOWN: Final = 30


@command("account", ID, *SIZE, *FIXED, STORE)
def account(options: Values) -> int:
    """Print the account as a table; nothing is committed to the log."""
    system, tools = fixed_parts(options)
    with store_to_read(options) as store:
        last, about = store.head(options.id), description_of(store, options.id)
        with _timeline(options, store, about) as timeline:
            parts = timeline.render_at(last, system=system, tools=tools).account
            taken = _taken(options, timeline, about)
    if options.json:
        _tell(taken, sys.stderr)
        head = {"timeline": options.id, "version": last, "tokens": about.tokens}
        print_json({**head, **parts.to_json()})
        return DONE
    size = size_of(about) or "no request yet"
    screen().print(f"{options.id}: {size}")
    _tell(taken, sys.stdout)
    screen().print(
        Text(f"the next request, before anything is compacted:\n{format_account(parts)}")
    )
    return DONE


def _timeline(options: Values, store: EventStore, about: Description) -> Timeline:
    """The timeline, opened as the options of `SIZE` say; where they say nothing, with the recorded model and window."""
    settings: Options = {**sized(options), "store": store}
    if about.model and not options.model:
        settings["model"] = about.model
        if about.window and options.window is None:
            settings["window"] = about.window
    return Timeline.open(options.id, **settings)


def _taken(options: Values, timeline: Timeline, about: Description) -> str:
    """Which model and window were taken, and why, if the options do not say it."""
    model, window = f"model {timeline.settings.model.name}", getattr(options, "window", 0)
    if options.model:
        return ""
    if about.model is None:
        return f"{model}: a guess, as the log names none; --model chooses another"
    if window is None and about.window:
        return (
            f"{model}, window {about.window:,}: those of the newest answer in the log;"
            " --model and --window choose others"
        )
    return f"{model}: that of the newest answer in the log; --model chooses another"


def _tell(text: str, stream: TextIO) -> None:
    if text:
        print(line(text), file=stream)


@command(
    "propose",
    ID,
    *SIZE,
    *FIXED,
    option(
        "--commit",
        type=Path,
        metavar="FILE",
        help="carry out a draft that --json printed into this file",
    ),
    STORE,
)
def propose(options: Values) -> int:
    """Print a row for each proposal and the total effect; or the draft as JSON."""
    with store_to_write(options) if options.commit else store_to_read(options) as store:
        about = description_of(store, options.id)
        with _timeline(options, store, about) as timeline:
            if options.commit:
                return _commit(options, timeline)
            system, tools = fixed_parts(options)
            proposed = timeline.propose(system=system, tools=tools)
            model, taken = timeline.settings.model, _taken(options, timeline, about)
    stream = sys.stderr if options.json else sys.stdout
    _tell(guess_about(model), stream)
    _tell(taken, stream)
    if options.json:
        sys.stdout.write(proposed.to_json().decode() + "\n")
    else:
        _tell_draft(proposed)
    return DONE


def _commit(options: Values, timeline: Timeline) -> int:
    system, tools = fixed_parts(options)
    saved, before = CompactionDraft.from_json(options.commit.read_bytes()), timeline.version
    try:
        version = timeline.commit_draft(saved, system=system, tools=tools)
    except VersionConflictError as error:
        raise StoreError(
            f"{options.commit} was made for version {saved.version} of {options.id!r}, which is at"
            f" {before} now; make a new draft"
        ) from error
    is_new = version != before
    text = f"committed, version {version}" if is_new else "already committed"
    return answer(options, {"version": version, "committed": is_new}, f"{options.id}: {text}")


def _tell_draft(draft: CompactionDraft) -> None:
    console = screen()
    if not draft.proposals:
        console.print(f"{draft.timeline}: a compaction would change nothing")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("rung", "versions", "turns", "blocks", "frees", "why"):
        is_number = column in {"blocks", "frees"}
        table.add_column(column, justify="right" if is_number else "left", overflow="ellipsis")
    for proposal in draft.proposals[:PROPOSALS_SHOWN]:
        ends = dict.fromkeys((str(proposal.first), str(proposal.last)))
        turns = dict.fromkeys((proposal.turns[0], proposal.turns[-1])) if proposal.turns else ()
        table.add_row(
            proposal.action,
            "-".join(ends),
            "-".join(turns),
            str(len(proposal.blocks)),
            f"{proposal.tokens_freed:,}",
            proposal.reason,
        )
    console.print(table)
    if len(draft.proposals) > PROPOSALS_SHOWN:
        console.print(f"... and {len(draft.proposals) - PROPOSALS_SHOWN} more")
    if draft.warnings:
        twice = f"{plural(len(draft.warnings), 'block')} in two rows; only one of them is applied"
        console.print(f"{twice}, for example: {draft.warnings[0]}")
    console.print(
        f"version {draft.version}: from {draft.tokens_before:,} to {draft.tokens_after:,} tokens in a"
        f" window of {draft.limit:,}; the target is {draft.target:,}",
        highlight=False,
    )


@command(
    "render",
    ID,
    option(
        "--at", type=int, metavar="VERSION", help="render the timeline as it was at this version"
    ),
    PROVIDER,
    option("--model", default="", metavar="NAME", help="model whose rules apply"),
    THINKING,
    *FIXED,
    HIDDEN,
    STORE,
)
def render(options: Values) -> int:
    """Print only the request, as JSON; indented unless `--json` is given."""
    system, tools = fixed_parts(options)
    with store_to_read(options) as store:
        last, about = store.head(options.id), description_of(store, options.id)
        settings: Options = {"store": store, "keep_thinking": options.thinking == "keep"}
        model = options.model or about.model
        if options.provider:  # the model as that provider serves it
            settings["model"] = attrs.evolve(model_named(model or ""), provider=options.provider)
        elif model:
            settings["model"] = model
        with Timeline.open(options.id, **settings) as timeline:
            version = last if options.at is None else options.at
            rendered = timeline.render_at(
                version, system=system, tools=tools, hidden=options.hidden
            )
            request = rendered.request()
            _tell(guess_about(timeline.settings.model), sys.stderr)
            _tell(_taken(options, timeline, about), sys.stderr)
    if options.json:
        print_json(request)
    else:
        sys.stdout.write(json.dumps(request, ensure_ascii=False, indent=2) + "\n")
    return DONE
