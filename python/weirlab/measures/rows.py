"""What all measures share: the rows of records that they look at, and one value for each replicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weirlab.errors import InputError
from weirlab.heavy import pl

if TYPE_CHECKING:
    from weirlab.records import Records


FRAMES = ("sent_frames", "delivered_frames", "dropped_frames", "live_frames")
"""What becomes of frames: columns of `flows`."""

Window = tuple[int, int]
"""Two times [ps] from the begin of a run, on edges of the recorded intervals."""


class MissingRecordError(InputError):
    """A measure needs rows that the run did not record."""


def port_rows(records: Records, ports: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Rows of `ports` for the whole run, or those of `intervals` that make up the window."""
    if window is None:
        return records["ports"].filter(pl.col("port").is_in(list(ports)))
    return windowed(records, "intervals", "port", ports, window)


def flow_rows(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Rows of `flows` that belong to these entries of traffic, without what only comes back to senders."""
    chosen = _data_flows(records, traffic)
    return records["flows"].join(chosen, on="flow", how="inner", maintain_order="left")


def frame_counts(records: Records) -> pl.DataFrame:
    """The table `runs` with the sums of `FRAMES` over all flows of data, and `acknowledgement_frames` and
    `dropped_acknowledgements`: those sent and dropped of what only comes back to senders."""
    names = records["flow_names"]
    back: list[int] = []
    if "carries" in names.columns:
        back = names.get_column("flow").filter(names["carries"] == "acknowledgements").to_list()
    found: dict[object, dict[str, Any]] = {}
    # By columns: a point of a study has few rows, and a query with a join takes longer than its simulation.
    for (replicate,), rows in records["flows"].partition_by("replicate", as_dict=True).items():
        is_back = rows["flow"].is_in(back) if back else None
        data = rows if is_back is None else rows.filter(~is_back)
        returned = rows.clear() if is_back is None else rows.filter(is_back)
        found[replicate] = {
            **{name: data[name].sum() for name in FRAMES},
            "acknowledgement_frames": returned["sent_frames"].sum(),
            "dropped_acknowledgements": returned["dropped_frames"].sum(),
        }
    runs = records["runs"]
    columns = (*FRAMES, "acknowledgement_frames", "dropped_acknowledgements")
    of_runs = [found.get(replicate, {}) for replicate in runs["replicate"]]
    sums = {name: pl.Series(name, [each.get(name) for each in of_runs], pl.UInt64) for name in columns}
    return pl.DataFrame([*runs, *sums.values()])


def _data_flows(records: Records, traffic: Sequence[int]) -> pl.DataFrame:
    """Columns `flow traffic` of these entries of traffic, without what only comes back to senders."""
    names = records["flow_names"]
    chosen = names.get_column("traffic").is_in(list(traffic))
    if "carries" in names.columns:
        chosen &= names.get_column("carries") == "data"
    return pl.DataFrame([names.get_column(column).filter(chosen) for column in ("flow", "traffic")])


def windowed(records: Records, table: str, key: str, ids: Sequence[int], window: Window) -> pl.DataFrame:
    """The intervals of a table that make up the window exactly, for all ids. Raises MissingRecordError
    otherwise."""
    rows = recorded(records, table, key, ids)
    return within(rows, key, window)


def within(rows: pl.DataFrame, key: str, window: Window) -> pl.DataFrame:
    """The intervals that make up the window exactly, for all ids. Raises MissingRecordError otherwise."""
    start, stop = window
    edges = rows.group_by("replicate", key).agg(
        starts=(pl.col("t_ps") == start).any() | (start == 0), stops=(pl.col("t_ps") == stop).any()
    )
    if not edges.select((pl.col("starts") & pl.col("stops")).all()).item():
        raise MissingRecordError(
            f"the window {start} .. {stop} ps does not begin and end on recorded intervals"
        )
    return rows.filter((pl.col("t_ps") > start) & (pl.col("t_ps") <= stop))


def recorded(
    records: Records, table: str, key: str, ids: Sequence[int], window: Window | None = None
) -> pl.DataFrame:
    """All intervals of a table, or those that make up the window, for all ids. Raises MissingRecordError
    when an id was not recorded."""
    if window is not None:
        return windowed(records, table, key, ids, window)
    rows = records[table].filter(pl.col(key).is_in(list(ids)))
    known = set(rows.get_column(key).unique())
    if absent := [number for number in ids if number not in known]:
        names = records[f"{key}_names"].filter(pl.col(key).is_in(absent)).get_column("name").to_list()
        raise MissingRecordError(f"this needs a series of {', '.join(names)}: add an entry to 'record'")
    return rows


def summed_series(records: Records, ports: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Columns `replicate t_ps length_ps queue_bytes drops`: recorded intervals of ports, summed over them.

    Raises MissingRecordError when a port was not recorded, or in other intervals than the first."""
    rows = recorded(records, "intervals", "port", ports, window)
    levels = (
        rows.group_by("replicate", "t_ps")
        .agg(pl.col("queue_bytes").cast(pl.Float64).sum(), pl.col("drops").sum(), ports=pl.len())
        .sort("replicate", "t_ps")
    )
    if levels.filter(pl.col("ports") != len(set(ports))).height:
        names = records["port_names"].filter(pl.col("port").is_in(list(ports))).get_column("name").to_list()
        raise MissingRecordError(f"{', '.join(names)} are not recorded in the same intervals")
    before = pl.col("t_ps").shift(1).over("replicate").fill_null(0 if window is None else window[0])
    return levels.with_columns(length_ps=(pl.col("t_ps") - before).cast(pl.Float64))


def flow_intervals(records: Records, traffic: Sequence[int], window: Window | None = None) -> pl.DataFrame:
    """Recorded intervals of each flow of these entries of traffic, without what only comes back to senders:
    columns `replicate flow t_ps bytes`.

    The series of an entry that has one flow is that of the flow. Raises MissingRecordError where an entry of
    several flows was recorded as a whole, or not at all."""
    flows = _data_flows(records, traffic)
    columns = ["replicate", "flow", "t_ps", "bytes"]
    single = records["flow_deliveries"].join(flows, on="flow", how="semi").select(columns)
    rest = flows.join(single, on="flow", how="anti")
    if rest.is_empty():
        return single if window is None else within(single, "flow", window)
    # The series of a whole entry is the sum of its flows.
    crowded = rest.filter(pl.col("traffic").is_duplicated())
    if crowded.height:
        first = records["traffic_names"].join(crowded, on="traffic", how="semi").item(0, "name")
        raise MissingRecordError(
            f"this needs a series of each flow of {first}: add an entry with 'by: flow' to 'record'"
        )
    alone = recorded(records, "deliveries", "traffic", rest.get_column("traffic").to_list())
    rows = pl.concat([single, alone.join(rest, on="traffic").select(columns)], how="vertical_relaxed")
    return rows if window is None else within(rows, "flow", window)


def traffic_intervals(records: Records, traffic: Sequence[int], window: Window) -> pl.DataFrame:
    """The recorded intervals of entries of traffic that make up the window: columns `replicate bytes` and
    more.

    The series of an entry's flows, all of them, are those of the entry. Raises MissingRecordError where an
    entry was not recorded."""
    flows = _data_flows(records, traffic)
    single = records["flow_deliveries"].join(flows, on="flow", how="inner")
    by_flow = [number for number in traffic if number in set(single.get_column("traffic"))]
    whole = [number for number in traffic if number not in by_flow]
    parts = [windowed(records, "deliveries", "traffic", whole, window)] if whole else []
    if by_flow:
        parts.append(within(single.filter(pl.col("traffic").is_in(by_flow)), "flow", window))
    return pl.concat([part.select("replicate", "t_ps", "bytes") for part in parts], how="vertical_relaxed")


def by_replicate(
    records: Records,
    rows: pl.DataFrame,
    value: pl.Expr,
    *,
    per_ps: bool = False,
    window: Window | None = None,
    over: float = 1.0,
) -> pl.DataFrame:
    """`value` of the rows of each replicate, divided by `over`, and with `per_ps` by the time; null where
    there are no rows."""
    # One by one: sums of several groups at once may end in another last digit than that of one alone.
    parts = rows.partition_by("replicate", as_dict=True, maintain_order=True)
    found = {
        replicate: part.select(value.cast(pl.Float64)).item(0, 0) for (replicate,), part in parts.items()
    }
    runs = records["runs"]
    replicates = runs.get_column("replicate")
    values = pl.Series("value", [found.get(replicate) for replicate in replicates], pl.Float64)
    if over != 1.0:
        values = _quotient([values, pl.Series([over])])
    if per_ps:
        time = pl.Series([float(window[1] - window[0])]) if window else runs.get_column("end_ps")
        values = _quotient([values, time.cast(pl.Float64)])
    return pl.DataFrame([replicates, values.rename("value")])


def quotient(above: pl.Expr, below: pl.Expr) -> pl.Expr:
    """One column over another, or over a number, of a whole table. Polars 2.1 divides by a number in one way
    where there is one row and in another where there are several: the last digit would depend on how many
    replicates are evaluated together."""
    return pl.map_batches([above, below], _quotient, pl.Float64)


def _quotient(parts: Sequence[pl.Series]) -> pl.Series:
    above, below = parts
    return above / (below if len(below) == len(above) else below.new_from_index(0, len(above)))


def jain_index(column: str) -> pl.Expr:
    """Jain's index of the values x_i of n rows: (sum x)^2 / (n sum x^2), in [1/n, 1]; 1 is fair. Null where
    all are 0.

    Source: Jain 1984.
    """
    squares = (pl.col(column) ** 2).sum()
    return pl.when(squares > 0).then(pl.col(column).sum() ** 2 / (pl.len() * squares))
