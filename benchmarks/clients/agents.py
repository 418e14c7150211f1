"""The agents: how each is pointed at a provider, how it runs without a terminal, the names of its tools.

`docs/gateway-clients.md` describes this at length.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import attrs

from benchmarks.clients.install import NODE, PLATFORM, Package
from benchmarks.clients.task import Tools
from timeline.fake_provider import Call

KEY: Final = "sk-test-of-the-clients"
"""A key that belongs to nobody."""
SUBSCRIPTION: Final = f"sk-ant-oat01-{KEY}"
"""A token that belongs to nobody, in the format of a subscription's."""
CLAUDE_MODEL: Final = "claude-sonnet-4-5"
"""A model old enough for thinking with a budget, and without messages of the role `system`."""
NEW_CLAUDE_MODEL: Final = "claude-opus-5-5"


class Client(Protocol):
    """One agent."""

    @property
    def name(self) -> str:
        """Its name in the table."""
        ...

    @property
    def packages(self) -> Sequence[Package]:
        """The packages to install; the first is the agent's own."""
        ...

    @property
    def window(self) -> int:
        """The gateway's window in tokens: room for what the agent always sends, and some rounds."""
        ...

    def prepare(self, home: Path, url: str) -> Mapping[str, str]:
        """Write its configuration into a new home; returns the environment variables that it also needs."""
        ...

    def command(self, prompt: str, *, resume: bool) -> Sequence[str]:
        """The command that starts it or, with `resume`, continues its latest session."""
        ...

    def tools(self, project: Path) -> Tools:
        """Its tools, for a project."""
        ...


@attrs.frozen
class NamedTools:
    """Tools with their own names and fields for each of the four actions."""

    project: Path
    bash_: Callable[[str], Call]
    read_: Callable[[str], Call]
    write_: Callable[[str, str], Call]
    edit_: Callable[[str, str, str], Call]
    helper_: Callable[[str], Sequence[Call]] = lambda _: ()

    def bash(self, command: str) -> Call:
        """See `Tools`."""
        return self.bash_(command)

    def read(self, path: str) -> Call:
        """See `Tools`."""
        return self.read_(str(self.project / path))

    def write(self, path: str, text: str) -> Call:
        """See `Tools`."""
        return self.write_(str(self.project / path), text)

    def edit(self, path: str, old: str, new: str) -> Call:
        """See `Tools`."""
        return self.edit_(str(self.project / path), old, new)

    def helper(self, prompt: str) -> Sequence[Call]:
        """See `Tools`."""
        return self.helper_(prompt)


@attrs.frozen
class ClaudeCode:
    """Anthropic's agent; takes the provider's URL from an environment variable."""

    name: str = "claude"
    model: str = NEW_CLAUDE_MODEL
    has_subscription: bool = True
    """Whether it is logged in and treats the provider as Anthropic itself; otherwise it uses a key."""
    window: int = 40_000
    packages: tuple[Package, ...] = (
        Package(
            "@anthropic-ai/claude-code",
            "2.1.330",
            f"@anthropic-ai/claude-code-{PLATFORM}/claude",
        ),
    )

    def prepare(self, home: Path, url: str) -> Mapping[str, str]:
        """See `Client`."""
        del home
        if self.has_subscription:
            auth = {
                "CLAUDE_CODE_OAUTH_TOKEN": SUBSCRIPTION,
                "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL": "1",
            }
        else:
            auth = {"ANTHROPIC_API_KEY": KEY}
        return {
            **auth,
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",  # otherwise it refuses to run as root without permission prompts
        }

    def command(self, prompt: str, *, resume: bool) -> Sequence[str]:
        """See `Client`."""
        options = ("--output-format", "json", "--model", self.model)
        more = ("--continue",) if resume else ()
        path = str(self.packages[0].path)
        return [path, "-p", prompt, *options, "--dangerously-skip-permissions", *more]

    def tools(self, project: Path) -> Tools:
        """See `Client`."""
        return NamedTools(
            project,
            lambda command: Call("Bash", {"command": command, "description": "Run it"}),
            lambda path: Call("Read", {"file_path": path}),
            lambda path, text: Call("Write", {"file_path": path, "content": text}),
            lambda path, old, new: Call(
                "Edit", {"file_path": path, "old_string": old, "new_string": new}
            ),
            lambda prompt: [
                Call(
                    "Agent",
                    {
                        "description": "Help a little",
                        "prompt": prompt,
                        "subagent_type": "general-purpose",
                        "run_in_background": False,
                    },
                )
            ],
        )


@attrs.frozen
class Pi:
    """Takes the provider's URL from a file of models."""

    name: str = "pi"
    window: int = 12_000
    packages: tuple[Package, ...] = (
        Package(
            "@earendil-works/pi-coding-agent",
            "0.87.1",
            "@earendil-works/pi-coding-agent/dist/cli.js",
        ),
        NODE,
    )

    def prepare(self, home: Path, url: str) -> Mapping[str, str]:
        """See `Client`."""
        folder = home / ".pi" / "agent"
        folder.mkdir(parents=True)
        models = {"providers": {"anthropic": {"baseUrl": url}}}
        (folder / "models.json").write_text(json.dumps(models), encoding="utf-8")
        return {"ANTHROPIC_API_KEY": KEY, "PI_OFFLINE": "1"}

    def command(self, prompt: str, *, resume: bool) -> Sequence[str]:
        """See `Client`."""
        path, node = self.packages[0].path, self.packages[1].path
        more = ("--continue",) if resume else ()
        model = ("--provider", "anthropic", "--model", CLAUDE_MODEL)
        return [str(node), str(path), "-p", *model, *more, prompt]

    def tools(self, project: Path) -> Tools:
        """See `Client`."""
        return NamedTools(
            project,
            lambda command: Call("bash", {"command": command, "timeout": None}),
            lambda path: Call("read", {"path": path, "offset": None, "limit": None}),
            lambda path, text: Call("write", {"path": path, "content": text}),
            lambda path, old, new: Call(
                "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}
            ),
        )


@attrs.frozen
class OpenCode:
    """Takes the provider's URL from its configuration."""

    name: str = "opencode"
    window: int = 20_000
    packages: tuple[Package, ...] = (
        Package("opencode-ai", "1.18.33", f"opencode-{PLATFORM}/bin/opencode"),
    )

    def prepare(self, home: Path, url: str) -> Mapping[str, str]:
        """See `Client`."""
        folder = home / ".config" / "opencode"
        folder.mkdir(parents=True)
        config = {
            "autoupdate": False,
            "share": "disabled",
            "model": f"anthropic/{CLAUDE_MODEL}",
            "provider": {"anthropic": {"options": {"baseURL": f"{url}/v1", "apiKey": KEY}}},
        }
        (folder / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}

    def command(self, prompt: str, *, resume: bool) -> Sequence[str]:
        """See `Client`."""
        more = ("--continue",) if resume else ()
        return [str(self.packages[0].path), "run", "--format", "json", *more, prompt]

    def tools(self, project: Path) -> Tools:
        """See `Client`."""
        return NamedTools(
            project,
            lambda command: Call("bash", {"command": command}),
            lambda path: Call("read", {"filePath": path}),
            lambda path, text: Call("write", {"filePath": path, "content": text}),
            lambda path, old, new: Call(
                "edit", {"filePath": path, "oldString": old, "newString": new}
            ),
            lambda prompt: [
                Call(
                    "task",
                    {"description": "Help", "prompt": prompt, "subagent_type": "general"},
                )
            ],
        )


CLAUDE: Final = ClaudeCode()
CLAUDE_KEY: Final = ClaudeCode("claude-key", CLAUDE_MODEL, has_subscription=False)
