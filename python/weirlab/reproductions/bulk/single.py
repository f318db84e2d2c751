"""Measurements made one by one in simulated time, each of a single question."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import polars as pl

from weirlab.campaigns import Plan, plan_of
from weirlab.campaigns.plan import Measured
from weirlab.campaigns.simulated import measure_simulated
from weirlab.campaigns.summary import goodput_bps
from weirlab.evaluation import measured
from weirlab.reproductions.frame import Effort
from weirlab.runs import simulate
from weirlab.scenario import load
from weirlab.stats import min_max_variability

DURATIONS_S = (10, 320, 40, 80, 160, 20)
"""In the published order. Source: SLAC 2000, 'Effect of duration of measurement'."""
SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
"""What others take of a path whose pings are measured without a load of ours."""
WINDOW_FACTOR = 1.2
"""What Linux grants of windows of 64 KiB and above; see the page on bulk transfers."""
_PATH = "bulk-cern"
"""The scenario whose path and traffic are replaced part by part."""


def durations(effort: Effort) -> pl.DataFrame:
    """Both configurations, in turn for each duration: `streams duration_s goodput_bps`.

    Over a path whose state does not depend on the time: one where others come and go, or losses do, begins
    each measurement in the same state, which is more of a short one than of a long one.
    """
    scenario = load("windows-against-streams")
    plan = plan_of(scenario.assign({"testbed.kind": "sim", "run.seed": effort.seed}))
    rows = []
    for number in range(2 if effort.quick else 8):
        for duration_s in DURATIONS_S:
            for point, steps in enumerate(plan.steps):
                what = dataclasses.replace(steps[0], duration_s=float(duration_s), probe=None)
                seed = _seed(effort.seed, number, duration_s, point)
                run = measure_simulated(what, plan.paths[point], seed, window_factor=WINDOW_FACTOR)
                assert run.transfer is not None
                assert what.load is not None
                rows.append((what.load.streams, float(duration_s), goodput_bps(run.transfer)))
    return pl.DataFrame(rows, schema=["streams", "duration_s", "goodput_bps"], orient="row")


def lanes(effort: Effort) -> pl.DataFrame:
    """One stream and eight through one small router, and through four side by side, without other losses:
    `lanes streams goodput_bps synchrony`.

    `synchrony`: of the seconds in which any stream sent again, the mean share of the streams that did.
    """
    rows = []
    for many, streams in ((1, 1), (1, 8), (4, 1), (4, 8)):
        forward = {"rate": "10 Mbit/s", "delay": "40 ms", "buffer": "20 kB", "lanes": many}
        hop = {"forward": forward, "backward": {"rate": "100 Mbit/s", "delay": "40 ms"}}
        plan, what = _over(hop, streams, "1 MiB")
        for number in range(3 if effort.quick else 12):
            run = measure_simulated(what, plan.paths[0], _seed(effort.seed, many, streams, number))
            assert run.transfer is not None
            resent = np.array([stream.interval_retransmits for stream in run.transfer.streams]) > 0
            shares = resent.mean(axis=0)[resent.any(axis=0)]
            synchrony = float(shares.mean()) if shares.size else 0.0
            rows.append((many, streams, goodput_bps(run.transfer), synchrony))
    return pl.DataFrame(rows, schema=["lanes", "streams", "goodput_bps", "synchrony"], orient="row")


def _over(hop: Mapping[str, object], streams: int, window: str) -> tuple[Plan, Measured]:
    """A campaign over a path of one hop, and its transfer without pings."""
    changes = {"traffic.bulk.streams": streams, "traffic.bulk.transport.window": window, "study": None}
    plan = plan_of(load(_PATH).assign({"testbed": {"kind": "sim", "hops": {"wan": hop}}, **changes}))
    return plan, dataclasses.replace(plan.steps[0][0], probe=None)


def middlebox(effort: Effort) -> pl.DataFrame:
    """A stream of 256 KiB over a clean path, with and without a firewall that takes the window scale away:
    `strips goodput_bps`."""
    rows = []
    for strips in (False, True):
        line = {"rate": "100 Mbit/s", "delay": "40 ms"}
        plan, what = _over({"forward": line, "strips_window_scale": strips}, 1, "256 KiB")
        run = measure_simulated(what, plan.paths[0], effort.seed)
        assert run.transfer is not None
        rows.append((strips, goodput_bps(run.transfer)))
    return pl.DataFrame(rows, schema=["strips", "goodput_bps"], orient="row")


def idle(effort: Effort) -> pl.DataFrame:
    """Pings over the path to IN2P3 while others take a share of it, and nobody else anything:
    `share variability`."""
    scenario = load("bulk-in2p3")
    rows = []
    for share in SHARES:
        source = {"kind": "poisson", "rate": f"{22 * share:.6g} Mbit/s", "frame_size": "1500 B"}
        cross: dict[str, object] = {"others": {"source": source}}
        plan = plan_of(scenario.assign({"testbed.hops.wan.forward.cross": cross, "study": None}))
        what = dataclasses.replace(plan.steps[0][0], load=None)
        for number in range(3 if effort.quick else 12):
            run = measure_simulated(what, plan.paths[0], _seed(effort.seed, round(100 * share), number))
            assert run.pings is not None
            rows.append((share, min_max_variability(run.pings.rtts_s)))
    return pl.DataFrame(rows, schema=["share", "variability"], orient="row")


def rivals(effort: Effort) -> pl.DataFrame:
    """One connection that competes with one, or with eight, of somebody else, through one bottleneck:
    `streams rate_bps rival_bps`."""
    rows = []
    for streams in (1, 8):
        scenario = load("tcp-dumbbell").assign(
            {
                "network": {
                    "kind": "dumbbell",
                    "pairs": 2,
                    "access": {"rate": "1 Gbit/s", "delay": "1 ms"},
                    "bottleneck": {"rate": "20 Mbit/s", "delay": "18 ms"},
                },
                "queues.bottleneck.limit": "100 kB",
                "traffic": {
                    name: {
                        "from": f"left-{place}",
                        "to": f"right-{place}",
                        "streams": count,
                        "source": {"kind": "bulk"},
                        "transport": {"kind": "tcp", "congestion_control": {"kind": "reno"}},
                    }
                    for place, (name, count) in enumerate({"one": 1, "rival": streams}.items())
                },
                "record": {name: {"flow": name, "every": "1 s"} for name in ("one", "rival")},
                "measure": {
                    name: {"kind": "delivered-rate", "of": name, "window": "20 s .. 60 s"}
                    for name in ("one", "rival")
                },
                "run": {"duration": "60 s", "seed": effort.seed},
            }
        )
        run = measured(simulate(scenario, [effort.seed], threads=1), scenario)
        rates = dict(run.select("measure", "value").rows())
        rows.append((streams, float(rates["one"]), float(rates["rival"])))
    return pl.DataFrame(rows, schema=["streams", "rate_bps", "rival_bps"], orient="row")


def _seed(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0])
