"""Small experiments for the agreement tests: resolved specs, their tables as frames, and confidence
intervals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from weirlab import _core

NO_SWITCHING: dict[str, Any] = {"memories": [], "adapters": [], "services": [], "egress": []}
NO_CONTROL: dict[str, Any] = {"bcn": None, "qcn": None, "dcqcn": None, "pause": [], "responses": []}
NO_RECORD: dict[str, Any] = {
    "ports": [],
    "traffic": [],
    "flows": [],
    "delays": False,
    "connections": [],
    "probe_streams": [],
    "limiters": [],
    "queue_levels": [],
    "captures": [],
}
RATE_BPS = 10_000_000_000
DELAY_PS = 500_000
"""Of every link."""
CONFIDENCE = 0.999
"""Seeds are fixed, so a test that passes goes on passing; a model that is wrong by twice the half width
fails.
"""

Spec = dict[str, Any]


def transmission_ps(size: int, framing: int = 0) -> int:
    """Time that a frame of ``size`` bytes occupies a link."""
    return (size + framing) * 8 * 1_000_000_000_000 // RATE_BPS


def star(hosts: int, *, framing: int = 0) -> Spec:
    """Hosts around one switch; links of 10 Gbit/s."""
    link = {"rate_bps": RATE_BPS, "delay_ps": DELAY_PS, "framing_bytes": framing, "loss": {"kind": "none"}}
    return {"kind": "star", "hosts": hosts, "link": link, "switch": {"latency_ps": 0}}


def source(
    host: int,
    to: int | Sequence[int],
    departures: Spec,
    *,
    size: int | Spec,
    stop_ps: int = 1 << 62,
    stream: Spec | None = None,
) -> Spec:
    """Frames of ``size`` bytes, or of a mix of sizes, from ``host`` to one host or to any of several."""
    return {
        "from": host,
        "to": {"node": to} if isinstance(to, int) else {"uniform": list(to)},
        "start_ps": 0,
        "stop_ps": stop_ps,
        "departures": departures,
        "frame_size": {"fixed": size} if isinstance(size, int) else size,
        "stream": stream or {"kind": "named"},
    }


def poisson(load: float, mean_transmission_ps: float) -> Spec:
    """Exponential gaps that keep a link busy for the share ``load`` of the time."""
    return {"kind": "poisson", "mean_gap_ps": mean_transmission_ps / load}


def drop_tail(ports: Sequence[int], limit: Spec) -> Spec:
    """A rule of ``queues``."""
    return {"ports": list(ports), "discipline": {"kind": "drop-tail", "limit": limit}}


def port_ids(network: Spec, *, of: str) -> list[int]:
    """Ports whose transmitter is a ``host`` or a ``switch``, in the order of their ids."""
    expanded = _core.expand(json.dumps(network))
    nodes = expanded["nodes"]
    return [number for number, port in enumerate(expanded["ports"]) if nodes[port["from"]]["kind"] == of]


@dataclass(frozen=True)
class Tables:
    """The tables of a batch."""

    made: dict[str, _core.Table]
    replicates: int

    def __getitem__(self, table: str) -> pl.DataFrame:
        return pl.DataFrame(self.made[table])

    def sums(self, table: str, column: str, *where: pl.Expr) -> np.ndarray:
        """The sum of a column in each replicate."""
        rows = self[table].filter(*where).group_by("replicate").agg(pl.col(column).sum())
        assert rows.height == self.replicates, f"{table} has no rows of some replicates"
        return rows.sort("replicate")[column].to_numpy().astype(float)


def run(
    network: Spec,
    sources: list[Spec],
    *,
    duration_ps: int,
    replicates: int,
    queues: Sequence[Spec] = (),
    record: Spec | None = None,
) -> Tables:
    """A batch with the seeds 0, 1, ..."""
    return run_groups(
        network,
        [(0, sources)],
        duration_ps=duration_ps,
        replicates=replicates,
        queues=queues,
        record=record,
    )


def run_groups(
    network: Spec,
    groups: Sequence[tuple[int, list[Spec]]],
    *,
    duration_ps: int,
    replicates: int,
    queues: Sequence[Spec] = (),
    record: Spec | None = None,
    switching: Spec = NO_SWITCHING,
) -> Tables:
    """As `run`, of groups of sources, each with its traffic class."""
    spec = {
        "network": network,
        "queues": list(queues),
        "traffic": [
            {
                "name": f"load-{i}" if i else "load",
                "class": number,
                "sources": sources,
                "tcp": None,
                "probers": None,
            }
            for i, (number, sources) in enumerate(groups)
        ],
        "run": {"duration_ps": duration_ps, "engine": {"kind": "event"}},
        "control": NO_CONTROL,
        "switching": switching,
        "record": NO_RECORD | (record or {}),
    }
    return Tables(_core.simulate(json.dumps(spec), list(range(replicates)), 1, None), replicates)


def confidence_interval(samples: ArrayLike) -> tuple[float, float]:
    """Mean of independent samples and half the width of its confidence interval, after Student's t."""
    values = np.asarray(samples, dtype=float)
    degrees = values.size - 1
    error = values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(stdtrit(degrees, 0.5 + CONFIDENCE / 2) * error)


def agrees(samples: ArrayLike, theory: float, *, within: float) -> None:
    """Assert that ``theory`` lies in the confidence interval of the mean, and that the interval is narrow:
    half of it is at most ``within`` x ``theory``.
    """
    mean, half = confidence_interval(samples)
    assert half <= within * abs(theory), f"{mean:g} +- {half:g} says too little about {theory:g}"
    assert abs(mean - theory) <= half, f"simulated {mean:g} +- {half:g}, theory says {theory:g}"
