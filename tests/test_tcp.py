"""TCP from a scenario file to its tables."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from weirlab import run
from weirlab.errors import ScenarioError
from weirlab.evaluation import evaluate
from weirlab.measures import taken
from weirlab.measures.rows import flow_intervals
from weirlab.plots.series import connection_plots
from weirlab.runs import simulate
from weirlab.scenario import load, loads

TEXT = """\
weirlab: 1
name: tcp
network: {kind: dumbbell, pairs: 2, access: {rate: 1 Gbit/s}, bottleneck: {rate: 100 Mbit/s, delay: 5 ms}}
queues: {bottleneck: {at: left->right, kind: drop-tail, limit: 100 frames}}
traffic:
  bulk:
    {from: left-*, to: right-*, pattern: {kind: pairs}, source: {kind: bulk}, streams: 2,
     transport: {kind: tcp, congestion_control: {kind: reno}}}
run: {duration: 2 s}
record: {windows: {tcp: bulk, every: 100 ms}, bulk: {flow: bulk, every: 100 ms}}
measure: {rate: {kind: delivered-rate, of: bulk}}
"""


def tcp(assignments: dict[str, Any]) -> dict[str, Any]:
    spec = json.loads(loads(TEXT, assign=assignments).resolve().spec_json)
    return dict(spec["traffic"][0]["tcp"])


def test_each_sender_opens_its_streams_to_its_receiver() -> None:
    listed = tcp({})["list"]
    assert len(listed) == 4
    assert [entry["from"] for entry in listed] == sorted(entry["from"] for entry in listed)
    assert {entry["load"]["kind"] for entry in listed} == {"endless"}


@pytest.mark.parametrize(("control", "begins"), [("reno", "standard"), ("cubic", "hystart++")])
def test_controls_begin_as_by_themselves_in_a_study_written_out_in_full(control: str, begins: str) -> None:
    study = load("tcp-loss")
    given = {"traffic.bulk.transport.congestion_control.kind": control, "study": None}
    for scenario in (study, loads(study.to_yaml())):
        spec = json.loads(scenario.assign(given).resolve().spec_json)
        assert spec["traffic"][0]["tcp"]["config"]["congestion_control"]["slow_start"] == begins


def test_old_recovery_brings_its_marking_and_its_blindness() -> None:
    config = tcp({"traffic.bulk.transport.recovery": "rate-halving"})["config"]
    assert (config["loss_marking"], config["lost_retransmissions"]) == ("fack", "timeout")
    given = {
        "traffic.bulk.transport.recovery": "rate-halving",
        "traffic.bulk.transport.loss_marking": "count",
    }
    assert tcp(given)["config"]["loss_marking"] == "count"
    config = tcp({})["config"]
    assert (config["recovery"], config["loss_marking"], config["lost_retransmissions"]) == (
        "prr",
        "count",
        "detect",
    )


def test_losses_by_time_bring_the_recovery_of_today() -> None:
    given = {"traffic.bulk.transport.loss_marking": "rack-tlp"}
    config = tcp(given)["config"]
    assert (config["recovery"], config["lost_retransmissions"]) == ("prr-9937", "detect")
    assert tcp(given | {"traffic.bulk.transport.recovery": "halving"})["config"]["recovery"] == "halving"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("lost_retransmissions", "timeout", "write 'detect'"),
        ("recovery", "rate-halving", "write 'lost_retransmissions: detect', too"),
        ("sack", False, "RFC 8985, section 4"),
    ],
)
def test_what_losses_by_time_rule_out_is_told_at_its_field(field: str, value: Any, said: str) -> None:
    transport = "traffic.bulk.transport"
    with pytest.raises(ScenarioError) as caught:
        loads(TEXT, assign={f"{transport}.loss_marking": "rack-tlp", f"{transport}.{field}": value})
    (problem,) = caught.value.problems
    assert problem.path == f"{transport}.{field}"
    assert said in problem.message


def test_a_reader_and_pacing_reach_the_core_and_pauses_are_checked_in_order() -> None:
    assert (tcp({})["config"]["reading"], tcp({})["config"]["pacing"]) == (None, False)
    reading = {"rate": "20 Mbit/s", "pauses": [{"start": "1 s", "stop": "2 s"}]}
    given = {"traffic.bulk.transport.reading": reading, "traffic.bulk.transport.pacing": True}
    config = tcp(given)["config"]
    assert config["reading"] == {"rate_bps": 20_000_000, "pauses_ps": [[10**12, 2 * 10**12]]}
    assert config["pacing"]
    reading["pauses"] = [{"start": "2 s", "stop": "1 s"}]
    with pytest.raises(ScenarioError, match="pauses in order"):
        loads(TEXT, assign={"traffic.bulk.transport.reading": reading}).resolve()


def test_a_run_tells_of_every_connection() -> None:
    records = run(loads(TEXT)).records
    totals = records["connections"]
    assert totals.height == 4
    causes = ["fast", "forward", "slow_start", "timeout", "rescue", "probe"]
    parts = pl.sum_horizontal(*(f"{cause}_retransmits" for cause in causes))
    assert totals.select((parts == pl.col("retransmits")).all()).item()
    most = 100e6 / 8 * 2 * 1448 / 1538
    assert 0.8 * most < totals["delivered_bytes"].sum() < most
    series = records["tcp"]
    assert series.height == 4 * 20
    last = series.group_by("connection").agg(pl.col("acked_bytes").last()).sort("connection")
    assert (last["acked_bytes"] == totals["acked_bytes"]).all()
    assert set(records.named("connections")["connection_name"]) == {
        "bulk/left-0->right-0",
        "bulk/left-0->right-0#2",
        "bulk/left-1->right-1",
        "bulk/left-1->right-1#2",
    }


def test_what_comes_back_is_no_traffic_of_its_entry() -> None:
    result = run(loads(TEXT))
    data = result.records["flow_names"].filter(pl.col("carries") == "data").select("flow")
    delivered = result.records["flows"].join(data, on="flow")["delivered_frames"].sum()
    assert result.records["deliveries"]["frames"].sum() == delivered


def test_a_transfer_ends() -> None:
    text = TEXT.replace("source: {kind: bulk}", "source: {kind: bulk, size: 100 kB}")
    totals = run(loads(text)).records["connections"]
    assert totals["delivered_bytes"].to_list() == [100_000] * 4
    assert totals["acknowledged_ps"].null_count() == 0


def test_goodput_and_completion_are_those_of_the_streams() -> None:
    text = TEXT.replace("source: {kind: bulk}", "source: {kind: bulk, size: 100 kB}")
    asked = "goodput: {kind: goodput, of: bulk}, mean: {kind: completion-time, of: bulk}"
    longest = "worst: {kind: completion-time, of: bulk, take: longest}"
    result = run(loads(text.replace("rate: {kind: delivered-rate, of: bulk}", f"{asked}, {longest}")))
    values = dict(evaluate(result).select("measure", "value").rows())
    assert values["goodput"] == 4 * 100_000 * 8 / 2
    rows = result.records["connections"]
    times = (rows["delivered_ps"] - rows["opened_ps"]).to_list()
    assert values["mean"] == pytest.approx(sum(times) / 4)
    # Slow start from ten segments takes three more round trips of 10 ms.
    assert values["worst"] == max(times) > 40e9


def test_a_transfer_that_did_not_end_has_no_completion_time() -> None:
    text = TEXT.replace("rate: {kind: delivered-rate, of: bulk}", "time: {kind: completion-time, of: bulk}")
    assert evaluate(run(loads(text)))["value"].to_list() == [None]


def test_streams_are_counted_of_tcp_alone() -> None:
    udp = "source: {kind: constant, rate: 1 Mbit/s, payload: 100 B}, transport: {kind: udp}}"
    text = TEXT.replace("run: {", f"  cross: {{from: left-0, to: right-0, {udp}\nrun: {{")
    text = text.replace("{kind: delivered-rate, of: bulk}", "{kind: goodput, of: cross}")
    with pytest.raises(ScenarioError, match="no tcp carries the traffic 'cross'"):
        loads(text)


def test_the_report_draws_window_round_trip_queueing_and_rate_of_senders() -> None:
    plots = {plot.name: plot for plot in connection_plots(run(loads(TEXT)).records)}
    assert list(plots) == ["tcp-window", "tcp-round-trip", "tcp-queueing", "tcp-rate"]
    points = [row for rows in plots["tcp-rate"].spec["datasets"].values() for row in rows if "mean" in row]
    # Twenty intervals of 100 ms, and the start, of four connections; at most 100 Mbit/s.
    assert len(points) == 4 * 21
    assert max(row["mean"] for row in points) <= 100
    without = TEXT.replace("windows: {tcp: bulk, every: 100 ms}, ", "")
    assert connection_plots(run(loads(without)).records) == []


def test_an_application_writes_its_payload() -> None:
    source = "source: {kind: constant, rate: 1 Mbit/s, payload: 1000 B}"
    totals = run(loads(TEXT.replace("source: {kind: bulk}", source))).records["connections"]
    assert totals["delivered_bytes"].to_list() == [250_000] * 4, "a write each 8 ms, from 0 on"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{kind: pairs}", "{kind: uniform}", "one receiver"),
        ("{kind: bulk}", "{kind: constant, rate: 1 Mbit/s, frame_size: 1000 B}", "payload: 1448 B"),
        ("tcp: bulk", "tcp: bulky", "bulky"),
        ("reno", "renu", "did you mean 'reno'"),
    ],
)
def test_a_fault_is_told(old: str, new: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        loads(TEXT.replace(old, new, 1)).resolve()


def test_acknowledgements_are_no_flows_of_fairness_and_no_delivered_rate() -> None:
    records = simulate(loads(TWO_CONNECTIONS), [1])
    (jain,) = taken("jain-fairness", records, [0], window=(500_000_000_000, 1_000_000_000_000))["value"]
    data = records["flow_names"].filter(pl.col("carries") == "data").get_column("flow")
    inside = records["flow_deliveries"].filter(
        pl.col("flow").is_in(data.implode()), pl.col("t_ps") > 500_000_000_000
    )
    rates = inside.group_by("flow").agg(pl.col("bytes").sum())["bytes"].cast(pl.Float64)
    assert jain == pytest.approx(rates.sum() ** 2 / (2 * (rates**2).sum()))
    assert jain > 0.6
    (rate,) = taken("delivered-rate", records, [0], window=(500_000_000_000, 1_000_000_000_000))["value"]
    assert rate == pytest.approx(rates.sum() * 8 / 0.5)


@pytest.mark.parametrize("by_flow", [False, True])
def test_measures_of_an_entry_with_several_connections_count_its_data_alone(by_flow: bool) -> None:
    text = TWO_CONNECTIONS.replace("record: {", "record: {late: {delays: bulk}, ")
    text = text if by_flow else text.replace("by: flow, ", "")
    records = simulate(loads(text), [1])
    second = 1_000_000_000_000
    names = records["flow_names"]
    assert sorted(names["carries"]) == ["acknowledgements"] * 2 + ["data"] * 2
    flows = records["flows"].join(names.select("flow", "carries"), on="flow")
    data = flows.filter(pl.col("carries") == "data")
    back = flows.filter(pl.col("carries") == "acknowledgements")
    assert back["delivered_bytes"].sum() > 0.015 * data["delivered_bytes"].sum(), "it would be seen"
    bits = 8.0 * data["delivered_bytes"].sum()

    def value(measured: pl.DataFrame) -> float:
        return float(measured["value"].item())

    assert value(taken("delivered-rate", records, [0])) == pytest.approx(bits)
    assert value(taken("delivered-rate", records, [0], window=(0, second))) == pytest.approx(bits)
    first, last = (
        taken("delivered-rate", records, [0], window=(n * second // 2, (n + 1) * second // 2)) for n in (0, 1)
    )
    assert (value(first) + value(last)) / 2 == pytest.approx(bits)
    streams = records["connections"]["delivered_bytes"].cast(pl.Float64).sum() * 8
    assert value(taken("goodput", records, [0])) == streams
    # What a frame carries is 1448 of its 1518 bytes; retransmissions and what waits are a little more.
    assert 0.9 * 1448 / 1518 < streams / bits <= 1448 / 1518
    assert (
        value(taken("loss-ratio", records, [0])) == data["dropped_frames"].sum() / data["sent_frames"].sum()
    )
    assert value(taken("mean-delay", records, [0])) == pytest.approx(
        data["delay_sum_ps"].sum() / data["delivered_frames"].sum()
    )
    assert value(taken("max-delay", records, [0])) == data["delay_max_ps"].max()
    shares = data["delivered_bytes"].cast(pl.Float64)
    assert value(taken("jain-fairness", records, [0])) == pytest.approx(
        shares.sum() ** 2 / (2 * (shares**2).sum())
    )
    # No frame of data is as fast as an acknowledgement: half of all would lie below.
    assert (
        value(taken("delay-percentile", records, [0], percentile=0.01))
        >= data["delay_min_ps"].min()
        > back["delay_min_ps"].min()
    )


def test_the_series_of_an_entry_with_one_connection_is_that_of_its_data() -> None:
    text = TWO_CONNECTIONS.replace("[0-1]", "0").replace("by: flow, ", "")
    records = simulate(loads(text), [1])
    second = 1_000_000_000_000
    assert taken("jain-fairness", records, [0], window=(0, second))["value"].to_list() == [1.0]
    rows = flow_intervals(records, [0])
    (data,) = records["flow_names"].filter(pl.col("carries") == "data")["flow"]
    assert rows["flow"].unique().to_list() == [data]
    assert rows["bytes"].sum() == records["flows"].filter(pl.col("flow") == data)["delivered_bytes"].item()


TWO_CONNECTIONS = """\
weirlab: 1
name: pairs
network:
  kind: dumbbell
  pairs: 2
  access: {rate: 1 Gbit/s}
  bottleneck: {rate: 100 Mbit/s, delay: 5 ms}
queues: {bottleneck: {at: left->right, kind: drop-tail, limit: 100 frames}}
traffic:
  bulk: {from: "left-[0-1]", to: "right-[0-1]", pattern: {kind: pairs}, source: {kind: bulk},
         transport: {kind: tcp, congestion_control: {kind: reno}}}
run: {duration: 1 s, seed: 1}
record: {bulk: {flow: bulk, by: flow, every: 50 ms}}
"""


RAPID = "n: 80, rho: 3, estimator: {kind: trend}"
PROBE = "source: {kind: pathload}, transport: {kind: udp}"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("{kind: reno}", "{kind: reno}, segment: 70 kB", "transport.segment"),
        ("{kind: reno}", "{kind: reno}, initial_window: 2000000", "transport.initial_window"),
        ("{kind: reno}", "{kind: reno}, window: 100 B", "transport.window"),
        ("{kind: reno}", "{kind: reno}, send_buffer: 100 B", "transport.send_buffer"),
        ("{kind: reno}", "{kind: reno}, delayed_ack: 2000000", "transport.delayed_ack"),
        ("{kind: reno}", "{kind: reno}, delayed_ack_timeout: 61 s", "transport.delayed_ack_timeout"),
        ("{kind: reno}", "{kind: reno}, min_rto: 61 s", "transport.min_rto"),
        ("{kind: reno}", "{kind: cubic, c: 0}", "transport.congestion_control.c"),
        ("{kind: reno}", "{kind: cubic, beta: 1}", "transport.congestion_control.beta"),
        (
            "{kind: reno}",
            f"{{kind: rapid, {RAPID}}}, timestamps: false",
            "transport.congestion_control.stamps",
        ),
        (
            "{kind: reno}",
            f"{{kind: rapid, {RAPID.replace('80', '2')}}}",
            "transport.congestion_control.n",
        ),
        (
            "{kind: reno}",
            f"{{kind: rapid, {RAPID.replace('rho: 3', 'rho: 1')}}}",
            "transport.congestion_control.rho",
        ),
        ("{kind: reno}", f"{{kind: rapid, {RAPID}, eta: 0}}", "transport.congestion_control.eta"),
        (
            "{kind: reno}",
            f"{{kind: rapid, {RAPID}, initial_rate: 1 kbit/s}}",
            "transport.congestion_control.initial_rate",
        ),
        ("{kind: bulk}", "{kind: bulk, size: 2000000000 MB}", "source.size"),
        ("{kind: bulk}", "{kind: bulk, stop: 1 s}, start: 1.5 s", None),
        ("streams: 2", "streams: 2, adapter: {coalescing: 0 s}", "adapter.coalescing"),
    ],
)
def test_a_fault_that_only_the_core_sees_is_told_with_the_field_of_the_file(
    old: str, new: str, place: str | None
) -> None:
    text = TEXT.replace(old, new, 1)
    if place is None:
        loads(text).resolve()
        return
    with pytest.raises(ScenarioError) as caught:
        loads(text).resolve()
    (problem,) = caught.value.problems
    assert problem.path == f"traffic.bulk.{place}", str(problem)
    assert problem.line is not None
