"""The report of a live transfer by Rapid."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from weirlab.documents import typed
from weirlab.errors import InputError
from weirlab.plots.rapid import rapid_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.shared import evidence_table, result_page, section
from weirlab.results import Manifest, read_json
from weirlab.testbed.rapid import Settings
from weirlab.testbed.rapid.transfer import TransferDocument
from weirlab.traces.model import STATEMENTS, Finding

_CLEAR = {
    "ramp-lost": "streams left as ramps",
    "no-excursion": "where queues grew, enough excursions were seen, or estimates stay below the link's rate",
    "over-estimation": "no two recoveries after estimates above what was delivered",
    "tail-spill": "streams do not start back to back",
    "bookkeeping": "retransmissions are the sum of their causes",
}
_FINDINGS = {kind: STATEMENTS[kind] for kind in _CLEAR}
"""Number in the text, by the name in docs/traces.md. Source: Rapid UDP, (3) and (4) I to IV"""


def rapid_page(directory: Path, manifest: Manifest) -> tuple[page.Page, list[Plot]]:
    """The page, and its plots. Raises InputError when the directory does not hold a whole result."""
    found = transfer_document(directory)
    settings = Settings.model_validate(read_json(directory / "settings.json"))
    tables = {file.stem: pl.read_parquet(file) for file in (directory / "tables").glob("*.parquet")}
    plots = rapid_plots(
        tables,
        found["link_bps"],
        found["elapsed_s"],
        sending_s=settings.duration.s,
    )
    doubts = (
        page.Callout("To be doubted", f"{remark[0].upper()}{remark[1:]}.") for remark in found["remarks"]
    )
    transfer, gaps = transfer_tables(found, settings)
    made = result_page(
        "Rapid",
        manifest,
        title=f"Rapid to {found['peer']}",
        subtitle=f"{found['variant']}, link of {found['link_bps'] / 1e6:g} Mbit/s",
        lead=[_cards(found), *doubts],
        sections=[
            section("Findings", _findings(found), *_evidence(found)),
            section("Plots", plots=plots, otherwise="Nothing was sent."),
            section("The transfer", transfer),
            section("Gaps", gaps),
            section("Loss events", _losses(tables["losses"])),
            section("Settings", _settings_table(settings)),
        ],
        story=_story(found),
    )
    return made, plots


def transfer_document(directory: Path) -> TransferDocument:
    """The `result.json` of a transfer. Raises InputError."""
    path = directory / "result.json"
    try:
        return typed(TransferDocument, read_json(path))
    except ValueError as error:
        raise InputError(f"{path}: not that of a transfer: {error}") from error


def _found(found: TransferDocument) -> list[Finding]:
    return [typed(Finding, each) for each in found["findings"]]


def _story(found: TransferDocument) -> list[str]:
    """What was delivered and what was found."""
    cards = _cards(found).cards
    said = [
        f"{card.label}: {card.value}" + (f" ({card.detail})." if card.detail else ".") for card in cards[:2]
    ]
    kinds = {each.kind for each in _found(found)}
    problems = [f"{kind} ({name})" for kind, name in _FINDINGS.items() if kind in kinds]
    problems += sorted(kinds - set(_FINDINGS))
    said.append(f"Found: {', '.join(problems)}." if problems else "Nothing was found that went wrong.")
    return said


def _cards(found: TransferDocument) -> page.Numbers:
    streams = found["streams"]
    intact = streams["intact_share"]
    median = streams["available_p50_bps"]
    timeouts = found["counts"]["timeouts"]
    tone: page.Tone = (
        "" if intact is None else "good" if intact >= 0.95 else "middling" if intact >= 0.6 else "bad"
    )
    return page.Numbers(
        [
            page.Card("Goodput, second half", f"{_mbps(found['settled_goodput_bps'])} Mbit/s"),
            page.Card(
                "Available bandwidth",
                f"{_mbps(median)} Mbit/s",
                "median of the estimates of the second half",
            ),
            page.Card("Streams intact", page.percent(intact), f"of {streams['count']}", tone=tone),
            page.Card("Loss events", str(found["loss_events"]), f"{timeouts} timeout{'s' * (timeouts != 1)}"),
        ]
    )


def _mbps(value: float | None) -> str:
    return page.number(None if value is None else value / 1e6)


def _findings(found: TransferDocument) -> page.Table:
    """What the text found of version 0.9.2, and whether it is seen here."""
    reported = {finding.kind: finding for finding in _found(found)}
    rows: list[dict[page.Head, str]] = []
    tones: list[page.Tone] = []
    for kind, name in _FINDINGS.items():
        finding = reported.get(kind)
        text = (
            f"Not found: {_CLEAR[kind]}, or too few streams to decide." if finding is None else finding.text
        )
        seen = "no" if finding is None else "yes"
        rows.append({"kind:": name, "finding:": kind, "seen:": seen, "what was found:": text})
        tones.append("" if finding is None else "bad" if finding.verdict == "problem" else "middling")
    return page.Table.by_head(
        "Findings I to V of the published study, in this transfer",
        rows,
        tones=tones,
        note="Rules: docs/traces.md. What the network dropped is not known at the sender.",
    )


def _evidence(found: TransferDocument) -> list[page.Details]:
    return [
        page.Details(
            f"{_FINDINGS.get(finding.kind, '')} {finding.title}: where to look",
            [evidence_table(finding.kind, finding.evidence)],
        )
        for finding in _found(found)
        if finding.evidence
    ]


def _losses(losses: pl.DataFrame) -> page.Table | page.Text:
    if losses.is_empty():
        return page.Text("No losses were repaired.")
    return page.Table.of(
        "Times in which losses were repaired and no streams were sent",
        losses,
        {"began [s]": ("began_s", _seconds), "ended [s]": ("ended_s", _seconds), "cause:": "cause"},
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _settings_table(settings: Settings) -> page.Table:
    columns = page.heads("setting: | value:")
    plain = settings.model_dump(mode="json")
    fields = plain.pop("transport_fields")
    rows = [(name, str(value)) for name, value in plain.items() if value not in (None, "", {})]
    rows += [(f"transport: {name}", str(value)) for name, value in (fields or {}).items()]
    return page.Table("What the sender was set to", columns, rows)


def transfer_sentence(found: TransferDocument) -> str:
    """What a transfer came to; `found` as `Transfer.document` gives it."""
    goodput, streams = found["goodput_bps"], found["streams"]
    rate = "An unknown part" if goodput is None else f"{goodput / 1e6:.1f} Mbit/s"
    share = "" if goodput is None else f", {goodput / found['link_bps']:.1%} of the link"
    intact = streams["intact_share"]
    whole = "" if intact is None else f"; {intact:.1%} of {streams['count']} streams arrived intact"
    losses = found["loss_events"]
    events = "no loss event" if losses == 0 else f"{losses} loss event{'' if losses == 1 else 's'}"
    return f"{rate} of data was delivered in {found['elapsed_s']:.1f} s{share}, with {events}{whole}."


def transfer_tables(found: TransferDocument, settings: Settings) -> list[page.Table]:
    """The numbers of a transfer, and its gaps; `found` as `Transfer.document` gives it."""
    streams, counts, receiver = found["streams"], found["counts"], found["receiver"]

    def mbps(value: float | None) -> str:
        return "unknown" if value is None else f"{value / 1e6:.1f} Mbit/s"

    def percent(value: float | None) -> str:
        return "unknown" if value is None else f"{100 * value:.1f} %"

    delivered = "unknown" if receiver is None else f"{receiver['delivered_bytes'] / 1e6:.1f} MB"
    available = (streams["available_p10_bps"], streams["available_p50_bps"], streams["available_p90_bps"])
    rtt = "unknown" if found["min_rtt_s"] is None else f"{1e3 * found['min_rtt_s']:.2f} ms"
    rows = [
        ("goodput", mbps(found["goodput_bps"])),
        ("goodput, second half", mbps(found["settled_goodput_bps"])),
        ("delivered, each byte once", delivered),
        ("least round-trip time", rtt),
        ("streams, intact", f"{streams['count']}, {page.percent(streams['intact_share'])}"),
        ("streams with an excursion", page.percent(streams["excursion_share"])),
        ("available bandwidth, second half (p10, p50, p90)", ", ".join(map(mbps, available))),
        ("loss events, timeouts", f"{found['loss_events']}, {counts['timeouts']}"),
        ("segments sent, sent again", f"{counts['segments']}, {counts['retransmits']}"),
        ("ending", found["ending"]),
    ]
    gaps = found["gaps"]
    quantiles = [
        (f"p{100 * quantile:g}", f"{ns / 1e3:+.2f}")
        for quantile, ns in zip(gaps["quantiles"], gaps["error_ns"], strict=False)
    ]
    if gaps["count"]:
        quantiles += [
            ("within 1 us", page.percent(gaps["within_1_us"] / gaps["count"])),
            ("within a quarter", page.percent(gaps["within_a_quarter"] / gaps["count"])),
        ]
    priority = "SCHED_FIFO" if found["host"]["real_time"] else "ordinary priority"
    spin = settings.spin_ps
    waiting = f"sleeps, then spins for {spin / 1e6:.0f} us" if spin else "sleeps"
    return [
        page.Table(f"Rapid ({found['variant']}) to {found['peer']}", page.heads("what: | value:"), rows),
        page.Table(
            f"Achieved minus requested gaps ({priority}, {waiting})",
            page.heads("quantile: | error [us]"),
            quantiles,
        ),
    ]
