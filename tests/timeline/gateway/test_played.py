"""Sessions as agents send them, through the gateway: as cheap as a replay says, and never refused."""

import pytest

from benchmarks.gateway.__main__ import generated
from benchmarks.gateway.clients import CLIENTS
from benchmarks.gateway.play import play

pytestmark = pytest.mark.network

WINDOW = 14_000
"""Both ways compact at the same calls here; at a few windows one adds a layer where the other rewrites its
index, since the wire adds some tokens of its own, and the bills are up to 7% apart."""
AS_REPLAYED = pytest.approx(1.0, abs=0.02)
DEARER_MAX = 1.02


@pytest.mark.parametrize("client", CLIENTS)
def test_a_long_session_costs_what_its_replay_does(client: str) -> None:
    played = play(generated(60, client), WINDOW, "default", "gateway")
    assert not played.failed
    assert not played.refused
    assert (played.over, played.busts) == (0, 0)
    assert played.of_replay == AS_REPLAYED


@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_that_fits_costs_what_it_would_have_cost(client: str) -> None:
    played = play(generated(3, client), WINDOW, "default", "gateway")
    assert (played.failed, played.refused, played.busts) == ((), (), 0)
    assert played.of_direct <= DEARER_MAX
