"""kill -9 in a loop, of who writes and of a server: nothing acknowledged is lost, nothing is doubled or torn."""

from pathlib import Path

import pytest

from benchmarks.kills import KINDS, survived
from tests._postgres import running
from tests._sizes import sized


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_before_a_kill_is_there_once_and_whole(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "server":
        with running() as server:  # of its own: others use that of the session
            toll = survived(kind, tmp_path, sized(3, 60), 1, server)
    else:
        shared = request.getfixturevalue("postgres") if kind == "postgres" else None
        toll = survived(kind, tmp_path, sized(6, 200), 1, shared)
    assert (toll.lost, toll.doubled, toll.torn, toll.problems) == (0, 0, 0, ())
    assert toll.acknowledged > toll.kills
    assert toll.artifacts
