"""Holds the exam with a model as reader, and prints a table by kind of question.

python -m benchmarks.exam MODEL [--grader MODEL] [--writer MODEL|none] [--exam FOLDER] [--sessions FOLDER] [--window N]

MODEL answers from what the engine kept, once with computed summaries and once with summaries that the writer (default:
MODEL) has written. The keys are read from the environment by the clients of the providers.
"""

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.exam import (
    EXAMPLES,
    HERE,
    Handover,
    Respondent,
    answers,
    grades,
    handover,
    means,
    papers,
)
from timeline import ModelSummarizer, model_named

COMPUTED: Final = "computed"
"""The name of the engine without a model."""


def main(arguments: list[str] | None = None, client_of: Callable[[str], Any] | None = None) -> int:
    """Hold the exam; `client_of` makes the client for a provider."""
    given = _given(arguments)
    make = client_of or _client
    reader, grader = (
        Respondent(client=make(model.provider), model=model)
        for model in map(model_named, (given.model, given.grader or given.model))
    )
    writers: dict[str, ModelSummarizer | None] = {COMPUTED: None}
    written_by = given.writer or given.model
    if written_by != "none":
        client = make(model_named(written_by).provider)
        writers[f"written by {written_by}"] = ModelSummarizer(client=client, model=written_by)
    graded: dict[str, dict[str, float]] = {name: {} for name in writers}
    seen: dict[str, list[Handover]] = {name: [] for name in writers}
    kinds: dict[str, str] = {}
    for paper in papers(given.exam, given.sessions):
        said: dict[str, dict[str, str]] = {}
        for name, writer in writers.items():
            shown = handover(paper, given.window, given.policy, writer)
            seen[name].append(shown)
            said[name] = answers(paper, shown, reader)
        kinds |= {f"{paper.name} {each.id}": each.kind for each in paper.questions}
        for name, by_question in grades(paper, said, grader).items():
            graded[name] |= {f"{paper.name} {id_}": grade for id_, grade in by_question.items()}
    _tell(means(graded, kinds.__getitem__), seen, reader, grader)
    return 0


def _given(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL", help="the reader")
    parser.add_argument("--grader", default="", metavar="MODEL", help="default: the reader")
    parser.add_argument(
        "--writer", default="", metavar="MODEL", help="default: the reader; or none"
    )
    parser.add_argument("--exam", type=Path, default=HERE, help="folder with questions.json")
    parser.add_argument("--sessions", type=Path, default=EXAMPLES, help="folder of the sessions")
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--policy", default="default")
    return parser.parse_args(arguments)


def _client(provider: str) -> Any:
    """The client of a provider, with the key from the environment."""
    match provider.partition(".")[0]:
        case "anthropic":
            from anthropic import Anthropic

            return Anthropic()
        case "openai":
            from openai import OpenAI

            return OpenAI()
        case _:
            return import_module("google.genai").Client()


def _tell(
    found: dict[str, dict[str, float]],
    seen: dict[str, list[Handover]],
    reader: Respondent,
    grader: Respondent,
) -> None:
    columns = list(next(iter(found.values())))
    table = Table("summaries", *columns, "tokens", "folds", "calls", "$", box=box.SIMPLE)
    for name, row in found.items():
        shown = seen[name]
        counts = (sum(h.tokens for h in shown) // len(shown), sum(h.folds for h in shown))
        cost = f"{sum(h.dollars for h in shown):.2f}"
        figures = [f"{row[c]:.0f}" if c == "mislead" else f"{row[c]:.3f}" for c in columns]
        table.add_row(name, *figures, *map(str, counts), str(sum(h.calls for h in shown)), cost)
    console = Console(width=120)
    console.print(table)
    console.print(
        f"reading: {reader.calls} calls, ${reader.dollars:.2f}; grading: {grader.calls} calls, ${grader.dollars:.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
