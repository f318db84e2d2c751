"""Swift at its fixed point, and what TIMELY promises."""

from __future__ import annotations

import math

import polars as pl
import pytest

from weirlab.runs import simulate
from weirlab.scenario import load

RATE = 10e9
FRAME = 1500 + 18


def late(name: str, senders: int, after_ps: int, span_s: float) -> tuple[pl.DataFrame, float]:
    """Rows of senders after a time, and the utilisation of the bottleneck from then on."""
    scenario = load(name, {"traffic.load.from": f"host-[0-{senders - 1}]"})
    records = simulate(scenario, [1], threads=1)
    rows = records["tcp"].filter(pl.col("t_ps") > after_ps)
    port = records["port_names"].filter(pl.col("name") == "switch-0->host-8").get_column("port").item()
    sent = (
        records["intervals"].filter(pl.col("port") == port, pl.col("t_ps") > 20e9).get_column("bytes").sum()
    )
    return rows, 8 * sent / (RATE * 40e-3)


@pytest.mark.parametrize("senders", [2, 4, 8])
def test_swift_holds_the_round_trip_time_of_its_fixed_point(senders: int) -> None:
    rows, utilisation = late("swift-incast", senders, 20 * 10**9, 0.04)
    slope = 100e-6 / (1 / math.sqrt(0.1) - 0.1)
    delay = 60e-6
    for _ in range(200):
        # The window fills the share of the link; growth by one segment and decrease balance in a round trip.
        window = max(RATE * delay / (8 * FRAME) / senders, 2.0)
        target = 60e-6 + min(max(slope * (1 / math.sqrt(window) - 0.1), 0), 100e-6)
        delay += 0.1 * (target / (1 - 1 / (0.8 * window)) - delay)
    srtt = rows.get_column("srtt_ps").mean()
    assert isinstance(srtt, float)
    assert srtt / 1e12 == pytest.approx(delay, rel=0.15)
    assert utilisation > 0.9


def test_timely_keeps_the_link_busy_between_its_thresholds() -> None:
    rows, utilisation = late("timely-incast", 8, 100 * 10**9, 0.1)
    srtt = rows.get_column("srtt_ps").mean()
    assert isinstance(srtt, float)
    assert 42e-6 < srtt / 1e12 < 500e-6
    assert utilisation > 0.8
