"""The controllers of fabrics at a single bottleneck: what its senders get together, and how evenly."""

from __future__ import annotations

import pytest

from weirlab.evaluation import measured
from weirlab.runs import run
from weirlab.scenario import loads

SENDERS = 4
TEXT = f"""\
weirlab: 1
name: bottleneck
network: {{kind: star, hosts: {SENDERS + 1}, link: {{rate: 100 Gbit/s, delay: 1 us}}}}
queues:
  all:
    at: "@switches->*"
    kind: classes
    classes:
      data: {{class: 0, weight: 1, kind: drop-tail, limit: 1 MB}}
      control: {{class: 6, kind: drop-tail, limit: 1 MB}}
run: {{duration: 40 ms, seed: 1}}
record: {{rates: {{flow: "*", by: flow, every: 1 ms}}}}
measure:
  jain: {{kind: jain-fairness, of: "*", window: 20 ms .. 40 ms}}
  rate: {{kind: delivered-rate, of: "*", window: 20 ms .. 40 ms}}
"""
MARKED = "queues.all.classes.data.marking"
STEP = {MARKED: {"k_min": "100 kB"}}
RAMP = {MARKED: {"k_min": "100 kB", "k_max": "400 kB", "p_max": "20 %"}}
BDP_RAMP = {MARKED: {"k_min": "10 kB", "k_max": "40 kB", "when": "departure"}}


@pytest.mark.parametrize(
    ("control", "queues", "least", "jain"),
    [
        ({"kind": "dctcp"}, STEP, 0.99, 0.99),
        ({"kind": "dcqcn-sender"}, RAMP, 0.9, 0.9),
        ({"kind": "swift"}, {}, 0.99, 0.99),
        ({"kind": "timely", "line_rate": "100 Gbit/s", "delta": "100 Mbit/s"}, {}, 0.8, None),
        ({"kind": "hpcc", "w_ai": "500 B"}, {}, 0.93, 0.99),
        ({"kind": "nscc"}, BDP_RAMP, 0.99, 0.95),
        ({"kind": "line-rate"}, {}, 0.98, 0.9999),
    ],
)
def test_senders_share_a_link_as_their_controller_promises(control, queues, least, jain):
    transport = {"kind": "rdma", "recovery": "selective", "congestion_control": control}
    if control["kind"] == "line-rate":
        transport["credit"] = {}
    entries = {
        f"traffic.sender-{host}": {
            "from": f"host-{host}",
            "to": f"host-{SENDERS}",
            "start": f"{50 * host} us",
            "source": {"kind": "messages", "sizes": {"kind": "fixed", "size": "1 GB"}, "every": "1 s"}
            | {"gaps": {"kind": "constant"}, "packet": {"payload": "4096 B", "headers": "64 B"}},
            "transport": {**transport, "answers": {"class": 6}},
        }
        for host in range(SENDERS)
    }
    scenario = loads(TEXT, {**queues, **entries})
    found = dict(measured(run(scenario).records, scenario).select("measure", "value").iter_rows())
    whole = 100e9 * 4160 / 4180
    assert least * whole < found["rate"] <= whole * 1.0001
    assert jain is None or jain < found["jain"] <= 1
