"""Traffic that a hotspot interrupts is one entry for those who measure and record it by its name."""

import polars as pl
import pytest

from benchmark_switch import switch
from weirlab.evaluation import evaluate
from weirlab.runs import Run, run
from weirlab.scenario import loads

SCENARIO = (
    switch(8, "50 %")
    + """\
hotspots:
  a: {kind: input-generated, at: host-0,
      flows: [{from: "host-[1-4]", load: 15 %}], window: 102.4 us .. 204.8 us}
  b: {kind: input-generated, at: host-5,
      flows: [{from: "host-[1-2]", load: 20 %}], window: 153.6 us .. 179.2 us}
record: {f: {flow: background, every: 25.6 us, by: BY}}
run: {duration: 512 us, seed: 1, engine: ENGINE}
measure:
  whole: {kind: delivered-rate, of: background}
  summed: {kind: delivered-rate, of: background, window: 0 us .. 512 us}
  hot: {kind: delivered-rate, of: hotspot-a}
  before: {kind: delivered-rate, of: background, window: 0 us .. 102.4 us}
  after: {kind: delivered-rate, of: background, window: 409.6 us .. 512 us}
"""
)
FAIRNESS = """\
  jain: {kind: jain-fairness, of: background}
  jain-after: {kind: jain-fairness, of: background, window: 409.6 us .. 512 us}
  error: {kind: rate-error, of: background, target: 700 Mbit/s, take: mean}
  delays: {kind: delay-fairness, of: background}
"""


def measured(by: str, engine: str) -> tuple[Run, dict[str, float]]:
    text = SCENARIO.replace("BY", by).replace("ENGINE", engine)
    done = run(loads(text + (FAIRNESS if by == "flow" else "")), threads=1)
    return done, {row["measure"]: row["value"] for row in evaluate(done).iter_rows(named=True)}


def of_name(done: Run, prefix: str) -> pl.DataFrame:
    """Totals of all flows whose entry begins so, with the ends of each."""
    names = done.records["traffic_names"].filter(pl.col("name").str.starts_with(prefix))
    flows = done.records["flow_names"].filter(pl.col("traffic").is_in(names["traffic"].to_list()))
    return done.records["flows"].join(flows, on="flow")


@pytest.mark.parametrize(("by", "engine"), [("traffic", "slotted"), ("traffic", "event"), ("flow", "event")])
def test_a_rate_counts_what_follows_the_hotspots(by: str, engine: str) -> None:
    done, values = measured(by, engine)
    assert done.records["traffic_names"]["name"].to_list() == [
        "background",
        "background-after-a",
        "hotspot-a",
        "hotspot-a-after-b",
        "hotspot-b",
    ]
    for measure, prefix in (("whole", "background"), ("hot", "hotspot-a")):
        total = of_name(done, prefix)["delivered_bytes"].sum()
        assert values[measure] == pytest.approx(8 * total / 512e-6)
    assert values["summed"] == pytest.approx(values["whole"])
    # Half of 8 links of 10 Gbit/s, before and after: no output is asked for more than it serves.
    assert values["before"] == pytest.approx(40e9, rel=0.1)
    assert values["after"] == pytest.approx(40e9, rel=0.1)


def test_a_flow_that_was_interrupted_is_one_flow_to_fairness() -> None:
    done, values = measured("flow", "event")
    pairs = of_name(done, "background").group_by("from", "to").agg(pl.col("delivered_bytes").sum())
    assert pairs.height == 56
    rates = 8 * pairs["delivered_bytes"].cast(pl.Float64) / 512e-6
    assert values["jain"] == pytest.approx(rates.sum() ** 2 / (56 * (rates**2).sum()))
    assert values["error"] == pytest.approx(((rates - 7e8) / 7e8).abs().mean())

    names = done.records["flow_names"]
    late = done.records["flow_deliveries"].filter(pl.col("t_ps") > 409_600_000).join(names, on="flow")
    sums = late.group_by("from", "to").agg(pl.col("bytes").sum())["bytes"].cast(pl.Float64)
    assert values["jain-after"] == pytest.approx(sums.sum() ** 2 / (56 * (sums**2).sum()))

    bursts = done.records["bursts"].join(of_name(done, "background").select("flow", "from", "to"), on="flow")
    mean = bursts.group_by("from", "to").agg(pl.col("delay_sum_ps", "bursts").sum())
    delays = (mean["delay_sum_ps"].cast(pl.Float64) / mean["bursts"]).to_numpy()
    assert values["delays"] == pytest.approx(delays.sum() ** 2 / (len(delays) * (delays**2).sum()))
