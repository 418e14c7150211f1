"""The requests that Codex sends to ChatGPT for a logged-in user: the account, its settings and its models.

Requests to models have the form of OpenAI's API, at another path.
"""

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CODEX: Final = "/backend-api/codex"
"""The prefix of the paths, in place of `/v1`."""
_ACCOUNTS: Final = "/backend-api/wham/accounts/check"
_SETTINGS: Final = "/backend-api/wham/settings/user"


async def _accounts(http: Request) -> Response:
    """The account of the request, without a special server for its requests."""
    account = {
        "id": http.headers.get("chatgpt-account-id", ""),
        "workspace_backend_origin": "https://chatgpt.com",
        "account_routing_override": "NO_CONSTRAINT",
    }
    return JSONResponse({"accounts": [account], "account_ordering": [account["id"]]})


async def _models(_: Request) -> Response:
    """An empty list, so that Codex uses the models that it knows."""
    return JSONResponse({"models": []})


async def _settings(_: Request) -> Response:
    return JSONResponse({})


ROUTES: Final = (
    Route(_ACCOUNTS, _accounts),
    Route(_SETTINGS, _settings),
    Route(f"{CODEX}/models", _models),
)
