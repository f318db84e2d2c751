"""Time-sequence graphs of TCP, as users of tcptrace and Wireshark know them: what was sent when, what was
acknowledged, and the end of the receiver's window.

A page holds at most `ROWS` marks. Above that, neighbours in time are drawn as one that covers all of them:
what was sent again, came late or was reported missing keeps its colour, and no extreme is lost.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from weirlab.analysis.timeline import flow_names
from weirlab.heavy import np
from weirlab.plots.style import Plot, scaled
from weirlab.plots.trace import sequence_plot
from weirlab.report.page import Network
from weirlab.traces import Trace, read_trace

if TYPE_CHECKING:
    from weirlab.runs import Run

ROWS = 400_000
"""Most marks of a page, of all connections."""
FLOWS = 12
"""Most connections that are drawn."""
_PS_PER_NS = 1000


@dataclass(frozen=True)
class Thinned:
    """Marks of one flow; times in ns since the start of the trace, places in bytes of the stream."""

    flow: int
    segments: pl.DataFrame
    """Data, or neighbours of one kind: `from_ns to_ns low high kind many`."""
    acks: pl.DataFrame
    """What was acknowledged, and the ends of the window until then, null where no window is known:
    `at_ns ack edge_low edge_high duplicates`."""
    sacks: pl.DataFrame
    """Blocks of selective acknowledgment, with the columns of segments."""
    step_ns: int
    """What neighbours were put together over; 0: nothing was."""


def sequence_block(trace: Trace, names: Mapping[str, str] | None = None) -> tuple[Network, Plot] | None:
    """The graphs of the connections with most bytes, one at a time, and the one of them that stands on paper;
    None where no packets of TCP are known one by one. `names` has other names of flows."""
    tcp = trace.flows().filter(pl.col("protocol") == 6)
    known = trace["packets"].join(trace["kind_names"], on="kind")
    heavy = [flow for flow in tcp.get_column("flow").to_list() if flow in set(known.get_column("flow"))]
    heavy = heavy[:FLOWS]
    if not heavy:
        return None
    graphs = [thinned(trace, known, flow, ROWS // len(heavy)) for flow in heavy]
    called = [_called(trace, flow, names or {}) for flow in heavy]
    plot = sequence_plot(trace, heavy[0], called[0])
    data = {
        "kinds": trace["kind_names"].sort("kind").get_column("name").to_list(),
        "flows": [
            {"name": name, **_packed(graph), "recoveries": _recoveries(trace, graph.flow)}
            for name, graph in zip(called, graphs, strict=True)
        ],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Network(
        "What was sent and acknowledged when", _note(graphs), plot.inline_svg(), text, "sequence"
    ), plot


def run_sequences(run: Run, directory: Path | None) -> tuple[Network, Plot] | None:
    """The graphs of the first capture of the first replicate of a run; None where it holds no TCP."""
    if run.records["connections"].is_empty():
        return None
    names = flow_names(run.scenario, run.records)
    if run.captures:
        name = next((name for name in sorted(run.captures) if name.endswith(_FIRST)), None)
        if name is None:
            return None
        with TemporaryDirectory() as place:
            file = Path(place) / name
            file.write_bytes(run.captures[name])
            return sequence_block(read_trace(file), names)
    files = [] if directory is None else sorted(directory.glob(f"*{_FIRST}"))
    return sequence_block(read_trace(files[0]), names) if files else None


_FIRST = "-0.pcapng"
"""How captures of the first replicate end."""


def _called(trace: Trace, flow: int, names: Mapping[str, str]) -> str:
    name = trace.flow_name(flow)
    return names.get(name, name)


def _recoveries(trace: Trace, flow: int) -> list[list[int]]:
    """When each recovery began and ended [ns], and how many segments were sent again in it."""
    rows = trace["recoveries"].filter(pl.col("flow") == flow).sort("t_ps")
    rows = rows.sort("retransmitted", descending=True, maintain_order=True).head(500).sort("t_ps")
    parts = rows.select(pl.col("t_ps", "end_ps") // _PS_PER_NS, "retransmitted").cast(pl.Int64)
    return [list(row) for row in parts.iter_rows()]


def thinned(trace: Trace, known: pl.DataFrame, flow: int, most: int) -> Thinned:
    """At most about `most` marks of a flow: those within a short time, and near each other in the stream, are
    one that covers them."""
    packets = known.filter(pl.col("flow") == flow).sort("t_ps")
    acks = trace["acks"].filter(pl.col("flow") == flow).sort("t_ps")
    sacks = trace["sacks"].filter(pl.col("flow") == flow).sort("t_ps")
    marks = packets.select(
        from_ns=_ns(),
        to_ns=_ns(),
        low=pl.col("seq").cast(pl.Int64),
        high=(pl.col("seq") + pl.col("payload_bytes")).cast(pl.Int64),
        kind=pl.col("kind").cast(pl.Int64),
        many=pl.lit(1, pl.Int64),
    )
    blocks = sacks.select(
        from_ns=_ns(), to_ns=_ns(), low=pl.col("left").cast(pl.Int64), high=pl.col("right").cast(pl.Int64)
    ).with_columns(kind=pl.lit(0, pl.Int64), many=pl.lit(1, pl.Int64))
    length_ns = max((int(packets.item(-1, "t_ps")) - int(packets.item(0, "t_ps"))) // _PS_PER_NS, 1)
    per_ns = int(marks.select(pl.col("high").max()).item()) / length_ns
    step = 0
    while True:
        found = Thinned(
            flow, _joined(marks, step, per_ns), _acks(acks, step), _joined(blocks, step, per_ns), step
        )
        if found.segments.height + found.acks.height + found.sacks.height <= most or step > length_ns:
            return found
        step = max(1000, length_ns // most) if step == 0 else step * 2


def _ns() -> pl.Expr:
    return pl.col("t_ps").cast(pl.Int64) // _PS_PER_NS


def _joined(marks: pl.DataFrame, step_ns: int, per_ns: float) -> pl.DataFrame:
    """Marks of one kind within `step_ns`, and within what is sent in twice that on average, as one."""
    if not step_ns:
        return marks
    stretch = max(1, round(2 * step_ns * per_ns))
    key = [
        pl.col("kind"),
        (pl.col("from_ns") // step_ns).alias("cell"),
        (pl.col("low") // stretch).alias("part"),
    ]
    return (
        marks.group_by(*key)
        .agg(
            pl.col("from_ns", "low").min(),
            pl.col("to_ns", "high").max(),
            pl.col("many").sum(),
        )
        .sort("from_ns", "low")
        .select(marks.columns)
    )


def _acks(acks: pl.DataFrame, step_ns: int) -> pl.DataFrame:
    """Each acknowledgment, or of those within `step_ns` the time of the last, the extremes, and the last."""
    rows = acks.select(
        at_ns=_ns(),
        ack=pl.col("ack").cast(pl.Int64),
        edge=pl.col("edge").cast(pl.Int64),
        duplicate=pl.col("duplicate").fill_null(0).cast(pl.Int64),
    )
    # The line of acknowledgments never falls: one that comes late says nothing new.
    rows = rows.with_columns(ack=pl.col("ack").cum_max())
    if not step_ns:
        return rows.select("at_ns", "ack", edge_low="edge", edge_high="edge", duplicates="duplicate")
    return (
        rows.group_by(cell=pl.col("at_ns") // step_ns)
        .agg(
            pl.col("at_ns").max(),
            pl.col("ack").max(),
            edge_low=pl.col("edge").min(),
            edge_high=pl.col("edge").max(),
            duplicates=pl.col("duplicate").sum(),
        )
        .sort("at_ns")
        .drop("cell")
    )


def _packed(graph: Thinned) -> dict[str, object]:
    """Columns as differences from one row to the next, which are small, in bytes of seven bits."""
    segments, acks, sacks = graph.segments, graph.acks, graph.sacks
    stretch = (pl.col("to_ns") - pl.col("from_ns")).alias("to_ns")
    size = (pl.col("high") - pl.col("low")).alias("high")
    beyond = (pl.col("edge_low") - pl.col("ack")).fill_null(-1).alias("edge_low")
    wider = (pl.col("edge_high") - pl.col("edge_low")).fill_null(0).alias("edge_high")
    parts = [
        (segments.with_columns(stretch, size), ("from_ns", "low"), ("to_ns", "high", "kind", "many")),
        (acks.with_columns(beyond, wider), ("at_ns", "ack"), ("edge_low", "edge_high", "duplicates")),
        (sacks.with_columns(stretch, size), ("from_ns", "low"), ("to_ns", "high", "many")),
    ]
    columns = []
    for frame, stepped, plain in parts:
        columns += [np.diff(frame.get_column(name).to_numpy(), prepend=0) for name in stepped]
        columns += [frame.get_column(name).to_numpy() for name in plain]
    packed = zlib.compress(b"".join(_varints(column) for column in columns), 9)
    return {
        "rows": [segments.height, acks.height, sacks.height],
        "marks": b64encode(packed).decode(),
        "step": graph.step_ns,
    }


def _varints(values: Any) -> bytes:
    """Whole numbers, the sign in the lowest bit, seven bits a byte, the lowest first."""
    left = (values.astype(np.int64) << 1 ^ values.astype(np.int64) >> 63).astype(np.uint64)
    rows = np.zeros((len(left), 10), dtype=np.uint8)
    used = np.ones(len(left), dtype=np.int64)
    for place in range(10):
        more = left > 127
        rows[:, place] = (left & np.uint64(127)).astype(np.uint8) | more.astype(np.uint8) << 7
        left = left >> np.uint64(7)
        if not more.any():
            break
        used[more] = place + 2
    return bytes(rows[np.arange(10) < used[:, None]])


def _note(graphs: Sequence[Thinned]) -> str:
    said = [
        "Bars: data, from its first byte to its last; steps: what was acknowledged, and the end of the "
        "receiver's window; ticks on the steps: duplicate acknowledgments."
    ]
    step_ns = max(graph.step_ns for graph in graphs)
    if step_ns:
        factor, unit = scaled(step_ns * _PS_PER_NS, "time")
        said.append(
            f"Of long connections, what came within {step_ns * _PS_PER_NS * factor:.3g} {unit} is one bar "
            "that covers all of it; nothing that was sent again is left out."
        )
    return " ".join(said)
