"""Turns a request into one text, in which recall looks for names."""

from collections.abc import Iterator

import attrs

from render import Json, Rendered


@attrs.define
class Words:
    """Joins the texts of requests; caches the texts of blocks."""

    _known: dict[int, tuple[Json, str]] = attrs.field(
        init=False, factory=dict[int, tuple[Json, str]]
    )
    """Texts by identity: the renderer uses the same object for an unmarked block in every request."""

    def of(self, rendered: Rendered) -> str:
        """The text of system prompt and messages, each block on lines of its own; without thinking and tools."""
        return "\n".join(self._texts(rendered))

    def _texts(self, rendered: Rendered) -> Iterator[str]:
        provider = rendered.provider
        for _, content in provider.contents(rendered.system, (), rendered.messages):
            known = self._known.get(id(content))
            if known is None or known[0] is not content:
                known = self._known[id(content)] = content, provider.text(content)
            yield known[1]
