"""What all measures share: the rows of records that they look at, and one value for each replicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.errors import InputError
from weirlab.heavy import pl

if TYPE_CHECKING:
    from weirlab.records import Records


FRAMES = ("sent_frames", "delivered_frames", "dropped_frames", "live_frames")
"""What becomes of frames: columns of `flows`."""

Window = tuple[int, int]
"""Two times [ps] from the start of a run, on edges of the recorded intervals."""


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
    counts = frame_sums(records)
    return records["runs"].with_columns(
        pl.Series(name, [row[name] for row in counts], pl.UInt64) for name in _SUMS if counts
    )


def frame_sums(records: Records) -> list[dict[str, int | None]]:
    """Of each replicate the columns that `frame_counts` adds, and `events`; null where no flow is known."""
    table = records.made_of("flows")
    data, back = None, []
    # Nothing but connections has acknowledgements.
    if "connection_names" not in records or len(records.made_of("connection_names")):
        data = data_flows(records)
        back = sorted(set(records.column("flow_names", "flow")) - set(data))
    sums = {name: table.totals(name, "flow", data) for name in FRAMES}
    sums["acknowledgement_frames"] = table.totals("sent_frames", "flow", back) if back else {}
    sums["dropped_acknowledgements"] = table.totals("dropped_frames", "flow", back) if back else {}
    known = table.totals("sent_frames", "flow", None)
    return [
        {"events": events, **{name: found.get(replicate, 0) for name, found in sums.items()}}
        if replicate in known
        else {"events": events, **dict.fromkeys(sums)}
        for replicate, events in zip(
            records.column("runs", "replicate"), records.column("runs", "events"), strict=True
        )
    ]


_SUMS = (*FRAMES, "acknowledgement_frames", "dropped_acknowledgements")


def data_flows(records: Records, traffic: Sequence[int] | None = None) -> list[int]:
    """Ids of the flows of these entries of traffic, or of all, without what only comes back to senders."""
    flows = records.column("flow_names", "flow")
    try:
        carried = records.column("flow_names", "carries")
    except KeyError:  # as of testbeds that know data alone
        carried = ["data"] * len(flows)
    wanted = None if traffic is None else set(traffic)
    entries = records.column("flow_names", "traffic")
    return [
        flow
        for flow, entry, carries in zip(flows, entries, carried, strict=True)
        if carries != "acknowledgements" and (wanted is None or entry in wanted)
    ]


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
    edges = rows.group_by("replicate", key, maintain_order=True).agg(
        starts=(pl.col("t_ps") == start).any() | (start == 0), stops=(pl.col("t_ps") == stop).any()
    )
    if not edges.select((pl.col("starts") & pl.col("stops")).all()).item():
        raise _no_edges(window)
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
        raise _unrecorded(records, key, absent)
    return rows


def _unrecorded(records: Records, key: str, absent: Sequence[int]) -> MissingRecordError:
    names = records[f"{key}_names"].filter(pl.col(key).is_in(absent)).get_column("name").to_list()
    return MissingRecordError(f"this needs a series of {', '.join(names)}: add an entry to 'record'")


def _no_edges(window: Window) -> MissingRecordError:
    start, stop = window
    return MissingRecordError(f"the window {start} .. {stop} ps does not start and end on recorded intervals")


def summed_series(records: Records, ports: Sequence[int], window: Window | None) -> pl.DataFrame:
    """Columns `replicate t_ps length_ps queue_bytes drops`: recorded intervals of ports, summed over them.

    Raises MissingRecordError when a port was not recorded, or in other intervals than the first."""
    rows = recorded(records, "intervals", "port", ports, window)
    levels = (
        rows.group_by("replicate", "t_ps", maintain_order=True)
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
    single = (
        records["flow_deliveries"].join(flows, on="flow", how="semi", maintain_order="left").select(columns)
    )
    rest = flows.join(single, on="flow", how="anti", maintain_order="left")
    if rest.is_empty():
        return single if window is None else within(single, "flow", window)
    # The series of a whole entry is the sum of its flows.
    crowded = rest.filter(pl.col("traffic").is_duplicated())
    if crowded.height:
        first = (
            records["traffic_names"]
            .join(crowded, on="traffic", how="semi", maintain_order="left")
            .item(0, "name")
        )
        raise MissingRecordError(
            f"this needs a series of each flow of {first}: add an entry with 'by: flow' to 'record'"
        )
    alone = recorded(records, "deliveries", "traffic", rest.get_column("traffic").to_list())
    rows = pl.concat(
        [single, alone.join(rest, on="traffic", maintain_order="left").select(columns)],
        how="vertical_relaxed",
    )
    return rows if window is None else within(rows, "flow", window)


def traffic_intervals(records: Records, traffic: Sequence[int], window: Window) -> pl.DataFrame:
    """The recorded intervals of entries of traffic that make up the window: columns `replicate bytes` and
    more.

    The series of an entry's flows, all of them, are those of the entry. Raises MissingRecordError where an
    entry was not recorded."""
    flows = _data_flows(records, traffic)
    single = records["flow_deliveries"].join(flows, on="flow", how="inner", maintain_order="left")
    by_flow = [number for number in traffic if number in set(single.get_column("traffic"))]
    whole = [number for number in traffic if number not in by_flow]
    parts = [windowed(records, "deliveries", "traffic", whole, window)] if whole else []
    if by_flow:
        parts.append(within(single.filter(pl.col("traffic").is_in(by_flow)), "flow", window))
    return pl.concat([part.select("replicate", "t_ps", "bytes") for part in parts], how="vertical_relaxed")


@dataclass(frozen=True)
class Totals:
    """What is asked of the rows of some ids in some time, by replicate."""

    records: Records
    table: str
    key: str
    ids: Sequence[int]
    window: Window | None = None

    @classmethod
    def of_ports(cls, records: Records, ports: Sequence[int], window: Window | None) -> Totals:
        """The rows of `ports` for the whole run, or those of `intervals` that make up the window. Raises
        MissingRecordError where these do not."""
        if window is None:
            return cls(records, "ports", "port", ports)
        absent, whole = records.made_of("intervals").covers("port", ports, window)
        if absent:
            raise _unrecorded(records, "port", absent)
        if not whole:
            raise _no_edges(window)
        return cls(records, "intervals", "port", ports, window)

    @classmethod
    def of_flows(cls, records: Records, traffic: Sequence[int]) -> Totals:
        """The rows of `flows` of these entries of traffic, without what only comes back to senders."""
        return cls(records, "flows", "flow", data_flows(records, traffic))

    def sum(self, column: str, ids: Sequence[int] | None = None) -> Mapping[int, float]:
        """The sum of a column, in the order of the rows; of these `ids` alone where they are given."""
        chosen = self.ids if ids is None else ids
        return self.records.made_of(self.table).totals(column, self.key, chosen, self.window)

    def max(self, column: str) -> Mapping[int, float]:
        """The greatest value of a column."""
        table = self.records.made_of(self.table)
        return table.totals(column, self.key, self.ids, self.window, greatest=True)

    def values(
        self, known: Mapping[int, float], value: Callable[[int], float | None] | None = None
    ) -> pl.DataFrame:
        """What a measure returns: what is `known` of each replicate, or its `value`; null for the others."""
        replicates, of = self.records.column("runs", "replicate"), value or known.__getitem__
        values = [of(replicate) if replicate in known else None for replicate in replicates]
        return pl.DataFrame(
            {"replicate": replicates, "value": values},
            schema={"replicate": pl.UInt32, "value": pl.Float64},
        )

    def time_ps(self, replicate: int) -> float:
        """The time measured over."""
        if self.window is not None:
            return float(self.window[1] - self.window[0])
        replicates = self.records.column("runs", "replicate")
        return float(self.records.column("runs", "end_ps")[replicates.index(replicate)])


def by_replicate(
    records: Records,
    rows: pl.DataFrame,
    value: pl.Expr,
    *,
    per_ps: bool = False,
    window: Window | None = None,
    empty: float | None = None,
) -> pl.DataFrame:
    """`value` of the rows of each replicate, with `per_ps` divided by the time; `empty` where there are no
    rows or no value."""
    # One by one: sums of several groups at once may end in another last digit than that of one alone.
    parts = rows.partition_by("replicate", as_dict=True, maintain_order=True)
    found = {
        replicate: part.select(value.cast(pl.Float64)).item(0, 0) for (replicate,), part in parts.items()
    }
    runs = records["runs"]
    replicates = runs.get_column("replicate")
    values = pl.Series("value", [found.get(replicate) for replicate in replicates], pl.Float64)
    if per_ps:
        time = pl.Series([float(window[1] - window[0])]) if window else runs.get_column("end_ps")
        values = _quotient([values, time.cast(pl.Float64)])
    filled = values if empty is None else values.fill_null(empty)
    return pl.DataFrame([replicates, filled.rename("value")])


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
