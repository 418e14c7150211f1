"""Raises an error if Python finds another `timeline` than the package beside this one.

`blocks` is imported first of the four packages.  A `timeline.py` of the user's own would otherwise be imported
instead of the package.
"""

from importlib.util import find_spec


def check_timeline() -> None:
    """Check that Python finds `timeline` beside this package, without importing it.

    Raises:
        ImportError: Python finds it elsewhere.
    """
    home = __file__.rpartition("blocks")[0]
    spec = find_spec("timeline")
    if spec and spec.origin and not spec.origin.startswith(home):
        raise ImportError(
            f"foldline's own package 'timeline' is in {home}, but Python finds {spec.origin}; "
            "rename that file or folder",
            name="timeline",
            path=spec.origin,
        )
