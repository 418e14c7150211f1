"""Loops on OpenAI's client, as the page has them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.timeline.integrations._play import check_page
from timeline.fake_provider import FakeServer

pytestmark = [pytest.mark.network, pytest.mark.filterwarnings("default")]


def test_the_program_on_responses_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("openai", tmp_path, serve))


def test_the_program_on_chat_streams_and_goes_on_after_it_was_killed(
    tmp_path: Path, serve: Callable[..., FakeServer], report: Callable[..., None]
) -> None:
    report(**check_page("openai", tmp_path, serve, program=1), streaming="ok")
