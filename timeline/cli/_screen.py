"""A console of rich's that takes texts as they are: no markup, no emoji codes, no control characters."""

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from timeline.cli._visible import line, visible


class Screen(Console):
    """A string is one line of it; a `Text` may have several."""

    def __init__(self, file: TextIO) -> None:
        super().__init__(file=file, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """A string that is printed, or stands in a table, as a text."""
        options.update(markup=False, emoji=False)
        return super().render_str(line(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Everything that is printed comes by here; rich's own control codes are apart."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)
