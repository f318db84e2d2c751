"""`weirlab.trace` and `weirlab.diagnose`: what is in a capture, and what limited its flows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab._core import parse_quantity
from weirlab.api.result import Result, Sentences, Shelf, as_html
from weirlab.errors import InputError
from weirlab.files import Scratch
from weirlab.records import Records
from weirlab.results import Manifest, Provenance, claimed_directory
from weirlab.traces import (
    Finding,
    Trace,
    diagnose as find,
    diagnose_records,
    probing,
    read_trace,
    save_trace,
    simulated,
)
from weirlab.traces.coverage import Coverage, coverage
from weirlab.traces.reading import CONNECTIONS
from weirlab.working import followed

if TYPE_CHECKING:
    import polars as pl

    from weirlab.plots.style import Plot
    from weirlab.report.page import Block, Page


Watch = Callable[[int, int], None]


class TraceResult(Result):
    """The flows of a packet trace, and what was found in it."""

    kind = "trace"

    def __init__(self, found: Trace, directory: Path | None = None, kept: Scratch | None = None) -> None:
        manifest = (
            Manifest(kind="trace", name=Path(found.name).stem, status="complete", provenance=Provenance.now())
            if directory is None
            else Manifest.read(directory)
        )
        super().__init__(manifest, directory, kept=kept)
        self.trace = found
        """The trace itself."""

    @property
    def facts(self) -> Mapping[str, object]:
        """What is known of the file as a whole."""
        return self.trace.facts

    @property
    def flows(self) -> pl.DataFrame:
        """The directions of all connections, most bytes first."""
        return self.trace.flows()

    @cached_property
    def findings(self) -> list[Finding]:
        """What limited the flows, or went wrong."""
        return find(self.trace)

    @cached_property
    def coverage(self) -> Coverage:
        """What was looked for, and why not everywhere."""
        return coverage(self.trace)

    @cached_property
    def tables(self) -> Shelf[pl.DataFrame]:
        """All tables of the trace; see `Result.tables` and docs/traces.md."""
        return Shelf({name: partial(self.trace.__getitem__, name) for name in self.trace.tables})

    def _sentences(self) -> Sequence[str]:
        from weirlab.report.trace import trace_sentences

        return trace_sentences(self.trace, self.findings, self.coverage)

    def blocks(self) -> list[Block]:
        """The flows, their details, and the findings."""
        from weirlab.report.trace import detail_tables, finding_table, flow_tables

        if self.flows.is_empty():
            return []
        kept = "tables/{}" if self.directory is not None else "tables/{} with '--out DIR'"
        found = [finding_table(self.trace, self.findings, most=30)] if self.findings else []
        return [*flow_tables(self.trace, kept=kept), *detail_tables(self.trace, most=10, kept=kept), *found]

    def _page(self) -> tuple[Page, list[Plot]]:
        from weirlab.report.trace import trace_page

        return trace_page(self.trace, self._manifest)

    def _save(self, place: Path) -> None:
        self._manifest.write(place)
        save_trace(self.trace, place / "tables")
        self._manifest.ended("complete").write(place)


def trace(
    file: str | Path,
    *,
    every: str = "100 ms",
    stream_packets: int | None = None,
    link_rate: str | None = None,
    connections: int | None = None,
    out: str | Path | None = None,
    progress: Watch | None = None,
) -> TraceResult:
    """Read a packet trace, as `weir trace` does: its flows, and what was found in it.

    Args:
        file: A capture: pcap, pcapng or ERF.
        every: Length of an interval of the series.
        stream_packets: Packets of a probe stream; found out otherwise.
        link_rate: Rate of the sender's link, for probe streams.
        connections: Connections that are distinguished, of about 4 kB of memory each. Default: 262144.
        out: A new or empty directory to keep the tables in. Default: in memory alone, until it is saved.
        progress: Called with how far the reading has come.

    Raises:
        InputError: It is no capture, or holds no frame.
    """
    name = Path(file).stem
    place = None if out is None else Path(out)
    with (
        nullcontext() if place is None else claimed_directory(name, place),
        nullcontext(progress) if place is None else followed(place, "trace", name, progress) as progress,
    ):
        result = TraceResult(read_capture(file, every, stream_packets, link_rate, connections, progress))
        if out is not None:
            result.save(out)
    return result


def read_capture(
    file: str | Path,
    every: str,
    stream_packets: int | None,
    link_rate: str | None,
    connections: int | None,
    progress: Watch | None,
) -> Trace:
    """The trace in a file that holds at least one frame. Raises InputError."""
    every_ps = _quantity("span", "every", every)
    rate = None if link_rate is None else _quantity("rate", "link-rate", link_rate)
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


def _quantity(kind: str, option: str, text: str) -> int:
    try:
        value = parse_quantity(kind, text)
    except ValueError as error:
        raise InputError(f"--{option}: {error}") from error
    if value <= 0:
        raise InputError(f"--{option}: more than 0 (got {text})")
    return value


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What limited the flows of a trace, with evidence, and what was looked for in vain."""

    trace: TraceResult | None
    """None where only the records of a run were judged."""
    findings: Sequence[Finding]
    not_found: Mapping[str, Sequence[str]]
    """What was looked for and found nowhere, by where it was looked for."""
    of_run: bool
    """Whether records of probing senders were judged."""

    @property
    def coverage(self) -> Coverage | None:
        """What was looked for in the trace, and why not everywhere."""
        return None if self.trace is None else self.trace.coverage

    @property
    def document(self) -> dict[str, object]:
        """What `weir diagnose --json` prints."""
        looked = self.coverage
        return {
            "trace": None if self.trace is None else dict(self.trace.facts),
            "findings": [asdict(finding) for finding in self.findings],
            "not_found": self.not_found,
            "not_looked_for": {} if looked is None else _lacks(looked),
            "not_looked_at": [] if looked is None else list(looked.left_out),
        }

    def summary(self) -> Sentences:
        """What was found, in sentences; the one that matters is the first."""
        from weirlab.report.trace import diagnosis_sentences

        if self.trace is not None and self.trace.flows.is_empty():
            return self.trace.summary()
        return Sentences(diagnosis_sentences(self.findings, None if self.of_run else self.coverage))

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.findings)} findings>"

    def _repr_html_(self) -> str:
        from weirlab.report.page import Column, Table

        names = ("verdict", "finding", "what was found")
        rows = [[each.verdict, each.title, each.text] for each in self.findings]
        table = Table("Findings", [Column(name, numeric=False) for name in names], rows)
        return f"<b>{self.summary()[0]}</b>{as_html([table])}"


def _lacks(looked: Coverage) -> dict[str, dict[str, object]]:
    """Kinds that were not looked for in every direction that was judged: in how many, and why."""
    return {
        kind: {"directions": looked.directions - looked.looked_for[kind], "reason": reason}
        for kind, reason in looked.reasons.items()
    }


def diagnose(
    file: str | Path | TraceResult,
    *,
    every: str = "100 ms",
    stream_packets: int | None = None,
    link_rate: str | None = None,
    connections: int | None = None,
    progress: Watch | None = None,
) -> Diagnosis:
    """Say what limited the flows of a packet trace, as `weir diagnose` does: windows, loss, queues, stalls.

    Args:
        file: A capture; the directory of a result that holds one, or probe streams; or what `weirlab.trace`
            gave.
        every, stream_packets, link_rate, connections, progress: As of `weirlab.trace`.

    Raises:
        InputError: There is no capture, or several.
    """
    if isinstance(file, TraceResult):
        found: TraceResult | None = file
        of_run = None
    else:
        path = Path(file)
        of_run = _of_run(path) if path.is_dir() else None
        capture = _capture_of(path, needed=of_run is None)
        found = (
            None
            if capture is None
            else TraceResult(read_capture(capture, every, stream_packets, link_rate, connections, progress))
        )
    findings = [*(of_run or ()), *(() if found is None else found.findings)]
    return Diagnosis(found, findings, _not_found(findings, of_run is not None, found), of_run is not None)


def _not_found(findings: Sequence[Finding], of_run: bool, found: TraceResult | None) -> dict[str, list[str]]:
    """What was looked for and found nowhere, by where it was looked for."""
    looked: dict[str, Sequence[str]] = {}
    if of_run:
        looked["in the records of probing senders"] = simulated.KINDS
    if found is not None and (kinds := found.coverage.everywhere):
        looked["in the trace"] = kinds
    if found is not None and not found.trace["p_streams"].is_empty():
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


def _of_run(directory: Path) -> list[Finding] | None:
    """What the records of a simulated run say of its probing senders; None when there are none."""
    if not (directory / "tables" / "probe_streams.parquet").exists():
        return None
    records = Records.load(directory / "tables")
    return None if records["probe_streams"].is_empty() else diagnose_records(records)


def _capture_of(path: Path, *, needed: bool) -> Path | None:
    """The capture that is meant: a file, or the only one in a result; None where there is none and none is
    needed."""
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
