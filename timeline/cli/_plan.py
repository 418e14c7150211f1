"""`foldline plan`: show what a compaction would do now, or carry out a saved plan."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from timeline.cli._console import DONE, answer, plural, screen, tell_guess
from timeline.cli._parser import tokens
from timeline.cli._store import (
    checked_name,
    fixed_from,
    fixed_options,
    looked_at,
    opened,
    store_option,
)

if TYPE_CHECKING:
    from persistence import EventStore
    from render import CompactionPlan
    from timeline import Options, Timeline
    from timeline._arguments import System, Tools

NAME = "plan"
HELP = "show what a compaction would do now, without doing it"
SHOWN = 30
"""The most proposals in the table."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add = parser.add_argument
    add("id", metavar="ID", help="the timeline")
    size_options(parser)
    fixed_options(parser)
    add(
        "--commit",
        type=Path,
        metavar="FILE",
        help="carry out a plan that --json printed into this file",
    )
    store_option(parser)


def size_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the window, the policy, the model and the token counter."""
    add = parser.add_argument
    add("--window", type=tokens, metavar="N", help="largest prompt in tokens: 30000, 30k, 1m")
    add("--policy", default="default", metavar="NAME", help="name or .toml file of a policy")
    add("--model", default="", metavar="NAME", help="model whose window and rules apply")
    add("--counter", choices=("model", "o200k", "estimate"), default="model", help="token counter")


def run(options: argparse.Namespace) -> int:
    """Print a row for each proposal and the total effect; or the plan as JSON."""
    from timeline import Timeline

    with opened(options) if options.commit else looked_at(options) as store:
        checked_name(store, options.id)
        with Timeline.open(options.id, **chosen(options, store)) as timeline:
            system, tools = fixed_from(options)
            if options.commit:
                return _commit(options, timeline, system, tools)
            plan, model = timeline.propose(system=system, tools=tools), timeline.settings.model
    tell_guess(model, sys.stderr if options.json else sys.stdout)
    if options.json:
        sys.stdout.write(plan.to_json().decode() + "\n")
    else:
        _print(plan)
    return DONE


def chosen(options: argparse.Namespace, store: "EventStore") -> "Options":
    """The arguments for `Timeline.open`."""
    return {"store": store, **sized(options)}


def sized(options: argparse.Namespace) -> "Options":
    """The values of `size_options`, as timeline options."""
    from timeline import policy_named

    found: Options = {"policy": policy_named(options.policy), "counter": options.counter}
    if options.model:
        found["model"] = options.model
    if options.window is not None:
        found["window"] = options.window
    return found


def _commit(
    options: argparse.Namespace, timeline: "Timeline", system: "System", tools: "Tools"
) -> int:
    from blocks import StoreError, VersionConflictError
    from render import CompactionPlan

    plan, before = CompactionPlan.from_json(options.commit.read_bytes()), timeline.version
    try:
        version = timeline.commit_plan(plan, system=system, tools=tools)
    except VersionConflictError as error:
        raise StoreError(
            f"{options.commit} was made for version {plan.version} of {options.id!r}, which is at"
            f" {before} now; make a new plan"
        ) from error
    said = f"committed, version {version}" if version != before else "already committed"
    facts = {"version": version, "committed": version != before}
    return answer(options, facts, f"{options.id}: {said}")


def _print(plan: "CompactionPlan") -> None:
    from rich import box
    from rich.table import Table

    console = screen()
    if not plan.proposals:
        console.print(f"{plan.timeline}: a compaction would change nothing")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("rung", "versions", "turns", "blocks", "frees", "why"):
        is_number = column in {"blocks", "frees"}
        table.add_column(column, justify="right" if is_number else "left", overflow="ellipsis")
    for proposal in plan.proposals[:SHOWN]:
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
    if len(plan.proposals) > SHOWN:
        console.print(f"... and {len(plan.proposals) - SHOWN} more")
    if plan.warnings:
        twice = f"{plural(len(plan.warnings), 'block')} in two rows; only one of them is applied"
        console.print(f"{twice}, for example: {plan.warnings[0]}")
    console.print(
        f"version {plan.version}: from {plan.tokens_before:,} to {plan.tokens_after:,} tokens in a"
        f" window of {plan.limit:,}; the target is {plan.target:,}",
        highlight=False,
    )
