"""kill -9 in a loop, of who writes and of a server: nothing acknowledged is lost, nothing is doubled or torn."""

from pathlib import Path

import pytest

from benchmarks.kills import KINDS, survived
from tests._sizes import sized

KILLS = {"server": sized(3, 60)}
SERVERS = {"postgres": "postgres", "server": "victim"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_before_a_kill_is_there_once_and_whole(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(SERVERS[kind]) if kind in SERVERS else None
    toll = survived(kind, tmp_path, KILLS.get(kind, sized(6, 200)), 1, server)
    assert (toll.lost, toll.doubled, toll.torn, toll.problems) == (0, 0, 0, ())
    assert toll.acknowledged > toll.kills
    assert toll.artifacts
