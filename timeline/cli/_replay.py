"""`foldline replay`: run recorded sessions through the engine, and show what they would have cost."""

import os
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Final

import attrs

from blocks import FoldlineError, MisuseError, SessionFormatError
from persistence.sessions import Session
from timeline.cli._console import print_json, progress_bar
from timeline.cli._options import (
    AUTO,
    FIXED,
    PROVIDER,
    THINKING,
    OneOf,
    UsageError,
    Values,
    command,
    fixed_parts,
    option,
    tokens_or_auto,
)
from timeline.cli._replay_results import tell
from timeline.cli._sessions import FILES, SESSION, File, session_files, session_of, tell_passed_over
from timeline.cli._terminal import DONE, FAILED, complain, say, short
from timeline.replay import (
    Replayed,
    ReplayOptions,
    atomic_write,
    dump_to,
    replay_with_log,
    telling_window,
)
from timeline.report import report_html, reported_replay

KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""The variables in which the client looks for its key."""


@command(
    "replay",
    FILES,
    option(
        "--window",
        type=tokens_or_auto,
        metavar="N",
        help="largest prompt in tokens: 30000, 30k, 1m (default: the session's or the model's); auto: small enough to compact",
    ),
    option("--counter", default="model", metavar="NAME", help="model (default), o200k or estimate"),
    option("--policy", multiple=True, metavar="NAME|FILE.toml", help="repeat to compare policies"),
    option("--model", default="", metavar="NAME", help="model whose prices and rules apply"),
    PROVIDER,
    option(
        "--summarizer",
        type=OneOf(("extractive", "stand-in", "anthropic")),
        default="extractive",
        help="extractive (default) needs no model; stand-in adds the price of the calls a model would get; "
        "anthropic calls a model, with ANTHROPIC_API_KEY",
    ),
    option("--base-url", default="", metavar="URL", help="API address for --summarizer anthropic"),
    THINKING,
    option("--store", metavar="WHERE", help="save the timeline in the store at this path or URL"),
    option(
        "--name", default="", metavar="NAME", help="name of the timeline (default: the session's)"
    ),
    option("--dump", type=Path, metavar="FILE", help="write every request as a line of JSON"),
    option(
        "--html", type=Path, metavar="FILE", help="write a report: one HTML file that opens offline"
    ),
    *SESSION,
    *FIXED,
    epilog="""\
examples:
  foldline replay session.jsonl --window 60k
  foldline replay session.jsonl --window auto
  foldline replay ~/.codex/sessions 'logs/**/*.jsonl' --window 100k
  foldline replay a.jsonl b.jsonl --policy default --policy mine.toml
  foldline replay session.jsonl --counter o200k --dump requests.jsonl --json
""",
)
def replay(options: Values) -> int:
    """Replay every file with every policy."""
    policies = options.policy or ("default",)
    with session_files(options.files) as files:
        _check(options, len(policies), len(files))
        passed: list[str] = []
        pairs = list(product(files, policies))
        replays: list[Replayed] = []
        for file, policy in pairs:
            try:
                replays.append(_replay(file, policy, options))
            except FoldlineError as error:
                if len(pairs) == 1 or (isinstance(error, MisuseError) and not replays):
                    raise
                is_unread = isinstance(error, SessionFormatError)
                text = str(error) if is_unread else f"{file.path}: {error}"
                (passed.append if file.is_found else complain)(text)
        tell_passed_over(list(dict.fromkeys(passed)))
        is_told = _tell_all(replays, options)
    is_complete = replays and len(replays) + len(passed) == len(pairs)
    return DONE if is_told and is_complete else FAILED


def _check(options: Values, policies: int, files: int) -> None:
    if options.summarizer == "anthropic" and not any(map(os.environ.get, KEYS)):
        raise UsageError(f"--summarizer anthropic needs a key: set {KEYS[0]}")
    if options.base_url and options.summarizer != "anthropic":
        raise UsageError("--base-url works only with --summarizer anthropic")
    if files * policies > 1:
        for name in ("dump", "name"):
            if getattr(options, name):
                raise UsageError(f"--{name} works with one session and one policy only")
        if options.store and policies > 1:
            raise UsageError("--store works with one policy only")


def _replay(file: File, policy: str, options: Values) -> Replayed:
    settings = _replay_options(policy, options)
    session = session_of(file.path, options)
    if not session.calls:
        raise SessionFormatError(
            f"{file.path}: it has no call of a model, so there is nothing to replay"
        )
    if options.window == AUTO:
        settings = _with_window(session, settings)
    bar = progress_bar(session.name, len(session.calls))
    with dump_to(options.dump) if options.dump else nullcontext() as dump, bar as progress:
        return replay_with_log(session, settings, store=options.store, dump=dump, progress=progress)


def _with_window(session: Session, options: ReplayOptions) -> ReplayOptions:
    """The options with a window in which compactions happen; prints the window on stderr."""
    window, whole = telling_window(session, options)
    about = f"about {short(whole)} tokens in all"
    if window is None:
        own = f"its own window, {options.limit_for(session):,}"
        complain(f"{session.name}: {about}, too small for a compaction; --window auto uses {own}")
        return options
    complain(f"{session.name}: {about}; --window auto uses {window:,}, so that compactions happen")
    return attrs.evolve(options, window=window)


def _replay_options(policy: str, options: Values) -> ReplayOptions:
    system, tools = fixed_parts(options)
    target = options.provider or options.model
    # A dump has Anthropic's requests, whoever recorded the session: who reads it knows one form.
    provider = "anthropic" if options.dump and not target else options.provider
    return ReplayOptions(
        window=None if options.window == AUTO else options.window,
        counter=options.counter,
        policy=policy,
        model=options.model,
        provider=provider,
        summarizer=options.summarizer,
        base_url=options.base_url,
        keep_thinking=options.thinking == "keep",
        system=system,
        tools=tools,
        name=options.name,
    )


def _tell_all(replays: list[Replayed], options: Values) -> bool:
    """Write the report and print the results; False if there is a problem."""
    results = [each.result for each in replays]
    if options.html and replays:  # first, since who reads the results may stop, as `head` does
        titles = dict.fromkeys(result.session for result in results)
        page = report_html(", ".join(titles), [reported_replay(each) for each in replays])
        with atomic_write(options.html) as file:
            file.write(page)
    if options.json:
        for result in results:
            print_json(result.to_json())
    else:
        tell(results)
        if options.html and replays:
            say(f"report: {options.html}")
    for result in results:
        for problem in result.problems:
            complain(f"{result.session}: {problem}")
    return not any(result.problems for result in results)
