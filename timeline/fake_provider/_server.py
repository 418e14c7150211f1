"""The fake provider on a loopback port: in a thread for tests, or in the foreground."""

from typing import Any

import attrs

from blocks import FoldlineError
from render import Json
from timeline._serving import AppServer
from timeline.fake_provider._fault import Fault
from timeline.fake_provider._http_request import HttpRequest
from timeline.fake_provider._provider import Exchange, FakeProvider


@attrs.define
class FakeServer(AppServer):
    """Serves a provider between `start` and `stop`, or inside a `with` block; `url` is the `base_url` for a client."""

    provider: FakeProvider = attrs.field(factory=FakeProvider)

    @property
    def extra(self) -> str:
        """See `AppServer`."""
        return "fake-provider"

    def make_app(self) -> Any:
        """See `AppServer`."""
        from timeline.fake_provider._app import app_of

        return app_of(self.provider)

    @property
    def requests(self) -> list[Json]:
        """All requests for a message, including refused ones."""
        return [exchange.request for exchange in self.provider.exchanges]

    @property
    def refused(self) -> list[Exchange]:
        """Requests that broke a rule of the provider, without those that a fault refused."""
        return [e for e in self.provider.exchanges if e.error and not e.fault]

    @property
    def http_requests(self) -> list[HttpRequest]:
        """All HTTP requests to any path, as they were sent but without keys."""
        return self.provider.http_requests

    def fault(self, *faults: Fault) -> None:
        """Inject faults into the answers to the next valid requests, one each."""
        self.provider.fault(*faults)

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        if not any(raised) and self.provider.failures:
            raise FoldlineError("the responder raised") from self.provider.failures[0]
