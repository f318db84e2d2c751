"""The engine = a naive simulator = ns-3, frame by frame, on the workloads of the benchmark."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agreement import reference, workloads
from agreement.experiments import Tables

MS = 1_000_000_000
ROOT = Path(__file__).resolve().parents[2]

Engine = Callable[[int], Tables]
Naive = Callable[[int], reference.Workload]

CASES = [
    pytest.param(
        workloads.incast,
        lambda duration: reference.incast(duration_ps=duration),
        ["w1"],
        20 * MS,
        id="incast",
    ),
    pytest.param(
        lambda duration: workloads.fat_tree(4, duration),
        lambda duration: reference.fat_tree(4, duration_ps=duration),
        ["w3", "--k", "4"],
        3 * MS,
        id="fat tree of 4-port switches",
    ),
    pytest.param(
        lambda duration: workloads.fat_tree(6, duration),
        lambda duration: reference.fat_tree(6, duration_ps=duration),
        ["w3", "--k", "6"],
        MS,
        id="fat tree of 6-port switches",
    ),
    pytest.param(
        workloads.slotted_switch,
        lambda duration: reference.slotted_switch(duration_ps=duration),
        ["w4"],
        MS // 5,
        id="slotted switch",
    ),
]


@pytest.mark.parametrize(("engine", "naive", "arguments", "duration"), CASES)
def test_the_engine_counts_as_a_naive_simulator_does(
    engine: Engine, naive: Naive, arguments: list[str], duration: int
) -> None:
    """Frames sent, delivered and dropped of every single flow, and all packet-hops."""
    counted, expected = workloads.flow_counts(engine(duration)), reference.simulate(naive(duration))
    assert counted.totals == expected.totals
    assert counted == expected
    if arguments != ["w4"]:
        assert expected.totals["dropped"] > 0


@pytest.fixture(scope="session")
def ns3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workloads built on ns-3."""
    peers = ["make", "--silent", "-C", str(ROOT / "benches" / "peers")]
    if (
        shutil.which("make") is None
        or subprocess.run([*peers, "present"], check=False, timeout=60).returncode != 0
    ):
        pytest.skip("needs ns-3: apt-get install libns3-dev make")
    directory = tmp_path_factory.mktemp("ns3")
    subprocess.run([*peers, f"BUILD={directory}", "CXXFLAGS=-O1"], check=True, timeout=300)
    return directory / "weir-bench-ns3"


@pytest.mark.parametrize(("engine", "naive", "arguments", "duration"), CASES)
def test_ns_3_counts_the_same(
    ns3: Path, engine: Engine, naive: Naive, arguments: list[str], duration: int
) -> None:
    """Where a frame arrives at the picosecond at which a transmission ends, ns-3 takes the arrival first and
    the engine the end of the transmission; the naive simulator knows both orders and ties the two together.
    """
    command = [str(ns3), *arguments, "--duration-ps", str(duration)]
    printed = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    )
    in_its_order = reference.simulate(naive(duration), ties="arrival first").totals
    assert {name: printed[name] for name in in_its_order} == in_its_order
    if arguments[0] != "w3":
        assert workloads.totals(engine(duration)) == in_its_order
