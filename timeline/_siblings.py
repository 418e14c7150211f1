"""Fail early, and with an explanation, when another `render` or `blocks` shadows ours.

The four import names are generic.  A `render.py` beside a user's script, or another distribution
that installs a top-level `render`, would otherwise surface as a puzzling "cannot import name" from
deep inside this package.
"""

from importlib.util import find_spec
from pathlib import Path

SIBLINGS = ("blocks", "persistence", "render")


class ShadowedPackageError(ImportError):
    """Another module of the same name was found before ours."""


def check_siblings() -> None:
    """Make sure that the three other packages are the ones beside this one.

    Raises:
        ShadowedPackageError: one is missing, or comes from somewhere else.
    """
    home = Path(__file__).resolve().parent.parent
    for name in SIBLINGS:
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            raise ShadowedPackageError(
                f"foldline needs its own package {name!r} in {home}, but Python finds "
                f"{origin or 'none'}; rename that file, or install foldline in an environment "
                f"without another distribution that provides {name!r}",
                name=name,
            )
