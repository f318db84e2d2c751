"""Queues that measure: what a spec says of them, and their stability."""

import pytest

from weirlab import spec as core
from weirlab.analysis.hotspots import hotspot_facts
from weirlab.analysis.queues import controlled_queues, hot_ones, queues_in
from weirlab.analysis.ranking import rank_queues
from weirlab.analysis.stability import loops_of, over_plane, read_axes
from weirlab.errors import InputError
from weirlab.scenario import load, loads
from weirlab.scenario.network.layout import layout_of
from weirlab.scenario.resolve import translated
from weirlab.theory.bcn import BcnPoint
from weirlab.theory.qcn import QcnPoint

# Hosts behind an edge switch each, all of these at the core switch: the network of the calibration.
CALIBRATION = """\
weirlab: 1
name: calibration
network:
  kind: graph
  link: {rate: 10 Gbit/s, delay: 500 ns, framing: none}
  switch: {latency: 1 us}
  nodes: {ep: {kind: host, count: 5, response: 1 us}, es: {kind: switch, count: 5}, cs: {kind: switch}}
  links: {edge: {join: ["ep-*", "es-*"], pair: by-index}, core: {join: ["es-*", cs]}}
traffic:
  load: {from: "ep-[0-3]", to: ep-4, source: {kind: bernoulli, load: 49 %, frame_size: 1500 B}}
run: {duration: 1 ms}
"""
BCN = {
    "congestion_point": {
        "at": "cs->es-4",
        "q_eq": "24 kB",
        "unit": "1500 B",
        "w": 2,
        "sample_every": "150 kB",
        "notification": {"frame_size": "64 B", "delay": "1 us"},
    },
    "reaction_point": {
        "at": "ep-[0-3]",
        "gi": 12.42,
        "gd": 6.09e-3,
        "ru": "1 Mbit/s",
        "min_rate": "1 Mbit/s",
    },
}
QCN = {
    "congestion_point": {
        "at": "cs->es-4",
        "q_eq": "33 kB",
        "w": 2,
        "sample_every": "150 kB",
        "notification": {"frame_size": "64 B", "delay": "1 us"},
    },
    "reaction_point": {"at": "ep-[0-3]", "gd": 1 / 128},
}


def spec_with(control: dict, **changes: object) -> core.Spec:
    """The spec of the calibration under a scheme, with changes to it by path."""
    (scheme,) = control
    of_scheme = {f"control.{scheme}.{path}": value for path, value in changes.items()}
    return translated(loads(CALIBRATION, {"control": control, **of_scheme})).spec


SPEC = spec_with({"bcn": BCN})


def test_the_queue_of_the_calibration_has_the_parameters_of_the_deck():
    (queue,) = queues_in(SPEC)
    point = queue.point
    assert isinstance(point, BcnPoint)
    assert queue.port == "cs->es-4"
    assert point.service_fps == pytest.approx(10e9 / 12_000)
    assert point.flows == 4
    assert point.sampling == 0.01
    assert point.q_eq_frames == 16
    assert point.ru_fps == pytest.approx(1e6 / 12_000)
    assert queue.severity == pytest.approx(4 * 0.49)
    assert queue.classes == "mild, large"


def test_the_delay_of_the_loop_is_the_way_of_a_notification_and_of_a_frame():
    """Back 1 us + 2 x (51.2 ns + 0.5 us) + 1 us at the edge + 1 us response; forth 2 x (1.2 + 0.5) + 2 us."""
    (queue,) = queues_in(SPEC)
    assert queue.point.delay_s == pytest.approx(4.1024e-6 + 5.4e-6)


def test_gains_per_page_are_gains_per_frame_of_as_many_pages():
    gains = {"reaction_point.gi": 12.42 * 64 / 1500, "reaction_point.gd": 6.09e-3 * 64 / 1500}
    spec = spec_with({"bcn": BCN}, **gains, **{"congestion_point.unit": "64 B"})
    (pages,), (frames,) = queues_in(spec), queues_in(SPEC)
    assert pages.point.gi == pytest.approx(frames.point.gi)
    assert pages.point.gd == pytest.approx(frames.point.gd)


def test_both_loops_of_the_calibration_are_stable_with_their_known_margins():
    (queue,) = queues_in(SPEC)
    increase, decrease = loops_of(queue.point)
    assert (increase.name, decrease.name) == ("increase", "decrease")
    assert increase.delay_margin_s == pytest.approx(203e-6, abs=1e-6)
    assert decrease.delay_margin_s == pytest.approx(195e-6, abs=1e-6)
    assert increase.stable
    assert decrease.stable
    assert decrease.decisive_s == decrease.sampled_delay_margin_s


def test_a_port_that_no_limited_flow_passes_is_left_out():
    spec = spec_with({"bcn": BCN}, **{"congestion_point.at": ["cs->es-4", "es-4->cs", "cs->es-0"]})
    assert [queue.port for queue in queues_in(spec)] == ["cs->es-4"]


def test_an_output_that_serves_less_is_hotter():
    port = [each.name for each in layout_of(SPEC.network).ports].index("cs->es-4")
    slow = core.Service(port=port, rate_bps=2 * 10**9, from_ps=0, to_ps=10**6)
    switching = core.Switching(memories=[], adapters=[], services=[slow], egress=[])
    (queue,) = queues_in(core.Spec(**{**vars(SPEC), "switching": switching}))
    assert queue.severity == pytest.approx(5 * 4 * 0.49)
    assert queue.classes == "moderate, large"


def test_an_upstream_queue_sees_the_flows_of_its_own_host_only():
    spec = spec_with({"bcn": BCN}, **{"congestion_point.at": "es-0->cs"})
    (queue,) = queues_in(spec)
    assert queue.port == "es-0->cs"
    assert queue.point.flows == 1
    assert queue.severity == pytest.approx(0.49)


def test_the_queue_of_qcn_has_the_parameters_of_the_standard():
    (queue,) = queues_in(spec_with({"qcn": QCN}))
    point = queue.point
    assert isinstance(point, QcnPoint)
    assert point.q_eq_frames == 22
    assert point.gd * 5 * 22 == pytest.approx(63 / 128)
    assert point.counter_frames == 100
    (loop,) = loops_of(point)
    assert loop.stable


def test_the_plane_of_the_calibration_turns_unstable_at_the_sampled_margin():
    (queue,) = queues_in(SPEC)
    plane = over_plane(queue, read_axes("w=1..2:2,delay=0us..300us:31"))
    column = plane.values[:, 1]
    assert column[0] == pytest.approx(161.3e-6, abs=0.1e-6)
    ends = [end for piece in plane.contour(0.0) for end in piece]
    assert max(ends) == (2.0, pytest.approx(161.3e-6, abs=0.1e-6))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("p=0.01..0.1", "a plane has two parameters"),
        ("p=0.01..0.1,p=0.2..0.3", "'p' is given twice"),
        ("pp=0.01..0.1,gd=1..2", "no parameter is called 'pp'"),
        ("p=0.1,gd=1..2", "write a range, such as p=LOW..HIGH"),
        ("p=0.1..0.01,gd=1..2", "the first end is less than the second"),
        ("p=0.1..2,gd=1..2", "a probability is at most 1"),
        ("gd=0..2,p=0.1..0.2", "'gd' is more than 0"),
        ("delay=1..2,p=0.1..0.2", "delay=1..2"),
        ("gd=x..2,p=0.1..0.2", "write a number (got 'x')"),
        ("gd=1..2:1,p=0.1..0.2", "2 to 500 levels (got '1')"),
        ("gd=1..2:101,p=0.1..0.2:50", "at most 5000 cells; write fewer levels (got 101 x 50 = 5050)"),
    ],
)
def test_what_is_no_plane_is_told(text, told):
    with pytest.raises(InputError) as caught:
        read_axes(text)
    assert told in str(caught.value)


def test_levels_stand_at_equal_ratios_over_a_decade():
    wide, narrow = read_axes("p=0.001..0.1:3,gd=0.01..0.03:3")
    assert wide.levels == pytest.approx((0.001, 0.01, 0.1))
    assert wide.logarithmic
    assert narrow.levels == pytest.approx((0.01, 0.02, 0.03))
    assert not narrow.logarithmic


def test_a_parameter_that_the_scheme_lacks_is_refused():
    (queue,) = queues_in(spec_with({"qcn": QCN}))
    with pytest.raises(InputError, match="QCN has no parameter 'ru'"):
        over_plane(queue, read_axes("ru=1 Mbit/s..2 Mbit/s:2,p=0.01..0.02:2"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hotspots.rush.degree": "50 %"},
        {"run.duration": "6553.6 us"},  # the background that comes back afterwards is no part of the hotspot
    ],
)
def test_the_queue_of_an_input_generated_hotspot_is_that_of_its_makers(changes):
    scenario = load("zrl-ig").assign(changes)
    (facts,) = hotspot_facts(scenario)
    (queue, *_) = hot_ones(controlled_queues(scenario))
    assert queue.severity == pytest.approx(facts.severity)
    assert queue.degree == pytest.approx(facts.degree)
    assert queue.sources == queue.point.flows == facts.sources
    assert queue.classes == f"{facts.severity_class}, {facts.degree_class}"


def test_an_output_generated_hotspot_asks_as_much_more_than_an_input_generated_one_as_theory_says():
    """HSD/mu: 31 / 0.2 against 8 / 1."""
    og, ig = (
        rank_queues(s, hot_ones(controlled_queues(s)))[0].demand for s in (load("zrl-og"), load("zrl-ig"))
    )
    assert og.increase / ig.increase == pytest.approx(155 / 8)
    assert og.decrease / ig.decrease == pytest.approx((155 / 8) ** 2)


def test_each_of_several_hotspots_has_the_queue_of_its_own_time():
    scenario = load("zrl-ig").assign(
        {
            "hotspots.rush.window": "204.8 us .. 1024 us",
            "hotspots.late": {
                "kind": "input-generated",
                "at": "host-9",
                "flows": [{"from": "host-[20-23]", "load": "50 %"}],
                "window": "1536 us .. 3276.8 us",
            },
            "measure.recovery": None,
            "measure.rjfi": None,
        }
    )
    hot = {queue.port: queue for queue in hot_ones(controlled_queues(scenario))}
    assert set(hot) == {"switch-0->host-0", "switch-0->host-9"}
    for facts in hotspot_facts(scenario):
        queue = hot[f"switch-0->{facts.at}"]
        assert queue.severity == pytest.approx(facts.severity)
        assert queue.sources == facts.sources
