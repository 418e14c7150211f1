"""headroom as a library: its whole pipeline applied to the messages of a request."""

import os
from importlib.metadata import version

os.environ.update(
    HEADROOM_OFFLINE="1", HEADROOM_TELEMETRY="off", LITELLM_LOCAL_MODEL_COST_MAP="True"
)

from gateways import serve
from headroom import compress


def make(_):
    return lambda request: {
        **request,
        "messages": compress(request["messages"], model=request["model"]).messages,
    }


serve(make, f"headroom-ai {version('headroom-ai')}, compress()")
