"""A server of this machine: which requests to it are of a web page elsewhere, and how it stops."""

import threading
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests import _http
from tests._sizes import PATIENCE
from tests._table import for_each
from timeline._serving import AppServer, foreign_in

OWN_HOSTS = (
    "localhost",
    "LOCALHOST:8787",
    "127.0.0.1",
    "127.0.0.1:1",
    "127.9.9.9:8787",
    "[::1]:80",
)
FOREIGN_HOSTS = (
    "evil.example",
    "evil.example:8787",
    "0.0.0.0:8787",
    "192.168.0.7:8787",
    "[fe80::1]:8787",
    "localhost.evil.example",
    "127.0.0.1.nip.io:8787",
    "127.0.0.1:8787@evil.example",
    "evil.example@127.0.0.1:8787",
    "evil.example#127.0.0.1",
    "127.1",
    "::1",
    "",
)


def foreign(*headers: tuple[str, str], token: bool = False) -> str:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return foreign_in(Headers(raw=raw), has_token=token)


@for_each("host", OWN_HOSTS)
def test_every_name_and_port_of_this_machine_is_its_own(host: str) -> None:
    assert not foreign(("host", host))
    assert not foreign(("host", host), ("origin", f"http://{host.lower()}"))


@for_each("host", FOREIGN_HOSTS)
def test_a_name_that_is_not_this_machine_is_foreign_unless_a_token_is_asked_for(host: str) -> None:
    """A page may give its own domain the address of this machine once it is loaded."""
    assert "is not this machine" in foreign(("host", host))
    assert "is not this machine" in foreign(("host", host), ("origin", f"http://{host}"))
    assert not foreign(("host", host), token=True)


def test_no_host_and_two_hosts_are_foreign() -> None:
    assert foreign()
    assert foreign(("host", "localhost"), ("host", "evil.example"))


@pytest.mark.parametrize("token", [False, True])
@given(
    host=st.sampled_from([*OWN_HOSTS, *FOREIGN_HOSTS[:5]]),
    origin=st.one_of(
        st.sampled_from(
            [
                "null",
                "",
                "http://localhost:3000",
                "https://evil.example",
                "vscode-webview://abc",
                "http://localhost:8787.evil.example",
                "http://x@localhost:8787",
            ]
        ),
        st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"])),
        st.from_regex(r"https?://[a-z0-9.:\[\]-]{1,20}", fullmatch=True),
    ),
)
@example(host="localhost:8787", origin="http://127.0.0.1:8787")
@example(host="localhost:8787", origin="http://localhost")
def test_only_a_page_of_the_very_host_that_is_asked_may_ask(
    host: str, origin: str, *, token: bool
) -> None:
    is_own = origin.lower() in {f"{scheme}://{host.lower()}" for scheme in ("http", "https")}
    if not is_own:
        assert foreign(("host", host), ("origin", origin), token=token)
    assert foreign(
        ("host", host),
        ("origin", f"http://{host}"),
        ("origin", "https://other.example"),
        token=token,
    )


@for_each("site", ["cross-site", "same-site", "new-word", ""])
def test_what_a_browser_says_of_another_site_is_believed(site: str) -> None:
    """Of an image or a link there is no origin; another port of this machine is the same site."""
    own = ("host", "localhost:8787")
    for token in (False, True):
        assert "another site" in foreign(own, ("sec-fetch-site", site), token=token)
    for fine in ("same-origin", "none"):
        assert not foreign(own, ("sec-fetch-site", fine), ("sec-fetch-mode", "cors"))


@given(st.one_of(st.from_type(IPv4Address), st.from_type(IPv6Address)), st.integers(0, 65_535))
def test_an_address_is_this_machines_exactly_if_it_is_a_loopback_address(
    address: IPv4Address | IPv6Address, port: int
) -> None:
    name = f"[{address}]" if isinstance(address, IPv6Address) else str(address)
    assert bool(foreign(("host", f"{name}:{port}"))) is not address.is_loopback


@attrs.define
class Busy(AppServer):
    """Its answers hold up everything else that it does."""

    extra: ClassVar[str] = "serve"
    asked: threading.Event = attrs.field(factory=threading.Event)
    free: threading.Event = attrs.field(factory=threading.Event)

    def make_app(self) -> Starlette:
        """See `AppServer`."""
        return Starlette(routes=[Route("/", self._answer, methods=["POST"])])

    async def _answer(self, _: Request) -> Response:
        self.asked.set()
        assert self.free.wait(PATIENCE)
        return Response()


@pytest.mark.network
def test_one_that_is_too_busy_to_stop_in_time_stops_later_and_closes_its_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that serves does not find its socket closed by another one."""
    raised: list[threading.ExceptHookArgs] = []
    server = Busy()
    server.start()
    listener = server._socket
    monkeypatch.setattr("timeline._serving._START_SECONDS_MAX", 0.01)
    monkeypatch.setattr(threading, "excepthook", raised.append)
    serving = server._thread
    assert serving is not None
    connection = _http.sent(server.url + "/", {}, {})
    assert server.asked.wait(PATIENCE)
    server.stop()
    server.free.set()
    serving.join(PATIENCE)
    connection.close()
    assert raised == []
    assert listener is not None
    assert listener.fileno() == -1, "it is closed"
