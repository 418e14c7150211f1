"""Named policies, and policies from TOML files."""

from functools import cache
from pathlib import Path
from typing import Any

from blocks import ArgumentError, did_you_mean, in_words
from render import Policy


@cache
def named_policies() -> dict[str, Policy]:
    """The shipped policies by name."""
    import tomllib

    text = Path(__file__).with_name("policies.toml").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {name: _policy(name, values, "policies.toml") for name, values in table.items()}


def policy_named(name: str) -> Policy:
    """A shipped policy by its name, or the policy in the TOML file at the path `name`.

    Raises:
        ArgumentError: there is neither a policy nor a file of this name, a field is unknown, a number is out of range, or
            the name is not a text.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a caller's
        raise ArgumentError(f"policy_named(): name must be a text, not {in_words(name)}")
    if name.endswith(".toml"):
        return policy_from(Path(name))
    try:
        return named_policies()[name]
    except KeyError:
        names = ", ".join(sorted(named_policies()))
        near = did_you_mean(name, named_policies())
        raise ArgumentError(
            f"no policy {name!r}{near or f'; known: {names}; or give a .toml file'}"
        ) from None


def policy_from(path: Path) -> Policy:
    """The policy in a TOML file: the fields of `Policy`, all optional.

    Raises:
        ArgumentError: see `policy_named`.
    """
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        what = getattr(error, "strerror", None) or error
        raise ArgumentError(f"policy file {path}: {what}") from error
    return _policy(path.stem, values, str(path))


def _policy(name: str, values: dict[str, Any], where: str) -> Policy:
    fields: dict[str, Any] = {"name": name, **values}
    try:
        return Policy(**fields)
    except ArgumentError as error:
        raise ArgumentError(f"{error} (policy {name!r} in {where})") from error
