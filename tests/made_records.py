"""Records made by hand: two replicates of 10 ms, two ports, two entries of traffic."""

import polars as pl

from weirlab.records import Records

MS = 10**9


def records(**tables):
    """Two replicates of 10 ms; two ports of 1 Gbit/s; two entries of traffic of one flow each."""
    base = {
        "runs": pl.DataFrame(
            {
                "replicate": [0, 1],
                "seed": [1, 2],
                "events": [0, 0],
                "packet_hops": [0, 0],
                "end_ps": [10 * MS] * 2,
            }
        ),
        "port_names": pl.DataFrame(
            {
                "port": [0, 1],
                "name": ["a->b", "b->a"],
                "from": ["a", "b"],
                "to": ["b", "a"],
                "from_kind": ["host", "host"],
                "rate_bps": [10**9] * 2,
                "framing_bytes": [20] * 2,
            }
        ),
        "flow_names": pl.DataFrame(
            {
                "flow": [0, 1],
                "name": ["x/a->b", "y/b->a"],
                "traffic": [0, 1],
                "from": ["a", "b"],
                "to": ["b", "a"],
                "carries": ["data", "data"],
            }
        ),
        "traffic_names": pl.DataFrame({"traffic": [0, 1], "name": ["x", "y"]}),
        "flow_deliveries": deliveries({}, by="flow"),
    }
    return Records(base | tables)


def flows(sent, delivered, dropped, **delays):
    """Rows of replicate 0 (both flows), then of replicate 1."""
    count = len(sent)
    columns = {
        "replicate": [row // 2 for row in range(count)],
        "flow": [row % 2 for row in range(count)],
        "sent_frames": sent,
        "sent_bytes": [1000 * frames for frames in sent],
        "delivered_frames": delivered,
        "delivered_bytes": [1000 * frames for frames in delivered],
        "dropped_frames": dropped,
        "live_frames": [s - d - lost for s, d, lost in zip(sent, delivered, dropped, strict=True)],
        "delay_sum_ps": delays.get("total", [0.0] * count),
        "delay_min_ps": delays.get("low", [None] * count),
        "delay_max_ps": delays.get("high", [None] * count),
    }
    return pl.DataFrame(columns)


def ports(frames, queue_byte_ps=(0.0, 0.0), queue_max=(0, 0)):
    """Port 0 in both replicates, frames of 1230 B: 10 us each on the wire."""
    zeros = [0, 0]
    return pl.DataFrame(
        {
            "replicate": [0, 1], "port": zeros, "frames": frames, "bytes": [1230 * count for count in frames],
            "busy_ps": zeros, "drops": zeros, "dropped_bytes": zeros, "queue_max_bytes": list(queue_max),
            "queue_byte_ps": list(queue_byte_ps), "queue_wait_ps": [0.0, 0.0], "paused_ps": zeros,
            "paused_count": zeros, "paused_longest_ps": zeros, "paused_last_ps": [None, None],
            "first_drop_ps": [None, None], "last_drop_ps": [None, None],
        }
    )  # fmt: skip


def intervals(frames, every=MS):
    """Port 0, replicate 0 and 1 alike: one row per interval."""
    rows = [
        {"replicate": r, "port": 0, "t_ps": (i + 1) * every, "bytes": 1230 * n, "frames": n, "drops": 0,
         "queue_bytes": 0, "queue_max_bytes": 100 * n, "queue_byte_ps": 50.0 * n * every}
        for r in range(2) for i, n in enumerate(frames)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def values(frame):
    assert frame.get_column("replicate").to_list() == [0, 1]
    return frame.get_column("value").to_list()


def deliveries(frames, *, by, every=MS):
    """One row per interval, replicate 0 and 1 alike; `frames` of 1000 B in each interval, by id."""
    rows = [
        {"replicate": r, by: number, "t_ps": (i + 1) * every, "frames": n, "bytes": 1000 * n}
        for r in range(2) for number, counts in frames.items() for i, n in enumerate(counts)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=dict.fromkeys(["replicate", by, "t_ps", "frames", "bytes"], pl.Int64))
