"""What a campaign measures, in which order, and what it refuses."""

import pytest

from weirlab.bulk import Load, Place, Probe, plan_of
from weirlab.errors import UnsupportedError
from weirlab.scenario import load, loads

FILE = """weirlab: 1
name: small
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 10 Mbit/s, delay: 1 ms}}
traffic:
  bulk:
    from: a
    to: b
    streams: 8
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}, window: 64 KiB}
  ping: {from: b, to: a, source: {kind: ping, every: 1 s}}
campaign:
  cycles: 3
  cycle: [{name: loaded, run: [bulk, ping], for: 20 s}, {name: unloaded, run: ping, for: 10 s}]
study:
  factors: {traffic.bulk.streams: [1, 20, 5, 12]}
"""
POINT = FILE.partition("study:")[0]
"""The same without a study."""


def complaint(before, after):
    with pytest.raises(UnsupportedError) as caught:
        plan_of(loads(POINT.replace(before, after)))
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_a_cycle_takes_each_point_loaded_and_unloaded_in_turn():
    plan = plan_of(loads(FILE))
    assert [dict(levels) for levels in plan.levels] == [
        {"traffic.bulk.streams": name} for name in ("1", "20", "5", "12")
    ]
    assert plan.places()[:4] == [Place(0, 0, 0), Place(0, 0, 1), Place(0, 1, 0), Place(0, 1, 1)]
    assert len(plan.places()) == 3 * 4 * 2
    loaded, unloaded = (plan.measured(Place(0, 1, step)) for step in (0, 1))
    assert loaded.load == Load(True, 20, 65536, "reno", loads(FILE).traffic["bulk"].transport)
    assert loaded.probe == unloaded.probe == Probe(False, 1.0, 56, 20.0)
    assert unloaded.load is None
    assert (loaded.duration_s, unloaded.duration_s) == (20.0, 10.0)


def test_a_random_order_is_another_in_each_cycle_and_the_same_each_time():
    text = FILE.replace("cycles: 3", "cycles: 30\n  order: random")
    plan = plan_of(loads(text))
    orders = [
        tuple(p.point for p in plan.places() if p.cycle == cycle and p.step == 0) for cycle in range(30)
    ]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(set(orders)) > 5
    assert plan.places() == plan_of(loads(text)).places()
    assert plan.places() != plan_of(loads(text + "run: {seed: 2}\n")).places()


def test_each_measurement_has_chance_of_its_own():
    plan = plan_of(loads(FILE))
    seeds = {plan.seed(place) for place in plan.places()}
    assert len(seeds) == len(plan.places())
    assert plan.seed(Place(1, 2, 0)) == plan_of(loads(FILE)).seed(Place(1, 2, 0))


def test_without_a_study_there_is_one_point():
    plan = plan_of(loads(POINT))
    assert [dict(levels) for levels in plan.levels] == [{}]


def test_a_factor_may_change_the_path():
    text = FILE.replace("traffic.bulk.streams: [1, 20, 5, 12]", "network.link.rate: [1 Mbit/s, 2 Mbit/s]")
    rates = [path.hops["link"].forward.rate.bps for path in plan_of(loads(text)).paths]
    assert rates == [10**6, 2 * 10**6]


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        (
            "kind: reno",
            "kind: rapid, n: 4, rho: 2, estimator: {kind: gap, epsilon: 1 us}",
            ["traffic.bulk.transport"],
        ),
        (
            "source: {kind: ping, every: 1 s}",
            "source: {kind: constant, rate: 1 Mbit/s, frame_size: 64 B}",
            ["traffic.ping.source"],
        ),
        ("source: {kind: bulk}", "source: {kind: bulk, stop: 1 s}", ["traffic.bulk.transport"]),
        ("streams: 8", "streams: 8\n    stop: 1 s", ["traffic.bulk.stop"]),
    ],
)
def test_what_real_stacks_have_not_is_refused_with_its_place(before, after, messages):
    told = complaint(before, after)
    assert [each.partition(": ")[0] for each in told] == messages


def test_two_transfers_at_a_time_are_refused():
    text = POINT.replace(
        "  ping:",
        "  more: {from: a, to: b, source: {kind: bulk}, "
        "transport: {kind: tcp, congestion_control: {kind: cubic}}}\n  ping:",
    ).replace("[bulk, ping]", "[bulk, more]")
    with pytest.raises(UnsupportedError, match="more than one bulk transfer"):
        plan_of(loads(text))


def test_a_campaign_needs_an_emulated_path():
    with pytest.raises(UnsupportedError, match="needs a path"):
        plan_of(loads(FILE.replace("testbed: {kind: netns, path: emulator}\n", "")))


def test_the_ready_made_campaign_keeps_the_product_of_streams_and_windows():
    plan = plan_of(load("windows-against-streams"))
    assert {steps[0].load.streams * steps[0].load.window_bytes for steps in plan.steps} == {2 * 256 * 1024}
