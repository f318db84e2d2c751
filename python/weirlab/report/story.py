"""What happened in a run, in a few sentences: what was lost, where, who was held up, how long it took."""

from __future__ import annotations

import math

import polars as pl

from weirlab.plots.style import scaled
from weirlab.records import Records
from weirlab.report.page import number, percent
from weirlab.report.shared import time_text
from weirlab.scenario import Scenario

_MOST_DROPS = 0.5
_TAIL = 0.99
_FOR_TAIL = 100
_FEW = 3
"""Kinds of traffic that the story tells apart."""
_APART = 1.2
"""How many times as long the frames of one take on average as those of another."""


def run_story(records: Records, scenario: Scenario) -> list[str]:
    """The sentences at the head of the page of a run; the one that matters is the first."""
    from weirlab.report.run import run_sentences

    first = run_sentences(records, kept=scenario.run.flows)[0]
    said = [
        _deadlock(records),
        first,
        sent_again(records),
        _bottleneck(records),
        _pauses(records),
        holds(records),
    ]
    if scenario.run.flows:
        said.append(_messages(records) or _delays(records))
    return [each for each in said if each]


def _bottleneck(records: Records) -> str:
    """The port that dropped most, or whose queue grew longest, and how much was asked of it."""
    end_ps = float(records["runs"].get_column("end_ps").cast(pl.Float64).sum())
    ports = records.named("ports")
    of_switches = "from_kind" in ports.columns
    if of_switches:
        ports = ports.filter(pl.col("from_kind") == "switch")
    whole = ports.group_by("port_name", maintain_order=True).agg(
        pl.col("drops", "dropped_bytes", "frames", "bytes", "busy_ps").sum(),
        pl.col("queue_max_bytes").max(),
        pl.col("queue_byte_ps").cast(pl.Float64).sum(),
        pl.col("rate_bps", "framing_bytes").first(),
    )
    if whole.is_empty():
        return ""
    order = ["drops", "queue_max_bytes"]
    worst = whole.sort(order, descending=True, maintain_order=True).row(0, named=True)
    if not worst["queue_max_bytes"]:
        return ""
    name, rate = worst["port_name"], float(worst["rate_bps"])
    framing = float(worst["framing_bytes"])
    asked = worst["bytes"] + worst["dropped_bytes"] + framing * (worst["frames"] + worst["drops"])
    load = 8e12 * asked / rate / end_ps
    longest, mean = float(worst["queue_max_bytes"]), worst["queue_byte_ps"] / end_ps
    factor, unit = scaled(longest, "bytes")
    queue = (
        f"its queue held {number(mean * factor, 3)} {unit} on average and {number(longest * factor)} {unit} "
        f"at most, {time_text(8e12 * longest / rate)} at its rate"
    )
    if not worst["drops"]:
        which = "longest queue of a switch" if of_switches else "longest queue"
        return f"The {which} was at {name}, which carried {percent(load)} of its rate: {queue}."
    share = worst["drops"] / int(records["ports"].get_column("drops").cast(pl.Float64).sum())
    dropped = f"{'all' if share == 1 else percent(share)} of the drops were there"
    if _dropped_at_hosts(records) > _MOST_DROPS:
        dropped += ", most at hosts"
    return f"{name} was offered {percent(load)} of its rate: {queue}; {dropped}."


def _dropped_at_hosts(records: Records) -> float:
    """Which share of all drops: what limiters had no room for, and full queues of senders."""
    ports = records.named("ports")
    if "from_kind" not in ports.columns:
        return 0.0
    drops = pl.col("drops").cast(pl.Float64)
    return float(ports.select(drops.filter(pl.col("from_kind") == "host").sum() / drops.sum()).item())


def _pauses(records: Records) -> str:
    """Which ports PAUSE held, and for how long."""
    end_ps = float(records["runs"].get_column("end_ps").cast(pl.Float64).sum())
    rows = records.named("ports").group_by("port_name", maintain_order=True).agg(pl.col("paused_ps").sum())
    held = rows.filter(pl.col("paused_ps") > 0).sort("paused_ps", descending=True, maintain_order=True)
    if held.is_empty():
        return ""
    most = held.row(0, named=True)
    share = percent(float(most["paused_ps"]) / end_ps)
    if held.height == 1:
        return f"PAUSE held {most['port_name']} for {share} of the time."
    return f"PAUSE held {held.height} ports, {most['port_name']} longest: {share} of the time."


def _deadlock(records: Records) -> str:
    """That ports wait for each other for ever, which is why nothing else may be lost."""
    if "deadlocks" not in records or records["deadlocks"].is_empty():
        return ""
    rows = records["deadlocks"].filter(pl.col("replicate") == pl.col("replicate").min())
    ports, since = rows.select("port").n_unique(), time_text(max(rows.get_column("since_ps").to_list()))
    return f"Deadlock: from {since} on, {ports} ports wait for each other, and nothing moves."


def sent_again(records: Records) -> str:
    """How many packets of messages were sent again, and which traffic sent most of them; they count as
    frames, too."""
    if "message_totals" not in records:
        return ""
    rows = (
        records.named("message_totals")
        .group_by("traffic_name", maintain_order=True)
        .agg(pl.col("retransmits").sum())
        .sort("retransmits", descending=True, maintain_order=True)
    )
    whole = int(rows.get_column("retransmits").sum())
    if not whole:
        return ""
    most = rows.row(0, named=True)
    name = most["traffic_name"]
    count = records["runs"].height
    together = f" in {count} replicates together" if count > 1 else ""
    if whole == 1:
        return f"1 packet of {name} was sent again{together}; frames that were sent or delivered include it."
    others = "" if most["retransmits"] == whole else f", {number(most['retransmits'])} of them of {name}"
    whose = name if not others else "messages"
    return (
        f"{number(whole)} packets of {whose} were sent again{together}{others}; frames that were sent or "
        "delivered include them."
    )


def holds(records: Records) -> str:
    """Which port PFC stopped for longest, and the output where that began."""
    if "hold_causes" not in records or records["hold_causes"].is_empty():
        return ""
    end_ps = float(records["runs"].get_column("end_ps").cast(pl.Float64).sum())
    names = records["port_names"].select(root_port="port", root="name")
    rows = (
        records.named("hold_causes")
        .join(names, on="root_port")
        .group_by("port_name", "class", "root", maintain_order=True)
        .agg(pl.col("stopped_ps").sum())
        .sort("stopped_ps", descending=True, maintain_order=True)
    )
    most = rows.row(0, named=True)
    count = rows.select("port_name", "class").n_unique()
    others = f" (and {count - 1} more)" if count > 1 else ""
    return (
        f"Flow control stopped class {most['class']} at {most['port_name']}{others} for "
        f"{percent(float(most['stopped_ps']) / end_ps)} of the time, because of {most['root']}."
    )


def _messages(records: Records) -> str:
    """How much slower messages were than in an empty network, and how many have not ended."""
    if "messages" not in records or records["messages"].is_empty():
        return ""
    taken = (pl.col("delivered_ps") - pl.col("start_ps")).cast(pl.Float64) / pl.col("ideal_ps")
    rows = records["messages"].select(slowdown=taken).get_column("slowdown").sort(nulls_last=True)
    left = rows.null_count()
    middle = rows[(len(rows) - 1) // 2]
    if middle is None:
        return f"{number(left)} of {number(len(rows))} messages have not ended."
    last = f"; {number(left)} have not ended" if left else ""
    tail = None if len(rows) < _FOR_TAIL else rows[math.ceil(_TAIL * len(rows)) - 1]
    slow = "" if tail is None else f", one in a hundred {number(tail, 3)} times and more"
    return (
        f"Half of {number(len(rows))} messages took up to {number(middle, 3)} times what they would in an "
        f"empty network{slow}{last}."
    )


def _delays(records: Records) -> str:
    """How long frames of data were on their way: mean, tail and most; of each traffic, where these differ."""
    flows = records.named("flows")
    if "carries" in flows.columns:
        flows = flows.filter(pl.col("carries") == "data")
    flows = flows.filter(pl.col("delivered_frames") > 0)
    if flows.is_empty():
        return ""
    kinds = dict(flows.partition_by("traffic_name", as_dict=True, maintain_order=True))
    means = [_mean_delay(each) for each in kinds.values()]
    if 1 < len(kinds) <= _FEW and max(means) > _APART * min(means):
        return " ".join(
            f"{name} got {_rate(records, each)}, and its frames {_delay(records, each)}."
            for (name,), each in kinds.items()
        )
    if _hardly_differs(flows):
        return f"All frames {_delay(records, flows)}."
    least = time_text(float(flows.select(pl.col("delay_min_ps").min()).item()))
    return f"Frames {_delay(records, flows)}; the fastest took {least}."


def _hardly_differs(flows: pl.DataFrame) -> bool:
    least, most = flows.select(pl.col("delay_min_ps").min(), pl.col("delay_max_ps").max()).row(0)
    return bool(most <= 1.02 * least)


def _mean_delay(flows: pl.DataFrame) -> float:
    sums = flows.select(pl.col("delay_sum_ps", "delivered_frames").cast(pl.Float64).sum()).row(0)
    return float(sums[0] / sums[1])


def _rate(records: Records, flows: pl.DataFrame) -> str:
    end_ps = float(records["runs"].get_column("end_ps").cast(pl.Float64).sum())
    bits = 8e12 * float(flows.get_column("delivered_bytes").cast(pl.Float64).sum()) / end_ps
    factor, unit = scaled(bits, "rate")
    return f"{number(bits * factor)} {unit}"


def _delay(records: Records, flows: pl.DataFrame) -> str:
    mean = _mean_delay(flows)
    if _hardly_differs(flows):
        return f"were {time_text(mean)} on their way"
    most = float(flows.select(pl.col("delay_max_ps").max()).item())
    tail = _tail(records, flows)
    in_tail = "" if tail is None else f", up to {time_text(tail)} for 99 % of them"
    return f"were {time_text(mean)} on their way on average{in_tail}, and at most {time_text(most)}"


def _tail(records: Records, flows: pl.DataFrame) -> float | None:
    """The end of the bin below which 99 % of the delays of data lie; None where not all were recorded."""
    bins = records["delays"].join(flows.select("flow").unique(), on="flow", how="semi")
    if bins.get_column("frames").sum() != flows.get_column("delivered_frames").sum():
        return None
    rows = bins.group_by("high_ps").agg(pl.col("frames").sum()).sort("high_ps")
    reached = rows.with_columns(share=pl.col("frames").cum_sum() / pl.col("frames").sum())
    return float(reached.filter(pl.col("share") >= _TAIL).item(0, "high_ps"))
