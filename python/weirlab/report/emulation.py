"""The page of `weir emulate`: the path, what happened on each of its lines, and whether to rely on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weirlab.report.chain import campaign_picture
from weirlab.report.page import (
    Block,
    Callout,
    Card,
    Numbers,
    Page,
    Table,
    number,
    percent,
)
from weirlab.report.shared import result_page, seconds_text, section
from weirlab.results import Manifest, Provenance
from weirlab.scenario import Scenario
from weirlab.testbed.path_report import LineReport, PathReport


def emulation_page(scenario: Scenario, reported: PathReport, *, seed: int, began: Provenance) -> Page:
    """What an emulator reports of a path, as a page."""
    provenance = began.ended()
    manifest = Manifest(kind="path", name=scenario.name, status="complete", seed=seed, provenance=provenance)
    arrived, lost, dropped = (
        sum(line.counts[name] for line in reported.lines) for name in ("arrived", "lost", "dropped")
    )
    dropped += sum(line.counts["dropped_early"] for line in reported.lines)
    lead: list[Block] = [
        Numbers(
            [
                Card("Packets", number(arrived), "on all lines together"),
                Card("Lost", number(lost), percent(lost / arrived) if arrived else ""),
                Card("Dropped by queues", number(dropped), percent(dropped / arrived) if arrived else ""),
                Card(
                    "Emulated",
                    seconds_text(reported.elapsed_s),
                    "with real-time priority" if reported.real_time else "without real-time priority",
                    tone="bad" if reported.degraded else "good",
                ),
            ]
        ),
        *(Callout("Degraded", f"{reason}.", "bad") for reason in reported.degraded),
        *([Callout("Disturbed", f"{reported.disturbance}.", "middling")] if reported.disturbance else []),
    ]
    return result_page(
        "Emulation",
        manifest,
        scenario,
        lead=lead,
        sections=[
            section("Path", campaign_picture(scenario, "The path that was emulated")),
            section("Lines", _line_table(reported)),
        ],
        story=[_verdict(reported), *_losses(reported)],
    )


def _verdict(reported: PathReport) -> str:
    said = reported.verdict.replace("above", "below")
    return f"{said[0].upper()}{said[1:]}."


def _losses(reported: PathReport) -> Sequence[str]:
    worst = max(reported.lines, key=lambda line: line.dropped + line.counts["lost"])
    gone, arrived = worst.dropped + worst.counts["lost"], worst.counts["arrived"]
    if not gone:
        return ["No packet was lost or dropped."]
    everywhere = sum(line.dropped + line.counts["lost"] for line in reported.lines)
    dropped = number(worst.dropped) if worst.dropped else "none"
    where = "Most were lost at" if everywhere > gone else "Lost at"
    return [
        f"{where} {worst.hop} {worst.direction}: {number(gone)} of {number(arrived)} packets "
        f"({percent(gone / arrived)}), {dropped} of them by its queue."
    ]


def _line_table(reported: PathReport) -> Table:
    def us(value: float | None) -> str:
        return "–" if value is None else number(1e6 * value, 3)

    def count(name: str) -> Callable[[LineReport], str]:
        return lambda line: number(line.counts[name])

    return Table.of(
        "What happened to packets, by line and direction",
        reported.lines,
        {"hop:": "hop", "direction:": "direction"},
        {name: count(name) for name in ("arrived", "lost", "dropped")},
        {"dropped early": count("dropped_early"), "marked": count("marked"), "doubled": count("duplicated")},
        {
            "late, median [µs]": lambda line: us(line.lateness_s and line.lateness_s["p50"]),
            "late, 99 % [µs]": ("lateness_p99_s", us),
        },
        note="Late: behind the time at which the model of the line lets a packet go.",
    )
