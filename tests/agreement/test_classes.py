"""Traffic classes = theory: waiting times under strict priority, shares of weighted classes, and a shared
memory with a dynamic threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from agreement.experiments import (
    agrees,
    confidence_interval,
    poisson,
    port_ids,
    run_groups,
    source,
    star,
    transmission_ps,
)

Spec = dict[str, Any]
HOSTS = 9


def classes(*entries: tuple[int, int | None], order: str = "class", limit: Any = "unlimited") -> Spec:
    """Drop-tail queues of these classes and weights."""
    of_class: Spec = {"kind": "drop-tail", "limit": limit, "marking": None}
    listed = [{"class": number, "weight": weight, "discipline": of_class} for number, weight in entries]
    by_class = {"kind": "class", "quantum_bytes": 1518}
    return {"kind": "classes", "order": by_class if order == "class" else {"kind": order}, "list": listed}


def cobham(rates: list[float], services: list[np.ndarray], chances: list[np.ndarray]) -> list[float]:
    """Mean waits of the classes of an M/G/1 queue with non-preemptive priority, the first class first.

    W_p = W_0 / ((1 - s_(p-1)) (1 - s_p)), with W_0 half of the sum of rate x E[service^2] over all classes
    and s_p the load of the first p classes. Source: Cobham 1954, equation 3.
    """
    residual = sum(r * (c @ s**2) for r, s, c in zip(rates, services, chances, strict=True)) / 2
    loads = np.cumsum([r * (c @ s) for r, s, c in zip(rates, services, chances, strict=True)])
    before = np.concatenate([[0.0], loads[:-1]])
    return [float(residual / ((1 - b) * (1 - s))) for b, s in zip(before, loads, strict=True)]


@pytest.mark.parametrize(
    ("loads", "frames"),
    [((0.2, 0.3), 100_000), ((0.3, 0.3, 0.2), 200_000), ((0.1,) * 8, 300_000), ((0.6, 0.3), 500_000)],
)
def test_strict_classes_wait_as_cobham_says(loads: tuple[float, ...], frames: int) -> None:
    """Sources of all classes at the port of one host, whose link is the server: the highest class is the
    first. Frames of each class have sizes of their own."""
    mixes = [([64, 1500], [3, 1]), ([570], [1]), ([200, 1000], [1, 1])]
    network = star(2)
    groups, rates, services, chances = [], [], [], []
    for place, load in enumerate(loads):
        sizes, weights = mixes[place % len(mixes)]
        service = np.array([transmission_ps(size) for size in sizes], dtype=float)
        chance = np.array(weights) / sum(weights)
        mean = float(chance @ service)
        mix = {"mix": [list(pair) for pair in zip(sizes, weights, strict=True)]}
        groups.append((len(loads) - 1 - place, [source(0, 1, poisson(load, mean), size=mix)]))
        rates.append(load / mean)
        services.append(service)
        chances.append(chance)
    port = port_ids(network, of="host")[0]
    queues = [{"ports": [port], "discipline": classes(*((number, None) for number, _ in groups))}]
    tables = run_groups(network, groups, duration_ps=int(frames / sum(rates)), replicates=12, queues=queues)

    for (number, _), theory in zip(groups, cobham(rates, services, chances), strict=True):
        of_class = pl.col("class") == number
        waits = tables.sums("port_classes", "queue_wait_ps", of_class)
        sent = tables.sums("port_classes", "frames", of_class)
        agrees(waits / sent, theory, within=0.06)


@pytest.mark.parametrize("loads", [(0.3, 0.4), (0.2, 0.2, 0.3)])
def test_the_order_of_classes_moves_waits_and_not_their_mean(loads: tuple[float, ...]) -> None:
    """Conservation law: sum over the classes of load x wait is the same in any order that keeps the server
    busy and does not look at sizes. Source: Kleinrock 1976, section 3.4. In order of arrival all classes
    wait alike."""
    network, size = star(2), 1000
    tx = transmission_ps(size)
    groups = [(i, [source(0, 1, poisson(load, tx), size=size)]) for i, load in enumerate(loads)]
    port = port_ids(network, of="host")[0]
    theory = sum(loads) * tx / (2 * (1 - sum(loads)))
    for weights, order in (((None,) * 3, "class"), ((1, 2, 5), "class"), ((None,) * 3, "arrival")):
        listed = [(i, weights[i]) for i in range(len(loads))]
        queues = [{"ports": [port], "discipline": classes(*listed, order=order)}]
        tables = run_groups(network, groups, duration_ps=int(200_000 * tx), replicates=12, queues=queues)
        waits = tables.sums("port_classes", "queue_wait_ps") / tables.sums("port_classes", "frames")
        agrees(waits, theory, within=0.04)
        if order == "arrival":
            for number, _ in groups:
                of_class = pl.col("class") == number
                own = tables.sums("port_classes", "queue_wait_ps", of_class)
                agrees(own / tables.sums("port_classes", "frames", of_class), theory, within=0.05)


def test_overloaded_classes_get_the_shares_of_their_weights_whatever_their_frames() -> None:
    """Each of three classes asks for the whole line; the class without a weight asks for a fifth of it and
    gets it before the others."""
    network = star(HOSTS)
    port = port_ids(network, of="switch")[-1]
    to = HOSTS - 1
    sizes, weights = (64, 570, 1500), (1, 2, 5)
    groups = [(i, [source(i, to, poisson(1.0, transmission_ps(sizes[i])), size=sizes[i])]) for i in range(3)]
    groups.append((7, [source(3, to, poisson(0.2, transmission_ps(200)), size=200)]))
    listed = [*((i, weight) for i, weight in enumerate(weights)), (7, None)]
    queues = [{"ports": [port], "discipline": classes(*listed, limit={"bytes": 50_000})}]
    duration = 20 * 10**9
    tables = run_groups(network, groups, duration_ps=duration, replicates=8, queues=queues)

    strict = tables.sums("port_classes", "bytes", pl.col("class") == 7) * 800 / duration
    agrees(strict, 0.2, within=0.02)
    assert not tables.sums("port_classes", "drops", pl.col("class") == 7).any()
    rest = sum(tables.sums("port_classes", "bytes", pl.col("class") == i) for i in range(3))
    for i, weight in enumerate(weights):
        share = tables.sums("port_classes", "bytes", pl.col("class") == i) / rest
        mean, half = confidence_interval(share)
        # A turn of each class at both ends of the run.
        ends = 2 * 1518 * sum(weights) / rest.min()
        assert abs(mean - weight / sum(weights)) <= half + ends
        assert half + ends < 0.01


@pytest.mark.parametrize(("alpha", "hot"), [(1.0, 1), (1.0, 2), (0.5, 3)])
def test_queues_of_a_memory_settle_at_the_dynamic_threshold(alpha: float, hot: int) -> None:
    """n overloaded outputs hold alpha / (1 + n alpha) of the memory each, up to a frame. Source: Choudhury
    Hahne 1998, equation 2."""
    network, size, memory = star(HOSTS), 500, 300_000
    ports = port_ids(network, of="switch")[:hot]
    tx = transmission_ps(size)
    # Two hosts load each of the hot outputs with more than it serves.
    sources = [
        source(hot + 2 * to + i, to, poisson(0.9, tx), size=size) for to in range(hot) for i in range(2)
    ]
    record = {"ports": [{"port": port, "every_ps": 10**8} for port in ports]}
    switching = {
        "memories": [{"nodes": [HOSTS], "bytes": memory, "alpha": alpha, "pause": None}],
        "adapters": [],
        "services": [],
        "egress": [],
    }
    tables = run_groups(
        network, [(0, sources)], duration_ps=3 * 10**9, replicates=3, record=record, switching=switching
    )
    theory = alpha * memory / (1 + hot * alpha)
    settled = tables["intervals"].filter(pl.col("t_ps") > 10**9)
    for port in ports:
        levels = settled.filter(pl.col("port") == port)["queue_bytes"].to_numpy()
        assert abs(levels.mean() - theory) < 3 * size
        assert levels.max() <= theory + (1 + alpha) * hot * size


def test_classes_share_a_memory_and_the_threshold_counts_each_by_itself() -> None:
    """Two classes of one output, one of which is overloaded, beside a memory with a dynamic threshold: the
    overloaded one holds alpha / (1 + alpha) of it, and the other loses nothing."""
    network, size, memory = star(HOSTS), 500, 200_000
    port, to = port_ids(network, of="switch")[-1], HOSTS - 1
    tx = transmission_ps(size)
    groups = [
        (0, [source(i, to, poisson(0.9, tx), size=size) for i in range(2)]),
        (7, [source(2, to, poisson(0.3, tx), size=size)]),
    ]
    switching = {
        "memories": [{"nodes": [HOSTS], "bytes": memory, "alpha": 1.0, "pause": None}],
        "adapters": [],
        "services": [],
        "egress": [],
    }
    queues = [{"ports": [port], "discipline": classes((0, None), (7, None))}]
    tables = run_groups(
        network, groups, duration_ps=3 * 10**9, replicates=3, queues=queues, switching=switching
    )
    of = {number: pl.col("class") == number for number in (0, 7)}
    assert not tables.sums("port_classes", "drops", of[7]).any()
    assert (tables.sums("port_classes", "drops", of[0]) > 1000).all()
    most = tables.sums("port_classes", "queue_max_bytes", of[0])
    assert (abs(most - memory / 2) <= 3 * size).all()
