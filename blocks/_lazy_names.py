"""Names of a package that load when they are first used: `__getattr__, __dir__ = later(globals(), {module: "name name"})`."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def later(
    package: dict[str, Any], names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a package, given by its `globals()`, whose `names`, by module and with spaces
    between them, load late."""
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value: object = getattr(import_module(modules[name]), name)
        package[name] = value
        return value

    return load, lambda: sorted({*package, *modules} - {"TYPE_CHECKING"})
