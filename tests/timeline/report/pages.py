"""What a page holds, read as a browser would: its scripts, its policy, its data; and requests put together again."""

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import Any

import attrs


@attrs.define
class Page(HTMLParser):
    """A page, taken apart."""

    scripts: list[str] = attrs.field(factory=list[str])
    styles: list[str] = attrs.field(factory=list[str])
    data: dict[str, str] = attrs.field(factory=dict[str, str])
    policy: str = ""
    addresses: list[str] = attrs.field(factory=list[str])
    """All that the page would load, or lead to."""
    _inside: tuple[str, str | None] = ("", None)

    @classmethod
    def of(cls, html: bytes) -> "Page":
        page = cls()
        page.feed(html.decode())
        page.close()
        return page

    def __attrs_post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self._inside = (tag, given.get("id") if given.get("type") == "text/plain" else None)
        self.addresses += [v for k, v in given.items() if k in {"src", "href", "action"} and v]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._inside = ("", None)

    def handle_data(self, data: str) -> None:
        tag, name = self._inside
        if tag == "script" and name:
            self.data[name] = self.data.get(name, "") + data
        elif tag == "script":
            self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)

    def json(self, name: str) -> Any:
        """An element of data."""
        text = self.data[name]
        return json.loads(text if text.startswith("{") else gzip.decompress(base64.b64decode(text)))

    @property
    def everything(self) -> str:
        """All data as text."""
        return "".join(json.dumps(self.json(name), ensure_ascii=False) for name in self.data)


def request_in(overview: Any, contents: Any, call: int) -> dict[str, Any]:
    """The request of a call, put together as the page does it."""
    pieces: list[int] = []
    requests = overview["requests"]
    for kept, added in list(zip(requests["kept"], requests["added"], strict=True))[: call + 1]:
        pieces = [*pieces[:kept], *added]
    marks = dict(requests["marks"][call])
    request: dict[str, Any] = {}
    parts: list[Any] = []
    for place, number in enumerate(pieces):
        slot, value = overview["pieces"]["slot"][number], json.loads(contents["pieces"][number])
        if place in marks:
            value |= json.loads(marks[place])
        if slot.startswith("="):
            request[slot[1:]] = value
        elif not slot:
            parts.append(value)
        else:
            name, _, inner = slot.partition("/")
            parts = []
            request.setdefault(name, []).append({**value, inner: parts} if inner else value)
    return request


def states_in(overview: Any) -> dict[int, str]:
    """The state of each block at the end, by version."""
    versions, changes = overview["blocks"]["version"], overview["changes"]
    found = dict.fromkeys(versions, "visible")
    for block, state in zip(changes["block"], changes["state"], strict=True):
        found[versions[block]] = overview["states"][state]
    return found
