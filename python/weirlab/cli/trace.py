"""`weir trace` and `weir diagnose`: what is in a packet trace, and what limited its flows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirlab.cli.frame import JsonFlag, OutOption, ReportFlag, print_json, show, show_place, tell, write_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.traces import Finding, Trace
    from weirlab.traces.coverage import Coverage

__all__ = ["add_to"]

_JSON_FLOWS = 100
"""Directions whose tables --json tells; --out keeps those of all."""

_FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A capture: pcap, pcapng or ERF.", show_default=False),
]
_EveryOption = Annotated[
    str, typer.Option("--every", metavar="TIME", help="Length of an interval of the series, such as '10 ms'.")
]
_StreamOption = Annotated[
    int | None,
    typer.Option(
        "--stream-packets", min=8, help="Packets of a probe stream; found out otherwise.", show_default=False
    ),
]
_RateOption = Annotated[
    str | None,
    typer.Option(
        "--link-rate",
        metavar="RATE",
        help="Rate of the sender's link, for probe streams.",
        show_default=False,
    ),
]
_ConnectionsOption = Annotated[
    int | None,
    typer.Option(
        "--connections",
        min=1,
        max=1 << 30,
        help="Connections that are told apart, of about 4 kB of memory each. Default: 262144.",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("trace", short_help="Show the flows of a packet trace and what was found in it.")(trace)
    app.command("diagnose", short_help="Say what limited the flows of a packet trace.")(diagnose)


def trace(
    file: _FileArgument,
    every: _EveryOption = "100 ms",
    stream_packets: _StreamOption = None,
    link_rate: _RateOption = None,
    connections: _ConnectionsOption = None,
    report: ReportFlag = False,
    out: OutOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the flows of a packet trace: throughput, round trips, retransmissions, reordering, limits, gaps,
    probe streams, and findings. --json has the series by interval, too, and --report draws them.

    \b
    Examples:
      weir trace capture.pcapng
      weir trace capture.pcap --every '10 ms' --report
      weir trace dag.erf --stream-packets 80 --link-rate '1 Gbit/s' --json
    """
    from weirlab.report.trace import detail_tables, finding_table, flow_table
    from weirlab.traces import diagnose as find

    found = _read(file, every, stream_packets, link_rate, connections)
    directory = _keep(found, file, out) if report or out is not None else None
    findings = find(found)
    if as_json:
        print_json(
            {
                "trace": dict(found.facts),
                "interfaces": found["interfaces"].to_dicts(),
                "flows": found.flows().to_dicts(),
                "points": found["points"].to_dicts(),
                **_summaries(found),
                "findings": [asdict(finding) for finding in findings],
                "result": None if directory is None else str(directory),
            }
        )
        if report and directory is not None:
            write_page(directory)
        return
    _tell_ending(found)
    if found.flows().is_empty():
        typer.echo(_nothing_to_see(found))
    else:
        kept = "tables/{} with '--out DIR'" if directory is None else "tables/{}"
        show(flow_table(found, kept=kept))
        for table in detail_tables(found, most=10, kept=kept):
            show(table)
    if findings:
        show(finding_table(found, findings, most=30, where="what --json prints"))
    elif _coverage(found).directions:
        typer.echo(_all_clear(_coverage(found)))
    if directory is not None:
        show_place(directory, write_page(directory) if report else None)


def diagnose(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="A capture, or the directory of a result that holds one, or probe streams.",
            show_default=False,
        ),
    ],
    every: _EveryOption = "100 ms",
    stream_packets: _StreamOption = None,
    link_rate: _RateOption = None,
    connections: _ConnectionsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what limited the flows of a packet trace, with evidence: windows, loss, queues, stalls.

    \b
    Examples:
      weir diagnose capture.pcapng
      weir diagnose results/my-run --json
    """
    from weirlab.traces import diagnose as find

    of_run = _of_run(file) if file.is_dir() else None
    capture = _capture_of(file, needed=of_run is None)
    found = None if capture is None else _read(capture, every, stream_packets, link_rate, connections)
    findings = [*(of_run or ()), *(() if found is None else find(found))]
    clear = _not_found(findings, of_run is not None, found)
    looked = None if found is None else _coverage(found)
    if as_json:
        print_json(
            {
                "trace": None if found is None else dict(found.facts),
                "findings": [asdict(finding) for finding in findings],
                "not_found": clear,
                "not_looked_for": {} if looked is None else _lacks(looked),
                "not_looked_at": [] if looked is None else list(looked.left_out),
            }
        )
        return
    if found is not None:
        _tell_ending(found)
    if found is not None and found.flows().is_empty():
        typer.echo(_nothing_to_see(found))
    elif looked is not None and not looked.directions and not of_run:
        typer.echo(f"Nothing was judged: no TCP direction has {_least_packets()} segments of data.")
    elif not findings:
        typer.echo(_all_clear(looked))
    named = set()
    for finding in findings:
        typer.echo(f"{finding.verdict}: {finding.title} ({_numbered(finding.kind, ', {}')})")
        if finding.where:
            typer.echo(f"  {finding.where}")
        if found is not None and finding.flow is not None:
            typer.echo(f"  {found.flow_name(finding.flow)}")
        typer.echo(f"  {finding.text}")
        for row in finding.evidence[:3]:
            typer.echo("    " + ", ".join(f"{name} {_short(value)}" for name, value in row.items()))
        if finding.remedy and finding.kind not in named:
            named.add(finding.kind)
            typer.echo(f"  What to do: {finding.remedy}")
    for where, kinds in clear.items():
        if kinds:
            typer.echo(f"not found {where}: {', '.join(map(_numbered, kinds))}")
    if looked is not None:
        for reason, kinds in _by_reason(looked).items():
            typer.echo(f"not looked for: {', '.join(kinds)}: {reason}")
        if looked.left_out:
            typer.echo(f"not looked at: {'; '.join(looked.left_out)}")


def _all_clear(looked: Coverage | None) -> str:
    """That nothing was found, and whether all was looked for."""
    if looked is not None and looked.reasons:
        return "Nothing was found, but the capture does not show enough to look for everything."
    return "Nothing was found that limited the flows or went wrong."


def _least_packets() -> int:
    from weirlab.traces.findings import LEAST_PACKETS

    return LEAST_PACKETS


def _coverage(found: Trace) -> Coverage:
    from weirlab.traces.coverage import coverage

    return coverage(found)


def _lacks(looked: Coverage) -> dict[str, dict[str, Any]]:
    """Kinds that were not looked for in every direction that was judged: in how many, and why."""
    return {
        kind: {"directions": looked.directions - looked.looked_for[kind], "reason": reason}
        for kind, reason in looked.reasons.items()
    }


def _by_reason(looked: Coverage) -> dict[str, list[str]]:
    """The same, by reason."""
    lines: dict[str, list[str]] = {}
    for kind, reason in looked.reasons.items():
        count = looked.directions - looked.looked_for[kind]
        some = "" if count == looked.directions else f" (in {count} of {looked.directions} directions)"
        lines.setdefault(reason, []).append(kind + some)
    return lines


def _not_found(findings: list[Finding], of_run: bool, found: Trace | None) -> dict[str, list[str]]:
    """What was looked for and found nowhere, by where it was looked for."""
    from weirlab.traces import probing, simulated

    looked: dict[str, Sequence[str]] = {}
    if of_run:
        looked["in the records of probing senders"] = simulated.KINDS
    if found is not None and (kinds := _coverage(found).everywhere):
        looked["in the trace"] = kinds
    if found is not None and not found["p_streams"].is_empty():
        looked["in the probe streams of the trace"] = probing.KINDS
    # A finding of a run names its connection, one of a trace its flow.
    seen = {(finding.kind, bool(finding.where)) for finding in findings}
    if ("losses", False) in seen:
        # Which of both it was is not known.
        seen |= {("lossy-path", False), ("queue-overflow", False)}
    return {
        where: [kind for kind in kinds if (kind, where.startswith("in the records")) not in seen]
        for where, kinds in looked.items()
    }


def _numbered(kind: str, place: str = " ({})") -> str:
    """A kind of finding, with the statement of the study of Rapid that it stands for."""
    from weirlab.traces.model import STATEMENTS

    return kind + place.format(STATEMENTS[kind]) if kind in STATEMENTS else kind


def _nothing_to_see(found: Trace) -> str:
    facts = found.facts
    if facts["short_frames"] == facts["frames"]:
        return f"{found.name}: {facts['frames']:,} frames, cut so short that none shows an address"
    return f"{found.name}: {facts['frames']:,} frames, and none of IP among them"


def _summaries(found: Trace) -> dict[str, Any]:
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


def _of_run(directory: Path) -> list[Finding] | None:
    """What the records of a simulated run tell of its probing senders; None when there are none."""
    from weirlab.records import Records
    from weirlab.traces import diagnose_records

    if not (directory / "tables" / "probe_streams.parquet").exists():
        return None
    records = Records.load(directory / "tables")
    return None if records["probe_streams"].is_empty() else diagnose_records(records)


def _read(
    file: Path, every: str, stream_packets: int | None, link_rate: str | None, connections: int | None
) -> Trace:
    from weirlab._core import parse_quantity
    from weirlab.cli.progress import progress_bar
    from weirlab.errors import InputError
    from weirlab.traces import read_trace
    from weirlab.traces.reading import CONNECTIONS

    def quantity(kind: str, option: str, text: str) -> int:
        try:
            value = parse_quantity(kind, text)
        except ValueError as error:
            raise InputError(f"{option}: {error}") from error
        if value <= 0:
            raise InputError(f"{option}: more than 0 (got {text})")
        return value

    every_ps = quantity("span", "--every", every)
    rate = None if link_rate is None else quantity("rate", "--link-rate", link_rate)
    with progress_bar("reading", file.name) as progress:
        found = read_trace(
            file,
            every_ps=every_ps,
            stream_packets=stream_packets,
            link_rate_bps=rate,
            connections=connections or CONNECTIONS,
            watch=progress,
        )
    if not found.facts["frames"]:
        ending = found.facts["ending"]
        raise InputError(
            f"{file}: holds no frame" + ("" if ending == "whole" else f" that can be read: {ending}")
        )
    return found


def _capture_of(path: Path, *, needed: bool) -> Path | None:
    """The capture that is meant: a file, or the only one in a result; None where there is none and none is
    needed."""
    from weirlab.errors import InputError

    if not path.is_dir():
        return path
    found = sorted(path.glob("*.pcapng"))
    if not found and not needed:
        return None
    if not found:
        raise InputError(
            f"{path}: holds no capture; a scenario records one with "
            "'record: {wire: {frames: PORTS, as: pcapng}}', and probe streams with "
            "'record: {streams: {p_streams: TRAFFIC}}'"
        )
    if len(found) > 1 and not needed:
        return None
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise InputError(f"{path}: holds {len(found)} captures: name one of {names}")
    return found[0]


def _keep(found: Trace, file: Path, out: Path | None) -> Path:
    from weirlab.results import Manifest, Provenance, claimed_directory
    from weirlab.traces import save_trace

    manifest = Manifest(kind="trace", name=file.stem, provenance=Provenance.now())
    with claimed_directory(file.stem, out) as directory:
        manifest.write(directory)
        save_trace(found, directory / "tables")
        manifest.ended("complete").write(directory)
    return directory


def _tell_ending(found: Trace) -> None:
    facts = found.facts
    if facts["ending"] != "whole":
        tell(f"{found.name}: {facts['ending']}; {facts['frames']:,} frames before it were read")


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
