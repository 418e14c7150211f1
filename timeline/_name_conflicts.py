"""Fails early and with an explanation if another `render` or `blocks` is imported instead of ours.

The four import names are generic.  A `render.py` beside a user's script, or another distribution with a
top-level `render`, would otherwise cause a puzzling "cannot import name" deep inside this
package.  `blocks`, which is imported first, reports a `timeline` that is not ours.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

SIBLINGS = {"blocks": "FoldlineError", "persistence": "EventStore", "render": "Policy"}
"""The other packages, and a name in each by which it is recognized as ours."""
AGAIN = "install foldline again with --force-reinstall"


class ShadowedPackageError(ImportError):
    """Another module of the same name was imported instead of ours."""


def check_siblings() -> None:
    """Check that the three other packages are those installed with this one.

    Raises:
        ShadowedPackageError: one is missing, comes from somewhere else, or was overwritten.
    """
    home = Path(__file__).resolve().parent.parent
    for name, attribute in SIBLINGS.items():
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None:
            raise _error(
                name,
                f"is incomplete in {home}: uninstalling another distribution removed some of its files; {AGAIN}",
            )
        if origin.parent.parent != home:
            raise _error(
                name,
                f"is in {home}, but Python finds {origin}; rename that file or folder, or install "
                f"foldline in an environment without another distribution that provides {name!r}",
            )
        if not _has(name, attribute):
            raise _error(
                name,
                f"in {home} was overwritten by {_others(name) or 'another one'}: both cannot be in one "
                f"environment. Uninstall that one, then {AGAIN}",
            )


def _has(name: str, attribute: str) -> bool:
    try:
        return hasattr(import_module(name), attribute)
    except ImportError:
        if _others(name):  # a file that was overwritten lacks something
            return False
        raise


def _others(name: str) -> str:
    """The other distributions that installed a package of this name here."""
    from importlib.metadata import distributions  # here, because it takes long to import

    others = (
        f"{other.name} {other.version}"
        for other in distributions()
        if other.name != "foldline"
        and any(str(file) == f"{name}/__init__.py" for file in other.files or ())
    )
    return ", ".join(sorted(set(others)))


def _error(name: str, what: str) -> ShadowedPackageError:
    return ShadowedPackageError(f"foldline's own package {name!r} {what}", name=name)
