"""Codex: for models that it knows it offers one tool that takes code, for others functions."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from benchmarks.clients.agents import KEY, NamedTools
from benchmarks.clients.install import PLATFORM, Package
from benchmarks.clients.task import Tools
from timeline.fake_provider import Call

_CONFIG: Final = """\
model = "{model}"
check_for_update_on_startup = false
{provider}
[analytics]
enabled = false
"""
_LOCAL: Final = """\
model_provider = "local"

[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
supports_websockets = {websockets}
"""
_CHATGPT: Final = """\
openai_base_url = "{url}/backend-api/codex"
chatgpt_base_url = "{other}/backend-api/"

[features]
apps = false
plugins = false
"""
"""The account's URL has another origin than the model's; otherwise the account would override the model's URL."""
_ACCOUNT: Final = "an-account-of-nobody"
_LASTS_SECONDS: Final = 10 * 24 * 3600
_PATCH: Final = "*** Begin Patch\n{what}\n*** End Patch\n"


@attrs.frozen
class Codex:
    """OpenAI's agent; takes the provider's URL from its configuration."""

    name: str = "codex"
    model: str = "gpt-5.6-sol"
    """A model that Codex knows; it does not know `gpt-5.4`."""
    is_coding: bool = True
    """Whether the model writes code that calls the tools."""
    has_login: bool = False
    """Whether it is logged in with ChatGPT; otherwise it uses a key."""
    window: int = 20_000
    packages: tuple[Package, ...] = (
        Package("@openai/codex", "0.169.0", f"@openai/codex-{PLATFORM}/vendor/*/bin/codex"),
    )

    def prepare(self, home: Path, url: str) -> Mapping[str, str]:
        """See `Client`."""
        folder = home / ".codex"
        folder.mkdir(parents=True)
        if self.has_login:
            (folder / "auth.json").write_text(json.dumps(_login()), encoding="utf-8")
            other = url.replace("127.0.0.1", "localhost")
            provider = _CHATGPT.format(url=url, other=other)
        else:
            websockets = "true" if self.is_coding else "false"
            provider = _LOCAL.format(url=url, websockets=websockets)
        config = _CONFIG.format(model=self.model, provider=provider)
        (folder / "config.toml").write_text(config, encoding="utf-8")
        return {} if self.has_login else {"LOCAL_KEY": KEY}

    def command(self, prompt: str, *, resume: bool) -> Sequence[str]:
        """See `Client`."""
        options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
        path = str(self.packages[0].path)
        return [path, "exec", *(("resume", "--last") if resume else ()), *options, prompt]

    def tools(self, project: Path) -> Tools:
        """See `Client`."""
        if self.is_coding:
            return CodingTools(project)
        return NamedTools(
            project,
            _run,
            lambda path: _run(f"cat '{path}'"),
            lambda path, text: _run(f"cat > '{path}' <<'END'\n{text}END\n"),
            lambda path, old, new: _run(f"sed -i 's/{old}/{new}/' '{path}'"),
        )


def _login() -> dict[str, object]:
    """The file that `codex login` writes, with unsigned tokens: Codex reads them, only the server checks them."""
    now = int(time.time())
    account = {"chatgpt_account_id": _ACCOUNT, "chatgpt_plan_type": "pro"}
    claims = {"exp": now + _LASTS_SECONDS, "https://api.openai.com/auth": account}
    header = {"alg": "none", "typ": "JWT"}
    parts = [urlsafe_b64encode(json.dumps(p).encode()).decode() for p in (header, claims)]
    token = ".".join([*(part.rstrip("=") for part in parts), KEY])
    tokens = {"id_token": token, "access_token": token, "refresh_token": KEY}
    return {
        "auth_mode": "chatgpt",
        "tokens": {**tokens, "account_id": _ACCOUNT},
        "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
    }


def _run(command: str) -> Call:
    return Call("exec_command", {"cmd": command})


@attrs.frozen
class CodingTools:
    """A single tool, `exec`, that takes a program."""

    project: Path

    def bash(self, command: str) -> Call:
        """See `Tools`."""
        given = json.dumps({"cmd": command})
        return _code(f"const done = await tools.exec_command({given}); text(done.output);")

    def read(self, path: str) -> Call:
        """See `Tools`."""
        return self.bash(f"cat '{path}'")

    def write(self, path: str, text: str) -> Call:
        """See `Tools`."""
        lines = "\n".join(f"+{line}" for line in text.splitlines())
        return self._patch(f"*** Add File: {path}\n{lines}")

    def edit(self, path: str, old: str, new: str) -> Call:
        """See `Tools`."""
        return self._patch(f"*** Update File: {path}\n@@\n-{old}\n+{new}")

    def helper(self, prompt: str) -> Sequence[Call]:
        """See `Tools`."""
        given = {"task_name": "helper", "message": prompt, "fork_turns": "none"}
        return [Call("spawn_agent", given), Call("wait_agent", {"timeout_ms": 20_000})]

    def _patch(self, what: str) -> Call:
        patch = json.dumps(_PATCH.format(what=what))
        return _code(f"text(await tools.apply_patch({patch}));")


def _code(program: str) -> Call:
    return Call("exec", {"input": program})


CODEX: Final = Codex()
CODEX_PLAIN: Final = Codex("codex-plain", "gpt-5.4", is_coding=False)
CODEX_LOGIN: Final = Codex("codex-login", has_login=True)
