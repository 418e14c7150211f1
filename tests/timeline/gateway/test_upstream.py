"""A request reaches the provider as it would without a gateway: at the right path, and through the user's network."""

import os
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blocks import MisuseError
from persistence import MemoryStore
from tests import _http
from tests._table import for_each
from timeline.gateway._upstream import Upstream, joined, proxy_for, upstreams_of

from ._agents import Recording, gateway
from ._tls import HOST, Authority, tls_provider, tunnel

pytestmark = pytest.mark.network
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the network that the tests run in."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# The path.

ENDS = ("messages", "messages/count_tokens", "responses", "responses/input_tokens")
ENDINGS = st.sampled_from(
    [*ENDS, "chat/completions", "models", "models/claude-opus-5-5", "models/v1"]
)


@given(
    st.sampled_from(
        ["https://api.anthropic.com", "http://127.0.0.1:9/run/v1x", "https://a.example/llm"]
    ),
    st.sampled_from(["", "/", "/v1", "/v1/"]),
    st.integers(0, 3),
    ENDINGS,
)
def test_whoever_adds_the_version_and_however_often_the_path_is_the_same(
    base: str, end: str, times: int, path: str
) -> None:
    """Claude Code and pi take a base URL without /v1, Codex and opencode one with it."""
    known = upstreams_of(base + end)["anthropic"]
    assert joined(known, f"{'/v1' * times}/{path}") == f"{base}/v1/{path}"


@given(st.integers(0, 3), ENDINGS)
def test_a_base_url_with_another_version_keeps_it(times: int, path: str) -> None:
    known = upstreams_of("https://a.example/api/v4/")["openai"]
    assert joined(known, f"{'/v1' * times}/{path}") == f"https://a.example/api/v4/{path}"


@for_each(
    "path",
    [
        "/",
        "",
        "/backend-api/codex/responses",
        "/v1x/messages",
        "/api/v1/v1/models",
        "/messages2",
        "//messages",
    ],
)
def test_other_paths_stay_as_they_are(path: str) -> None:
    assert joined("https://a.example", path) == f"https://a.example{path}"


@for_each("path", ["/messages", "/v1/messages", "/v1/v1/messages"])
@for_each("end", ["", "/v1"])
def test_a_request_at_any_of_these_paths_is_read_and_arrives(path: str, end: str) -> None:
    store = MemoryStore()
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    with (
        Recording() as up,
        gateway(store=store, upstream=f"{up.url}{end}", token="t") as server,  # noqa: S106
    ):
        for before in ("", "/token/t"):
            url = f"{server.url}{before}{path}?beta=true"
            assert _http.post(url, json=body, headers={"x-foldline-token": "t"}).status_code == 200
        assert [each.target for each in up.received] == ["/v1/messages?beta=true"] * 2
    assert len(store.list()) == 1


# Certificates.


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.new(tmp_path)


def asked(url: str) -> httpx2.Response:
    """What a client gets through a gateway before this provider."""
    with gateway(store=MemoryStore(), upstream=url) as server:
        return _http.get(f"{server.url}/v1/models")


VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE")


@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize("is_through_a_proxy", [False, True], ids=["directly", "through a proxy"])
def test_an_authority_that_the_users_variable_names_is_trusted(
    authority: Authority, name: str, *, is_through_a_proxy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(authority.file))
    with tls_provider(authority) as port, tunnel(port) as (proxy, connects):
        url = f"https://127.0.0.1:{port}"
        if is_through_a_proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy)
            url = f"https://{HOST}"
        assert asked(url).status_code == 200
    assert len(connects) == is_through_a_proxy


@pytest.mark.parametrize("name", ["SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
def test_a_folder_of_certificates_and_several_of_them_are_trusted(
    authority: Authority, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [authority.hashed_folder()]
    if name == "SSL_CERT_DIR":
        folders.insert(0, authority.folder)
    monkeypatch.setenv(name, os.pathsep.join(map(str, folders)))
    with tls_provider(authority) as port:
        assert asked(f"https://127.0.0.1:{port}").status_code == 200


def test_one_authority_that_is_named_takes_no_other_away(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Node.js and in Codex; a file that is named for another program must not cut the agent off."""
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority.new(tmp_path / "other").file))
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority.file))
    with tls_provider(authority) as port:
        assert asked(f"https://127.0.0.1:{port}").status_code == 200


def test_an_unknown_authority_is_refused_with_what_to_do(authority: Authority) -> None:
    with tls_provider(authority) as port:
        found = asked(f"https://127.0.0.1:{port}")
    assert found.status_code == 502
    said = found.json()["error"]["message"]
    assert "CERTIFICATE_VERIFY_FAILED" in said
    assert "SSL_CERT_FILE" in said


def test_a_file_that_cannot_be_read_is_told_and_stops_nothing(
    authority: Authority, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = authority.folder / "text.pem"
    text.write_text("no certificate")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    monkeypatch.setenv("CODEX_CA_CERTIFICATE", str(text))
    monkeypatch.setenv("CLAUDE_CODE_CLIENT_CERT", "/nowhere/me.pem")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority.file))
    with tls_provider(authority) as port:
        assert asked(f"https://127.0.0.1:{port}").status_code == 200
    first, second, third = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert (
        first == "REQUESTS_CA_BUNDLE=/nowhere/ca.pem adds no certificate: No such file or directory"
    )
    assert second.startswith(f"CODEX_CA_CERTIFICATE={text} adds no certificate")
    assert third.startswith("CLAUDE_CODE_CLIENT_CERT cannot be shown")


@pytest.mark.parametrize("password", ["", "open sesame"])
def test_a_provider_that_asks_who_comes_is_shown_the_users_certificate(
    authority: Authority, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(authority.file))
    with tls_provider(authority, asks_who=True) as port:
        refused = asked(f"https://127.0.0.1:{port}")
        assert refused.status_code == 502
        assert "CERTIFICATE_REQUIRED" in refused.json()["error"]["message"]
        own = str(authority.issued("me", password.encode()))
        monkeypatch.setenv("CLAUDE_CODE_CLIENT_CERT", own)
        monkeypatch.setenv("CLAUDE_CODE_CLIENT_KEY", own)
        monkeypatch.setenv("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", password)
        assert asked(f"https://127.0.0.1:{port}").status_code == 200


# Proxies.


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_the_provider_is_reached_through_the_users_proxy_and_this_machine_without(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tunnel(9) as (proxy, through), Recording() as here:
        monkeypatch.setenv(name, proxy)
        assert asked("http://provider.example").status_code == 200
        assert asked(here.url).status_code == 200
        assert asked(here.url.replace("127.0.0.1", "localhost")).status_code == 200
        assert through == ["GET http://provider.example/v1/models HTTP/1.1"]
        assert len(here.received) == 2


@for_each(
    ("environment", "url", "proxy"),
    [
        ({}, "https://a.example", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.example", "http://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "https://a.example", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://a.example", None),
        ({"ALL_PROXY": "socks5://p:1"}, "https://a.example", "socks5://p:1"),
        (
            {"ALL_PROXY": "socks5://p:1", "https_proxy": "http://q:1"},
            "https://a.example",
            "http://q:1",
        ),
        ({"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:9", None),
        ({"ALL_PROXY": "http://p:1"}, "http://127.8.0.1:9", None),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:9", None),
        ({"ALL_PROXY": "http://p:1"}, "http://LocalHost:9", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://a.example", None),
        (
            {"ALL_PROXY": "http://p:1", "NO_PROXY": "b.example, a.example"},
            "https://a.example",
            None,
        ),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "b.example a.example"}, "https://a.example", None),
        ({"ALL_PROXY": "http://p:1", "no_proxy": "example"}, "https://a.example", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".A.Example"}, "https://a.example", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*.example"}, "https://a.example", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "a.example:443"}, "https://a.example", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://10.1.2.3", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "[fd00::]/8,fd00::/8"}, "http://[fd00::7]", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://11.1.2.3", "http://p:1"),
        (
            {"ALL_PROXY": "http://p:1", "NO_PROXY": "ample,a.examples,,"},
            "https://a.example",
            "http://p:1",
        ),
    ],
)
def test_the_proxy_is_the_one_that_the_users_settings_name(
    environment: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        assert proxy_for(httpx2.URL(url)) == proxy


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("socks5://me:secret@127.0.0.1:1", "pip install socksio"),
        ("socks://me:secret@127.0.0.1:1", "is not the URL of a proxy; write http://host:3128"),
        ("http://me:secret/1@h", "is not the URL of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_one_clear_error_unless_it_is_not_needed(
    proxy: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(MisuseError, match=said) as caught:
        Upstream(upstreams_of(None))
    assert "secret" not in str(caught.value)
    Upstream(upstreams_of("http://127.0.0.1:9"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    Upstream(upstreams_of(None))
