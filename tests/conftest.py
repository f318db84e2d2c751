"""What all tests share: how many random cases the property tests draw, and how long a live test may take."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import pytest
from hypothesis import HealthCheck, settings

from weirlab import privileges
from weirlab.errors import MissingCapability

# Ordinary runs repeat themselves (derandomized); `make fuzz` looks further.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Started in the background by a shell without job control, Ctrl-C would be ignored, also by what tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """An ordinary user makes the namespaces of live tests in a user namespace, before threads are started."""
    if config.option.markexpr == "live" and sys.platform == "linux" and not privileges.may_make_namespaces():
        with suppress(MissingCapability):  # each test says what it lacks
            privileges.enter()


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe: workers of a parallel run say that they have 80 columns."""
    monkeypatch.setenv("COLUMNS", "200")


@contextmanager
def _small_files(most_bytes: int) -> Iterator[None]:
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_files() -> Callable[[int], AbstractContextManager[None]]:
    """A block in which no file can grow beyond so many bytes: a disk that is full."""
    return _small_files
