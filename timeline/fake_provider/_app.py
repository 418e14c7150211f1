"""The fake provider as a starlette app."""

import json
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from render import Json
from timeline.fake_provider._catalogue import model_info, model_page
from timeline.fake_provider._fault import ApiError
from timeline.fake_provider._provider import FakeProvider
from timeline.fake_provider._rules import invalid
from timeline.fake_provider._wire import refusal, response


def app_of(provider: FakeProvider) -> Starlette:
    """The app that serves a provider."""

    async def create(http: Request) -> Response:
        request = _unauthorised(http) or await _json(http)
        if isinstance(request, ApiError):
            return refusal(request, provider.new_id("req"))
        return await response(provider.create(request), provider.new_id("req"))

    async def count(http: Request) -> Response:
        request = _unauthorised(http) or await _json(http)
        counted = request if isinstance(request, ApiError) else provider.count(request)
        if isinstance(counted, ApiError):
            return refusal(counted, provider.new_id("req"))
        return JSONResponse({"input_tokens": counted})

    async def models(_: Request) -> Response:
        return JSONResponse(model_page(provider.known()))

    async def model(http: Request) -> Response:
        name = http.path_params["name"]
        found = provider.model(name)
        if found is None:
            error = ApiError(404, "not_found_error", f"model: {name}")
            return refusal(error, provider.new_id("req"))
        return JSONResponse(model_info(found))

    async def unknown(_: Request, __: Exception) -> Response:
        return refusal(ApiError(404, "not_found_error", "Not found"), provider.new_id("req"))

    return Starlette(
        routes=[
            Route("/v1/messages", create, methods=["POST"]),
            Route("/v1/messages/count_tokens", count, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name}", model),
        ],
        exception_handlers={404: unknown},
    )


def _unauthorised(http: Request) -> ApiError | None:
    """Any key will do, but there must be one, and a version."""
    if not (http.headers.get("x-api-key") or http.headers.get("authorization")):
        return ApiError(401, "authentication_error", "x-api-key header is required")
    if "anthropic-version" not in http.headers:
        return invalid("anthropic-version: header is required")
    return None


async def _json(http: Request) -> Json | ApiError:
    try:
        body: Any = json.loads(await http.body())
    except (ValueError, RecursionError) as error:
        return invalid(f"The request body is not valid JSON: {error}")
    if not isinstance(body, dict):
        return invalid("Input should be an object")
    return cast("Json", body)
