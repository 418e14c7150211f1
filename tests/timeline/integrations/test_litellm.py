"""A loop on LiteLLM that keeps its own list of messages, as the page has it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timeline.integrations._play import check_page
from timeline.fake_provider import FakeServer

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]


def test_the_program_of_the_page_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("litellm", tmp_path, serve))
