"""`foldline replay`: run recorded sessions through the engine, and show what they would have cost."""

import argparse
import os
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from timeline.cli._chart import check_chart, write_chart
from timeline.cli._console import DONE, FAILED, UsageError, complain, print_json, progress_bar, say
from timeline.cli._curve import short
from timeline.cli._files import FILES_HELP, File, session_files, tell_passed_over
from timeline.cli._parser import AUTO, tokens_or_auto
from timeline.cli._report import write_report
from timeline.cli._store import fixed_from, fixed_options, session_from, session_options
from timeline.cli._story import tell
from timeline.cli._tuning import check_tuning, tune_and_tell, tuning_options

if TYPE_CHECKING:
    from persistence.sessions import Session
    from timeline.replay import Dump, Replayed, ReplayOptions, ReplayResult

NAME = "replay"
HELP = "run recorded sessions through the engine, call by call: cost, recall, compactions"
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""The variables in which the client looks for its key."""
EXAMPLES = """\
examples:
  foldline replay session.jsonl --window 60k
  foldline replay session.jsonl --window auto
  foldline replay ~/.codex/sessions 'logs/**/*.jsonl' --window 100k
  foldline replay a.jsonl b.jsonl --policy default --policy mine.toml
  foldline replay a.jsonl b.jsonl --policy frugal --policy generous --plot front.svg
  foldline replay --tune a.jsonl b.jsonl --at-least far=0.95,quotes=0.85 --output mine.toml
  foldline replay session.jsonl --counter o200k --dump requests.jsonl --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.epilog = EXAMPLES
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help=FILES_HELP)
    add(
        "--window",
        type=tokens_or_auto,
        metavar="N",
        help="largest prompt in tokens: 30000, 30k, 1m (default: the model's window); auto: small enough to compact",
    )
    add("--counter", default="model", metavar="NAME", help="model (default), o200k or estimate")
    add("--policy", action="append", metavar="NAME|FILE.toml", help="repeat to compare policies")
    add("--model", default="", metavar="NAME", help="model whose prices and rules apply")
    add(
        "--provider",
        default="",
        metavar="NAME",
        help="request format: anthropic, openai.responses, openai.chat or gemini (default: the model's)",
    )
    add(
        "--summarizer",
        choices=("extractive", "stand-in", "anthropic"),
        default="extractive",
        help="extractive (default) needs no model; stand-in adds the price of the calls a model would get; "
        "anthropic calls a model, with ANTHROPIC_API_KEY",
    )
    add("--base-url", default="", metavar="URL", help="API address for --summarizer anthropic")
    add("--thinking", choices=("keep", "drop"), default="keep", help="recorded thinking blocks")
    add("--store", metavar="WHERE", help="save the timeline in the store at this path or URL")
    add("--name", default="", metavar="NAME", help="name of the timeline (default: the session's)")
    add("--dump", type=Path, metavar="FILE", help="write every request as a line of JSON")
    add(
        "--html", type=Path, metavar="FILE", help="write a report: one HTML file that opens offline"
    )
    add("--plot", type=Path, metavar="FILE", help="draw cost against recall: a .png or .svg file")
    tuning_options(parser)
    session_options(parser)
    fixed_options(parser)


def run(options: argparse.Namespace) -> int:
    """Replay every file with every policy."""
    policies = options.policy or ["default"]
    check_tuning(options)
    with session_files(options.files) as files:
        _check(options, policies, len(files))
        return _run(files, policies, options)


def _run(files: list[File], policies: list[str], options: argparse.Namespace) -> int:
    passed: list[str] = []
    tried = _Tried(options, passed)
    if options.tune:
        sessions = [session for file in files if (session := tried.session(file))]
        tell_passed_over(passed)
        return tune_and_tell(sessions, _options(policies[0], options), options)
    if len(files) * len(policies) == 1:
        replays = [_replayed(files[0], policies[0], options)]
    else:
        replays = [r for f, p in product(files, policies) if (r := tried.replayed(f, p))]
    tell_passed_over(list(dict.fromkeys(passed)))
    results = [replayed.result for replayed in replays]
    if options.json:
        for result in results:
            print_json(result.to_json())
    else:
        tell(results)
    if options.html and replays:
        _report(options, replays)
    drawn = not options.plot or _drawn(options.plot, results)
    for result in results:
        for problem in result.problems:
            complain(f"{result.session}: {problem}")
    complete = drawn and results and len(results) + len(passed) == len(files) * len(policies)
    return DONE if complete and not any(r.problems for r in results) else FAILED


def _check(options: argparse.Namespace, policies: list[str], files: int) -> None:
    if options.summarizer == "anthropic" and not any(map(os.environ.get, KEYS)):
        raise UsageError(f"--summarizer anthropic needs a key: set {KEYS[0]}")
    if options.base_url and options.summarizer != "anthropic":
        raise UsageError("--base-url works only with --summarizer anthropic")
    if options.plot:
        check_chart(options.plot)
    if files * len(policies) > 1:
        for name in ("dump", "name"):
            if getattr(options, name):
                raise UsageError(f"--{name} works with one session and one policy only")
        if options.store and len(policies) > 1:
            raise UsageError("--store works with one policy only")


def _report(options: argparse.Namespace, replays: "list[Replayed]") -> None:
    """Write the report and print its path."""
    from timeline.report import report_html, reported_replay

    titles = dict.fromkeys(replayed.result.session for replayed in replays)
    page = report_html(", ".join(titles), [reported_replay(replayed) for replayed in replays])
    write_report(options.html, page)
    if not options.json:
        say(f"report: {options.html}")


def _drawn(path: Path, results: "list[ReplayResult]") -> bool:
    """Write the chart; False if no replay has a recall to draw."""
    from timeline.replay import compared

    means = compared(results)
    if not means:
        complain("--plot: nothing to draw: no session uses older names after exceeding the window")
        return False
    write_chart(path, means, results)
    return True


@attrs.define
class _Tried:
    """Replays several files; files found in a folder that are not sessions are skipped."""

    _options: argparse.Namespace
    _passed: list[str]
    """The messages about skipped files."""

    def replayed(self, file: File, policy: str) -> "Replayed | None":
        """The result; None, with a message, if the file cannot be read."""
        from blocks import SessionFormatError

        try:
            return _replayed(file, policy, self._options)
        except SessionFormatError as error:
            if file.is_found:
                self._passed.append(str(error))
            else:
                complain(str(error))
            return None

    def session(self, file: File) -> "Session | None":
        """The session; None for a file found in a folder that is not a session.

        Raises:
            SessionFormatError: a file named on the command line cannot be read.
        """
        from blocks import SessionFormatError

        try:
            return session_from(file.path, self._options)
        except SessionFormatError as error:
            if not file.is_found:
                raise
            self._passed.append(str(error))
            return None


def _replayed(file: File, policy: str, options: argparse.Namespace) -> "Replayed":
    from timeline.replay import replay_with_log

    chosen = _options(policy, options)
    session = session_from(file.path, options)
    if options.window == AUTO:
        chosen = _with_window(session, chosen)
    bar = progress_bar(session.name, len(session.calls))
    with _dump(options.dump) as dump, bar as progress:
        return replay_with_log(session, chosen, store=options.store, dump=dump, progress=progress)


def _with_window(session: "Session", options: "ReplayOptions") -> "ReplayOptions":
    """The options with a window small enough for compactions; prints the window on stderr."""
    from timeline.replay import telling_window

    window, whole = telling_window(session, options)
    about = f"about {short(whole)} tokens in all"
    if window is None:
        complain(f"{session.name}: {about}; --window auto uses the model's window")
        return options
    complain(f"{session.name}: {about}; --window auto uses {window:,}, so that compactions happen")
    return attrs.evolve(options, window=window)


def _dump(path: Path | None) -> "AbstractContextManager[Dump | None]":
    from timeline.replay import dump_to

    return dump_to(path) if path else nullcontext()


def _options(policy: str, options: argparse.Namespace) -> "ReplayOptions":
    from timeline.replay import ReplayOptions

    system, tools = fixed_from(options)
    return ReplayOptions(
        window=None if options.window == AUTO else options.window,
        counter=options.counter,
        policy=policy,
        model=options.model,
        provider=options.provider,
        summarizer=options.summarizer,
        base_url=options.base_url,
        keep_thinking=options.thinking == "keep",
        system=system,
        tools=tools,
        name=options.name,
    )
