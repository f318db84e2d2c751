"""A search that is killed at any moment and resumed ends as if undisturbed, whatever the algorithm."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from weirlab.search import ControlledSearch, LoadRange, SearchGoal, SearchResult, run_search
from weirlab.search.binary import Binary
from weirlab.search.mdr import Mdr
from weirlab.search.mlr import Mlr
from weirlab.search.weir import Weir
from weirlab.testbed.devices import WarmUp
from weirlab.testbed.sim import DeviceTestbed

ALGORITHMS = {"binary": Binary, "mdr": Mdr, "mlr": Mlr, "weir": Weir}
COLD = WarmUp(capacity_fps=4e5, deficit=0.2, time_constant_s=20.0)
"""Deterministic, and its answers depend on the time under test."""
KILL_POINTS = 9


def search(algorithm: str) -> ControlledSearch:
    goals = [SearchGoal.ndr(duration_s=10.0, width=0.01), SearchGoal.pdr(duration_s=10.0, width=0.01)]
    return ControlledSearch(ALGORITHMS[algorithm](goals, LoadRange(1e4, 1e6)), frame_size_bytes=64)


def searched(algorithm: str, log: Path) -> SearchResult:
    return run_search(search(algorithm), DeviceTestbed(COLD, overhead_s=0.5), log=log)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_log_that_ends_at_any_byte_is_completed_to_the_same_log_and_result(algorithm, tmp_path):
    whole = tmp_path / "whole"
    undisturbed = searched(algorithm, whole)
    content = whole.read_bytes()
    header = content.index(b"\n") + 1
    points = {header, len(content) - 1, len(content)}
    points |= {header + (len(content) - header) * part // KILL_POINTS for part in range(1, KILL_POINTS)}
    points |= {content.index(b"\n", point) + 1 for point in list(points) if point < len(content)}
    for point in sorted(points):
        log = tmp_path / f"killed-at-{point}"
        log.write_bytes(content[:point])
        assert searched(algorithm, log) == undisturbed, f"cut after {point} of {len(content)} bytes"
        assert log.read_bytes() == content


UNTIL_THE_KERNEL_KILLS_IT = """
    import resource, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from test_kill_and_resume import searched

    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = int(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    searched(sys.argv[2], Path(sys.argv[3]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs a limit of file sizes that kills")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_process_that_dies_in_the_middle_of_a_write_loses_that_trial_alone(algorithm, tmp_path):
    undisturbed = searched(algorithm, tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    script, log = tmp_path / "search.py", tmp_path / "log"
    script.write_text(textwrap.dedent(UNTIL_THE_KERNEL_KILLS_IT))
    for share in (0.4, 0.8):
        most = round(share * len(content))
        given = [str(Path(__file__).parent), algorithm, str(log), str(most)]
        ended = subprocess.run([sys.executable, str(script), *given], timeout=60, check=False)
        assert ended.returncode == -signal.SIGXFSZ, "killed by the kernel, without a word"
        assert log.read_bytes() == content[:most], "the last line is half written"
    assert searched(algorithm, log) == undisturbed
    assert log.read_bytes() == content
