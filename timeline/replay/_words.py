"""A request as one text: all that the model could read a name in."""

from collections.abc import Iterator

import attrs

from render import Json, Rendered


@attrs.define
class Words:
    """Joins the texts of requests; remembers those of blocks that it has met before."""

    _known: dict[int, tuple[Json, str]] = attrs.field(
        init=False, factory=dict[int, tuple[Json, str]]
    )
    """By identity: an unmarked block of the renderer's is the same object in every request."""

    def of(self, rendered: Rendered) -> str:
        """System prompt and messages, one block a line or more; thinking and tools left out."""
        return "\n".join(self._texts(rendered))

    def _texts(self, rendered: Rendered) -> Iterator[str]:
        provider = rendered.provider
        for _, content in provider.contents(rendered.system, (), rendered.messages):
            known = self._known.get(id(content))
            if known is None or known[0] is not content:
                known = self._known[id(content)] = content, provider.text(content)
            yield known[1]
