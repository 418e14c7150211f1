"""llmtrim: changes the body of a request as its proxy does."""

import json
from importlib.metadata import version

from gateways import serve
from llmtrim import Provider, compress


def make(_):
    return lambda request: json.loads(
        compress(json.dumps(request), Provider.ANTHROPIC, "agent").request_json
    )


serve(make, f"llmtrim {version('llmtrim')}, compress(), preset agent")
