"""Everything that somebody may write down has a sentence: names, methods, fields, options, events, hooks, settings."""

import ast
import builtins
import importlib.util
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import get_args

import attrs
import click
import msgspec
import pytest

from blocks._events import KnownEvent
from render import Model, Policy, ToolPolicy
from tests.test_exports import EXPORTS
from timeline import Compacted, Compacting, Edit, Hooks, Options, Step, Timeline
from timeline.cli._main import COMMANDS, foldline
from timeline.react import (
    AgentHooks,
    AgentSettings,
    ApprovalNeeded,
    Limits,
    McpServer,
    Outcome,
    SessionStarted,
    StepDone,
    StepStarted,
    StreamLost,
    TextDelta,
    ToolDone,
    ToolStarted,
)
from timeline.replay import ReplayOptions

ROOT = Path(__file__).parent.parent
SETTINGS = (AgentSettings, Limits, McpServer, Model, Policy, ReplayOptions, ToolPolicy)
HOOKS = (
    AgentHooks,
    ApprovalNeeded,
    Hooks,
    Compacted,
    Compacting,
    Edit,
    Outcome,
    SessionStarted,
    Step,
    StepDone,
    StepStarted,
    StreamLost,
    TextDelta,
    ToolDone,
    ToolStarted,
)
DATA = (*SETTINGS, *HOOKS, *get_args(KnownEvent))


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """The script that writes the reference."""
    spec = importlib.util.spec_from_file_location("ref", ROOT / "docs" / "build_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_shows_every_public_name_and_every_method_of_a_timeline_once(
    reference: ModuleType,
) -> None:
    shown = [entry for page in reference.PAGES.values() for entry in reference.entries(page)]
    methods = sorted(name for owner, name in shown if owner == reference.SHARED)
    assert methods == sorted(reference.shared_methods())
    names = [(owner, name) for owner, name in shown if owner in EXPORTS]
    assert sorted(name for _, name in names) == sorted({*chain(*EXPORTS.values())})
    assert not [(owner, name) for owner, name in names if name not in EXPORTS[owner]]
    adapters = {owner for owner, _ in shown} - {*EXPORTS, reference.SHARED}
    assert all(owner.startswith("timeline.integrations.") for owner in adapters)


def test_a_twin_has_the_methods_of_the_class_that_is_shown_in_its_place(
    reference: ModuleType,
) -> None:
    for twin, name in reference.TWINS.items():
        own, other = (
            {method.name for method in reference.functions(*reference.class_of("timeline", each))}
            for each in (twin, name)
        )
        assert {method for method in own if not method.startswith("_")} == {
            method for method in other if not method.startswith("_")
        }


def documented(reference: ModuleType) -> Iterator[tuple[str, str]]:
    """Every public name, and every public method of one, with what is said of it."""
    for package, names in EXPORTS.items():
        for name in names:
            public = reference.definition(package, name)
            yield name, public.doc
            if isinstance(public.node, ast.ClassDef):
                for method in reference.functions(public.node, public.module):
                    if not method.name.startswith("_"):
                        yield f"{name}.{method.name}", reference.told(method, name)


def test_every_public_name_and_method_has_a_sentence(reference: ModuleType) -> None:
    assert not [name for name, doc in documented(reference) if not doc]


def test_every_error_that_a_public_name_says_it_raises_can_be_caught(reference: ModuleType) -> None:
    public = {*chain(*EXPORTS.values()), *dir(builtins)}
    for name, doc in documented(reference):
        _, _, section = doc.partition("Raises:\n")
        errors = re.findall(r"^ {4}(\w+): ", section, re.MULTILINE)
        assert not set(errors) - public, name


def told_fields(kind: type, reference: ModuleType) -> set[str]:
    """The fields that have a text of their own behind them, also those of the bases."""
    told: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in {"blocks", "render", "timeline"}:
            body = reference.class_of(base.__module__, base.__name__)[0].body
            for at, node in enumerate(body):
                if reference.text_after(body, at):
                    told |= set(reference.assigned(node))
    return told


def fields_of(kind: type) -> Iterator[str]:
    if attrs.has(kind):
        yield from (field.name for field in attrs.fields(kind))
    else:
        yield from (field.name for field in msgspec.structs.fields(kind))


def test_every_setting_and_every_field_of_an_event_or_hook_has_a_sentence(
    subtests: pytest.Subtests, reference: ModuleType
) -> None:
    for kind in DATA:
        with subtests.test(kind=kind):
            shown = {name for name in fields_of(kind) if not name.startswith("_")}
            assert shown
            assert not shown - told_fields(kind, reference) - {"id"}


def test_open_says_what_each_of_its_options_means() -> None:
    said = re.findall(r"^ {4,12}(\w+): ", Timeline.open.__doc__ or "", re.MULTILINE)
    assert set(said) >= set(Options.__annotations__)


def test_every_event_is_in_the_table_of_events(subtests: pytest.Subtests) -> None:
    page = (ROOT / "docs" / "blocks-and-events.md").read_text(encoding="utf-8")
    for event in get_args(KnownEvent):
        with subtests.test(event=event):
            assert f"| `{event.__name__}` |" in page


def test_every_hook_is_on_the_page_about_hooks(subtests: pytest.Subtests) -> None:
    page = (ROOT / "docs" / "how-to" / "hooks.md").read_text(encoding="utf-8")
    for name in [hook.name for cls in (Hooks, AgentHooks) for hook in attrs.fields(cls)]:
        with subtests.test(name=name):
            assert f"`{name}" in page


def test_every_command_and_each_of_its_options_has_a_sentence(subtests: pytest.Subtests) -> None:
    for name in COMMANDS:
        with subtests.test(name=name):
            command = foldline.get_command(click.Context(foldline), name)
            assert command is not None
            assert command.help
            for param in command.params:
                assert isinstance(param, click.Argument | click.Option)
                assert param.help, f"{name} {param.opts}"


def test_every_environment_variable_that_the_code_reads_is_on_the_page_about_settings() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    read: set[str] = set()
    for package in ("blocks", "persistence", "render", "timeline"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            read |= set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', text))
            read |= set(re.findall(r'"(FOLDLINE_[A-Z_]+)"', text))
    assert read
    assert not {name for name in read if f"`{name}`" not in page}
