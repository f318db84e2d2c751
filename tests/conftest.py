"""What all tests share: how many random cases the property tests draw, and how long a live test may take."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from hypothesis import HealthCheck, settings

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
