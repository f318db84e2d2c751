"""What happens in the course of a run = what can be worked out: rates, buffers, holds, links that go down."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from weirlab.runs import simulate
from weirlab.scenario import loads

TX_MS = 0.12
"""Of 1500 B at 100 Mbit/s."""

STAR = """weirlab: 1
name: events
network: {kind: star, hosts: 3, link: {rate: 100 Mbit/s, delay: 10 us, framing: none}}
queues: {out: {at: "switch-0->host-2", QUEUE}}
traffic:
  load: {from: host-0, to: host-2, source: {kind: constant, load: LOAD, frame_size: 1500 B}}
run: {duration: 100 ms}
record:
  arrivals: {flow: load, every: 1 ms}
  queue: {queue: "switch-0->host-2", every: 1 ms}
events: {EVENTS}
"""

RING = """weirlab: 1
name: ring
network:
  kind: graph
  link: {rate: 100 Mbit/s, delay: 100 us, framing: none}
  nodes: {a: {kind: host}, b: {kind: host}, s: {kind: switch, count: 4}}
  links:
    first: {join: [a, s-0]}
    last: {join: [b, s-3]}
    short: {join: [s-0, s-3]}
    one: {join: [s-0, s-1]}
    two: {join: [s-1, s-2]}
    three: {join: [s-2, s-3]}
traffic:
  load: {from: a, to: b, source: {kind: constant, load: 50 %, frame_size: 1500 B}, TRANSPORT}
run: {duration: 100 ms}
record: {arrivals: {flow: load, every: 1 ms}}
events: {EVENTS}
"""


def run(text: str, **parts: str) -> Any:
    for name, value in parts.items():
        text = text.replace(name, value)
    return simulate(loads(text), seeds=[1])


def between(records: Any, table: str, column: str, low_ms: float, high_ms: float) -> pl.Series:
    """Rows of the intervals that end after ``low_ms`` and not after ``high_ms``."""
    t_ms = pl.col("t_ps") / 1e9
    return records[table].filter((t_ms > low_ms + 1e-9) & (t_ms <= high_ms + 1e-9))[column]


def drops(records: Any) -> dict[str, int]:
    named = records["drops"].join(records["cause_names"], on="cause")
    return dict(named.group_by("name").agg(pl.col("frames").sum()).iter_rows())


def test_a_rate_changes_what_is_carried_and_comes_back() -> None:
    events = 'slow: {kind: rate, at: "switch-0->host-2", when: 20 ms, until: 60 ms, rate: 25 Mbit/s}'
    records = run(STAR, QUEUE="kind: drop-tail, limit: 50 kB", LOAD="50 %", EVENTS=events)
    rate = {
        name: between(records, "deliveries", "bytes", *window).sum() * 8 / (window[1] - window[0]) / 1e3
        for name, window in {"before": (5, 20), "slow": (30, 60), "after": (80, 100)}.items()
    }
    frame = 1500 * 8 / 15 / 1e3
    assert rate["before"] == pytest.approx(50, abs=frame)
    assert rate["slow"] == pytest.approx(25, abs=frame)
    assert rate["after"] == pytest.approx(50, abs=frame)
    full = between(records, "intervals", "queue_max_bytes", 40, 59)
    assert full.min() == full.max() == 49_500, "33 frames of 1500 B"
    assert drops(records).keys() == {"queue-full"}


def test_a_buffer_that_shrinks_keeps_what_waits_and_admits_less() -> None:
    slow = 'slow: {kind: rate, at: "switch-0->host-2", when: 0 ms, rate: 25 Mbit/s}'
    less = 'less: {kind: buffer, at: "switch-0->host-2", when: 50 ms, until: 80 ms, limit: 5 frames}'
    records = run(STAR, QUEUE="kind: drop-tail, limit: 20 frames", LOAD="50 %", EVENTS=f"{slow}, {less}")
    levels = {
        name: between(records, "intervals", "queue_bytes", *window).max() // 1500
        for name, window in {
            "before": (30, 50),
            "shrinking": (50, 51),
            "less": (60, 80),
            "after": (90, 100),
        }.items()
    }
    assert levels == {"before": 20, "shrinking": 18, "less": 5, "after": 20}


def test_a_hold_keeps_frames_for_as_long_as_it_lasts() -> None:
    hold = 'hold: {kind: hold, at: "switch-0->host-2", when: 20 ms, until: 30 ms}'
    records = run(STAR, QUEUE="kind: drop-tail, limit: unlimited", LOAD="50 %", EVENTS=hold)
    assert between(records, "deliveries", "frames", 21, 30).sum() == 0
    # What waits for 10 ms at half of the rate is gone after another 10 ms.
    assert between(records, "deliveries", "frames", 31, 39).sum() == pytest.approx(8 / TX_MS, abs=1)
    assert between(records, "deliveries", "frames", 50, 90).sum() == pytest.approx(20 / TX_MS, abs=1)
    port = (
        records["ports"].join(records["port_names"], on="port").filter(pl.col("name") == "switch-0->host-2")
    )
    assert port["paused_ps"].item() == 10 * 10**9
    assert not drops(records)


def test_a_hold_of_one_class_lets_the_others_pass() -> None:
    queue = (
        "kind: classes, classes: {low: {class: 0, kind: drop-tail, limit: unlimited}, "
        "high: {class: 7, kind: drop-tail, limit: unlimited}}"
    )
    text = STAR.replace(
        "run:",
        "  high: {from: host-1, to: host-2, class: 7, "
        "source: {kind: constant, load: 20 %, frame_size: 500 B}}\nrun:",
        1,
    )
    hold = 'hold: {kind: hold, at: "switch-0->host-2", when: 20 ms, until: 30 ms, classes: [7]}'
    records = run(text, QUEUE=queue, LOAD="50 %", EVENTS=hold)
    held = records["port_classes"].filter(pl.col("class") == 7)
    assert held["held_ps"].item() == 10 * 10**9
    # 500 B are a third of 1500 B: five frames a ms wait up to 10 ms.
    assert held["queue_max_bytes"].item() == pytest.approx(50 * 500, abs=500)
    assert between(records, "deliveries", "frames", 20, 30).sum() == pytest.approx(5 / TX_MS, abs=1)
    assert not drops(records)


def test_a_link_that_is_down_loses_what_is_on_it_what_waits_and_what_comes() -> None:
    events = 'cut: {kind: link-down, at: "s-0->s-3", when: 20 ms, until: 50 ms}'
    records = run(RING, EVENTS=events, TRANSPORT="transport: {kind: raw}")
    assert between(records, "deliveries", "frames", 21, 50).sum() == 0
    assert between(records, "deliveries", "frames", 51, 100).sum() == pytest.approx(49 / 2 / TX_MS, abs=1)
    (lost,) = drops(records).items()
    assert lost == ("link-down", pytest.approx(30 / 2 / TX_MS, abs=2))
    flow = records["flows"]
    assert (
        flow["sent_frames"] == flow["delivered_frames"] + flow["dropped_frames"] + flow["live_frames"]
    ).all()


def test_switches_that_know_forward_over_the_way_that_is_left_and_return() -> None:
    events = 'cut: {kind: link-down, at: "s-0->s-3", when: 20 ms, until: 50 ms, reroute: 2 ms}'
    records = run(RING, EVENTS=events, TRANSPORT="transport: {kind: raw}")
    assert drops(records) == {"link-down": pytest.approx(2 / 2 / TX_MS, abs=2)}, "until switches know"
    assert between(records, "deliveries", "frames", 23, 52).sum() == pytest.approx(29 / 2 / TX_MS, abs=2)
    ports = records["ports"].join(records["port_names"], on="port")
    frames = dict(ports.select("name", "frames").iter_rows())
    around = frames["s-0->s-1"]
    assert around == frames["s-1->s-2"] == frames["s-2->s-3"]
    assert around == pytest.approx(30 / 2 / TX_MS, abs=2), "from 22 to 52 ms"
    # Two links more are two transmission times and two delays more.
    worst = records["flows"]["delay_max_ps"].item()
    assert worst == pytest.approx((5 * TX_MS + 5 * 0.1) * 1e9, rel=1e-9)


def test_tcp_survives_a_link_that_goes_down() -> None:
    source = "source: {kind: constant, load: 50 %, frame_size: 1500 B}, TRANSPORT"
    text = RING.replace(
        source, "source: {kind: bulk}, transport: {kind: tcp, congestion_control: reno, min_rto: 10 ms}"
    ).replace("duration: 100 ms", "duration: 1 s")
    cut = 'cut: {kind: link-down, at: "s-3->s-0", when: 200 ms, until: 400 ms}'
    records = run(text, EVENTS=cut)
    assert between(records, "deliveries", "frames", 205, 400).sum() == 0
    assert between(records, "deliveries", "bytes", 800, 1000).sum() * 8 / 0.2 / 1e6 == pytest.approx(
        100, rel=0.05
    )
    assert records["connections"]["timeouts"].item() >= 2


def tables(records: Any) -> dict[str, Any]:
    """What a run shows, but how often something was held."""
    flows = records["flows"].rows()
    return {"flows": flows, "deliveries": records["deliveries"].rows(), "drops": drops(records)}


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize(
    "kind",
    [
        'kind: link-down, at: "switch-0->host-2"',
        'kind: rate, at: "switch-0->host-2", rate: 25 Mbit/s',
        'kind: buffer, at: "switch-0->host-2", limit: 5 frames',
        'kind: hold, at: "switch-0->host-2"',
    ],
)
def test_two_events_that_touch_are_one_that_lasts_longer(kind: str, names: tuple[str, str]) -> None:
    first, second = names
    parts = {"QUEUE": "kind: drop-tail, limit: 20 frames", "LOAD": "50 %"}
    slow = "" if "rate" in kind else ', s: {kind: rate, at: "switch-0->host-2", rate: 40 Mbit/s, when: 1 ms}'
    earlier, later = (
        f"{first}: {{{kind}, when: 10 ms, until: 30 ms}}",
        f"{second}: {{{kind}, when: 30 ms, until: 60 ms}}",
    )
    whole = run(STAR, EVENTS=f"a: {{{kind}, when: 10 ms, until: 60 ms}}{slow}", **parts)
    none = run(STAR, EVENTS=f"a: {{{kind}, when: 99 ms}}{slow}", **parts)
    assert tables(whole) != tables(none)
    for events in (f"{earlier}, {later}", f"{later}, {earlier}"):
        assert tables(run(STAR, EVENTS=events + slow, **parts)) == tables(whole)


def test_a_link_of_which_switches_know_reveals_no_other() -> None:
    cut = 'cut: {kind: link-down, at: "s-0->s-3", when: 20 ms, until: 50 ms}'
    other = 'other: {kind: link-down, at: "s-1->s-2", when: 21 ms, until: 40 ms, reroute: 10 us}'
    alone = run(RING, EVENTS=cut, TRANSPORT="transport: {kind: raw}")
    both = run(RING, EVENTS=f"{cut}, {other}", TRANSPORT="transport: {kind: raw}")
    assert drops(both) == drops(alone)
    assert drops(alone)["link-down"] > 100


def test_a_link_that_is_up_again_before_switches_learn_is_not_avoided() -> None:
    cut = 'cut: {kind: link-down, at: "s-0->s-3", when: 20 ms, until: 30 ms, reroute: REROUTE}'
    around = {}
    for reroute in ("5 ms", "15 ms"):
        records = run(RING, EVENTS=cut.replace("REROUTE", reroute), TRANSPORT="transport: {kind: raw}")
        ports = records["ports"].join(records["port_names"], on="port")
        frames = dict(ports.select("name", "frames").iter_rows())
        lost = dict(ports.select("name", "lost").iter_rows())
        around[reroute] = frames["s-0->s-1"]
        assert 1 <= lost["s-0->s-3"] <= 2, "what was on the link"
        by_port = records["ports"].select(pl.col("drops") + pl.col("lost")).sum().item()
        assert by_port == records["drops"]["frames"].sum() == records["flows"]["dropped_frames"].sum()
    assert around["5 ms"] > 0
    assert around["15 ms"] == 0


def test_frames_that_come_to_a_link_that_is_down_are_drops_of_their_class() -> None:
    queue = (
        "kind: classes, classes: {low: {class: 0, kind: drop-tail, limit: unlimited}, "
        "high: {class: 7, kind: drop-tail, limit: unlimited}}"
    )
    text = STAR.replace(
        "run:",
        "  high: {from: host-1, to: host-2, class: 7, "
        "source: {kind: constant, load: 20 %, frame_size: 500 B}}\nrun:",
        1,
    )
    down = 'down: {kind: link-down, at: "switch-0->host-2", when: 20 ms, until: 50 ms}'
    records = run(text, QUEUE=queue, LOAD="50 %", EVENTS=down)
    port = (
        records["ports"].join(records["port_names"], on="port").filter(pl.col("name") == "switch-0->host-2")
    )
    classes = records["port_classes"]
    assert classes["drops"].sum() == port["drops"].item()
    by_class = dict(classes.select("class", "drops").iter_rows())
    assert by_class[0] == pytest.approx(15 / TX_MS, abs=3)
    assert by_class[7] == pytest.approx(30 * 5, abs=3)
