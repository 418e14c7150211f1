"""The error for a framework that is not installed."""

from blocks import MisuseError, install_command


def lacking(extra: str, error: ModuleNotFoundError) -> MisuseError:
    """The error for an adapter whose framework cannot be imported; `extra` is the extra that installs it."""
    return MisuseError(
        f"timeline.integrations needs {error.name} for this: {install_command(extra)}"
    )
