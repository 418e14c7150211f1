"""HTTP for the tests: a request waits as long as any test may, and goes past the proxies of whoever runs them.

`httpx2` itself gives up after five seconds, which a busy machine needs for an honest answer.
"""

import json
import ssl
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from tests._sizes import PATIENCE

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients of servers on this machine: to read all certificates that it trusts takes a client longer than its requests."""

get = partial(httpx2.get, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
head = partial(httpx2.head, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
post = partial(httpx2.post, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
request = partial(httpx2.request, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
stream = partial(httpx2.stream, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
client = partial(httpx2.Client, timeout=PATIENCE, trust_env=False, verify=NO_TLS)
async_client = partial(httpx2.AsyncClient, timeout=PATIENCE, trust_env=False, verify=NO_TLS)


def sent(url: str, body: Any, headers: Mapping[str, str]) -> HTTPConnection:
    """A request whose answer nobody waits for: who closes the connection hangs up."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=PATIENCE)
    said = {"content-type": "application/json", **headers}
    connection.request("POST", f"{parts.path}?{parts.query}", json.dumps(body), said)
    return connection
