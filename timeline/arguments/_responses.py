"""Which request a response answers."""

from typing import cast

from blocks import Answered, MisuseError, in_words
from render import Rendered


def answered_by(rendered: Rendered | None, version: int) -> Answered | None:
    """The request that a response answers, if somebody says which; `version`: of the timeline.

    Raises:
        MisuseError: it is no request, or of another timeline.
    """
    if rendered is None:
        return None
    given = cast("object", rendered)
    if not isinstance(given, Rendered):
        raise MisuseError(f"record(): rendered is what render() returned, not {in_words(given)}")
    if rendered.shown > version:
        raise MisuseError(
            f"record(): this request showed version {rendered.shown}, and the timeline has {version}: "
            "record the response where the request came from"
        )
    return Answered(shown=rendered.shown, sent=rendered.sent)
