"""Laws that hold for every run, and rates that sources and links must keep."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from agreement.experiments import (
    DELAY_PS,
    RATE_BPS,
    Tables,
    agrees,
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


@pytest.mark.parametrize("drops", ["nowhere", "at hosts", "at the switch"])
def test_littles_law_holds_to_the_byte(drops: str) -> None:
    """The integral of the waiting bytes over time = the sum over all frames of size x waiting time.

    Source: Little 1961, in its sample-path form: exact for any run that starts and ends empty. The left
    side is what the ports count as time goes by, the right side comes from the delays of the flows: two
    separate books. Flows of three sizes share a port; nothing leaves the sources in the last fifth of the
    run, so all queues drain. Frames are dropped only where they have not waited before: the sources do
    without waiting at their hosts (slotted) where the switch drops.
    """
    network = star(5)
    duration_ps = 5_000_000_000
    sizes = {0: 64, 1: 577, 2: 1500, 3: 1500}

    def departures(size: int) -> dict[str, object]:
        if drops == "at the switch":
            return {"kind": "bernoulli", "slot_ps": transmission_ps(size), "probability": 0.35}
        return poisson(0.22, transmission_ps(size))

    sources = [
        source(host, 4, departures(size), size=size, stop_ps=duration_ps // 5 * 4)
        for host, size in sizes.items()
    ]
    limited = {"nowhere": [], "at hosts": [drop_tail(port_ids(network, of="host"), {"frames": 1})]}
    queues = limited.get(drops, [drop_tail(port_ids(network, of="switch"), {"bytes": 20_000})])
    tables = run(network, sources, queues=queues, duration_ps=duration_ps, replicates=3)

    assert tables["flows"]["live_frames"].sum() == 0
    assert (tables["flows"]["dropped_frames"].sum() > 0) == (drops != "nowhere")
    booked_by_flows = np.zeros(3)
    for host, size in sizes.items():
        of_flow = pl.col("flow") == host
        unhindered_ps = 2 * (transmission_ps(size) + DELAY_PS)
        delivered = tables.sums("flows", "delivered_frames", of_flow)
        booked_by_flows += size * (tables.sums("flows", "delay_sum_ps", of_flow) - delivered * unhindered_ps)
    assert booked_by_flows.min() > 0
    assert tables.sums("ports", "queue_byte_ps").tolist() == booked_by_flows.tolist()


def test_the_series_of_a_port_add_up_to_its_totals() -> None:
    """Intervals of an odd length, the last one shorter: no byte and no picosecond is lost at a boundary."""
    network = star(4)
    ports = port_ids(network, of="switch")
    tables = run(
        network,
        [source(host, 3, poisson(0.45, TX_PS), size=SIZE) for host in range(3)],
        queues=[drop_tail(ports, {"bytes": 15_000})],
        duration_ps=2_000_000_000,
        replicates=2,
        record={"ports": [{"port": port, "every_ps": 7_777_777} for port in ports]},
    )
    summed = (
        tables["intervals"]
        .group_by("replicate", "port")
        .agg(pl.col("frames", "bytes", "drops", "queue_byte_ps").sum(), pl.col("queue_max_bytes").max())
    )
    totals = tables["ports"].filter(pl.col("port").is_in(ports)).select(summed.columns)
    assert summed.sort("replicate", "port").equals(totals.sort("replicate", "port"))
    assert totals["drops"].sum() > 0


@pytest.mark.parametrize("slotted", [True, False])
def test_recording_changes_nothing(slotted: bool) -> None:
    """Probes look on: with a record of every port, every count and every integral is the same to the last
    digit.
    """
    network = star(6)
    ports = port_ids(network, of="host") + port_ids(network, of="switch")
    departures = (
        {"kind": "bernoulli", "slot_ps": TX_PS, "probability": 0.8} if slotted else poisson(0.8, TX_PS)
    )

    def batch(record: dict[str, object]) -> Tables:
        return run(
            network,
            [source(host, range(6), departures, size=SIZE) for host in range(6)],
            queues=[drop_tail(port_ids(network, of="switch"), {"bytes": 6_000})],
            duration_ps=987_654_321,
            replicates=5,
            record=record,
        )

    everything = {
        "ports": [{"port": port, "every_ps": 7_777_777} for port in ports],
        "traffic": [{"traffic": 0, "every_ps": 5_000_000}],
        "delays": True,
    }
    plain, recorded = batch({}), batch(everything)
    assert plain["intervals"].height == 0
    assert recorded["intervals"].height > 0
    for table in "runs", "flows", "ports", "drops":
        assert_frame_equal(plain[table], recorded[table], check_exact=True)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.95])
def test_utilisation_is_the_offered_load(load: float) -> None:
    duration_ps = int(100_000 * TX_PS / load)
    tables = run(
        star(2), [source(0, 1, poisson(load, TX_PS), size=SIZE)], duration_ps=duration_ps, replicates=12
    )
    for port in port_ids(star(2), of="host")[0], port_ids(star(2), of="switch")[1]:
        agrees(tables.sums("ports", "busy_ps", pl.col("port") == port) / duration_ps, load, within=0.005)


def test_a_saturated_link_loses_what_it_cannot_carry() -> None:
    """Offered 1.5 times what an output carries, it never idles: loss = 1 - 1 / 1.5."""
    network, load, duration_ps = star(3), 0.75, 100_000 * TX_PS
    tables = run(
        network,
        [source(host, 2, poisson(load, TX_PS), size=SIZE) for host in range(2)],
        queues=[drop_tail(port_ids(network, of="switch"), {"bytes": 100 * SIZE})],
        duration_ps=duration_ps,
        replicates=12,
    )
    output = port_ids(network, of="switch")[2]
    busy = tables.sums("ports", "busy_ps", pl.col("port") == output) / duration_ps
    assert busy.min() > 0.999
    losses = tables.sums("flows", "dropped_frames") / tables.sums("flows", "sent_frames")
    agrees(losses, 1 - 1 / (2 * load), within=0.01)


def test_ethernet_carries_14_880_952_shortest_frames_in_a_second() -> None:
    """Source: IEEE 802.3; 64 B and 20 B of preamble and gap at 10 Gbit/s, the figure known from RFC 2544
    reports.
    """
    network = star(3, framing=20)
    second = 1_000_000_000_000
    sources = [source(host, 2, poisson(0.9, transmission_ps(64, 20)), size=64) for host in range(2)]
    queues = [drop_tail(port_ids(network, of="switch"), {"bytes": 6_400})]
    tables = run(network, sources, queues=queues, duration_ps=second // 20, replicates=1)
    delivered = tables["flows"]["delivered_frames"].sum()
    # Twenty times what arrives in 50 ms; before the first arrival the link idles for about two microseconds.
    assert 20 * delivered == pytest.approx(14_880_952, rel=1e-4)
    assert 20 * delivered <= 14_880_952


@pytest.mark.parametrize("mean_on_us", [4, 16])
def test_an_on_off_source_keeps_its_mean_rate_and_its_burstiness(mean_on_us: int) -> None:
    """Mean and variance of the frames in a time T, of a source that starts on.

    With a = on / (on + off) and r = 1 / on + 1 / off the chance to be on at s is p(s) = a + (1 - a) exp(-r
    s), so the mean time on is a T + (1 - a) / r (1 - exp(-r T)) and its variance 2 (1 - a) / r x integral
    over s of p(s) (exp(r s) - 1) (exp(-r s) - exp(-r T)), from the two-state Markov chain; frame n leaves
    after n gaps of time on. Source: Cox 1962.
    """
    gap, on, off, total = 2e6, mean_on_us * 1e6, 1.5 * mean_on_us * 1e6, 60 * mean_on_us * 1e6
    departures = {"kind": "on-off", "gap_ps": gap, "mean_on_ps": int(on), "mean_off_ps": int(off)}
    hosts = 64
    sources = [source(host, (host + 1) % hosts, departures, size=64) for host in range(hosts)]
    tables = run(star(hosts), sources, duration_ps=int(total), replicates=960)
    counts = tables["flows"].sort("replicate", "flow")["sent_frames"].to_numpy().reshape(24, -1).astype(float)

    share, r = on / (on + off), 1 / on + 1 / off
    mean_on = share * total + (1 - share) / r * (1 - math.exp(-r * total))
    agrees(counts.mean(axis=1), mean_on / gap - 0.5, within=0.01)  # half a gap is left over at the end

    s = np.linspace(0, total, 100_001)
    integrand = (share + (1 - share) * np.exp(-r * s)) * (
        1 - np.exp(-r * s) - np.exp(-r * (total - s)) + np.exp(-r * total)
    )
    variance_on = 2 * (1 - share) / r * np.trapezoid(integrand, s)
    agrees(counts.var(axis=1, ddof=1), variance_on / gap**2 + 1 / 12, within=0.03)


@pytest.mark.parametrize(
    ("departures", "mean", "dispersion"),
    [
        pytest.param(poisson(0.1, TX_PS), 20.0, 1.0, id="poisson"),
        pytest.param(poisson(0.3, TX_PS), 60.0, 1.0, id="dense poisson"),
        pytest.param({"kind": "bernoulli", "slot_ps": TX_PS, "probability": 0.3}, 59.7, 0.7, id="bernoulli"),
    ],
)
def test_counts_of_a_source_are_dispersed_as_its_law_says(
    departures: dict[str, object], mean: float, dispersion: float
) -> None:
    """Variance / mean of the frames sent in a fixed time: 1 for Poisson, 1 - p for Bernoulli trials.

    Source: Cox & Lewis 1966. The time holds 200 slots; a slotted source uses 199 of them, for the
    200th begins at the end.
    """
    hosts = 64
    sources = [source(host, (host + 1) % hosts, departures, size=SIZE) for host in range(hosts)]
    tables = run(star(hosts), sources, duration_ps=200 * TX_PS, replicates=1500)
    counts = tables["flows"].sort("replicate", "flow")["sent_frames"].to_numpy().reshape(30, -1).astype(float)
    agrees(counts.mean(axis=1), mean, within=0.005)
    agrees(counts.var(axis=1, ddof=1) / counts.mean(axis=1), dispersion, within=0.02)


def test_sources_of_a_run_and_seeds_of_a_batch_do_not_resemble_each_other() -> None:
    """Counts of neighbouring hosts, and of neighbouring seeds, are not correlated: |r| < 4 / sqrt(n)."""
    hosts, replicates = 16, 1000
    sources = [source(host, (host + 1) % hosts, poisson(0.2, TX_PS), size=SIZE) for host in range(hosts)]
    tables = run(star(hosts), sources, duration_ps=100 * TX_PS, replicates=replicates)
    counts = tables["flows"].sort("replicate", "flow")["sent_frames"].to_numpy().reshape(replicates, hosts)
    counts = counts.astype(float)
    for one, other in [(counts[:, :-1], counts[:, 1:]), (counts[:-1], counts[1:])]:
        r = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(r) < 4 / math.sqrt(one.size)


def test_a_link_is_never_faster_than_its_rate() -> None:
    """A snapshot needs a bound beside it; here the bound stands alone, at every interval of an overloaded
    run.
    """
    network, every = star(3), 50_000_000
    ports = port_ids(network, of="switch")
    tables = run(
        network,
        [source(host, 2, poisson(0.9, TX_PS), size={"mix": [(64, 1), (1500, 1)]}) for host in range(2)],
        duration_ps=1_000_000_000,
        replicates=1,
        record={"ports": [{"port": port, "every_ps": every} for port in ports]},
    )
    # A transmission counts when it begins: one frame may reach over the end of an interval.
    most = every * RATE_BPS // 8_000_000_000_000 + SIZE
    assert 0.9 * most < tables["intervals"]["bytes"].max() <= most
