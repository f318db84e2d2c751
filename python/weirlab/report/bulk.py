"""The report of a campaign of bulk transfers: what each point gave, and how it varies.

One file: each table is a function of the same points, and stands on one page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from weirlab.campaigns import Advice, Campaign, PointSummary, summaries
from weirlab.campaigns.tables import interval_table, measurement_table
from weirlab.errors import InputError
from weirlab.plots.bulk import bulk_plots
from weirlab.plots.style import Plot
from weirlab.report import page
from weirlab.report.chain import campaign_picture
from weirlab.report.shared import result_page, section
from weirlab.results import Manifest, read_json
from weirlab.scenario.plan.combinations import short_names
from weirlab.units import Size


def bulk_page(campaign: Campaign, manifest: Manifest, advice: str = "") -> tuple[page.Page, list[Plot]]:
    """The page, and its plots; with `advice`, a sentence a line, where any was asked for."""
    found = summaries(campaign)
    labels = {point: _label(levels) for point, levels in enumerate(campaign.plan.levels)}
    plots = bulk_plots(measurement_table(campaign), interval_table(campaign), labels)
    scenario = campaign.plan.scenario
    places = len(campaign.plan.places())
    answer = [*advice.splitlines()[:1], *campaign_sentences(campaign, found)] if found else []
    lead: list[page.Block] = [
        page.Numbers(
            [
                page.Card(
                    "Measurements",
                    f"{len(campaign.kept)}" + ("" if campaign.complete else f" of {places}"),
                    f"{_counted(len(labels), 'point')}, {_counted(campaign.plan.cycles, 'cycle')}",
                    tone="good" if campaign.complete else "bad",
                ),
                _most(found, labels),
                page.Card(
                    "Doubtful",
                    f"{sum(point.degraded for point in found)}",
                    f"on a degraded path; during foreign load: {sum(point.disturbed for point in found)}; "
                    f"failed: {sum(point.failed for point in found)}. None is left out.",
                ),
            ]
        ),
    ]
    timed = any(math.isfinite(point.loaded_p95_s) for point in found)
    made = result_page(
        "Campaign",
        manifest,
        scenario,
        lead=lead,
        sections=[
            section("Advice", *map(page.Text, advice.splitlines())),
            section(
                "Results",
                *point_tables(found, scenario.name, campaign.plan.cycles),
                *(page.Text(_joined_text(transports)) for transports in campaign.joined),
            ),
            section("Path", campaign_picture(scenario)),
            section("Latency under load", _latency_table(found) if timed else None),
            section("Loads", loads_table(found)),
            section("One-way delays", delays_table(found)),
            section("Responsiveness", responsiveness_table(found)),
            section("Plots", plots=plots, otherwise="Nothing has been measured yet."),
        ],
        story=answer,
    )
    return made, plots


def campaign_sentences(campaign: Campaign, found: list[PointSummary]) -> list[str]:
    """The point that carries most, how much was measured, and why some of it failed."""
    most = _most(found, {point: _label(levels) for point, levels in enumerate(campaign.plan.levels)})
    made, planned = len(campaign.kept), len(campaign.plan.places())
    of = "" if campaign.complete else f" of {planned}"
    sentences = [f"{most.label}: {most.value} ({most.detail}).", f"{made}{of} measurements."]
    if doubtful := sum(point.degraded for point in found):
        sentences.append(f"{doubtful} of them met a degraded path.")
    if failed := len(campaign.failed):
        sentences.append(f"{failed} failed, most of them so: {next(iter(campaign.failures))}.")
    return sentences


def _label(levels: Mapping[str, str]) -> str:
    return (
        ", ".join(f"{factor.rsplit('.', 1)[-1]} {level}" for factor, level in levels.items())
        or "as it stands"
    )


def _levels(found: Sequence[PointSummary]) -> Callable[[PointSummary], dict[page.Head, str]]:
    """What gives the levels of a point, by columns with the shortest distinct name of each factor: whole
    paths are as wide as a page."""
    names = short_names([*found[0].levels]).values()
    columns = [page.Column(name.replace("_", " "), numeric=False) for name in names]
    return lambda point: dict(zip(columns, point.levels.values(), strict=True))


def _joined_text(transports: tuple[str, ...]) -> str:
    """How an emulated path moved packets."""
    if not transports:
        return "The path moved every packet alone."
    words = " and ".join(transport.upper() for transport in transports)
    return f"The path moved packets of {words} joined, while its models saw each alone."


def _most(found: list[PointSummary], labels: Mapping[int, str]) -> page.Card:
    """The point with the greatest median goodput."""
    known = [
        (rate, place, word)
        for place, point in enumerate(found)
        for word, rate in (point.together_bps or {"": point.goodput_bps}).items()
        if math.isfinite(rate)
    ]
    if not known:
        return page.Card("Greatest goodput", "–", "nothing was measured")
    most, place, word = max(known)
    of = f"all loads together, {word}; " if word else ""
    return page.Card(
        "Greatest goodput", f"{page.number(most / 1e6, 3)} Mbit/s", f"{of}median, {labels[place]}"
    )


def point_tables(found: list[PointSummary], name: str, cycles: int) -> tuple[page.Table, page.Table]:
    """A row for each point of a campaign: what was delivered and waited for; and how, and how well."""
    levels = _levels(found)
    ways = [way for way in ("up", "down") if any(way in each.together_bps for each in found)]
    names = [load.name for each in found for load in each.loads if load.transport == "tcp"]
    goodput = page.Column(f"goodput of {names[0]}" if ways and names else "goodput", "Mbit/s")
    carried = page.Table.by_head(
        f"{name}, {_counted(cycles, 'cycle')}",
        [
            {
                **levels(each),
                "measured": f"{each.transfers}" + (f" ({each.failed} failed)" if each.failed else ""),
                **{
                    f"all loads, {way} [Mbit/s]": page.fixed(each.together_bps.get(way, math.nan) / 1e6, 2)
                    for way in ways
                },
                goodput: page.fixed(each.goodput_bps / 1e6, 2),
                "IQR [Mbit/s]": page.fixed(each.goodput_iqr_bps / 1e6, 2) or "–",
                "loaded RTT [ms, min / mean]": _both(1e3 * each.loaded_min_s, 1e3 * each.loaded_mean_s, 1),
                "unloaded RTT [ms, min / mean]": _both(
                    1e3 * each.unloaded_min_s, 1e3 * each.unloaded_mean_s, 1
                ),
                "dRTT [ms]": page.fixed(1e3 * each.rtt_difference_s, 2),
                "lost pings [loaded / unloaded]": (
                    f"{page.percent(each.loaded_loss)} / {page.percent(each.unloaded_loss)}"
                ),
            }
            for each in found
        ],
        note="Goodput and dRTT: medians over the cycles.",
    )
    how = page.Table.by_head(
        "Windows, shares and CPU",
        [
            {
                **levels(each),
                "window [kB]": page.fixed(each.window_bytes / 1e3, 1),
                "Jain": page.fixed(each.fairness, 3),
                "CPU of sender [%]": page.fixed(each.sender_cpu_percent, 1),
                "of receiver [%]": page.fixed(each.receiver_cpu_percent, 1),
                "degraded [measurements]": str(each.degraded),
                "disturbed [measurements]": str(each.disturbed),
            }
            for each in found
        ],
        note="Medians over the cycles; window: a stream's rate times the round-trip time its TCP saw. CPU: "
        "of one. Degraded: the emulator was late; disturbed: others kept a tenth of the CPUs busy, or more, "
        "or steal, run delay or waiting softirq work took 0.5 % of the time.",
    )
    return carried, how


def _both(one: float, other: float, digits: int) -> str:
    return f"{page.fixed(one, digits)} / {page.fixed(other, digits)}"


def _latency_table(found: list[PointSummary]) -> page.Table:
    """What a test of the RRUL kind reports, of each point."""
    levels = _levels(found)
    rows: list[dict[page.Head, str]] = [
        {
            **levels(each),
            "goodput [Mbit/s]": page.fixed(each.goodput_bps / 1e6, 2),
            "Jain": page.fixed(each.fairness, 3),
            "induced [ms]": page.fixed(1e3 * each.induced_s, 2),
            "95 % [ms]": page.fixed(1e3 * each.loaded_p95_s, 1),
            "99 % [ms]": page.fixed(1e3 * each.loaded_p99_s, 1),
            "round trips per minute [loaded / unloaded]": _both(
                each.loaded_per_minute, each.unloaded_per_minute, 0
            ),
            "of loaded connections [1/min]": page.fixed(each.connections_per_minute, 0),
        }
        for each in found
    ]
    note = (
        "Of all pings of a point. Induced: median loaded less median unloaded round-trip time. Round trips "
        "per minute: 60 s over the mean of the round-trip times up to their 95th percentile; of pings, "
        "so no RPM, which needs requests. Of loaded connections: the same of what TCP saw in the last four "
        "seconds of each stream, the loaded half of an RPM without probes."
    )
    return page.Table.by_head("Round-trip times under load", rows, note=note)


def loads_table(found: list[PointSummary]) -> page.Table | None:
    """Each load of the points that have several at a time; None where none has."""
    levels = _levels(found)
    rows: list[dict[page.Head, str]] = [
        {
            **levels(each),
            "traffic:": f"{load.name} ({load.transport.upper()})",
            "goes:": _WAYS[load.direction],
            "streams": str(load.streams),
            "measured": str(load.transfers),
            "goodput [Mbit/s]": page.fixed(load.goodput_bps / 1e6, 3),
            "IQR [Mbit/s]": page.fixed(load.goodput_iqr_bps / 1e6, 3) or "–",
            "offered [Mbit/s]": page.fixed(load.offered_bps / 1e6, 3),
            "lost": "" if math.isnan(load.lost) else page.percent(load.lost),
            "jitter [ms]": page.fixed(1e3 * load.jitter_s, 3),
        }
        for each in found
        for load in each.loads
    ]
    note = (
        "Medians over the cycles, each while it ran; up: from the near end. UDP: what was offered, the "
        "share of its datagrams that did not arrive, and jitter as RFC 3550 smooths it. The other tables are "
        "of the first transfer of TCP."
    )
    return page.Table.by_head("Loads at the same time", rows, note=note) if rows else None


_WAYS = {"forward": "up", "backward": "down"}


def delays_table(found: list[PointSummary]) -> page.Table | None:
    """One-way delay and jitter of each direction; None where none was measured."""
    levels = _levels(found)
    rows: list[dict[page.Head, str]] = [
        {
            **levels(each),
            "goes:": _WAYS[delay.direction],
            "load:": "loaded" if delay.loaded else "unloaded",
            "packets": str(delay.sent),
            "lost": page.percent(delay.lost),
            "least [ms]": page.fixed(1e3 * delay.least_s, 3),
            "median [ms]": page.fixed(1e3 * delay.median_s, 3),
            "99 % [ms]": page.fixed(1e3 * delay.p99_s, 3),
            "jitter [ms]": page.fixed(1e3 * delay.jitter_s, 3),
        }
        for each in found
        for delay in each.delays
    ]
    note = (
        "Of test packets (STAMP) of all cycles, from departure to arrival by one clock, that of the machine "
        "on which both ends are. Up: from the near end. Jitter: mean change from packet to packet."
    )
    return page.Table.by_head("One-way delays", rows, note=note) if rows else None


def responsiveness_table(found: list[PointSummary]) -> page.Table | None:
    """What requests met on new connections, and RPM; None where no point has any."""
    if not any(
        math.isfinite(value)
        for each in found
        for value in (each.requests_lost, each.foreign_per_minute, each.unloaded_foreign_per_minute)
    ):
        return None
    tls = any(math.isfinite(time) for each in found for time in (each.tls_s, each.unloaded_tls_s))
    levels = _levels(found)
    rows: list[dict[page.Head, str]] = [
        {
            **levels(each),
            "handshake [ms]": page.fixed(1e3 * each.handshake_s, 1),
            **({"TLS [ms]": page.fixed(1e3 * each.tls_s, 1)} if tls else {}),
            "answer [ms]": page.fixed(1e3 * each.answer_s, 1),
            "unloaded [ms, in this order]": " / ".join(
                page.fixed(1e3 * time, 1)
                for time in (
                    each.unloaded_handshake_s,
                    *([each.unloaded_tls_s] if tls else []),
                    each.unloaded_answer_s,
                )
            ),
            "lost": page.percent(each.requests_lost),
            "on new connections [1/min, loaded / unloaded]": _both(
                each.foreign_per_minute, each.unloaded_foreign_per_minute, 0
            ),
            "of loaded connections [1/min]": page.fixed(each.connections_per_minute, 0),
            "RPM": page.fixed(each.rpm, 0),
        }
        for each in found
    ]
    note = (
        f"Of HTTP requests {'over' if tls else 'without'} TLS, each on a new connection, that were answered "
        "in the last four seconds of a transfer: means up to the 95th percentile of handshakes"
        f"{', of TLS handshakes' if tls else ''} and of answers, and 60 s over the mean of these. RPM: the "
        "mean of that and of 60 s over what the TCP of the loaded connections saw. Medians over the cycles, "
        "so that the parts need not give the whole; of loaded connections: of all cycles together."
    )
    return page.Table.by_head("Responsiveness under load", rows, note=note)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _window(size_bytes: int) -> str:
    """In the unit in which it was probably written."""
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if not size_bytes % (1 << shift):
            return f"{size_bytes >> shift} {unit}"
    return str(Size(size_bytes))


def advice_text(advice: Advice) -> str:
    """A recommendation in sentences."""
    choice = advice.choice
    window = "the system's own window" if choice.window_bytes is None else _window(choice.window_bytes)
    streams = _counted(choice.streams, "stream")
    low, high = (value / 1e6 for value in advice.goodput_interval_bps)
    least, most = (1e3 * value for value in advice.delay_interval_s)
    lines = [
        f"Advice: {streams} of {window} ({choice.congestion_control}): {choice.goodput_bps / 1e6:.2f} Mbit/s "
        f"({low:.2f} to {high:.2f}); others wait {page.fixed(1e3 * choice.delay_s, 2)} ms longer "
        f"({page.fixed(least, 2)} to {page.fixed(most, 2)}).",
        _certainty_text(advice),
        *_drift_texts(advice),
        *(f"Limited by {limit.what}: {limit.evidence}." for limit in advice.limits),
    ]
    if not advice.limits:
        lines.append("Nothing that was measured limits it: larger windows or more streams may carry more.")
    lines += _edge_texts(advice)
    greatest = advice.alternatives[0]
    if greatest.point != choice.point:
        lines.append(
            f"The greatest goodput, {greatest.goodput_bps / 1e6:.2f} Mbit/s, had {greatest.streams} streams; "
            f"there others wait {page.fixed(1e3 * greatest.delay_s, 2)} ms longer."
        )
    return "\n".join(lines)


def _drift_texts(advice: Advice) -> list[str]:
    """That the transfers had not settled, and how long they should take."""
    found = advice.drift
    if found is None:
        return []
    word, more = ("slower", "less") if found.change < 0 else ("faster", "more")
    low, high = sorted(abs(100 * end) for end in (found.low, found.high))
    return [
        f"The transfers have not settled: after the start, streams are {abs(100 * found.change):.0f} % "
        f"{word} in the second half than in the first ({low:.0f} to {high:.0f} %). Longer transfers carry "
        f"{more}: try {found.try_s:g} s (--for {found.try_s:g}s, or 'for' in a file)."
    ]


def _edge_texts(advice: Advice) -> list[str]:
    """That the choice lies at the edge of what was tried, where the link is not full."""
    if any(limit.what == "bottleneck" for limit in advice.limits):
        return []
    choice = advice.choice
    alike = [each for each in advice.alternatives if each.congestion_control == choice.congestion_control]
    streams = {each.streams for each in alike}
    windows = {each.window_bytes for each in alike if each.window_bytes is not None}
    texts = []
    if len(streams) > 1 and choice.streams == max(streams):
        texts.append(f"{choice.streams} is the most streams that were tried: try more.")
    if choice.window_bytes is not None and len(windows) > 1 and choice.window_bytes == max(windows):
        texts.append(f"{_window(choice.window_bytes)} is the largest window that was tried: try larger ones.")
    return texts


def _certainty_text(advice: Advice) -> str:
    """How sure the choice is, where cycles and points show that."""
    same = all(
        len({value for value in values if math.isfinite(value)}) == 1
        for each in advice.alternatives
        for values in (each.goodputs_bps, each.delays_s)
    )
    if same:
        sure = "All cycles gave the same, so the intervals do not cover a path that varies"
    else:
        sure = "The intervals hold 95 % of the draws of cycles"
    if len(advice.alternatives) == 1:
        return (
            f"{sure}. No other point was measured, so that there was nothing to choose: compare streams, "
            "windows or congestion controls (--streams 1,4,16)."
        )
    if same:
        return f"{sure}, and it says nothing that all draws of cycles make the same choice."
    return f"The same choice in {advice.certainty:.0%} of the draws of cycles; intervals hold 95 % of them."


def kept_advice(directory: Path) -> str:
    """The advice in the `result.json` of a campaign; empty where there is none. Raises InputError for what is
    no text.
    """
    path = directory / "result.json"
    if not path.exists():
        return ""
    text = read_json(path).get("advice_text", "")
    if not isinstance(text, str):
        raise InputError(f"{path}: advice_text: a text was expected")
    return text
