"""Numbers as they were published, in one TOML file per publication part, with the type of what is used of
each."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import NotRequired, TypeVar

from typing_extensions import TypedDict

from weirlab.documents import typed

T = TypeVar("T")
Number = int | float
"""As it was printed: the digits of a whole number say how exact it is."""


class Bcn(TypedDict):
    """`bcn-calibration`."""

    runs: int
    tables: dict[str, dict[str, dict[str, tuple[Number, Number, Number, Number]]]]
    """By measure, drift and scheme: least, mean, greatest and standard deviation."""


class RoundTrip(TypedDict):
    """Of pings [ms]."""

    min: Number
    avg: Number


class Cycles(TypedDict):
    """What the cycles of a configuration gave."""

    site: str
    streams: int
    window_kbytes: int
    median_mbps: Number
    iqr_mbps: Number
    loaded_rtt_ms: RoundTrip
    unloaded_rtt_ms: RoundTrip


class BulkFindings(TypedDict):
    """Statements of the text."""

    streams_order: list[int]
    linear_growth_until_streams: int
    rtt_rises_above_streams: int
    cern_aggregate_range_mbps: tuple[Number, Number]
    in2p3_rtt_knee_mbps: Number
    rv_at_most_10_percent_of_time: Number
    cross_traffic_below_for_rv_proportional_to_drtt: Number
    rp_vs_drtt_r2_above: Number
    cpu_percent_per_mbps: list[Number]
    cpu_r2_kernel: Number
    cpu_r2_user: Number
    cpu_durations_s: list[Number]


class Bulk(TypedDict):
    """`bulk-throughput`."""

    windows_streams: list[Cycles]
    rate_variability_percent: dict[str, dict[str, Number]]
    findings: BulkFindings


class MdrSettings(TypedDict):
    """Of the searches."""

    maximum_transmit_rate_mpps: dict[str, Number]
    minimum_transmit_rate_mpps: Number
    final_relative_width: Number
    binary_warmup_s: Number
    pdr_loss_ratio: Number


class MdrSearch(TypedDict):
    """`mdr-search`."""

    runs: int
    settings: MdrSettings
    suites: dict[str, dict[str, dict[str, tuple[Number, Number]]]]
    """By device, search and duration: mean and average deviation [s]."""


class Drawn(TypedDict):
    """The trials of a search: duration [s], load [Mframe/s], outcome."""

    trials: list[tuple[Number, Number, int]]


class MdrTraces(TypedDict):
    """`mdr-traces`."""

    packet_loss_ratio: Number
    initial_trial_duration_s: Number
    searches: dict[str, Drawn]


class RapidSetup(TypedDict):
    """The experiment."""

    baseline_mbps: Number


class Whole(TypedDict):
    """The transfer as a whole."""

    end_s: Number
    mbytes: Number


class Throughput(TypedDict):
    """The report of the transfer: begin [s], end [s] and Mbit/s of each interval."""

    intervals: list[tuple[Number, Number, Number]]
    whole: Whole


class ProbeStream(TypedDict):
    """Changes of PROBE_STREAM, with their times [s]."""

    total_off_s: Number
    changes: list[tuple[str, Number]]


class RapidUdp(TypedDict):
    """`rapid-udp-cross-traffic`."""

    setup: RapidSetup
    throughput: Throughput
    counters: dict[str, int]
    probe_stream: ProbeStream


class UetRun(TypedDict):
    """Runs of an experiment: times of its flows [us] by control."""

    bound: NotRequired[Number]
    tail: dict[str, Number]
    first: dict[str, Number]
    limit: dict[str, Number]


class Uet(TypedDict):
    """`fabric-uet`."""

    runs: dict[str, UetRun]


class WeightAi(TypedDict):
    """Of the additive increase."""

    p95_kb: dict[str, Number]


class Micro(TypedDict):
    """Micro-benchmarks."""

    incast_queue_kb: Number
    mice_us: dict[str, Number]


class Hadoop(TypedDict):
    """FB_Hadoop at half load."""

    p95_us: Number
    dctcp_above: Number


class Hpcc(TypedDict):
    """`fabric-hpcc`."""

    w_ai: WeightAi
    micro: Micro
    websearch: dict[str, dict[str, Number]]
    hadoop: Hadoop
    livelock: dict[str, Number]


class Zrl(TypedDict):
    """`zrl-congestion-benchmark`."""

    throughput_max: dict[str, Number]
    throughput_without_control: dict[str, Number]
    hotspot: dict[str, Number]
    optimal_range: dict[str, tuple[Number, Number]]


def read(name: str, kind: type[T]) -> T:
    """The content of ``NAME.toml``."""
    return typed(
        kind, tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))
    )
