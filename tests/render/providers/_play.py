"""Generated logs of agents that talk to other APIs than Anthropic's, and how such an API's requests are looked at."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from blocks import MisuseError
from render import Rendered
from tests.strategies import Play


@attrs.define
class OwnPlay(Play, ABC):
    """Does steps to a timeline whose model answers in the words of its own API."""

    native: bool = True
    """Whether what the model says is recorded as this API has it, and not as another's."""

    @abstractmethod
    def response(self, name: str, made: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What the API returns; `made`: the contents, as Anthropic has them."""

    def _do_respond(self, named: bool, contents: Sequence[tuple[Any, ...]]) -> None:  # noqa: FBT001 -- data
        if not self.native:
            super()._do_respond(named, contents)
            return
        made = [self._content(*content) for content in contents]
        try:
            self.timeline.record(self.response(self._ids() if named else "", made))
        except MisuseError:  # empty, or a call twice: logs from elsewhere have such, too
            super()._do_respond(named, contents)


@attrs.frozen(kw_only=True)
class Api:
    """One vendor's APIs, as the suite of all of them sees them."""

    name: str
    play: type[OwnPlay]
    options: st.SearchStrategy[dict[str, Any]]
    """Of a timeline whose model is one of the vendor's."""
    sent: Callable[[Rendered], dict[str, Any]]
    """What the client is called with."""
    words: Callable[[Rendered], list[Any]]
    """What a request says, in order; it only ever grows at its end."""
    returned: Callable[[Rendered], Iterable[tuple[str, str]]]
    """What answers calls: the id of each, and the answer."""
    own: tuple[str, ...]
    """What nobody else is sent."""

    def __str__(self) -> str:
        """For the names of tests."""
        return self.name

    def bytes_of(self, rendered: Rendered) -> bytes:
        """What goes over the wire."""
        return json.dumps(self.sent(rendered), ensure_ascii=False).encode()

    def played(self, steps: list[Any], options: dict[str, Any], **more: Any) -> OwnPlay:
        """A log of these steps."""
        play = self.play(options, **more)
        play.run(steps)
        return play
