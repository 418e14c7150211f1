"""Function names in the form that the provider accepts."""

from render.providers._names import NAME_LENGTH_MAX, tool_name


def function_name(name: str) -> str:
    """A name that every provider accepts, and that begins with a letter or an underscore."""
    known = tool_name(name)
    return known if known[0].isalpha() or known[0] == "_" else f"_{known}"[:NAME_LENGTH_MAX]
