"""Runs one agent on the task, in its own home and project."""

import os
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import attrs

from benchmarks.clients.agents import Client
from benchmarks.clients.task import MAIN, Task

PROMPTS: Final = (f"{MAIN} Build the first parts of the scratch project.", f"{MAIN} Now the rest.")
SECONDS_MAX: Final = 300
_NOWHERE: Final = "http://127.0.0.1:9"
"""The proxy for requests to other machines; nothing listens there."""


@attrs.frozen(kw_only=True)
class Place:
    """A separate folder for an agent: its home, its project, its output."""

    folder: Path

    @property
    def home(self) -> Path:
        """The agent's home folder."""
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """The project that the agent works on."""
        return self.folder / "project"

    def state(self) -> dict[str, str]:
        """The files of the project, each with a hash of its content."""
        return {
            str(path.relative_to(self.project)): sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.project.rglob("*"))
            if path.is_file()
        }


def play(client: Client, task: Task, place: Place, url: str) -> list[str]:
    """Run the task with a provider at `url`, then continue it in a second process; returns the failures."""
    place.home.mkdir(parents=True)
    more = client.prepare(place.home, url)
    for number, prompt in enumerate(PROMPTS):
        before = task.rounds[MAIN]
        failed = _run(client, prompt, place, more)
        if failed:
            return [failed]
        if task.rounds[MAIN] == before:
            return [f"the {'resumed' if number else 'first'} session asked for nothing"]
    return []


def _run(client: Client, prompt: str, place: Place, more: Mapping[str, str]) -> str:
    is_resumed = prompt != PROMPTS[0]
    said = place.folder / f"said-{int(is_resumed)}.txt"
    with said.open("wb") as out:
        try:
            done = subprocess.run(
                client.command(prompt, resume=is_resumed),
                cwd=place.project,
                env=_environment(place.home, more),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            return f"not done after {SECONDS_MAX} seconds; see {said}"
    return f"exit {done.returncode}; see {said}" if done.returncode else ""


def _environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    """An environment with only our path: no keys, no configuration, no network access."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), _NOWHERE)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "NO_PROXY": "127.0.0.1,localhost",
        **proxies,
        **more,
    }
