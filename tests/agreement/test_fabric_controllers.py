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


FULL = 1.0001
"""A window begins and ends within a packet."""


@pytest.mark.parametrize(
    ("control", "queues", "shares", "jain"),
    [
        # Queues that never empty: all of the link. Seeds 1 to 4 found the same, but for DCQCN and NSCC.
        ({"kind": "dctcp"}, STEP, (0.999, FULL), 0.99),
        ({"kind": "swift"}, {}, (0.999, FULL), 0.999),
        # The lowest of seeds 1 to 4: 0.989 and 0.936.
        ({"kind": "dcqcn-sender"}, RAMP, (0.98, FULL), 0.92),
        # It promises no shares, and keeps the gradient of the queue at 0, not the queue.
        ({"kind": "timely", "line_rate": "100 Gbit/s", "delta": "100 Mbit/s"}, {}, (0.97, FULL), None),
        # From eta, 95 %, as W_AI is added to it.
        ({"kind": "hpcc", "w_ai": "500 B"}, {}, (0.95, 0.99), 0.999),
        # The lowest Jain's index of seeds 1 to 4: 0.980.
        ({"kind": "nscc"}, BDP_RAMP, (0.999, FULL), 0.97),
        # Credit for 99 % of the link.
        ({"kind": "line-rate"}, {}, (0.9899, 0.9902), 0.9999),
    ],
)
def test_senders_share_a_link_as_their_controller_promises(control, queues, shares, jain):
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
    assert shares[0] <= found["rate"] / whole <= shares[1]
    assert jain is None or jain < found["jain"] <= 1
