"""Write docs/tables.md: every table of a run with its columns, their units and what they mean.

The compiled core says all of it. The documentation's configuration calls this; the page is not kept.
"""

from collections.abc import Iterator
from pathlib import Path

from weirlab import _core

PAGE = Path(__file__).resolve().parent.parent / "docs/tables.md"
HEAD = """# Tables of a run

A run records these tables: `run.records["flows"]` in Python, `tables/flows.parquet` in its
[directory](using.md). They hold facts only: counts, sums, integrals, extremes, timestamps.
[Measures](measures.md) are computed from them.

- Every table except those of names has a column `replicate`. Ids are row numbers in the tables of names:
  `port` in `port_names`, `flow` in `flow_names` and so on; `run.records.named("drops")` adds the names.
- Unknown values are null, never 0. Only columns marked `or null` have any.
- Names end in the unit: `_ps` picoseconds, `_bytes` bytes, `_bps` bit/s. Columns that can exceed 64
  bits, such as sums of delays, are `f64`.
- A transmission counts when it starts, everything else when it happens. What happens at the end of an
  interval belongs to the next one; what happens at the end of the run belongs to none.

The schema of the Arrow tables that the compiled core returns has the same texts (`about` of a table,
`unit` and `meaning` of a column), and so has the metadata of saved files under `weirlab`. Tables of
captures are listed under [traces](traces.md).

## Series of many rows

A replicate keeps up to 2^18 rows of its series in memory. Where there are more, they leave in parts while it
runs, so that its memory does not grow with its length: `intervals`, `control_intervals`, `limiters`,
`deliveries`, `flow_deliveries`, `burst_intervals`, `pool_intervals`, `hold_intervals`, `tcp`, `messages`, and
what probing senders and estimators write down (`probe_streams`, `probe_states`, `probe_packets`,
`bandwidth_estimates`, `probe_trains`). A part is a file `tables/TABLE/REPLICATE-NUMBER.parquet`, which
appears whole or not at all; `tables/TABLE.parquet` lists the parts that belong to it.

- Order: within a part, ports, flows and so on follow each other as in a whole table, the rows of each by
  time. Parts continue each other in time. `run.records["intervals"]` has the same rows in the same order
  as without parts, and needs memory for all of them; `run.records.lazy("intervals")` is a Polars query that
  reads part by part, in the order of the parts.
- `messages` in parts come when they are over. Those whose number is no multiple of `stride` in
  `message_totals` do not count; `run.records["messages"]` leaves them out.
- Measures that are sums or maxima read part by part. Other measures of series, and reports, read the whole
  table.
- A run that is interrupted, killed, or out of disk leaves the parts that it has written, for any reader of
  Parquet; they are no result.
"""


def sections() -> Iterator[str]:
    """A section for each table."""
    for name, table in _core.table_schemas().items():
        yield f"\n## {name}\n\nA row: {table['about'][0].lower()}{table['about'][1:]}\n\n"
        yield "| column | type | unit | meaning |\n|---|---|---|---|\n"
        for column in table["columns"]:
            kind = column["type"] + (" or null" if column["nullable"] else "")
            meaning = column["meaning"].replace("|", "\\|")
            yield f"| `{column['name']}` | {kind} | {column['unit'] or ''} | {meaning} |\n"


def main() -> None:
    PAGE.write_text(HEAD + "".join(sections()), encoding="utf-8")


if __name__ == "__main__":
    main()
