"""Queueing theory = simulation: waiting times and losses of queues whose exact values are known."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from agreement.experiments import (
    DELAY_PS,
    agrees,
    confidence_interval,
    drop_tail,
    poisson,
    port_ids,
    run,
    source,
    star,
    transmission_ps,
)

SIZE = 1500
TX_PS = transmission_ps(SIZE)


def frames_last(frames: int, load: float) -> int:
    """Duration in which about so many frames are sent."""
    return int(frames * TX_PS / load)


@pytest.mark.parametrize(("load", "frames"), [(0.3, 100_000), (0.6, 150_000), (0.8, 300_000), (0.9, 900_000)])
def test_a_host_with_poisson_departures_waits_as_an_m_d_1_queue(load: float, frames: int) -> None:
    """Pollaczek-Khinchine with constant service: W = load x service / (2 (1 - load)).

    Source: Kleinrock 1975, section 5.6. The link of the host is the server; behind it frames are at least a
    transmission time apart and wait nowhere, so the delay of a flow tells the same as the counters of the
    port.
    """
    tables = run(
        star(2),
        [source(0, 1, poisson(load, TX_PS), size=SIZE)],
        duration_ps=frames_last(frames, load),
        replicates=12,
    )
    theory = load * TX_PS / (2 * (1 - load))

    waits = tables.sums("ports", "queue_wait_ps") / tables.sums("ports", "frames", pl.col("port") == 0)
    agrees(waits, theory, within=0.02)

    delays = tables.sums("flows", "delay_sum_ps") / tables.sums("flows", "delivered_frames")
    agrees(delays - 2 * (TX_PS + DELAY_PS), theory, within=0.02)


def test_two_frame_sizes_wait_as_an_m_g_1_queue() -> None:
    """Pollaczek-Khinchine: W = arrival rate x E[service^2] / (2 (1 - load)). Source: Kleinrock 1975,
    section 5.6.
    """
    load = 0.7
    sizes, weights = [64, 1500], [3, 1]
    service = np.array([transmission_ps(size) for size in sizes])
    chance = np.array(weights) / sum(weights)
    mean, second_moment = chance @ service, chance @ service**2

    mix = {"mix": list(zip(sizes, weights, strict=True))}
    sources = [source(0, 1, poisson(load, mean), size=mix)]
    tables = run(star(2), sources, duration_ps=int(250_000 * mean / load), replicates=12)

    theory = load / mean * second_moment / (2 * (1 - load))
    at_host = pl.col("port") == 0
    agrees(
        tables.sums("ports", "queue_wait_ps", at_host) / tables.sums("ports", "frames", at_host),
        theory,
        within=0.02,
    )


def m_d_1_waits_at_most(t: float, load: float) -> float:
    """P(W <= t) of the M/D/1 queue, t in service times.

    Source: Erlang 1909:
    (1 - load) sum over k <= t of exp(load (t - k)) (-load (t - k))^k / k!. Exact, but it cancels for large t.
    """
    terms = (math.exp(load * (t - k)) * (-load * (t - k)) ** k / math.factorial(k) for k in range(int(t) + 1))
    return (1 - load) * math.fsum(terms)


def test_the_distribution_of_delays_is_that_of_the_m_d_1_queue() -> None:
    load, replicates = 0.7, 12
    tables = run(
        star(2),
        [source(0, 1, poisson(load, TX_PS), size=SIZE)],
        duration_ps=frames_last(100_000, load),
        replicates=replicates,
        record={"delays": True},
    )
    delays = tables["delays"].sort("replicate", "low_ps")
    least = 2 * (TX_PS + DELAY_PS)
    bounds = [bound for bound in delays["high_ps"].unique().sort() if 0.1 < (bound - least) / TX_PS < 8]
    assert len(bounds) > 40

    for bound in bounds[::4]:
        below = tables.sums("delays", "frames", pl.col("high_ps") <= bound)
        theory = m_d_1_waits_at_most((bound - 1 - least) / TX_PS, load)
        agrees(below / tables.sums("delays", "frames"), theory, within=0.02)


def m_d_1_k_loss(load: float, room: int) -> float:
    """Share of the frames lost at a port with constant service, Poisson arrivals, and room for ``room``
    waiting.

    The queue length left behind by departures is a Markov chain on 0 .. room: from i it moves to max(i - 1,
    0) plus the Poisson number of arrivals during one service, cut off at ``room``. With p the chance that a
    departure leaves nothing behind, the server is busy for 1 / (p / load + 1) of the time, and what it
    carries is not lost: loss = 1 - 1 / (p + load). Source: Takagi 1993.
    """
    arrivals = [math.exp(n * math.log(load) - load - math.lgamma(n + 1)) for n in range(room + 1)]
    chain = np.zeros((room + 1, room + 1))
    for i in range(room + 1):
        start = max(i - 1, 0)
        for j in range(start, room):
            chain[i, j] = arrivals[j - start]
        chain[i, room] = 1 - chain[i, :room].sum()
    balance = np.vstack([chain.T - np.eye(room + 1), np.ones(room + 1)])
    left_behind = np.linalg.lstsq(balance, np.r_[np.zeros(room + 1), 1.0], rcond=None)[0]
    return float(1 - 1 / (left_behind[0] + load))


def test_the_loss_formula_holds_where_it_is_known() -> None:
    """Without room to wait the queue is Erlang's with one server: loss = load / (1 + load), whatever the
    service.
    """
    assert m_d_1_k_loss(0.5, 0) == pytest.approx(0.5 / 1.5)
    assert m_d_1_k_loss(0.5, 200) == pytest.approx(0, abs=1e-10)
    assert m_d_1_k_loss(2.0, 200) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("load", "room", "unit"), [(0.9, 4, "frames"), (0.9, 4, "bytes"), (0.6, 1, "frames"), (1.1, 5, "bytes")]
)
def test_a_short_queue_loses_as_an_m_d_1_k_queue(load: float, room: int, unit: str) -> None:
    network = star(2)
    limit = {"frames": room} if unit == "frames" else {"bytes": room * SIZE}
    tables = run(
        network,
        [source(0, 1, poisson(load, TX_PS), size=SIZE)],
        queues=[drop_tail(port_ids(network, of="host"), limit)],
        duration_ps=frames_last(250_000, load),
        replicates=12,
    )
    losses = tables.sums("flows", "dropped_frames") / tables.sums("flows", "sent_frames")
    agrees(losses, m_d_1_k_loss(load, room), within=0.02)


@pytest.mark.parametrize(("inputs", "load", "slots"), [(4, 0.5, 60_000), (16, 0.8, 20_000), (8, 0.9, 90_000)])
def test_an_output_of_a_slotted_switch_waits_as_karol_says(inputs: int, load: float, slots: int) -> None:
    """W = (N - 1) / N x p / (2 (1 - p)) slots. Source: Karol 1987, mean steady-state waiting time of output
    queueing.

    In each slot every input sends with probability p to an output drawn anew. So the number of frames A
    that arrive for one output in a slot is binomial (N, p / N); the queue after slot m is Q' = max(0, Q + A
    - 1), whence E[Q] = (N - 1) / N x p^2 / (2 (1 - p)), and by Little's law the waiting time, a frame that
    is sent in the slot of its arrival having waited nothing.
    """
    size = 64
    slot_ps = transmission_ps(size)
    network = star(inputs)
    departures = {"kind": "bernoulli", "slot_ps": slot_ps, "probability": load}
    tables = run(
        network,
        [source(host, range(inputs), departures, size=size) for host in range(inputs)],
        duration_ps=slots * slot_ps,
        replicates=12,
    )
    at_switch = pl.col("port").is_in(port_ids(network, of="switch"))
    waits = (
        tables.sums("ports", "queue_wait_ps", at_switch) / tables.sums("ports", "frames", at_switch) / slot_ps
    )
    agrees(waits, (inputs - 1) / inputs * load / (2 * (1 - load)), within=0.02)

    # The queue itself, from its integral: an independent counter.
    lengths = tables.sums("ports", "queue_byte_ps", at_switch) / (size * slots * slot_ps * inputs)
    agrees(lengths, (inputs - 1) / inputs * load**2 / (2 * (1 - load)), within=0.025)

    # Hosts send at most one frame in a slot: nothing waits there.
    assert tables.sums("ports", "queue_wait_ps", ~at_switch).sum() == 0


def test_an_interval_of_equal_samples_is_narrow_and_of_spread_samples_wide() -> None:
    """The ruler itself: for 4 samples t is 12.924 at 99.9 % (Student's table)."""
    assert confidence_interval([2.0, 2.0, 2.0, 2.0]) == (2.0, 0.0)
    mean, half = confidence_interval([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert half == pytest.approx(12.924 * math.sqrt(5 / 3) / 2, rel=1e-4)
    with pytest.raises(AssertionError, match="too little"):
        agrees([1.0, 2.0, 3.0, 4.0], 2.5, within=0.02)
    with pytest.raises(AssertionError, match="theory says"):
        agrees([2.0, 2.001, 1.999, 2.0], 2.02, within=0.02)
