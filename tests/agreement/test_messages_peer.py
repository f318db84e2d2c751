"""Messages compared with those of ns-3: the same fat tree, the same flow table, DCTCP, per-flow ECMP.

`benches/fabric.py` has the workload, and measures speed too.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from weirlab.runs import run
from weirlab.scenario import load

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benches"))
import fabric  # noqa: E402

sys.path.remove(str(ROOT / "benches"))  # a module `traces` there would hide the tests of this name


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that runs a flow table in ns-3."""
    make = ["make", "--silent", "-C", str(ROOT / "benches" / "peers")]
    if (
        shutil.which("make") is None
        or subprocess.run([*make, "present"], check=False, timeout=60).returncode != 0
    ):
        pytest.skip("needs ns-3: apt-get install libns3-dev make")
    directory = tmp_path_factory.mktemp("ns3")
    program = directory / "weir-peer-ns3-messages"
    subprocess.run([*make, f"BUILD={directory}", "CXXFLAGS=-O1", str(program)], check=True, timeout=300)
    return program


def logs_of(peer: Path, directory: Path, tables: int) -> fabric.Logs:
    def ours(table: Sequence[fabric.Flow], seed: int) -> fabric.Ran:
        fabric.write(directory, table)
        found = run(load(directory / "peer.yaml"), seed=seed).records["messages"].sort("message")
        taken = (pl.col("delivered_ps").cast(pl.Float64) - pl.col("start_ps").cast(pl.Float64)) / 1e6
        return fabric.Ran(found.select(taken).to_series().to_list(), math.nan)

    return fabric.compare(tables, ours, lambda table, seed: fabric.theirs(table, seed, peer))[0]


def test_completion_times_are_those_of_ns3(peer: Path, tmp_path: Path) -> None:
    for bin_, logs in logs_of(peer, tmp_path, 5).items():
        ratio, half = fabric.interval(logs)
        assert abs(ratio - 1) < half + 0.01, (bin_, ratio, half)
        assert half < 0.08, "a test that can fail"


@pytest.mark.parametrize("option", ["--tables=-1", "--tables=1", "--ms=0", "--ms=5,x", "--ms=nan"])
def test_the_bench_of_fabrics_refuses_what_it_cannot_run(
    monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["fabric.py", option])
    monkeypatch.setattr(fabric, "build_ours", lambda: pytest.fail("built"))
    with pytest.raises(SystemExit) as ended:
        fabric.main()
    assert ended.value.code == 2


def test_the_longest_run_is_compared_with_the_one_before_it_in_whatever_order_they_are_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fabric.py", "--tables=0", "--ms=10,5"])
    monkeypatch.setattr(fabric, "build_ours", lambda: None)
    monkeypatch.setattr(fabric, "large", lambda ms: fabric.Large(ms**2, 10**8, int(1e9 * ms)))
    assert fabric.main() == 1
    said = capsys.readouterr().out
    assert "missed: a byte costs 2.00 times as much" in said
    assert "missed: 1024 hosts, 10 ms: 100.0 s, wanted 60 s" in said
