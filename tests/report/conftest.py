"""Made-up records in the shape of ARCHITECTURE.md, for plots and pages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from browsing import CHROMIUM
from weirlab.records import Records

RATE_BPS = 10_000_000_000
FRAMING = 20


def made_up_records(*, ports: int = 2, intervals: int = 50, replicates: int = 1, flows: int = 4) -> Records:
    """Ports that fill up, queue and drop, the same for equal arguments."""
    chance = np.random.default_rng(7)
    every = 1_000_000_000  # 1 ms
    end = every * intervals
    shape = (replicates, ports, intervals)
    replicate, port, number = (axis.ravel() for axis in np.meshgrid(*map(np.arange, shape), indexing="ij"))
    load = 0.55 + 0.4 * np.sin(number / intervals * 6 + port) + 0.08 * chance.standard_normal(number.size)
    load = np.clip(load, 0.02, 1.0)
    frames = np.floor(load * RATE_BPS * every / 1e12 / 8 / (1500 + FRAMING)).astype(np.uint64)
    queue = np.clip((load - 0.8) * 9e5, 0, 150_000) * chance.uniform(0.7, 1, number.size)
    drops = np.where(queue > 130_000, chance.poisson(40, number.size), 0).astype(np.uint64)
    series = pl.DataFrame(
        {
            "replicate": replicate.astype(np.uint32),
            "port": port.astype(np.uint32),
            "t_ps": ((number + 1) * every).astype(np.uint64),
            "bytes": frames * np.uint64(1500),
            "frames": frames,
            "drops": drops,
            "queue_bytes": queue.astype(np.uint64),
            "queue_max_bytes": (queue * 1.25).astype(np.uint64),
            "queue_byte_ps": (queue * every).astype(np.uint64),
            "paused_ps": np.zeros(number.size, np.uint64),
        }
    )
    by_port = series.group_by("replicate", "port", maintain_order=True).agg(
        pl.col("frames", "bytes").sum(),
        busy_ps=((pl.col("bytes") + pl.col("frames") * FRAMING).sum() * 800),
        drops=pl.col("drops").sum(),
        dropped_bytes=pl.col("drops").sum() * 1500,
        queue_max_bytes=pl.col("queue_max_bytes").max(),
        queue_byte_ps=pl.col("queue_byte_ps").sum(),
        queue_wait_ps=pl.col("queue_byte_ps").sum() // 1500,
        paused_ps=pl.lit(0, pl.UInt64),
        paused_count=pl.lit(0, pl.UInt64),
        paused_longest_ps=pl.lit(0, pl.UInt64),
        paused_last_ps=pl.lit(None, pl.Float64),
        first_drop_ps=pl.col("t_ps").filter(pl.col("drops") > 0).min().cast(pl.Float64),
        last_drop_ps=pl.col("t_ps").filter(pl.col("drops") > 0).max().cast(pl.Float64),
    )
    r, f = (axis.ravel() for axis in np.meshgrid(np.arange(replicates), np.arange(flows), indexing="ij"))
    sent = chance.integers(90_000, 110_000, r.size).astype(np.uint64)
    dropped = chance.poisson(300, r.size).astype(np.uint64)
    live = chance.integers(0, 5, r.size).astype(np.uint64)
    delivered = sent - dropped - live
    bins = np.arange(40)
    low = np.round(2_000_000 * 1.12**bins)
    weight = np.exp(-bins / 6)
    histogram = np.floor(delivered[:, None] * weight / weight.sum()).astype(np.uint64)
    histogram[:, 0] += delivered - histogram.sum(axis=1)
    names = [f"host-{place}" for place in range(flows + 1)]
    return Records(
        {
            "runs": pl.DataFrame(
                {
                    "replicate": np.arange(replicates, dtype=np.uint32),
                    "seed": np.arange(replicates, dtype=np.uint64) + 1,
                    "events": np.full(replicates, 10**6, np.uint64),
                    "packet_hops": np.full(replicates, 4 * 10**5, np.uint64),
                    "end_ps": np.full(replicates, end, np.uint64),
                }
            ),
            "flows": pl.DataFrame(
                {
                    "replicate": r.astype(np.uint32),
                    "flow": f.astype(np.uint32),
                    "sent_frames": sent,
                    "sent_bytes": sent * np.uint64(1500),
                    "delivered_frames": delivered,
                    "delivered_bytes": delivered * np.uint64(1500),
                    "dropped_frames": dropped,
                    "live_frames": live,
                    "delay_sum_ps": (histogram * low).sum(axis=1),
                    "delay_min_ps": np.full(r.size, 2_000_000, np.uint64),
                    "delay_max_ps": np.full(r.size, int(low[-1]), np.uint64),
                }
            ),
            "ports": by_port,
            "drops": pl.DataFrame(
                {
                    "replicate": r.astype(np.uint32),
                    "port": np.zeros(r.size, np.uint32),
                    "flow": f.astype(np.uint32),
                    "cause": np.zeros(r.size, np.uint32),
                    "frames": dropped,
                }
            ),
            "intervals": series,
            "deliveries": series.filter(pl.col("port") < 2).select(
                "replicate", traffic=pl.col("port"), t_ps="t_ps", frames="frames", bytes="bytes"
            ),
            "flow_deliveries": series.clear().select(
                "replicate", flow=pl.col("port"), t_ps="t_ps", frames="frames", bytes="bytes"
            ),
            "delays": pl.DataFrame(
                {
                    "replicate": np.repeat(r, bins.size).astype(np.uint32),
                    "flow": np.repeat(f, bins.size).astype(np.uint32),
                    "low_ps": np.tile(low, r.size).astype(np.uint64),
                    "high_ps": np.tile(np.round(low * 1.12), r.size).astype(np.uint64),
                    "frames": histogram.ravel(),
                }
            ),
            "flow_names": pl.DataFrame(
                {
                    "flow": np.arange(flows, dtype=np.uint32),
                    "name": [
                        f"{'load' if flow % 2 == 0 else 'cross'}/{names[flow]}->{names[-1]}"
                        for flow in range(flows)
                    ],
                    "traffic": (np.arange(flows) % 2).astype(np.uint32),
                    "from": names[:-1],
                    "to": [names[-1]] * flows,
                    "carries": ["data"] * flows,
                }
            ),
            "port_names": pl.DataFrame(
                {
                    "port": np.arange(ports, dtype=np.uint32),
                    "name": [f"switch-0->host-{place}" for place in range(ports)],
                    "from": ["switch-0"] * ports,
                    "to": [f"host-{place}" for place in range(ports)],
                    "from_kind": ["switch"] * ports,
                    "rate_bps": np.full(ports, RATE_BPS, np.uint64),
                    "framing_bytes": np.full(ports, FRAMING, np.uint64),
                }
            ),
            "traffic_names": pl.DataFrame(
                {"traffic": np.arange(2, dtype=np.uint32), "name": ["load", "cross"]}
            ),
            "cause_names": pl.DataFrame({"cause": np.arange(1, dtype=np.uint32), "name": ["queue-full"]}),
        }
    )


@pytest.fixture
def records() -> Callable[..., Records]:
    """Made-up records of a chosen size."""
    return made_up_records


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """The page as a user has it open; nothing may be asked of the network or complained of on the way."""

    def made(written, width=1100, scheme="light", scripts=True):
        page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        page.set_default_timeout(120_000)
        page.on("console", lambda message: amiss.append(message.text))
        page.on("pageerror", lambda error: amiss.append(str(error)))
        page.on("request", lambda request: request.url.startswith("file:") or amiss.append(request.url))
        page.goto(written.as_uri())
        pages.append(page)
        return page

    amiss, pages = [], []
    yield made
    for page in pages:
        page.close()
    assert amiss == []
