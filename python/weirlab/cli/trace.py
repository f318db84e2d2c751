"""`weir trace` and `weir diagnose`: what is in a packet trace, and what limited its flows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weirlab.cli import shared
from weirlab.cli.progress import progress_bar
from weirlab.cli.tables import say, show_records

if TYPE_CHECKING:
    from weirlab.api.captured import Diagnosis
    from weirlab.traces import Trace
    from weirlab.traces.coverage import Coverage
    from weirlab.traces.model import Finding


_JSON_FLOWS = 100
"""Directions whose tables --json prints; --out keeps those of all."""

_FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A capture: pcap, pcapng or ERF."),
]


@dataclass(frozen=True)
class Reading:
    """Options: how a capture is read; those of `weirlab.trace`."""

    every: Annotated[
        str, typer.Option(metavar="TIME", help="Length of an interval of the series, such as '10 ms'.")
    ] = "100 ms"
    stream_packets: Annotated[
        int | None, typer.Option(min=8, help="Packets of a probe stream. Default: detected.")
    ] = None
    link_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Rate of the sender's link, for probe streams.")
    ] = None
    connections: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1 << 30,
            help="Most connections to keep, at about 4 kB of memory each. Default: 262144.",
        ),
    ] = None


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("trace")(trace)
    app.command("diagnose")(diagnose)


def trace(
    file: _FileArgument,
    *,
    reading: Reading,
    report: shared.ReportFlag = False,
    perfetto: shared.PerfettoOption = None,
    out: shared.OutOption = None,
    as_json: shared.JsonFlag = False,
) -> None:
    """Show the flows of a packet trace: throughput, round trips, retransmissions, reordering, limits, gaps,
    probe streams, and findings. --json adds the series by interval, and --report draws them.

    \b
    Examples:
      weir trace capture.pcapng
      weir trace capture.pcap --every '10 ms' --report
      weir trace capture.pcapng --perfetto frames.perfetto-trace
      weir trace dag.erf --stream-packets 80 --link-rate '1 Gbit/s' --json
    """
    from weirlab.api.captured import trace as read
    from weirlab.results import claimed_directory

    keeps = report or out is not None
    with (
        claimed_directory(file.stem, out) if keeps else nullcontext() as directory,
        progress_bar("reading", file.name) as progress,
    ):
        result = read(file, **asdict(reading), out=directory, progress=progress)
    page = shared.write_page(directory) if report and directory is not None else None
    if perfetto is not None:
        from weirlab.api.timelines import perfetto as write_perfetto

        with progress_bar("writing", perfetto.name) as progress:
            timeline = write_perfetto(file, perfetto, link_rate=reading.link_rate, progress=progress)
        shared.tell_timeline(timeline, perfetto)
    found = result.trace
    if as_json:
        shared.print_json(
            {
                "trace": dict(found.facts),
                "interfaces": found["interfaces"].to_dicts(),
                "flows": found.flows().to_dicts(),
                "points": found["points"].to_dicts(),
                **_summaries(found),
                "findings": [asdict(finding) for finding in result.findings],
                "result": None if result.directory is None else str(result.directory),
            }
        )
        return
    _tell_ending(found)
    shared.show_result(result, page)


def diagnose(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="A capture, or the directory of a result with a capture or probe streams.",
        ),
    ],
    *,
    reading: Reading,
    report: shared.ReportFlag = False,
    as_json: shared.JsonFlag = False,
) -> None:
    """Report what limited the flows of a packet trace, with evidence: windows, loss, queues, stalls.

    \b
    Examples:
      weir diagnose capture.pcapng --report
      weir diagnose results/my-run --json
    """
    from weirlab.api.captured import diagnose as find

    with progress_bar("reading", file.name) as progress:
        result = find(file, **asdict(reading), progress=progress)
    page = _diagnosis_page(file, result) if report else None
    if as_json:
        shared.print_json(result.document)
        return
    found = None if result.trace is None else result.trace.trace
    looked = result.coverage
    if found is not None:
        _tell_ending(found)
    flows = [
        "" if found is None or finding.flow is None else found.flow_name(finding.flow)
        for finding in result.findings
    ]
    rows = [
        {name: getattr(each, name) for name in ("verdict", "kind", "title", "where", "text")} | {"flow": flow}
        for each, flow in zip(result.findings, flows, strict=True)
    ]
    if show_records("Findings", rows):
        return
    named: set[str] = set()
    for finding, flow in zip(result.findings, flows, strict=True):
        _tell_finding(finding, flow, remedy=finding.kind not in named)
        named.add(finding.kind)
    for where, kinds in result.not_found.items():
        if kinds:
            say(f"not found {where}: {', '.join(map(_numbered, kinds))}")
    if looked is not None:
        for reason, kinds in _by_reason(looked).items():
            say(f"not looked for: {', '.join(kinds)}: {reason}")
        if looked.left_out:
            say(f"not looked at: {'; '.join(looked.left_out)}")
    shared.conclude(result.summary())
    if page is not None:
        shared.show_place(page.parent, page)


def _diagnosis_page(file: Path, result: Diagnosis) -> Path:
    """The page of the trace, kept in a directory of its own; of a result without a capture, its page."""
    from weirlab.results import claimed_directory

    if result.trace is None:
        return shared.write_page(file)
    with claimed_directory(file.stem) as directory:
        result.trace.save(directory)
    return shared.write_page(directory)


def _tell_finding(finding: Finding, flow: str, *, remedy: bool) -> None:
    say(f"{finding.verdict}: {finding.title} ({_numbered(finding.kind, ', {}')})")
    for line in filter(None, [finding.where, flow, finding.text]):
        say(line, lead="  ")
    for row in finding.evidence[:3]:
        say(", ".join(_fact(name, value) for name, value in row.items()), lead="    ")
    if finding.remedy and remedy:
        say(f"What to do: {finding.remedy}", lead="  ")


def _by_reason(looked: Coverage) -> dict[str, list[str]]:
    """The same, by reason."""
    lines: dict[str, list[str]] = {}
    for kind, reason in looked.reasons.items():
        count = looked.directions - looked.looked_for[kind]
        some = "" if count == looked.directions else f" (in {count} of {looked.directions} directions)"
        lines.setdefault(reason, []).append(kind + some)
    return lines


def _numbered(kind: str, place: str = " ({})") -> str:
    """A kind of finding, with the statement of the study of Rapid that it represents."""
    from weirlab.traces.model import STATEMENTS

    return kind + place.format(STATEMENTS[kind]) if kind in STATEMENTS else kind


def _summaries(found: Trace) -> dict[str, object]:
    """The short tables of a trace, and its series, for the directions with most bytes."""
    from weirlab.traces.summary import gap_quantiles, limits, stream_shapes

    heavy = found.flows().head(_JSON_FLOWS).select("flow")
    tables = {
        "limits": limits(found).drop("name"),
        "gaps": gap_quantiles(found),
        "repeats": found["repeats"],
        "streams": stream_shapes(found),
        "intervals": found["intervals"],
    }
    return {
        name: table.join(heavy, on="flow", how="semi", maintain_order="left").to_dicts()
        for name, table in tables.items()
    }


def _tell_ending(found: Trace) -> None:
    facts = found.facts
    if facts["ending"] != "whole":
        shared.tell(f"{found.name}: {facts['ending']}; {facts['frames']:,} frames before it were read")


_UNITS = {"s": "s", "ms": "ms", "us": "us", "bytes": "B", "bps": "bit/s"}
"""Units at the end of names of columns, as people write them."""


def _fact(name: str, value: object) -> str:
    """A value of a row of evidence, such as 'flight 99912 B' for the column 'flight_bytes'."""
    text = "unknown" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    what, _, end = name.rpartition("_")
    if end not in _UNITS:
        return f"{name.replace('_', ' ')} {text}"
    unit = "" if value is None else f" {_UNITS[end]}"
    return f"{'at' if what == 't' else what.replace('_', ' ')} {text}{unit}"
