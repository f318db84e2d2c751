"""A search that is killed at any moment and resumed ends as if undisturbed, whatever the algorithm, its goals
and what it does beyond its goals."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from weirlab.searches import ControlledSearch, FoundRates, LoadRange, SearchGoal, run_search
from weirlab.searches.binary import Binary
from weirlab.searches.controller import Controller
from weirlab.searches.evidence import Stationarity
from weirlab.searches.goals import preset
from weirlab.searches.mdr import Mdr
from weirlab.searches.mlr import Mlr
from weirlab.searches.weir import Weir
from weirlab.testbed.devices import Device, Inversion, RegimeSwitch, WarmUp
from weirlab.testbed.sim import DeviceTestbed

LOADS = LoadRange(1e4, 1e6)
GOALS = [SearchGoal.ndr(duration_s=10.0, width=0.01), SearchGoal.pdr(duration_s=10.0, width=0.01)]
OF_CSIT = [preset("csit-ndr", width=0.01), preset("csit-pdr", width=0.01)]
MIXED = [*GOALS, preset("csit-ndr", width=0.01), preset("tst009", width=0.02)]
"""Goals with and without exceed ratio, of different final durations."""

# All deterministic. What COLD and UNSTEADY answer depends on the time under test.
COLD = WarmUp(capacity_fps=4e5, deficit=0.2, time_constant_s=20.0)
UNSTEADY = RegimeSwitch(capacity_fps=4e5, run_spread=0.0, high_s=20.0, low_s=10.0)
INVERTED = Inversion(capacity_fps=4e5, run_spread=0.0, trial_spread=0.0, band_low=0.7)


@dataclass(frozen=True)
class Case:
    """A search and what it measures."""

    controller: Callable[[], Controller]
    device: Device = COLD
    tester_limit_fps: float = math.inf
    does: Callable[[FoundRates], bool] = lambda _: True
    """Whether the undisturbed search did what this case is there for."""


def has_made(purpose: str) -> Callable[[FoundRates], bool]:
    return lambda result: any(trial.spec.purpose == purpose for trial in result.trials)


def found(stationarity: Stationarity) -> Callable[[FoundRates], bool]:
    return lambda result: any(goal.evidence.stationarity is stationarity for goal in result.goals)


CASES = {
    "binary": Case(lambda: Binary(GOALS, LOADS)),
    "mdr": Case(lambda: Mdr(GOALS, LOADS)),
    "mlr": Case(lambda: Mlr(GOALS, LOADS)),
    "weir": Case(lambda: Weir(GOALS, LOADS), does=has_made("guard")),
    "mlr, exceed ratio": Case(lambda: Mlr(OF_CSIT, LOADS)),
    "mlr, waits counted": Case(lambda: Mlr(OF_CSIT, LOADS, effective="with-waits")),
    "weir, exceed ratio": Case(lambda: Weir(OF_CSIT, LOADS)),
    "weir, mixed goals": Case(lambda: Weir(MIXED, LOADS), device=UNSTEADY),
    "weir, checks": Case(lambda: Weir(GOALS, LOADS), device=UNSTEADY, does=has_made("guard")),
    "weir, no early stop": Case(
        lambda: Weir(GOALS, LOADS, early_stop=False), does=lambda result: not stopped_early(result)
    ),
    "weir, early stop": Case(lambda: Weir(GOALS, LOADS), does=lambda result: stopped_early(result)),
    "weir, no guard": Case(lambda: Weir(GOALS, LOADS, guard=False)),
    "weir, drift": Case(
        lambda: Weir(OF_CSIT, LOADS),
        device=WarmUp(capacity_fps=4e5, deficit=0.15, time_constant_s=8.0),
        does=lambda result: found(Stationarity.SETTLED)(result) or found(Stationarity.CHANGED)(result),
    ),
    "weir, steady": Case(lambda: Weir(GOALS, LOADS, steady_s=2.0), does=has_made("steady")),
    "weir, sweep": Case(
        lambda: Weir(GOALS, LOADS, sweep=30),
        device=INVERTED,
        does=lambda result: has_made("sweep")(result) and result.goals[0].lower.load_fps < 2.8e5,
    ),
    "weir, hints": Case(lambda: Weir(GOALS, LOADS, hints_fps={"NDR": 3.9e5, "PDR": 4e5})),
    "weir, weak tester": Case(lambda: Weir(MIXED, LOADS), tester_limit_fps=3.5e5, does=has_made("repeat")),
}
ALGORITHMS = ("binary", "mdr", "mlr", "weir", "weir, exceed ratio")
"""Those that are also killed by the kernel."""
KILL_POINTS = 9


def stopped_early(result: FoundRates) -> bool:
    return any(trial.stopped_early for trial in result.trials)


def searched(case: str, log: Path) -> FoundRates:
    made = CASES[case]
    bed = DeviceTestbed(made.device, overhead_s=0.5, tester_limit_fps=made.tester_limit_fps)
    return run_search(ControlledSearch(made.controller(), frame_size_bytes=64), bed, log=log)


@pytest.mark.parametrize("case", CASES)
def test_a_log_that_ends_at_any_byte_is_completed_to_the_same_log_and_result(case, tmp_path):
    whole = tmp_path / "whole"
    undisturbed = searched(case, whole)
    assert CASES[case].does(undisturbed)
    content = whole.read_bytes()
    header = content.index(b"\n") + 1
    points = {header, len(content) - 1, len(content)}
    points |= {header + (len(content) - header) * part // KILL_POINTS for part in range(1, KILL_POINTS)}
    points |= {content.index(b"\n", point) + 1 for point in list(points) if point < len(content)}
    for point in sorted(points):
        log = tmp_path / f"killed-at-{point}"
        log.write_bytes(content[:point])
        assert searched(case, log) == undisturbed, f"cut after {point} of {len(content)} bytes"
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
