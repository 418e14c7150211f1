"""A key is the client's and the provider's: it is in no store, in no log and in no report of ours."""

import logging
from pathlib import Path

import pytest

from timeline.cli import main
from timeline.fake_provider import Fault
from timeline.gateway import Gateway, GatewayServer

from ._two_ways import KEY, WIRES, Ways, seen, ways

__all__ = ["ways"]

pytestmark = pytest.mark.network

BEARER = "Bearer "


def test_no_key_is_written_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], ways: Ways
) -> None:
    caplog.set_level(logging.DEBUG)
    faults = (Fault(), Fault.overloaded(), Fault.cut(), Fault.garbled(), Fault.overflow())
    for wire in WIRES.values():
        for fault in faults:
            ways.fault(fault)
            for _ in range(2):
                ways.both(wire, stream=True)
    ways.raw("POST", "/v1/messages", content=b"{", headers={"authorization": BEARER + KEY})
    ways.raw("GET", "/v1/models", headers={"authorization": BEARER + KEY})
    assert ways.direct.requests
    store = tmp_path / "nobody.duckdb"
    with GatewayServer(Gateway(store=store, upstream="http://127.0.0.1:9")) as alone:
        for wire in WIRES.values():
            assert seen(alone.url + wire.path, wire.headers, json=dict(wire.body)).status >= 500
    ways.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
    main(["list", "--store", str(ways.store)])
    main(["search", "sk-ant", "--store", str(ways.store)])
    told = capsys.readouterr()
    for text in (caplog.text, told.out, told.err):
        assert KEY not in text
