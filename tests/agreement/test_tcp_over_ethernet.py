"""TCP over Ethernet with congestion management: what docs/tcp-over-ethernet.md says of the study."""

from __future__ import annotations

import pytest

from weirlab.evaluation import evaluate
from weirlab.runs import run
from weirlab.scenario import load

SCHEMES = {
    "none": {"control.bcn": None, "control.pause": None},
    "pause": {"control.bcn": None},
    "bcn": {"control.pause": None},
    "both": {},
}
ALONE_MS = 34.0
"""What the victim takes on its own way: 10 MB over 2.5 Gbit/s, and slow start."""


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, float]]:
    """Means over two seeds, by scheme and measure."""
    results = {}
    for scheme, changes in SCHEMES.items():
        scenario = load("tcp-over-ethernet", assign={**changes, "study": None})
        values = evaluate(run(scenario, replicates=2))
        results[scheme] = {
            name: float(group.get_column("value").mean())  # type: ignore[arg-type]
            for (name,), group in values.group_by("measure")
        }
    return results


def test_drops_cost_short_transfers_a_timeout(measured: dict[str, dict[str, float]]) -> None:
    assert measured["none"]["lost"] > 500
    assert measured["none"]["short-worst"] > 200e9, "the least retransmission timeout"
    assert measured["pause"]["lost"] == measured["both"]["lost"] == 0
    assert measured["none"]["short"] > 10 * measured["pause"]["short"]


def test_pause_alone_holds_a_victim_that_is_not_in_the_way(
    measured: dict[str, dict[str, float]],
) -> None:
    assert measured["none"]["victim"] == pytest.approx(ALONE_MS * 1e9, rel=0.01)
    assert measured["pause"]["victim"] > 4 * measured["none"]["victim"]
    assert measured["pause"]["victim-held"] > 250e9


def test_bcn_with_pause_loses_nothing_and_lets_the_victim_go(measured: dict[str, dict[str, float]]) -> None:
    assert measured["both"]["victim"] == pytest.approx(ALONE_MS * 1e9, rel=0.01)
    assert measured["both"]["short"] < measured["pause"]["short"]


def test_long_transfers_do_not_notice(measured: dict[str, dict[str, float]]) -> None:
    goodputs = [values["goodput"] for values in measured.values()]
    assert min(goodputs) > 0.97 * max(goodputs) > 9e9
