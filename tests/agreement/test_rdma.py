"""Messages in numbered packets compared with published runs and the arithmetic of their papers."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import polars as pl
import pytest

from weirlab.evaluation import evaluate
from weirlab.records import Records
from weirlab.runs import run
from weirlab.scenario import Scenario, load, loads

BDP = 43 * 4150
"""Of uet-htsim's network: 100 Gbit/s and 14.02 us in whole packets [B]."""
UET = """\
weirlab: 1
name: uet
network: {kind: fat-tree, k: 4, link: {rate: 100 Gbit/s, delay: 1 us, framing: none}}
queues:
  switches:
    at: "@switches->*"
    kind: classes
    classes:
      data:
        class: 0
        weight: 1
        kind: drop-tail
        limit: 178450 B
        marking: {k_min: 35690 B, k_max: 142760 B}
        trim: {to: 6}
      control: {class: 6, kind: drop-tail, limit: 356900 B}
traffic:
  m:
    source: {kind: flow-table, file: FLOWS, packet: {payload: 4086 B, headers: 64 B}}
    transport:
      kind: rdma
      congestion_control: {kind: CONTROL}
      recovery: selective
      answers: {class: 6, every: 16 KiB}
      round_trip: 14.02 us
      timeout: 200 us
      paths: {rule: RULE, values: 128}CREDIT
run: {duration: 4 ms, seed: 13}
"""
CONTROLS = {
    "nscc": ("nscc", ""),
    "rccc": ("line-rate", "\n      credit: {}"),
    "both": ("nscc, spares_last_hop: true", "\n      credit: {}"),
}


def uet(
    directory: Path, control: str, pairs: list[tuple[int, int]], size: int, rule: str = "mixed"
) -> Records:
    """Messages of `size` between hosts of a fat tree of 16, all at once."""
    flows = directory / "flows.csv"
    lines = [f"0 us,host-{sender},host-{receiver},{size}" for sender, receiver in pairs]
    flows.write_text("\n".join(["start,from,to,bytes", *lines]))
    kind, credit = CONTROLS[control]
    text = UET.replace("FLOWS", str(flows)).replace("CONTROL", kind).replace("CREDIT", credit)
    return run(loads(text.replace("RULE", rule))).records


def last_us(records: Records) -> float:
    """When the last sender knows that all has arrived."""
    ends = records["messages"].get_column("acknowledged_ps")
    assert ends.null_count() == 0, "all messages end"
    return float(ends.max()) / 1e6  # type: ignore[arg-type]


@pytest.mark.parametrize(("packets", "recorded_us"), [(10, 17.0107), (100, 46.8907), (490, 176.2)])
def test_single_messages_take_what_uet_htsim_records(
    packets: int, recorded_us: float, tmp_path: Path
) -> None:
    size = 2_000_000 if packets == 490 else packets * 4086
    assert last_us(uet(tmp_path, "nscc", [(0, 13)], size)) == pytest.approx(recorded_us, abs=1e-3)


@pytest.mark.parametrize(("control", "recorded_us"), [("rccc", 177.368), ("both", 177.368)])
def test_credit_costs_a_single_message_one_percent_of_its_rate(
    control: str, recorded_us: float, tmp_path: Path
) -> None:
    assert last_us(uet(tmp_path, control, [(0, 13)], 2_000_000)) == pytest.approx(recorded_us, rel=2e-3)


def test_credit_follows_a_network_that_carries_an_eighth_and_leaves_others_alone(tmp_path: Path) -> None:
    pairs = [(host, (host + 8) % 16) for host in range(16)]
    flows = tmp_path / "flows.csv"
    again, ends = [], []
    for network, rows, credit in [
        ("xgft, children: [8, 2], parents: [1, 1]", pairs, "{}"),
        ("xgft, children: [8, 2], parents: [1, 1]", pairs, "{oversubscription: 8}"),
        ("fat-tree, k: 4", [(0, 13)], "{}"),
        ("fat-tree, k: 4", [(0, 13)], "{oversubscription: 8}"),
    ]:
        lines = [f"0 us,host-{sender},host-{receiver},2000000" for sender, receiver in rows]
        flows.write_text("\n".join(["start,from,to,bytes", *lines]))
        text = UET.replace("fat-tree, k: 4", network).replace("FLOWS", str(flows)).replace("RULE", "mixed")
        text = text.replace("CONTROL", "line-rate").replace("CREDIT", f"\n      credit: {credit}")
        records = run(loads(text)).records
        again.append(records["messages"].get_column("retransmits").sum())
        ends.append(last_us(records))
    # What eight hosts send takes the one line out of their switch 1301 us.
    assert 1301 < ends[1] < 1.1 * 1301
    assert again[1] < again[0] / 3
    assert ends[2] == ends[3]


@pytest.mark.parametrize("control", CONTROLS)
def test_an_incast_of_15_ends_within_the_limit_that_uet_htsim_ships(control: str, tmp_path: Path) -> None:
    records = uet(tmp_path, control, [(sender, 0) for sender in range(1, 16)], 2_000_000)
    # 2451.3 us: what the busiest port takes for the data, and the latency of the path.
    assert 2451.3 < last_us(records) < 2550
    assert records["messages"].get_column("timeouts").sum() == 0
    assert records["flows"].get_column("dropped_frames").sum() == 0


@pytest.mark.parametrize("control", CONTROLS)
def test_a_sprayed_permutation_ends_within_the_limit_and_one_way_each_does_not(
    control: str, tmp_path: Path
) -> None:
    chance, tails = random.Random(1), []
    for _ in range(5):
        receivers = list(range(16))
        while any(sender == receiver for sender, receiver in enumerate(receivers)):
            chance.shuffle(receivers)
        tails.append(last_us(uet(tmp_path, control, list(enumerate(receivers)), 2_000_000)))
    # uet-htsim records 194 to 197 us for one permutation; those drawn here lie between 189 and 215 us.
    sprayed = statistics.median(tails)
    assert 185 < sprayed < 210
    one = CONTROLS[control]
    text = UET.replace("      paths: {rule: RULE, values: 128}CREDIT", one[1].lstrip("\n")).replace(
        "CONTROL", one[0]
    )
    single = run(loads(text.replace("FLOWS", str(tmp_path / "flows.csv")))).records
    assert last_us(single) > 1.5 * sprayed


TRIM = "\n        trim: {to: 6}"
DETECTIONS = ("timeout", "overtaken", "sleek")


def untrimmed(flows: Path, limit: int, detection: str, size: int, seed: int) -> tuple[float, int, int, int]:
    """An incast of 15 whose queues drop: when its last sender knows of the end [us], packets sent again,
    timeouts, packets dropped."""
    lines = [f"0 us,host-{sender},host-0,{size}" for sender in range(1, 16)]
    flows.write_text("\n".join(["start,from,to,bytes", *lines]))
    text = UET.replace("FLOWS", str(flows)).replace("RULE", "mixed").replace("CREDIT", "")
    for old, new in [
        ("CONTROL", "nscc, target: 1"),
        (TRIM, ""),
        ("limit: 178450 B", f"limit: {limit} B"),
        ("recovery: selective", f"recovery: {{kind: selective, detection: {detection}}}"),
        ("timeout: 200 us", "timeout: 500 us"),
        ("seed: 13", f"seed: {seed}"),
    ]:
        assert old in text
        text = text.replace(old, new)
    records = run(loads(text)).records
    again, timeouts = (records["messages"].get_column(name).sum() for name in ("retransmits", "timeouts"))
    dropped = records["flows"].get_column("dropped_frames").sum()
    return last_us(records), int(again), int(timeouts), int(dropped)


def test_where_queues_of_five_paths_drop_sleek_hardly_waits_for_timeouts(tmp_path: Path) -> None:
    """uet-htsim takes queues five times as long where they do not trim."""
    flows = tmp_path / "flows.csv"
    for seed in (1, 2, 3):
        last, again, timeouts, dropped = untrimmed(flows, 5 * BDP, "sleek", 2_000_000, seed)
        late, _, many, _ = untrimmed(flows, 5 * BDP, "timeout", 2_000_000, seed)
        # As with trimming: no earlier than the busiest port can, and within the limit that uet-htsim ships.
        assert 2451.3 < last < 2550
        assert late > last + 200
        # One whose second copy is lost, too, waits, and all that its message loses behind it.
        assert many > 400
        assert timeouts < many / 10
        assert again < 1.1 * dropped


def test_short_messages_of_an_incast_lose_least_time_with_sleek(tmp_path: Path) -> None:
    took = {
        detection: statistics.median(
            untrimmed(tmp_path / "flows.csv", BDP, detection, 100_000, seed)[0] for seed in range(1, 6)
        )
        for detection in DETECTIONS
    }
    # 15 x 100 kB take 123 us; a timeout is 500 us.
    assert 123 < took["sleek"] < 0.6 * took["overtaken"] < 0.6 * took["timeout"]


def p95_kb(records: Records) -> float:
    """Of the queue, looked at each microsecond."""
    return float(records["intervals"].get_column("queue_bytes").quantile(0.95, "nearest")) / 1e3  # type: ignore[arg-type]


def hpcc(w_ai: int, **control: int) -> Records:
    scenario = load("hpcc-incast")
    changed = {"traffic.writes.transport.congestion_control.w_ai": f"{w_ai} B"}
    changed |= {
        f"traffic.writes.transport.congestion_control.{name}": str(value) for name, value in control.items()
    }
    # Its simulator has no preamble and no gap.
    changed["network.link.framing"] = "none"
    looked = {"record": {"hot": {"queue": "switch-0->host-16", "every": "1 us"}}}
    return run(scenario.assign({**changed, **looked})).records


def test_the_queue_of_hpcc_grows_where_what_is_added_exceeds_what_eta_leaves() -> None:
    """HPCC 2019, 5.4: within 4 kB up to 150 B, 13 kB with 300 B. A frame has 1090 B here."""
    found = {w_ai: p95_kb(hpcc(w_ai)) for w_ai in (25, 80, 150, 300)}
    assert all(found[w_ai] < 4 + 2 * 1.09 for w_ai in (25, 80, 150)), found
    assert abs(found[300] - 13) < 3 * 1.09, found
    # A constant does not have both.
    assert found[300] > 2 * found[150]


def livelock(recovery: str) -> tuple[float, float]:
    """Shares of the line's rate: what leaves the sender, and data of messages that arrive."""
    scenario = load("roce-livelock").assign({"traffic.writes.transport.recovery": {"kind": recovery}})
    records = run(scenario).records
    span_ps = scenario.run.duration.ps
    sent = records["flows"].get_column("sent_bytes").max() * 8e12 / (40e9 * span_ps)  # type: ignore[operator]
    done = records["message_totals"].get_column("delivered_bytes").sum() * 8e12 / (40e9 * span_ps)
    return float(sent), float(done)


def test_messages_of_4_mb_with_one_loss_in_256_arrive_unless_they_begin_anew() -> None:
    """Guo 2016, 4.1, as quoted: zero goodput with a link at line rate."""
    sent, done = livelock("go-back-0")
    assert sent > 0.9
    assert done == 0
    # A loss costs go-back-n what is in flight, d packets: about 1 / (1 + d / 256) of what is sent is of use.
    for recovery, least in (("go-back-n", 0.7), ("selective", 0.75)):
        sent, done = livelock(recovery)
        assert done > least, recovery


def shares(kind: str, *, trims: bool) -> Scenario:
    scenario = load("trimming-incast", {"study": None})
    changed = {} if trims else {"queues.switch.classes.data.trim": None}
    return scenario.assign({"traffic.incast.transport.congestion_control": {"kind": kind}, **changed})


def test_headers_that_arrive_save_the_timeouts() -> None:
    cut, dropped = (run(shares("line-rate", trims=trims)).records for trims in (True, False))
    timeouts = [records["messages"].get_column("timeouts").sum() for records in (cut, dropped)]
    assert timeouts[0] == 0
    assert timeouts[1] > 0
    # 16 MB and their headers at 100 Gbit/s.
    assert last_us(cut) < 1.03 * 16e6 * (4160 + 20) / 4096 * 8 / 100e3
    ends = cut["messages"].select(pl.col("delivered_ps").cast(pl.Float64))
    assert ends.min().item() > 0.9 * ends.max().item(), "credit is given in turn"


RING = """\
weirlab: 1
name: ring
network: {kind: xgft, children: [8, 4], parents: [1, 4], link: {rate: 100 Gbit/s, delay: 1 us}}
queues:
  switches:
    at: "@switches->*"
    kind: classes
    classes:
      rest: {class: 0, weight: 1, kind: drop-tail, limit: 1 MB}
      rdma:
        class: 3
        weight: 1
        kind: drop-tail
        limit: 9 MB
        marking: {k_min: 100 kB, k_max: 400 kB, p_max: 20 %}
buffers:
  all:
    at: "@switches"
    size: 9 MB
    ingress: {rdma: {classes: [3], alpha: 0.125, reserved: 4 kB, lossless: {}}}
traffic:
  job:
    from: host-[0-15]
    class: 3
    source: {kind: collective, operation: all-reduce, algorithm: ring, size: 3.2 MB}
    transport: {kind: rdma, congestion_control: {kind: dcqcn-sender}, recovery: go-back-n}
run: {duration: 3 ms, seed: 1}
measure:
  bandwidth: {kind: bus-bandwidth, of: job}
  held: {kind: pause-time, of: "*->*", class: 3}
"""


@pytest.mark.parametrize("control", ["dcqcn-sender", "hpcc", "dctcp"])
def test_flow_control_that_holds_nobody_costs_nothing(control):
    """Answers that wait at a host for the end of a packet do not keep the next one from its turn."""
    scenario = loads(RING.replace("dcqcn-sender", control))
    free = scenario.assign({"buffers.all.ingress.rdma.lossless": None})
    lossless, dropping = (
        dict(evaluate(run(each)).select("measure", "value").iter_rows()) for each in (scenario, free)
    )
    assert lossless == dropping
    assert lossless["held"] == 0
    assert lossless["bandwidth"] > 60e9


STORM = """\
weirlab: 1
name: classes-of-a-host
network: {kind: star, hosts: 3, link: {rate: 100 Gbit/s, delay: 1 us}}
queues:
  switches:
    at: "@switches->*"
    kind: classes
    classes:
      rest: {class: 0, weight: 1, kind: drop-tail, limit: 9 MB}
      rdma: {class: 3, weight: 1, kind: drop-tail, limit: 90 MB}
buffers:
  all:
    at: "@switches"
    size: 90 MB
    ingress:
      rdma: {classes: [3], alpha: 0.0002, reserved: 4 kB, lossless: {}}
      rest: {classes: [0], alpha: 1, size: 9 MB}
traffic:
  held:
    from: host-0
    to: host-1
    class: 3
    source: {kind: messages, sizes: {kind: fixed, size: 2 MB}, every: 1 s, gaps: {kind: constant}}
    transport: {kind: rdma, congestion_control: line-rate, window: 100 kB, recovery: go-back-n}
  free:
    from: host-0
    to: host-2
    source: {kind: messages, sizes: {kind: fixed, size: 2 MB}, every: 1 s, gaps: {kind: constant}}
    transport: {kind: rdma, congestion_control: line-rate, window: 100 kB, recovery: go-back-n}
events: {storm: {kind: storm, at: "host-1->*", classes: [3], every: 300 us, when: 10 us}}
run: {duration: 1 ms, seed: 1}
measure: {held: {kind: pause-time, of: host-0->*, class: 3}}
"""


def test_messages_of_a_class_that_is_held_keep_no_other_class_of_their_host_waiting() -> None:
    found = run(loads(STORM))
    assert evaluate(found).get_column("value").item() > 900e6
    held, free = found.records["messages"].sort("traffic").iter_rows(named=True)
    assert held["delivered_ps"] is None
    # The line carries what the held class sent before, but for the packet that waits, and is never idle.
    before = found.records["flows"].filter(flow=0).get_column("sent_frames").item() - 1
    packet_ps = (1000 + 48 + 20) * 80
    assert before > 50
    assert free["delivered_ps"] == free["ideal_ps"] + before * packet_ps
