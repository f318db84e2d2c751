"""Flows that a hotspot interrupted, put together again."""

from __future__ import annotations

from collections.abc import Mapping

from weirlab.heavy import cs, pl
from weirlab.records import Records

_TABLES = {
    "flows": ("replicate", "flow"),
    "flow_deliveries": ("replicate", "flow", "t_ps"),
    "deliveries": ("replicate", "traffic", "t_ps"),
    "bursts": ("replicate", "flow"),
}
"""Tables that measures by flow look at, with the columns that distinguish their rows."""


def joined(records: Records, parts: Mapping[int, int]) -> Records:
    """Records for measures by flow, with one flow for all parts of one that hotspots interrupted.

    `parts` are places of traffic that follows a hotspot, each with that of the entry that it continues.
    A flow of such an entry is that from the same sender to the same receiver. Left are frames and bytes
    over time and in all, and bursts with their delays.
    """
    names = records["flow_names"]
    traffic = pl.col("traffic").replace(dict(parts))
    split = pl.col("traffic").is_in([*parts, *parts.values()])
    first = pl.when(split).then(pl.col("flow").min().over(traffic, "from", "to")).otherwise(pl.col("flow"))
    firsts = names.select("flow", first=first)
    tables = {
        "runs": records["runs"],
        "traffic_names": records["traffic_names"],
        "flow_names": names.with_columns(traffic, flow=first).unique(
            "flow", keep="first", maintain_order=True
        ),
    }
    for name, keys in _TABLES.items():
        if name not in records:
            continue
        rows = records[name]
        if "flow" in keys:
            known = rows.join(firsts, on="flow", maintain_order="left")
            rows = known.with_columns(flow=pl.col("first")).drop("first")
        else:
            rows = rows.with_columns(traffic)
        least, greatest = cs.ends_with("_min_ps"), cs.ends_with("_max_ps")
        sums = (cs.all() - cs.by_name(keys) - least - greatest).sum()
        tables[name] = rows.group_by(keys, maintain_order=True).agg(sums, least.min(), greatest.max())
    return Records(tables)
