"""What the report of a run says of congestion control: frames that queues caused, and what limiters did."""

from __future__ import annotations

import polars as pl

from weirlab.plots.style import scaled
from weirlab.records import Records
from weirlab.report.page import Block, Code, Column, Section, Table, Text, heads, number, percent
from weirlab.report.shared import quantities, time_text
from weirlab.scenario.file.problems import listed

_ROWS = 120
_STANDS = 0.5
"""A port stands still that nothing was sent through for this share of the run, up to its end."""
_LEAST_BYTES = 64
"""The shortest frame: what waits behind a hold is no less."""


def held_in_a_cycle(records: Records) -> list[str]:
    """A sentence for each replicate at whose end PAUSE holds ports in a cycle, and for how long.

    A port is held by the node that it leads to, because of queues of that node. Where ports of those queues
    are held too, and so on in a cycle, none of them drains and none is released. Only ports count that have
    stood still for half of the run while frames waited: others are held now and then, or in vain. The
    records have the longest hold and the mean queue, from which both follow; a cycle that closed later than
    in the middle of the run is not reported.
    """
    ports = records.named("ports").join(records["runs"].select("replicate", "end_ps"), on="replicate")
    held = ports.filter(
        pl.col("paused_count") > 0,
        pl.col("paused_last_ps") >= pl.col("end_ps"),
        pl.col("paused_longest_ps") >= _STANDS * pl.col("end_ps"),
        pl.col("queue_byte_ps") >= _LEAST_BYTES * pl.col("paused_longest_ps").cast(pl.Float64),
    )
    sentences = []
    for (replicate,), rows in held.group_by("replicate", maintain_order=True):
        longest = dict(rows.select("port_name", "paused_longest_ps").iter_rows())
        cycle = _in_cycles(set(longest))
        if cycle:
            time = time_text(max(longest[name] for name in cycle))
            sentences.append(
                f"At the end of replicate {replicate} PAUSE holds {listed(sorted(cycle), 6)}, which wait for "
                f"each other if their queues lead to each other (longest hold so far: {time}); a longer run "
                "shows whether they are ever released. What waits there counts as under way, not as lost."
            )
    return sentences


def deadlocks(records: Records) -> list[str]:
    """A sentence for each replicate and class with ports that wait for each other for good."""
    if "deadlocks" not in records:
        return []
    sentences = []
    rows = records.named("deadlocks")
    for (replicate, class_), found in rows.group_by("replicate", "class", maintain_order=True):
        lasting = found.filter(pl.col("over_ps").is_null())
        shown = found if lasting.is_empty() else lasting
        names = shown.get_column("port_name").unique(maintain_order=True).to_list()
        first = shown.filter(pl.col("found_ps") == pl.col("found_ps").min())
        since, seen = (time_text(most) for most in first.select(pl.col("since_ps", "found_ps").max()).row(0))
        end = (
            "none is ever released. What waits there counts as under way, not as lost."
            if not lasting.is_empty()
            else f"it was over at {time_text(found.select(pl.col('over_ps').max()).item())}."
        )
        sentences.append(
            f"Deadlock in replicate {replicate}: class {class_} is held at {listed(names, 6)}, each of which "
            f"waits for others of them alone. It closed at {since} and was found at {seen}; {end}"
        )
    return sentences


def storms(records: Records) -> list[str]:
    """A sentence for each storm that a watchdog found, of the first replicate that has one."""
    if "storms" not in records or records["storms"].is_empty():
        return []
    rows = records.named("storms").sort("replicate", "found_ps", maintain_order=True)
    first = rows.row(0, named=True)
    over = (
        "and was not over at the end"
        if first["over_ps"] is None
        else f"over at {time_text(first['over_ps'])}"
    )
    more = "" if rows.height == 1 else f" (and {rows.height - 1} more in the table storms)"
    return [
        f"The watchdog found a storm of flow control at {first['port_name']}, class {first['class']}, at "
        f"{time_text(first['found_ps'])}, {over}{more}."
    ]


_MOST_LINES = 60
_DEEPEST = 12


def _tree(records: Records) -> Code:
    """Who stopped whom in the first replicate, from the roots outward, those that stood longest first."""
    names = dict(records["port_names"].select("port", "name").iter_rows())
    rows = records["hold_causes"].filter(pl.col("replicate") == pl.col("replicate").min())
    end_ps = int(records["runs"].get_column("end_ps")[0])
    stopped: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for row in rows.sort("stopped_ps", descending=True, maintain_order=True).iter_rows(named=True):
        key = (row["root_port"], row["class"], row["cause_port"])
        stopped.setdefault(key, []).append((row["port"], row["stopped_ps"]))
    lines: list[str] = []

    def below(root: int, class_: int, port: int, above: tuple[int, ...], indent: str) -> None:
        found = [each for each in stopped.get((root, class_, port), []) if each[0] not in above]
        for number_, (held, time_ps) in enumerate(found):
            is_last = number_ == len(found) - 1
            share = percent(time_ps / end_ps)
            lines.append(f"{indent}{'└' if is_last else '├'}─ {names[held]}  {share} of the time")
            if len(above) < _DEEPEST:
                below(root, class_, held, (*above, held), f"{indent}{'   ' if is_last else '│  '}")

    roots = dict.fromkeys((root, class_) for root, class_, _ in stopped)
    for root, class_ in roots:
        lines.append(f"{names[root]}, class {class_}")
        below(root, class_, root, (root,), "")
    more = len(lines) - _MOST_LINES
    return Code("\n".join([*lines[:_MOST_LINES], *([f"… and {more} more lines"] if more > 0 else [])]))


def _cause_table(records: Records) -> Table:
    names = records["port_names"]
    rows = (
        records.named("hold_causes")
        .join(names.select(cause_port="port", cause="name"), on="cause_port", maintain_order="left")
        .join(names.select(root_port="port", root="name"), on="root_port", maintain_order="left")
        .group_by("port_name", "class", "cause", "root", maintain_order=True)
        .agg(
            pl.col("stops").cast(pl.Float64).sum(),
            pl.col("stopped_ps").cast(pl.Float64).sum(),
            pl.col("depth").max(),
        )
        .sort("depth", "stopped_ps", descending=[False, True], maintain_order=True)
    )
    return Table.of(
        "Who was stopped because of whom",
        rows,
        {"stopped:": "port_name", "class": "class", "because of:": "cause", "root:": "root"},
        {"stops from the root": "depth", "stops": "stops", "time": ("stopped_ps", time_text)},
        most=_ROWS,
        where="tables/hold_causes.parquet",
        note=_many(records),
    )


def _in_cycles(ports: set[str]) -> set[str]:
    """Those of the ports `a->b` that lead on to others and that others lead to, again and again."""
    while True:
        ends = [port.split("->") for port in ports]
        sources, targets = {source for source, _ in ends}, {target for _, target in ends}
        kept = {f"{source}->{target}" for source, target in ends if target in sources and source in targets}
        if kept == ports:
            return kept
        ports = kept


def control_sections(records: Records) -> list[Section]:
    """A section, or none where no control frame was sent and no limiter made."""
    blocks: list[Block] = []
    if "marks" in records and records["marks"].height:
        blocks.append(_mark_table(records))
    if records["control_frames"].height:
        blocks.append(_frame_table(records))
    limiters = records["reaction_points"].filter(pl.col("made") > 0)
    if limiters.height:
        blocks.append(_limiter_table(records, limiters))
    if records["ports"].filter(pl.col("paused_count") > 0).height:
        blocks.append(_pause_table(records))
    if "holds" in records and records["holds"].height:
        held = _hold_table(records)
        blocks += [held] if held.rows else []
    if "hold_causes" in records and records["hold_causes"].height:
        blocks += [Text("Tree of pauses: each port was stopped because of the one above it."), _tree(records)]
        blocks.append(_cause_table(records))
    if "buffer_inputs" in records and records["buffer_inputs"].height:
        blocks.append(_input_table(records))
    return [Section("Congestion control", blocks)] if blocks else []


def _hold_table(records: Records) -> Table:
    """Classes that PFC held; where a link was paused as a whole the table of pauses says it."""
    paused = records["ports"].filter(pl.col("paused_count") > 0).select("replicate", "port")
    rows = (
        records.named("holds")
        .join(paused, on=["replicate", "port"], how="anti", maintain_order="left")
        .group_by("port_name", "class", maintain_order=True)
        .agg(
            pl.col("held_count").cast(pl.Float64).mean(),
            pl.col("held_ps").cast(pl.Float64).mean(),
            pl.col("held_longest_ps").max(),
        )
    )
    return Table.of(
        "Classes that flow control held (mean over replicates)",
        rows,
        {"port:": "port_name", "class": "class", "holds": "held_count"},
        {"held": ("held_ps", time_text), "longest": ("held_longest_ps", time_text)},
        most=_ROWS,
        where="tables/holds.parquet",
        note=_many(records),
    )


def _input_table(records: Records) -> Table:
    rows = (
        records.named("buffer_inputs")
        .group_by("port_name", "class", maintain_order=True)
        .agg(
            pl.col("max_bytes", "headroom_max_bytes").max(),
            pl.col("stops", "drops").cast(pl.Float64).mean(),
        )
    )
    return Table.of(
        "Buffers by input and class",
        rows,
        {"came over:": "port_name", "class": "class", "most [B]": "max_bytes"},
        {"most headroom [B]": "headroom_max_bytes", "stops": "stops", "dropped": "drops"},
        most=_ROWS,
        where="tables/buffer_inputs.parquet",
        note=_many(records),
    )


def _mark_table(records: Records) -> Table:
    marks = (
        records.named("marks").group_by("port", "port_name", maintain_order=True).agg(pl.col("frames").sum())
    )
    sent = records["ports"].group_by("port").agg(sent=pl.col("frames").sum())
    rows = marks.join(sent, on="port", maintain_order="left")
    share = pl.col("frames") / pl.max_horizontal("sent", pl.lit(1))
    return Table.of(
        "Frames marked by queues",
        rows.with_columns(share=share),
        {"queue:": "port_name", "marked": "frames", "of the frames sent": ("share", percent)},
        most=_ROWS,
        where="tables/marks.parquet",
        note=_many(records),
    )


def _frame_table(records: Records) -> Table:
    frames = (
        records.named("control_frames")
        .join(records["port_names"].select(queue_port="port", queue="name"), on="queue_port")
        .group_by("queue", "kind_name", maintain_order=True)
        .agg(pl.col("frames", "bytes").sum())
    )
    return Table.of(
        "Control frames by the queue that caused them",
        frames,
        {"queue:": "queue", "kind:": "kind_name", "frames": "frames", "bytes": "bytes"},
        most=_ROWS,
        where="tables/control_frames.parquet",
        note=_many(records),
    )


def _limiter_table(records: Records, limiters: pl.DataFrame) -> Table:
    names = records["flow_names"].select("flow", "name")
    counts = ("made", "removed", "increases", "decreases", "stops")
    rows = (
        limiters.join(names, on="flow")
        .group_by("name", maintain_order=True)
        .agg(pl.col(*counts).sum(), pl.col("limited_ps", "stopped_ps").cast(pl.Float64).mean())
    )
    factor, unit = scaled(float(rows.select(pl.col("limited_ps").max()).item()), "time")
    return Table.of(
        "Rate limiters by flow",
        rows.with_columns(pl.col("limited_ps", "stopped_ps") * factor),
        {"flow:": "name", **{name: name for name in counts}},
        {f"limited [{unit}]": "limited_ps", f"stopped [{unit}]": "stopped_ps"},
        most=_ROWS,
        where="tables/reaction_points.parquet",
        note=_many(records, "counts are sums, times means"),
    )


def _pause_table(records: Records) -> Table:
    rows = (
        records["ports"]
        .join(records["port_names"].select("port", "name"), on="port", maintain_order="left")
        .group_by("name", maintain_order=True)
        .agg(
            pl.col("paused_count").sum(),
            pl.col("paused_ps").cast(pl.Float64).mean(),
            pl.col("paused_longest_ps").cast(pl.Float64).max(),
            pl.col("paused_last_ps").max(),
        )
        .filter(pl.col("paused_count") > 0)
    )
    unit, times = quantities(
        "time", *(rows[f"paused_{name}"].to_list() for name in ("ps", "longest_ps", "last_ps"))
    )
    return Table(
        "Ports that PAUSE held",
        [
            *heads("port: | pauses"),
            *(Column(name, unit) for name in ("paused", "longest", "until")),
        ],
        [
            [row["name"], number(row["paused_count"]), *time]
            for row, *time in zip(rows.iter_rows(named=True), *times, strict=True)
        ],
        most=_ROWS,
        where="tables/ports.parquet",
        note=_many(records, "pauses are sums, 'paused' a mean, the others the greatest"),
    )


def _many(records: Records, how: str = "sums") -> str:
    count = records["runs"].height
    return f"{count} replicates: {how}." if count > 1 else ""
