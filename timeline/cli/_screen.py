"""A rich console that prints texts literally: no markup, no emoji codes, no control characters."""

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from timeline.cli._visible import line, visible


class Screen(Console):
    """A console that prints a string as one line; a `Text` may have several lines."""

    def __init__(self, file: TextIO) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Turn a printed string, or one in a table, into a text."""
        options.update(markup=False, emoji=False)
        return super().render_str(line(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make all printed text safe; rich's own control codes pass unchanged."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)
