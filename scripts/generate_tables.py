"""Write docs/tables.md: every table of a run with its columns, their units and what they mean.

The compiled core says all of it. The documentation's configuration calls this; the page is not kept.
"""

from collections.abc import Iterator
from pathlib import Path

from weirlab import _core

PAGE = Path(__file__).resolve().parent.parent / "docs/tables.md"
HEAD = """# Tables of a run

A run writes these tables down: `run.records["flows"]` in Python, `tables/flows.parquet` in its
[directory](using.md). Facts only: counts, sums, integrals, extremes, stamps; [measures](scenarios.md) are
worked out of them.

- Every table but those of names has a column `replicate`. Ids are places in the tables of names: `port` in
  `port_names`, `flow` in `flow_names` and so on; `run.records.named("drops")` puts the names beside them.
- What is unknown is null, never 0. Only columns that say `or null` have any.
- Units end the name: `_ps` picoseconds, `_bytes` bytes, `_bps` bit/s. What exceeds 64 bits, such as sums of
  delays, is a `f64`.
- A transmission counts when it begins, all else when it happens. What happens at the end of an interval
  belongs to the next one, what happens at the end of the run to none.

The same words stand in the schema of the Arrow tables that the compiled core hands over (`about` of a table,
`unit` and `meaning` of a column), and in the metadata of saved files under `weirlab`. Tables of captures are
listed under [traces](traces.md).
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
