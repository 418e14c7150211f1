"""LiteLLM's compress: above a number of tokens, replaces the least relevant parts by stubs."""

import os
from importlib.metadata import version

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from gateways import serve
from litellm.types.utils import CallTypes


def make(task):
    trigger = int(0.9 * task["window"])

    def changed(request):
        done = litellm.compress(
            messages=request["messages"],
            model=request["model"],
            call_type=CallTypes.anthropic_messages,
            compression_trigger=trigger,
        )
        tools = [*request.get("tools", ()), *(done.get("tools") or ())]
        return {**request, "messages": done["messages"], "tools": tools}

    return changed


serve(make, f"litellm {version('litellm')}, compress()")
