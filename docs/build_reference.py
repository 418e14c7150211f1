"""Write docs/reference.md from the docstrings of everything public, without importing any of it.

python docs/build_reference.py            # or: make docs
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "reference.md"
PACKAGES = (
    "timeline",
    "blocks",
    "render",
    "persistence",
    "persistence.sessions",
    "persistence.testing",
    "timeline.react",
    "timeline.tokens",
    "timeline.replay",
    "timeline.report",
    "timeline.fake_provider",
)
PREAMBLE = """\
# Reference

Everything public, by package. Generated from the docstrings by `make docs`; do not edit.
"""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
LINE_MAX = 88


class Public(NamedTuple):
    """A public name and the statement that defines it."""

    name: str
    node: ast.stmt
    doc: str
    module: str


def file_of(module: str) -> Path:
    """The source of a module or package."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tree_of(module: str) -> ast.Module:
    """The parsed source of a module or package."""
    return ast.parse(file_of(module).read_text(encoding="utf-8"))


def exports(package: str) -> Iterator[Public]:
    """The names that a package re-exports with `as`, at once or when they are first asked for."""
    for node in with_later(tree_of(package).body):
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            for name in node.names:
                if name.asname == name.name:
                    yield definition(node.module, name.name)


def with_later(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, and those under its `if TYPE_CHECKING`."""
    for node in body:
        yield from node.body if isinstance(node, ast.If) else [node]


def definition(module: str, name: str) -> Public:
    """Where a name is defined, following re-exports."""
    body = tree_of(module).body
    for index, node in enumerate(body):
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return Public(name, node, ast.get_docstring(node) or "", module)
        if name in assigned(node):
            return Public(name, node, text_after(body, index), module)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
        if isinstance(node, ast.If):  # `if TYPE_CHECKING:` holds what a reader should see
            for inner in node.body:
                if name in assigned(inner):
                    return Public(name, inner, "", module)
    raise LookupError(f"{module} does not define {name}")


def assigned(node: ast.stmt) -> list[str]:
    """Names that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def text_after(body: list[ast.stmt], index: int) -> str:
    """The string that stands behind an assignment and documents it."""
    after = body[index + 1] if index + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return inspect.cleandoc(str(after.value.value))
    return ""


def described(public: Public) -> Iterator[str]:
    """The Markdown of one name."""
    yield f"\n### `{public.name}`\n"
    node = public.node
    if isinstance(node, Function):
        yield code(signature(node, public.name))
    elif isinstance(node, ast.ClassDef):
        bases = ", ".join(found for base in node.bases if (found := ast.unparse(base)) != "Shell")
        yield code(f"class {node.name}({bases})" if bases else f"class {node.name}")
    else:
        yield code(shortened(ast.unparse(node)))
    if public.doc:
        yield text(public.doc)
    if isinstance(node, ast.ClassDef):
        yield from fields(node)
        yield from methods(node, public.module)


def fields(node: ast.ClassDef) -> Iterator[str]:
    """The public attributes of a class."""
    rows: list[str] = []
    for index, item in enumerate(node.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            name = item.target.id
            if name.startswith("_") or "ClassVar" in ast.unparse(item.annotation):
                continue
            default = f" = {ast.unparse(item.value)}" if item.value and simple(item.value) else ""
            doc = " ".join(text_after(node.body, index).split())
            kind = ast.unparse(item.annotation)
            rows.append(f"- `{name}: {kind}{default}`" + (f": {doc}" if doc else ""))
    if rows:
        yield "\n".join(rows) + "\n"


def simple(value: ast.expr) -> bool:
    """Whether a default says more than it costs to read."""
    return isinstance(value, ast.Constant) or ast.unparse(value) in {"()", "{}"}


def methods(node: ast.ClassDef, module: str) -> Iterator[str]:
    """The public methods and properties of a class."""
    for item in functions(node, module):
        if not item.name.startswith("_"):
            marks = {ast.unparse(mark) for mark in item.decorator_list}
            shown = (
                item.name if {"property", "cached_property"} & marks else signature(item, item.name)
            )
            yield f"#### `{shown}`\n" if len(shown) <= LINE_MAX else f"#### `{item.name}`\n"
            if len(shown) > LINE_MAX:
                yield code(shown)
            if doc := ast.get_docstring(item):
                yield text(doc)


def functions(node: ast.ClassDef, module: str) -> Iterator[Function]:
    """What a class defines, the operations that it is bound to, and what it has from `Shell`."""
    for item in node.body:
        match item:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield item
            case ast.Assign(value=ast.Call(func=ast.Name("bound"), args=[run, operation])):
                yield bound(method_of(node, module, run), method_of(node, module, operation))
            case _:
                pass
    if any(ast.unparse(base) == "Shell" for base in node.bases):
        yield from functions(*class_of(module, "Shell"))


def bound(run: Function, operation: Function) -> Function:
    """The method that an operation (it returns a `Flow[...]`) becomes when `run` drives it."""
    returns = run.returns
    if isinstance(operation.returns, ast.Subscript) and returns and ast.unparse(returns) == "_T":
        returns = operation.returns.slice
    return type(run)(**{**vars(operation), "returns": returns})


def method_of(node: ast.ClassDef, module: str, named: ast.expr) -> Function:
    """A method by its name, or by `Class.name`; of the class itself, or of a base."""
    kind, _, name = ast.unparse(named).rpartition(".")
    if kind:
        node, module = class_of(module, kind)
    for item in node.body:
        if isinstance(item, Function) and item.name == name:
            return item
    base = ast.unparse(node.bases[0])
    return method_of(node, module, ast.parse(f"{base}.{name}", mode="eval").body)


def class_of(module: str, name: str) -> tuple[ast.ClassDef, str]:
    """A class that a module defines or imports, and the module that defines it."""
    found = definition(module, name)
    if not isinstance(found.node, ast.ClassDef):
        raise TypeError(f"{module}.{name} is no class")
    return found.node, found.module


def signature(node: Function, name: str) -> str:
    """The call, without `self`."""
    arguments = ast.unparse(node.args)
    for own in ("self", "cls"):
        arguments = (
            arguments.removeprefix(own).removeprefix(", ")
            if arguments.startswith(own)
            else arguments
        )
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return shortened(f"{prefix}{name}({arguments.removeprefix('/, ')}){returns}")


def shortened(line: str) -> str:
    """One line where it fits, else one argument or alternative a line."""
    if len(line) <= LINE_MAX:
        return line
    head, bracket, rest = line.partition("(" if "(" in line.split("=", maxsplit=1)[0] else "[")
    inner, end, tail = rest.rpartition(")" if bracket == "(" else "]")
    parts = split(inner)
    return head + bracket + "\n" + "".join(f"    {part},\n" for part in parts) + end + tail


def split(inner: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def code(lines: str) -> str:
    """A block of code that is shown, not run."""
    return f"```py\n{lines}\n```\n"


def text(doc: str) -> str:
    """A docstring as Markdown: what is indented is shown as it is."""
    return doc.rstrip() + "\n"


def reference() -> str:
    """The whole page."""
    lines = [
        PREAMBLE,
        "\n".join(f"- [`{name}`](#{name.replace('.', '')})" for name in PACKAGES),
        "",
    ]
    for package in PACKAGES:
        lines += [f"## {package}\n", text(ast.get_docstring(tree_of(package)) or "")]
        for public in sorted(exports(package), key=lambda p: (p.name.islower(), p.name)):
            lines += described(public)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date."""
    page = reference()
    if "--check" in sys.argv:
        return int(not OUT.exists() or OUT.read_text(encoding="utf-8") != page)
    OUT.write_text(page, encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: {page.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
