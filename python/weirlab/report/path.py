"""The report of a characterized path."""

from __future__ import annotations

import math
from pathlib import Path

from weirlab.campaigns.path import Characterization, HopEstimate, WayBack, load_path
from weirlab.campaigns.path.characterize import is_settled
from weirlab.plots.path import path_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.chain import path_picture
from weirlab.report.shared import result_page, seconds_text, section
from weirlab.results import Manifest

_ENDINGS = {
    "settled": "each link is known well enough",
    "rounds": "the most rounds were made",
    "probes": "the most probes were sent",
    "time": "the time was spent",
    "interrupted": "interrupted",
}


def path_page(directory: Path, manifest: Manifest) -> tuple[page.Page, list[Plot]]:
    """The page, and its plots."""
    found, back = load_path(directory)
    estimates = found.estimates()
    plots = path_plots(found)
    bottleneck = _bottleneck(estimates)
    lead: list[page.Block] = [_cards(found, estimates, bottleneck)]
    if not found.route.reached:
        lead.append(page.Callout("The destination does not answer", found.route.ending))
    notes = (*found.route.notes, *found.notes, *found.doubts())
    lead += [page.Text(f"{note[0].upper()}{note[1:]}.") for note in notes]
    made = result_page(
        "Path",
        manifest,
        title=f"Path to {manifest.name}",
        subtitle="" if manifest.name == found.route.destination else found.route.destination,
        lead=lead,
        sections=[
            section("Hops", path_picture(found), hop_table(found)),
            section("Plots", plots=plots, otherwise="Too few probes were answered."),
            section("The way back", None if back is None else back_table(back)),
        ],
        story=path_sentences(found),
    )
    return made, plots


def path_sentences(found: Characterization) -> list[str]:
    """The narrowest link, whether the destination answers, and how much was probed."""
    estimates = found.estimates()
    bottleneck = _bottleneck(estimates)
    narrowest = _cards(found, estimates, bottleneck).cards[0]
    known = f"{narrowest.label}: {narrowest.value} ({narrowest.detail})."
    sentences = [known if bottleneck else "The probes do not resolve the capacity of any link."]
    if not found.route.reached:
        sentences.append(f"The destination does not answer: {found.route.ending}.")
    sentences.append(
        f"{found.probes.height} probes in {found.seconds:.0f} s{stamped_text(found)}; ended because "
        f"{ending_text(found)}."
    )
    return sentences


def _bottleneck(estimates: tuple[HopEstimate, ...]) -> HopEstimate | None:
    """The hop behind the link of least capacity; None where no capacity is known."""
    least = min(estimates, key=_capacity_bps, default=None)
    return None if least is None or math.isinf(_capacity_bps(least)) else least


def _capacity_bps(each: HopEstimate) -> float:
    """That of the link to a hop; infinite where it is unknown or only a bound."""
    known = None if each.link is None else each.link.capacity_bps
    return math.inf if known is None else known


def _cards(
    found: Characterization, estimates: tuple[HopEstimate, ...], bottleneck: HopEstimate | None
) -> page.Numbers:
    settled = sum(found.settled())
    narrowest = page.Card("Least capacity", "–", "no link is resolved")
    if bottleneck is not None and bottleneck.link is not None:
        narrowest = page.Card(
            "Least capacity",
            f"{_mbps(bottleneck.link.capacity_bps)} Mbit/s",
            f"to hop {bottleneck.hop.hops}, {_range(bottleneck)} Mbit/s",
        )
    return page.Numbers(
        [
            narrowest,
            page.Card("Hops", str(len(found.route.hops)), f"{len(estimates)} answer"),
            page.Card(
                "Links known",
                f"{settled} of {len(estimates)}",
                f"to {page.percent(found.effort.precision)}, or as a bound; "
                f"ended because {ending_text(found)}",
                tone="good" if settled == len(estimates) else "middling",
            ),
            page.Card(
                "Probes",
                page.number(found.probes.height),
                f"{found.rounds} rounds in {seconds_text(found.seconds)}{stamped_text(found)}",
            ),
        ]
    )


def ending_text(found: Characterization) -> str:
    """Why no more probes were sent."""
    return _ENDINGS[found.ending]


def stamped_text(found: Characterization) -> str:
    """Of how many probes the kernel reported when they left, to go on with; empty where that is not known."""
    share = found.stamped_share()
    return "" if share is None else f"; the kernel reported when {page.percent(share)} of them left"


def hop_table(found: Characterization) -> page.Table:
    """A row for each hop, silent ones included."""
    estimates = {each.hop.hops: each for each in found.estimates()}
    rows: list[list[str]] = []
    tones: list[page.Tone] = []
    for hop in found.route.hops:
        each = estimates.get(hop.hops)
        cells = ["silent", *["–"] * 8] if each is None else [", ".join(hop.routers), *_cells(each)]
        rows.append([str(hop.hops), *cells])
        settled = each is None or is_settled(each, found.effort.precision)
        tones.append("" if settled else "middling")
    confidence = page.percent(found.effort.confidence)
    return page.Table(
        f"Path from {found.route.source} to {found.route.destination}",
        page.heads(
            f"hop | router: | RTT [ms, least] | capacity [Mbit/s] | {confidence} interval [Mbit/s] | "
            "adds to RTT [ms, size 0] | waited [ms, median / 95 %] | link adds [ms, mean] | "
            f"answered [of probes] | loss [%, {confidence}]"
        ),
        rows,
        tones=tones,
        note="Capacity and loss are those of the link to the hop from the one before that answers; >= is a "
        "bound. Several links in a row carry at least so much each. What waited: beyond "
        "the floor of its size, there and back. Loss is both ways; withheld: routers beyond answer more, so "
        "this one leaves probes without an answer.",
    )


def _cells(each: HopEstimate) -> list[str]:
    rtt = "–" if each.least_s is None else f"{1e3 * each.least_s:.3f}"
    capacity = interval = latency = "–"
    if each.link is not None:
        link = each.link
        if link.capacity_bps is not None:
            capacity = _mbps(link.capacity_bps)
        elif link.capacity_low_bps is not None:
            capacity = f">= {_mbps(link.capacity_low_bps)}"
        else:
            capacity = "not known"
        if each.after + 1 < each.hop.hops:
            capacity += f" ({each.hop.hops - each.after} links)"
        interval = _range(each)
        latency = f"{1e3 * link.round_trip_s:.3f}"
    waited = added = "–"
    if each.waiting is not None:
        waited = f"{1e3 * each.waiting.median_s:.3f} / {1e3 * each.waiting.p95_s:.3f}"
        half = 1e3 * (each.waiting.added_high_s - each.waiting.added_low_s) / 2
        added = f"{1e3 * each.waiting.added_s:.3f} ± {half:.3f}"
    loss = "withheld" if each.withholds else "–"
    if each.loss is not None:
        loss = f"{100 * each.loss.loss_ratio:.2f} ({100 * each.loss.low:.2f} .. {100 * each.loss.high:.2f})"
    return [rtt, capacity, interval, latency, waited, added, f"{each.answered} of {each.sent}", loss]


def _range(each: HopEstimate) -> str:
    if each.link is None or each.link.capacity_high_bps is None:
        return "–"
    return f"{_mbps(each.link.capacity_low_bps)} .. {_mbps(each.link.capacity_high_bps)}"


def _mbps(rate_bps: float | None) -> str:
    return page.number(None if rate_bps is None else rate_bps / 1e6)


def back_table(back: WayBack) -> page.Table:
    """The hops of the way back."""
    return page.Table.of(
        f"The way back from {back.host} to {back.target}" + ("" if back.reached else " (not reached)"),
        back.hops,
        {"hop": ("hops", str), "router:": lambda hop: ", ".join(hop.routers) or "silent"},
        {"RTT [ms, least]": ("rtt_s", lambda rtt_s: "–" if rtt_s is None else f"{1e3 * rtt_s:.3f}")},
    )
