"""Properties of the code itself, after TigerBeetle's `tidy.zig`.

The numbers are not sacred; changing one is a decision, made here, in a diff.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("blocks", "persistence", "render", "timeline")
FUNCTION_LINES_MAX = 50
PARAMETERS_MAX = 5
FILES_MAX, LINES_MAX = 273, 74_405
"""Budgets of the four packages. They only go down: a commit that makes room lowers them, and one that raises them gives
its reason in the changelog. A single file may be as long as its idea; `tests/timeline/test_trips.py` has the budgets of
what a reader passes through."""

EDGES = frozenset(
    {
        "persistence/testing/_contract.py",
        "timeline/summarizers/_model.py",
        "timeline/_flow_drivers.py",
        "timeline/gateway/_app.py",
        "timeline/observe/_hooks.py",
        "timeline/observe/_traces.py",
        "timeline/engine/_artifacts.py",
        "timeline/engine/_compaction.py",
        "timeline/react/_tools.py",
    }
)
"""The only places that catch what they did not expect: hooks, tracers, tools, models' clients and other
stores are other people's code (logged, tried again, replaced, told to the model), and the drivers hand what was
raised to the flow that asked; behind a gateway, an agent goes on whatever fails there."""

BROAD = frozenset({"Exception", "BaseException"})

FILES = sorted(
    str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*.py")
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def functions(name: str) -> Iterator[Function]:
    return (node for node in ast.walk(parsed(name)) if isinstance(node, Function))


def names_in(node: ast.AST | None) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} if node else set()


def test_the_house_does_not_grow() -> None:
    lines = sum(len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in FILES)
    budget = (
        "make room elsewhere; or raise {} in tests/test_tidy.py, with the reason in CHANGELOG.md"
    )
    assert len(FILES) <= FILES_MAX, budget.format("FILES_MAX")
    assert lines <= LINES_MAX, budget.format("LINES_MAX")


def test_a_file_says_what_it_is() -> None:
    """A module starts with a docstring."""
    assert [name for name in FILES if not ast.get_docstring(parsed(name))] == []


def test_a_function_fits_a_screen() -> None:
    assert [
        f"{name}:{function.lineno} {function.name}"
        for name in FILES
        for function in functions(name)
        if (function.end_lineno or 0) - function.lineno >= FUNCTION_LINES_MAX
    ] == []


def test_the_parameters_of_a_function_fit_a_hand() -> None:
    assert [
        f"{name}:{function.lineno} {function.name}"
        for name in FILES
        for function in functions(name)
        if len(parameters_of(function)) > PARAMETERS_MAX
    ] == []


def parameters_of(function: Function) -> set[str]:
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    return {argument.arg for argument in every} - {"self", "cls"}


PARTICIPLES = frozenset({"found", "known", "said", "given", "kept", "asked", "told", "heard"})
PUBLIC = frozenset(
    {
        "blocks/_errors.py found",
        "persistence/_memory.py kept",
        "persistence/_store.py kept",
        "persistence/duckdb/_store.py kept",
        "persistence/sql/_store.py kept",
        "render/policy/_context.py known",
        "render/stages/_budget.py known",
        "timeline/engine/_operations.py kept",
        "timeline/engine/_operations.py known",
        "timeline/fake_provider/_provider.py known",
        "timeline/gateway/_admission.py kept",
        "timeline/report/_requests.py kept",
        "timeline/tokens/_counter.py known",
    }
)
"""Names that callers, JSON or a page already use."""


def test_a_name_says_what_the_thing_is() -> None:
    """A participle says when a thing came to be: `found` is a match, a row, a file."""
    names = {f"{name} {each}" for name in FILES for each in bound_names(name)}
    assert {each for each in names if each.rpartition(" ")[2] in PARTICIPLES} == PUBLIC


def bound_names(name: str) -> Iterator[str]:
    for node in ast.walk(parsed(name)):
        match node:
            case ast.Name(id=word, ctx=ast.Store()) | ast.Attribute(attr=word, ctx=ast.Store()):
                yield word.strip("_")
            case ast.arg(arg=word) | ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word):
                yield word.strip("_")
            case ast.ClassDef(name=word):
                yield word.strip("_").lower()
            case _:
                pass


def test_nothing_is_swallowed() -> None:
    """Code catches what it expects."""
    assert [place for name in FILES if name not in EDGES for place in swallowing(name)] == []


def swallowing(name: str) -> Iterator[str]:
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.ExceptHandler):
            raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            silences = not raises and (node.type is None or catches_everything(node))
        else:
            silences = suppresses_everything(node)
        if silences:
            yield f"{name}: {ast.unparse(node)[:80]}"


def catches_everything(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and bool(names_in(node.type) & BROAD)


def suppresses_everything(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or "suppress" not in ast.unparse(node.func):
        return False
    return any(names_in(argument) & BROAD for argument in node.args)


def test_an_edge_does_catch_everything() -> None:
    """What does not is taken off the list."""
    assert {name for name in EDGES if any(map(catches_everything, ast.walk(parsed(name))))} == EDGES


WAITS = frozenset({"wait", "join", "result", "settimeout", "wait_for", "wait_for_timeout"})
TESTS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py"))


def test_no_test_waits_for_a_clock_without_a_reason_beside_it() -> None:
    """What is waited for is an event, with the limit of all tests (`PATIENCE`), for a machine may be ten times as slow.
    Who sleeps, or waits for a number of seconds, says in a comment on that line why any number will do."""
    assert [place for name in TESTS for place in clocks_in(name)] == []


def clocks_in(name: str) -> Iterator[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    for node in ast.walk(parsed(name)):
        if not isinstance(node, ast.Call) or not waits_for_a_clock(node):
            continue
        if "  # " not in (line := lines[node.lineno - 1]):
            yield f"{name}:{node.lineno} {line.strip()}"


def waits_for_a_clock(call: ast.Call) -> bool:
    place, _, name = ast.unparse(call.func).rpartition(".")
    if name == "sleep":
        return place in {"time", "asyncio"}
    if place == "httpx2":
        return (
            name.islower()
        )  # five seconds, if it is not told otherwise: `tests/_http.py` tells it
    if (
        not place or place.endswith("clock") or name not in WAITS
    ):  # a clock of the tests stands still
        return False
    limits = [*call.args[:2], *(each.value for each in call.keywords if each.arg == "timeout")]
    return any(isinstance(each, ast.Constant) and is_number(each.value) for each in limits)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_a_package_has_few_rooms() -> None:
    for package, rooms_max in (("render", 9), ("timeline", 22)):
        rooms = {path.stem for path in (ROOT / package).iterdir() if path.suffix in {"", ".py"}}
        assert len(rooms - {"__init__", "__pycache__"}) <= rooms_max, sorted(rooms)
