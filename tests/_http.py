"""HTTP for the tests: a request waits as long as any test may, and goes past the proxies of whoever runs them.

`httpx2` itself gives up after five seconds, which a busy machine needs for an honest answer.
"""

import json
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests._sizes import PATIENCE

get = partial(httpx2.get, timeout=PATIENCE, trust_env=False)
head = partial(httpx2.head, timeout=PATIENCE, trust_env=False)
post = partial(httpx2.post, timeout=PATIENCE, trust_env=False)
request = partial(httpx2.request, timeout=PATIENCE, trust_env=False)
stream = partial(httpx2.stream, timeout=PATIENCE, trust_env=False)
client = partial(httpx2.Client, timeout=PATIENCE, trust_env=False)
async_client = partial(httpx2.AsyncClient, timeout=PATIENCE, trust_env=False)


def sent(url: str, body: Any, headers: Mapping[str, str]) -> HTTPConnection:
    """A request whose answer nobody waits for: who closes the connection hangs up."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=PATIENCE)
    said = {"content-type": "application/json", **headers}
    connection.request("POST", f"{parts.path}?{parts.query}", json.dumps(body), said)
    return connection
