"""The goodput of one flow under random loss, compared with a sender written after the rules of the RFCs."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean, variance

import pytest

from agreement.tcp_rules import Cubic, Reno, Sender
from weirlab.runs import simulate
from weirlab.scenario import loads

SEGMENT, RTT_S, SECONDS, RUNS = 1448, 0.04, 30, 6
TEXT = """\
weirlab: 1
name: loss
network:
  {{kind: path, ends: [a, b],
   link: {{rate: 100 Gbit/s, delay: 20 ms, loss: {{kind: random, ratio: {ratio}}}}}}}
traffic:
  bulk:
    from: a
    to: b
    source: {{kind: bulk}}
    transport: {{kind: tcp, delayed_ack: 1, loss_marking: {marking}, congestion_control: {{kind: {control}}}}}
run: {{duration: {seconds} s}}
"""
CONTROLS = {"reno": Reno, "cubic": Cubic}


def by_engine(control: str, marking: str, ratio: float) -> list[float]:
    """Segments per second of each run."""
    scenario = loads(TEXT.format(control=control, marking=marking, ratio=ratio, seconds=SECONDS))
    runs = [simulate(scenario, [seed])["connections"] for seed in range(1, RUNS + 1)]
    return [float(run.get_column("acked_bytes").sum()) / SEGMENT / SECONDS for run in runs]


def by_rules(control: str, marking: str, ratio: float) -> list[float]:
    """Segments per second of each run of the reference."""
    rack = marking == "rack-tlp"
    runs = [Sender(CONTROLS[control](), ratio, RTT_S, 0.2, Random(seed), rack=rack) for seed in range(RUNS)]
    return [run.carry(SECONDS) / SECONDS for run in runs]


@pytest.mark.parametrize("marking", ["count", "rack-tlp"])
@pytest.mark.parametrize("control", ["reno", "cubic"])
@pytest.mark.parametrize("ratio", [0.001, 0.003, 0.01, 0.03, 0.05])
def test_goodput_under_random_loss_is_that_of_the_rules(control: str, marking: str, ratio: float) -> None:
    ours, rules = by_engine(control, marking, ratio), by_rules(control, marking, ratio)
    error = math.sqrt((variance(ours) + variance(rules)) / RUNS)
    # The 99 % interval of the difference of two means: Student's t with 2 (RUNS - 1) = 10 degrees of freedom.
    assert abs(fmean(ours) - fmean(rules)) < 3.169 * error, (fmean(ours), fmean(rules), error)
