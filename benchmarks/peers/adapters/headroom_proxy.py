"""headroom's proxy, as `headroom proxy` starts it."""

import sys
from importlib.metadata import version
from pathlib import Path

from gateways import Proxy, serve

COMMAND = (
    str(Path(sys.executable).parent / "headroom"), "proxy", "--port", "{port}", "--rpm", "100000",
    "--anthropic-api-url", "{url}", "--no-telemetry", "--stateless",
)  # fmt: skip
VARIABLES = {
    "ANTHROPIC_TARGET_API_URL": "{url}",
    "HEADROOM_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}

MODE = sys.argv[1] if len(sys.argv) > 1 else "cache"

serve(
    lambda _: Proxy((*COMMAND, "--mode", MODE), VARIABLES),
    f"headroom-ai {version('headroom-ai')}, headroom proxy --mode {MODE}",
)
