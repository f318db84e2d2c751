"""Limits that theory draws over the planes of a study."""

from __future__ import annotations

import pytest

from weirlab.analysis.boundaries import ESCAPE, LASTS, STABILITY, STARVES, Side, boundaries
from weirlab.analysis.queues import controlled_queues
from weirlab.scenario import load
from weirlab.theory.large import (
    SharedMemory,
    escape_time,
    starvation_gain,
    starvation_sampling,
)

GD = "control.bcn.reaction_point.gd"
GI = "control.bcn.reaction_point.gi"
SAMPLES = "control.bcn.congestion_point.sample_every"
DELAY = "control.bcn.congestion_point.notification.delay"
GAINS = ["0.0005", "0.001", "0.002", "0.004", "0.008", "0.016", "0.032"]
SPACINGS = ["320", "640", "1280", "2560", "5120", "10240"]


def side(factor, numbers, unit="", *, logarithmic=True):
    return Side(factor, {f"{text} {unit}".strip(): float(text) for text in numbers}, logarithmic)


def over(name, across, up, changes=None, **study):
    scenario = load(name).assign({"study": None, **(changes or {})})
    factors = {each.factor: list(each.levels) for each in (across, up)}
    return {
        each.label: each.pieces
        for each in boundaries(scenario.assign({"study": {"factors": factors, **study}}), across, up, {})
    }


def ends(pieces):
    return sorted({point for piece in pieces for point in piece})


@pytest.fixture(scope="module")
def zrl():
    return over("zrl-og-8", side(SAMPLES, SPACINGS, "B"), side(GD, GAINS))


def point_at(spacing, gd):
    scenario = load("zrl-og-8").assign({SAMPLES: f"{spacing:.6g} B", GD: f"{gd:.6g}"})
    return controlled_queues(scenario)[0].point


def test_the_limit_of_stability_is_where_the_delay_is_the_margin():
    delays = side(DELAY, ["50", "75", "100", "125", "150", "175", "200"], "us", logarithmic=False)
    found = over("bcn", delays, side(GI, ["3", "6", "12", "25", "50"]))
    assert set(found) == {STABILITY}
    on_levels = [(x, y) for x, y in ends(found[STABILITY]) if f"{y:g}" in ("3", "6", "12", "25", "50")]
    assert len(on_levels) == 5
    for delay_us, gi in on_levels:
        point = controlled_queues(load("bcn").assign({DELAY: f"{delay_us:.6g} us", GI: f"{gi:g}"}))[0].point
        assert point.delay_s == pytest.approx(point.sampled_delay_margin_s, rel=0.03)


def test_the_escape_ends_as_the_window_begins_where_its_limit_is(zrl):
    # Th and Lambda of the benchmark with 8 ports; 30 000 slots of 51.2 ns until the window.
    memory = SharedMemory(2040, 0.85 * 19531250)
    inner = [(x, y) for x, y in ends(zrl[ESCAPE]) if f"{x:g}" in SPACINGS]
    assert len(inner) >= 3
    for spacing, gd in inner:
        escape = escape_time(point_at(spacing, gd), memory)
        assert escape == pytest.approx(30_000 * 51.2e-9, rel=0.15)


def test_a_window_that_begins_before_the_hotspot_leaves_no_time_to_escape():
    def limit(begin):
        windows = {
            "measure.throughput.window": f"{begin} us .. 3276.8 us",
            "hotspots.hot.window": "1024 us .. 3276.8 us",
        }
        found = over("zrl-og-8", side(SAMPLES, SPACINGS, "B"), side(GD, GAINS), windows)
        return ends(found[ESCAPE])

    at_its_begin = limit("1024")
    assert limit("0") == at_its_begin
    assert limit("3072") != at_its_begin


def test_one_message_takes_a_flow_to_the_floor_on_the_limit_of_starvation(zrl):
    inner = [(x, y) for x, y in ends(zrl[STARVES]) if f"{x:g}" in SPACINGS]
    assert inner
    for spacing, gd in inner:
        point = point_at(spacing, gd)
        assert gd == pytest.approx(starvation_gain(point, SharedMemory(0, 0.85 * 19531250)), rel=0.03)


def test_the_limit_of_sampling_does_not_depend_on_the_gain(zrl):
    limit = 64 / starvation_sampling(point_at(3200, 0.002))
    assert [x for x, _ in ends(zrl[LASTS])] == pytest.approx([limit] * len(GAINS), rel=0.05)


def test_large_signals_are_told_of_output_generated_hotspots_only():
    found = over("zrl-ig", side(SAMPLES, SPACINGS[:3], "B"), side(GD, GAINS[:3]))
    assert not set(found) & {ESCAPE, STARVES, LASTS}


def test_without_a_memory_that_pauses_all_inputs_there_is_no_escape_to_tell():
    scopes = {"network.switch.memory.pause.scope": "input"}
    found = over("zrl-og-8", side(SAMPLES, SPACINGS, "B"), side(GD, GAINS), scopes)
    assert ESCAPE not in found
    assert STARVES in found


def test_nothing_is_drawn_where_nothing_is_controlled():
    name = "traffic.background.source.load"
    loads = side(name, ["50", "60", "70"], "%", logarithmic=False)
    memory = "network.switch.memory.size"
    assert over("zrl-none", loads, side(memory, ["2048", "4096", "8192"], "frames")) == {}


def test_the_limit_of_the_gain_is_found_where_there_is_hardly_any_delay():
    """K h (h + 2 T) = 4."""
    gains = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
    delays = side(DELAY, ["0", "0.05", "0.1"], "us", logarithmic=False)
    found = over("zrl-og", delays, side(GI, gains))
    limit = next(y for x, y in ends(found[STABILITY]) if x == 0.0)
    point = controlled_queues(load("zrl-og").assign({GI: f"{limit:.6g}"}))[0].point.increase
    assert point.gain * point.interval_s * (point.interval_s + 2 * point.lead_s) == pytest.approx(4, rel=0.05)
