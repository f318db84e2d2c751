"""What is said of the CPU, on what real stacks used."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weirlab.reproductions.bulk.claims.common import FINDINGS, of_body, of_summary
from weirlab.reproductions.bulk.work import Data
from weirlab.reproductions.verdicts import Claim
from weirlab.stats import cpu_cost, fit_line, fit_proportion

_ALIKE = 0.25
"""How far the costs of short and long measurements may be apart, as a share."""


def claims(data: Data) -> Iterator[Claim]:
    """Nothing where nothing was measured on real stacks."""
    if "cpu" in data.tables:
        yield from _against_goodput(data.tables["cpu"])
        yield from _against_streams(data.tables["cpu_streams"])


def _against_goodput(rows: pl.DataFrame) -> Iterator[Claim]:
    rows = rows.with_columns(
        mbps=pl.col("goodput_bps") / 1e6, total=pl.col("user_percent") + pl.col("system_percent")
    )
    rates = rows.get_column("mbps").to_list()
    user, system, total = (rows.get_column(name) for name in ("user_percent", "system_percent", "total"))
    fits = {name: fit_line(rates, part.to_list()) for name, part in (("user", user), ("kernel", system))}
    whole = cpu_cost(rates, total.to_list())
    yield of_body(
        statement="User and kernel CPU grow roughly linearly with goodput.",
        holds=whole.proportion.r_squared_origin > 0.9,
        evidence=f"together {whole.proportion.factor:.4f} % of one CPU per Mbit/s, R² about the origin "
        f"{whole.proportion.r_squared_origin:.2f} (n = {rows.height}); {_spread(rows)}",
        published="0.14 to 0.15 % of one CPU of 336 MHz per Mbit/s, R² > 0.9",
        known="Today a stream costs by how often it wakes, not by what it sends: small windows wake it for "
        "every few packets, large ones hand over 64 kB at a time, which are divided later.",
    )
    factor = float(system.to_numpy().sum() / user.to_numpy().sum())
    yield of_body(
        statement="About an order of magnitude more kernel CPU is used than user CPU.",
        holds=4 <= factor <= 25,
        evidence=f"{factor:.1f} times as much",
        published="about 10 times",
    )
    yield of_body(
        statement="Kernel CPU is more strongly correlated with goodput than user CPU.",
        holds=fits["kernel"].r_squared > fits["user"].r_squared,
        evidence=", ".join(f"{name}: R² {fit.r_squared:.2f}" for name, fit in fits.items()),
        published=f"R² {FINDINGS['cpu_r2_kernel']} and {FINDINGS['cpu_r2_user']:.2f}",
    )
    # Of the points measured for both durations, since points differ in what a bit costs.
    both = rows.filter(pl.col("duration_s").n_unique().over("streams", "window_bytes") > 1)
    costs = {
        duration: fit_proportion(part.get_column("mbps").to_list(), part.get_column("total").to_list()).factor
        for (duration,), part in both.group_by("duration_s", maintain_order=True)
    }
    short, long = (costs[float(duration)] for duration in FINDINGS["cpu_durations_s"])
    yield of_body(
        statement="10 s and 60 s give the same cost per bit.",
        holds=abs(long / short - 1) <= _ALIKE,
        evidence=f"{short:.4f} and {long:.4f} % per Mbit/s",
        published="0.14 and 0.15 % per Mbit/s",
    )
    ratio = float((rows.get_column("receiver_percent") / total).to_numpy().mean())
    yield of_body(
        statement="The server uses about as much CPU as the client.",
        holds=0.8 <= ratio <= 1.25,
        evidence=f"{ratio:.1f} times as much on average",
        published="the client slightly (about 10 %) more, below 32 streams",
        known="Offload divides what a sender hands over, and nothing gathers it again on an emulated path: "
        "the receiver takes each packet by itself.",
    )


def _against_streams(rows: pl.DataFrame) -> Iterator[Claim]:
    """At a fixed product of streams and windows."""
    streams = rows.get_column("streams").to_list()
    fits = {
        name: fit_line(streams, rows.get_column(column).to_list())
        for name, column in (
            ("user", "user_percent"),
            ("kernel", "system_percent"),
            ("receiver", "receiver_percent"),
        )
    }
    most, least = max(streams), min(streams)
    rates = [value / 1e6 for value in rows.get_column("goodput_bps").to_list()]
    growth = {name: fit.slope * (most - least) for name, fit in fits.items()}
    yield of_summary(
        statement="At a fixed product of streams and windows, more streams use more kernel CPU.",
        holds=fits["kernel"].slope_interval()[0] > 0,
        evidence=f"from {least} to {most} streams {growth['kernel']:+.2f} % of one CPU, R² "
        f"{fits['kernel'].r_squared:.2f} (n = {len(streams)}), "
        f"all at {min(rates):.0f} to {max(rates):.0f} Mbit/s",
    )
    yield of_body(
        statement="User CPU depends little on the number of streams.",
        holds=growth["user"] < growth["kernel"] / 4,
        evidence=f"{growth['user']:+.2f} % of one CPU, where the kernel's grows by {growth['kernel']:.2f} %",
    )
    above = {
        name: _mean(rows.filter(streams=most), column) / _mean(rows.filter(streams=16), column)
        for name, column in (("client", "system_percent"), ("server", "receiver_percent"))
    }
    yield of_body(
        statement="Above 16 streams CPU grows more for the client than for the server.",
        holds=above["client"] > above["server"],
        evidence=f"from 16 to {most} streams client {above['client']:.2f} times, "
        f"server {above['server']:.2f}",
    )


def _spread(rows: pl.DataFrame) -> str:
    """What a bit costs with small windows, and with large ones."""
    costs = (
        rows.group_by("window_bytes")
        .agg(cost=pl.col("total").sum() / pl.col("mbps").sum())
        .sort("window_bytes")
    )
    return ", ".join(f"{window >> 10} KiB: {cost:.4f} %" for window, cost in costs.rows())


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows.get_column(column).to_numpy().mean())
