"""Hotspots against the printed figures, and laws of sharing."""

import math

import pytest
from hypothesis import given, strategies as st

from weirlab.theory.hotspot import (
    Hotspot,
    degree_class,
    fair_shares,
    input_generated,
    output_generated,
    severity_class,
)


@pytest.mark.parametrize(("ports", "printed"), [(8, 0.77), (32, 0.83)])
def test_an_output_generated_hotspot_lets_the_other_outputs_work(ports, printed):
    spot = output_generated(ports, load=0.85, service=0.2)
    assert spot.throughput_max == pytest.approx(0.85 * (ports - 1) / ports + 0.2 / ports)
    assert spot.throughput_max == pytest.approx(printed, abs=0.005)
    assert spot.severity == pytest.approx(4.25)
    assert spot.degree == 1


def test_an_input_generated_hotspot_has_the_printed_maximum():
    assert input_generated(32, load=0.85, hot_sources=8).throughput_max == pytest.approx(0.65, abs=0.005)


@pytest.mark.parametrize("ports", [8, 32])
def test_without_control_everybody_gets_the_rate_of_the_hot_output(ports):
    spot = output_generated(ports, load=0.85, service=0.2)
    assert spot.throughput_without_control == pytest.approx(0.2)


def test_without_control_the_printed_formula_counts_the_own_port():
    """1 / (HSD (N - 1) / N + 1); with load to the 31 others alone, 1 / (8 + 24 / 31) instead."""
    own = input_generated(32, load=0.85, hot_sources=8, own_port=True)
    others = input_generated(32, load=0.85, hot_sources=8)
    assert own.throughput_without_control == pytest.approx(1 / (8 * 31 / 32 + 1))
    assert others.throughput_without_control == pytest.approx(1 / (8 + 24 / 31))


def test_the_printed_863_per_cent_counts_the_own_port_and_is_moderate():
    own = input_generated(32, load=0.85, hot_sources=8, own_port=True)
    assert own.severity == pytest.approx(8.6375)
    assert severity_class(own.severity) == "moderate"
    assert input_generated(32, load=0.85, hot_sources=8).severity == pytest.approx(8 + 24 * 0.85 / 31)


def test_classes_end_where_the_source_says():
    severities = (1.0, 1.01, 2.0, 2.01, 10.0, 10.01)
    assert [severity_class(s) for s in severities] == [
        "none",
        "mild",
        "mild",
        "moderate",
        "moderate",
        "severe",
    ]
    degrees = (0.09, 0.1, 0.2, 0.6, 0.61, 0.9, 0.91)
    assert [degree_class(d) for d in degrees] == [
        "small",
        "between small and medium",
        "medium",
        "medium",
        "between medium and large",
        "between medium and large",
        "large",
    ]


def test_few_sources_alone_send_to_a_hot_output_of_small_degree():
    spot = output_generated(32, load=0.85, service=0.2, hot_sources=3)
    assert sum(row[0] > 0 for row in spot.demands) == 2  # source 0 does not send to itself
    assert all(math.fsum(row) == pytest.approx(0.85) for row in spot.demands)


def test_two_hotspots_hold_everybody_to_the_worse_one():
    rows = output_generated(8, load=0.85, service=0.2).demands
    both = Hotspot(rows, (0.2, 0.1, *[1.0] * 6), 0, 8)
    assert both.throughput_without_control == pytest.approx(0.1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 8))
def test_fair_shares_use_all_and_favour_nobody(demands, total):
    shares = fair_shares(demands, total)
    assert math.fsum(shares) == pytest.approx(min(total, math.fsum(demands)), abs=1e-9)
    assert all(share <= demand for share, demand in zip(shares, demands, strict=True))
    highest = max(shares)
    assert all(
        share == pytest.approx(min(demand, highest), abs=1e-9)
        for share, demand in zip(shares, demands, strict=True)
    )


@given(st.integers(2, 40), st.floats(0.05, 1.0), st.floats(0.05, 1.0))
def test_control_never_makes_throughput_worse(ports, load, service):
    spot = output_generated(ports, load=load, service=service)
    assert spot.throughput_without_control <= spot.throughput_max + 1e-9
