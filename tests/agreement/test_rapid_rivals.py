"""Several probing connections at once: what docs/reproduce-rapid.md says of the study `rapid-rivals`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from weirlab.evaluation import evaluate
from weirlab.runs import run
from weirlab.scenario import load

POISSON = {"traffic.cross.source.kind": "poisson", "study": None}


def measured(control: str) -> Mapping[str, float]:
    rival = {} if control == "rapid" else {"traffic.rivals.transport.congestion_control": {"kind": control}}
    done = run(load("rapid-rivals", {**POISSON, **rival}), seed=11)
    return {row["measure"]: row["value"] for row in evaluate(done).iter_rows(named=True)}


@pytest.fixture(scope="module")
def rapid() -> Mapping[str, float]:
    return measured("rapid")


def test_four_probing_connections_take_what_is_left_and_share_it(rapid: Mapping[str, float]) -> None:
    # 300 Mbit/s of payload are 313.5 on the wire; frames of 1518 B take 1538 there.
    left = (1e9 - 300e6 * 1536 / 1470) * 1518 / 1538
    assert 0.95 * left < rapid["rate"] < 1.01 * left
    assert rapid["jain"] > 0.9


@pytest.mark.parametrize("elasticity", ["0", "0.2"])
def test_shares_beside_constant_traffic_become_equal(elasticity: str) -> None:
    """With one target for all each is told the same slack, but each sees the ramps of the others as chance,
    and a shortfall lowers a rate by more than an excess raises it."""
    backlog = {"target": "1.1 ms", "within": "40 ms", "elasticity": elasticity}
    control = "traffic.rivals.transport.congestion_control.backlog"
    done = run(load("rapid-rivals", {"study": None, control: backlog}), seed=1)
    values = {row["measure"]: row["value"] for row in evaluate(done).iter_rows(named=True)}
    assert values["jain"] > 0.97
    assert values["rate"] > 0.99 * (1e9 - 300e6 * 1536 / 1470) * 1518 / 1538
    assert values["lost"] < 0.002


@pytest.mark.parametrize("control", ["reno", "cubic"])
def test_the_others_lose_several_times_as_much_and_keep_longer_queues(
    control: str, rapid: Mapping[str, float]
) -> None:
    other = measured(control)
    assert other["lost"] > 5 * rapid["lost"]
    assert other["cross-lost"] > 10 * rapid["cross-lost"]
    assert other["queue"] > 1.3 * rapid["queue"]
