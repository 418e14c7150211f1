"""Tests one agent on two hosts with one PostgreSQL server: when the first host is lost, the second goes on.

    sudo .venv/bin/python -m benchmarks.two_hosts

Needs root and iproute2.  There are three network namespaces: `server` has the database and the fake provider;
`first` and `second` have only a link to it.  The first host's process is killed with -9 inside a tool, and its
namespace removed.  The requests that the provider saw must equal those of an uninterrupted agent, byte for byte.
`tests/timeline/react/test_two_hosts.py` does the same with plain processes.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter
from typing import IO, Any

from persistence import open_store, verify
from tests._postgres import running
from tests.timeline.react.host import KILLED_IN, NAME, replies, uninterrupted
from timeline.fake_provider import FakeProvider, FakeServer
from timeline.fake_provider._app import app_of

HOSTS = ("first", "second")
PORT = 8787
ACCESS = "local all all trust\nhost all all 10.77.0.0/16 trust\n"


def ip(command: str) -> None:
    """Run a command of iproute2."""
    subprocess.run(["ip", *command.split()], check=True)


@contextmanager
def networks() -> Iterator[None]:
    """Make a namespace for the server and one for each host, linked by 10.77.N.1 and 10.77.N.2."""
    try:
        ip("netns add fl-server")
        for number, host in enumerate(HOSTS, 1):
            ip(f"netns add fl-{host}")
            ip(f"link add fl-s{number} netns fl-server type veth peer name fl-h netns fl-{host}")
            for space, name, end in (("server", f"fl-s{number}", 1), (host, "fl-h", 2)):
                ip(f"-n fl-{space} address add 10.77.{number}.{end}/24 dev {name}")
                ip(f"-n fl-{space} link set {name} up")
        yield
    finally:
        for space in ("server", *HOSTS):
            subprocess.run(["ip", "netns", "del", f"fl-{space}"], check=False, stderr=-3)


def command(space: str, *words: str) -> list[str]:
    """The command that runs Python in a namespace."""
    return ["ip", "netns", "exec", f"fl-{space}", sys.executable, *words]


def serve() -> None:
    """Run in the server's namespace: print the query of the store's URL, and at the end all requests."""
    import uvicorn

    provider = FakeProvider(responder=replies())
    config = uvicorn.Config(app_of(provider), host="0.0.0.0", port=PORT, log_level="critical")  # noqa: S104
    with TemporaryDirectory(prefix="foldline-") as folder:
        access = Path(folder) / "access"
        access.write_text(ACCESS, encoding="utf-8")
        Path(folder).chmod(0o755)
        with running("listen_addresses=*", f"hba_file={access}", "fsync=on") as server:
            Thread(target=uvicorn.Server(config).run, daemon=True).start()
            url = server.new_url()
            print(url.partition("&")[2], flush=True)
            sys.stdin.readline()
            with closing(open_store(url)) as store:
                report = verify(store)
            print(json.dumps({"sent": sent(provider), "ok": report.ok, "events": report.events}))


def sent(provider: FakeProvider) -> list[str]:
    """Every request, with its fields in the order received."""
    return [json.dumps(exchange.request) for exchange in provider.exchanges]


def host(number: int, query: str, *words: str) -> list[str]:
    """The command that starts a host's agent, with the addresses of its network."""
    server = f"10.77.{number}.1"
    store = f"postgresql://postgres@{server}/postgres?{query}"
    agent = ("-m", "tests.timeline.react.host", store, f"http://{server}:{PORT}", *words)
    return command(HOSTS[number - 1], *agent)


def moved(query: str) -> str:
    """Kill the first host in the middle of a round; returns the final answer of the second's agent."""
    pipes: dict[str, Any] = {"stdin": -1, "stdout": -1, "text": True}
    with subprocess.Popen(host(1, query, "run", str(KILLED_IN)), **pipes) as first:
        assert first.stdout
        assert first.stdout.readline() == "inside\n"
        first.kill()
    ip("netns del fl-first")
    begin = perf_counter()
    said = subprocess.check_output(host(2, query, "resume"), text=True)
    print(f"the second host began, and was done, within {perf_counter() - begin:.1f} s")
    return said


def told(line: IO[str]) -> dict[str, Any]:
    """Parse the last line of the server's output."""
    found: dict[str, Any] = json.loads(line.readline())
    return found


def main() -> int:
    """Run the test; returns 0 if no byte differs."""
    if sys.argv[1:] == ["serve"]:
        serve()
        return 0
    pipes: dict[str, Any] = {"stdin": -1, "stdout": -1, "text": True}
    with networks():
        serving = command("server", "-m", "benchmarks.two_hosts", "serve")
        with subprocess.Popen(serving, **pipes) as server:
            assert server.stdin
            assert server.stdout
            said = moved(server.stdout.readline().strip())
            server.stdin.write("\n")
            server.stdin.flush()
            shared = told(server.stdout)
    with FakeServer(FakeProvider(responder=replies())) as alone:
        uninterrupted(alone.url)
        lived_on = sent(alone.provider)
    same = shared["sent"] == lived_on
    print(
        f"{NAME}: {said.strip()!r}; {len(lived_on)} requests, the first {KILLED_IN} of the lost host"
    )
    print(f"byte-equal to an agent that lived on: {same}; verify: {shared['ok']}")
    return 0 if same and shared["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
