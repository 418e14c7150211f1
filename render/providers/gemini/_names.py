"""Names of functions as the provider takes them."""

from render.providers._names import NAME_LENGTH_MAX, tool_name


def function_name(name: str) -> str:
    """The name as every provider takes it, and with a letter or an underscore in front."""
    known = tool_name(name)
    return known if known[0].isalpha() or known[0] == "_" else f"_{known}"[:NAME_LENGTH_MAX]
