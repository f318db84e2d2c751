"""Series of a capture: whole intervals only, above the same times."""

from pathlib import Path

import pytest

from weirlab.plots.trace import trace_plots
from weirlab.traces import read_trace

CAPTURE = Path(__file__).parents[2] / "examples" / "slow-transfer.pcap"


@pytest.fixture(scope="module")
def series():
    return {each.name: each.drawing.to_dict() for each in trace_plots(read_trace(CAPTURE))}


def test_the_part_of_an_interval_after_the_capture_does_not_count_as_silence(series):
    (rows,) = (rows for rows in series["throughput"]["datasets"].values() if "goodput" in rows[0])
    ended = [row for row in rows if row["t"] > 0.3]
    assert max(row["t"] for row in rows) == pytest.approx(2.45)  # the capture ends at 2.503 s
    assert min(row["goodput"] for row in ended) > 6


def test_rates_and_round_trips_stand_above_the_same_times(series):
    scales = [series[name]["layer"][0]["encoding"]["x"]["scale"] for name in ("throughput", "round-trips")]
    assert scales[0] == scales[1]
    assert scales[0]["domain"] == pytest.approx([0.1, 2.6])
