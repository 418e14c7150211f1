"""Tool definitions in the shapes of the two APIs."""

from render.providers._definitions import Definition, definition_of
from render.providers._names import tool_name
from render.view._provider_blocks import Json


def response_tool(tool: Json) -> Json:
    """A definition in the shape of Responses: the name is next to the type."""
    found = definition_of(tool)
    if found.other:
        return found.other
    if found.free:
        return {
            "type": "custom",
            **_named(found),
            **({"format": found.format} if found.format else {}),
        }
    return {
        "type": "function",
        **_named(found),
        "parameters": _schema(found),
        "strict": found.strict or False,
    }


def chat_tool(tool: Json) -> Json:
    """A definition in the shape of Chat Completions: nested in a field that is named after the type."""
    found = definition_of(tool)
    if found.other:
        return found.other
    if found.free:
        form = {"format": _nested(found.format)} if found.format else {}
        return {"type": "custom", "custom": {**_named(found), **form}}
    strict = {"strict": True} if found.strict else {}
    return {
        "type": "function",
        "function": {**_named(found), "parameters": _schema(found), **strict},
    }


def _named(tool: Definition) -> Json:
    said = {"description": tool.description} if tool.description else {}
    return {"name": tool_name(tool.name), **said}


def _schema(tool: Definition) -> Json:
    return tool.schema or {"type": "object", "properties": {}}


def _nested(form: Json) -> Json:
    """The format of a tool; in Chat Completions a grammar is nested one level deeper."""
    if form.get("type") != "grammar" or "grammar" in form:
        return form
    return {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}
