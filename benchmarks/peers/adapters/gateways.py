"""Shared by the adapters of gateways: takes a request, returns the request that would go to the provider.

It reads one JSON object per line and answers each with one line:

    {"begin": {"window": W}}    ->  {"ready": "name version"}
    {"request": {...}}          ->  {"request": {...}, "ms": 1.2}

Requests are for Anthropic's Messages API, with the whole history.
"""

import atexit
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import common

START_SECONDS_MAX = 120
_SAID = (
    ("message_start", {"message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "ok"}}),
    ("content_block_stop", {"index": 0}),
    ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
    ("message_stop", {}),
)  # fmt: skip
STREAM = "".join(
    f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in _SAID
).encode()


def serve(make, ready):
    """Answer until the input ends; `make` returns the function that is timed."""
    common.serve(make, ready, _step)


def _step(changed, asked):
    began = time.perf_counter()
    request = changed(asked["request"])
    return {"request": request, "ms": (time.perf_counter() - began) * 1000}


class Upstream(ThreadingHTTPServer):
    """An upstream that keeps the last request and gives every request the same answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.last = None
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.split("?")[0] == "/v1/messages":
            self.server.last = json.loads(body)
        self._answer("text/event-stream", STREAM)

    def do_GET(self):
        self._answer("application/json", b"{}")

    do_HEAD = do_GET  # noqa: N815 -- the name that http.server looks for

    def _answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Log nothing."""


class Proxy:
    """A peer's proxy in its own process, in front of an upstream that keeps the last request."""

    def __init__(self, command, variables):
        self.upstream = Upstream()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        url = f"http://127.0.0.1:{self.upstream.server_port}"
        given = {name: value.format(url=url) for name, value in variables.items()}
        line = [part.format(url=url, port=self.port) for part in command]
        self.process = subprocess.Popen(line, env={**os.environ, **given}, stdout=sys.stderr)
        atexit.register(self.process.kill)
        end = time.monotonic() + START_SECONDS_MAX
        while not self._is_up():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("the proxy did not start")
            time.sleep(0.1)

    def _is_up(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def __call__(self, request):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {
            "content-type": "application/json",
            "x-api-key": "test",
            "anthropic-version": "2023-06-01",
        }
        connection.request("POST", "/v1/messages", json.dumps(request), headers)
        connection.getresponse().read()
        connection.close()
        if self.upstream.last is None:
            raise RuntimeError("nothing arrived")
        return self.upstream.last
