"""Plots of a search: trials and bounds over time, and loss against load.

Loads are sums over all directions. A trial is a bar as long as the trial took; shape and colour of its
mark show which goals it met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weirlab.plots.style import LIGHT, WIDTH, Plot, alt, by_name, finished, rule, scaled
from weirlab.searches.base import GoalResult, SearchGoal, SearchState
from weirlab.searches.controlled import OFFER_TOLERANCE
from weirlab.testbed.base import Trial

TRIALS = 1500
"""Most trials in one plot."""
HEIGHT = 330


def outcome(trial: Trial, goals: Sequence[SearchGoal]) -> str:
    """Which goals a trial met by its loss ratio, or why that says nothing of the device, as a short text."""
    if trial.spec.purpose == "warm-up":
        return "warm-up"
    if trial.unsent_ratio > OFFER_TOLERANCE:
        return "load not offered"
    met = [goal.name for goal in goals if trial.loss_ratio <= goal.loss_ratio]
    if len(met) == len(goals):
        return (
            "no loss"
            if trial.loss_ratio == 0.0
            else "meets every goal"
            if len(goals) > 1
            else f"meets {met[0]}"
        )
    return f"meets only {', '.join(met)}" if met else "too much loss"


def progress_plots(
    trials: Sequence[Trial], states: Sequence[SearchState], results: Sequence[GoalResult]
) -> list[Plot]:
    """Loads of the trials and the bounds over time: the whole search, and
    before it, where trials lie far away, only around the last bounds.

    `states[i]` is where the search stood when it asked for trial `i`; one more state may follow for its end.
    """
    if not trials:
        return []
    goals = [result.goal for result in results]
    factor, unit = scaled(max(trial.spec.intended_load_fps for trial in trials), "frame_rate")
    table = _trial_table(trials, states, goals, factor)
    bounds = _bound_table(trials, states, factor)
    note = "Solid lines: lower bounds; dashed: upper bounds. A bar is as long as its trial."
    if table.height > TRIALS:
        note += f" Shown: the last {TRIALS} of {table.height} trials."
        table = table.tail(TRIALS)
    names = ", ".join(goal.name for goal in goals)
    plots = [
        finished(
            [_progress(table, bounds, _phases(table), goals, unit, None)],
            name="search",
            title="Trials and bounds over time",
            description=f"Load of each of {len(trials)} trials over time, with the bounds of {names}.",
            height=HEIGHT,
            note=note,
        )
    ]
    window = _window(results, table.get_column("load"), factor)
    if window is not None:
        inside = table.filter(pl.col("load").is_between(*window))
        if 2 <= inside.height < table.height:
            plots.insert(
                0,
                finished(
                    [_progress(inside, bounds, _phases(table), goals, unit, window)],
                    name="search-zoom",
                    title="Trials and bounds around the result",
                    description=f"Trials and bounds between {window[0]:.4g} and {window[1]:.4g} {unit}.",
                    height=HEIGHT,
                    note=f"{note} {table.height - inside.height} of {table.height} trials lie outside of "
                    "this plot; the next one has them.",
                ),
            )
    return plots


def progress_plot(
    trials: Sequence[Trial],
    states: Sequence[SearchState],
    results: Sequence[GoalResult],
    *,
    name: str,
    title: str,
    window_fps: tuple[float, float],
    until_s: float,
) -> Plot:
    """The same in a window of loads [frames/s] and time that is given, to be compared with other searches."""
    goals = [result.goal for result in results]
    factor, unit = scaled(window_fps[1], "frame_rate")
    table = _trial_table(trials, states, goals, factor)
    window = window_fps[0] * factor, window_fps[1] * factor
    inside = table.filter(pl.col("load").is_between(*window))
    left_out = table.height - inside.height
    return finished(
        [
            _progress(
                inside, _bound_table(trials, states, factor), _phases(table), goals, unit, window, until_s
            )
        ],
        name=name,
        title=title,
        description=f"Load of {inside.height} trials between {window[0]:.4g} and {window[1]:.4g} {unit} over "
        "time, with the bounds.",
        height=HEIGHT,
        note=f"{left_out} of {table.height} trials lie outside of this plot." if left_out else "",
    )


def loss_plots(trials: Sequence[Trial], results: Sequence[GoalResult]) -> list[Plot]:
    """Loss ratio of each trial against its load."""
    if not trials:
        return []
    goals = [result.goal for result in results]
    factor, unit = scaled(max(trial.spec.intended_load_fps for trial in trials), "frame_rate")
    table = _trial_table(trials, [], goals, factor).tail(TRIALS)
    note = "The axis is logarithmic above 0.01 % and linear below."
    window = _window(results, table.get_column("load"), factor)
    if window is not None:
        spread = 1.5 * (window[1] - window[0])
        near = table.filter(pl.col("load").is_between(window[0] - spread, window[1] + spread))
        if near.height < table.height:
            note += f" {table.height - near.height} of {table.height} trials lie outside of this plot."
            table = near
    highest = max(0.01, float(table.select(pl.col("loss").max()).item()))
    layers = [
        layer
        for goal in goals
        if 0 < goal.loss_ratio <= highest
        for layer in rule(goal.loss_ratio, f"{goal.name}: {goal.loss_ratio * 100:.3g} %")
    ]
    scale = alt.Scale(type="symlog", constant=1e-4, domain=[0, highest])
    axis = alt.Axis(values=[0, 1e-4, 1e-3, 0.01, 0.1, 1], format=".2~%")
    points = alt.Chart(table).mark_point(filled=True, size=62, opacity=0.85, aria=True)
    layers.append(
        points.encode(
            x=alt.X("load:Q", title=f"intended load [{unit}]", scale=alt.Scale(zero=False)),
            y=alt.Y("loss:Q", title="loss ratio", scale=scale, axis=axis),
            description="text:N",
            **_marks(table),
        )
    )
    return [
        finished(
            [alt.layer(*layers)],
            name="loss",
            title="Loss against load",
            description=f"Loss ratio of {table.height} trials against their intended load.",
            note=note,
        )
    ]


def _progress(
    table: pl.DataFrame,
    bounds: pl.DataFrame,
    phases: pl.DataFrame,
    goals: Sequence[SearchGoal],
    unit: str,
    window: tuple[float, float] | None,
    until_s: float | None = None,
) -> Any:
    highest = float(table.select(pl.col("load").max()).item())
    low, high = (0.0, highest * 1.06) if window is None else window
    y = alt.Y("load:Q", title=f"load [{unit}]", scale=alt.Scale(domain=[low, high], nice=False))
    last = float(phases.select(pl.col("end").max()).item())
    end = last * 1.02 if until_s is None else until_s
    time = {"title": "time in trials [s]", "scale": alt.Scale(domain=[0, end], nice=False)}
    layers: list[Any] = []
    if phases.height > 1:
        phases = phases.with_columns(
            fits=(pl.col("end") - pl.col("start")) / end * WIDTH > 7 * pl.col("phase").str.len_chars()
        )
        base = alt.Chart(phases).encode(x=alt.X("start:Q", **time))
        odd, fitting = (base.transform_filter(f"datum.{each}") for each in ("place % 2 == 1", "fits"))
        words = fitting.mark_text(align="left", baseline="top", dx=4, dy=3, color=LIGHT["muted"])
        layers.append(odd.mark_rect(color=LIGHT["shade"]).encode(x2="end:Q"))
        layers.append(words.encode(y=alt.value(0), text="phase:N"))
    for place, goal in enumerate(goals):
        color = _goal_color(place)
        for side, dash in (("lower bound", [1, 0]), ("upper bound", [5, 3])):
            line = bounds.filter(pl.col("goal") == goal.name, pl.col("side") == side)
            if line.is_empty():
                continue
            line = pl.concat([line, line.tail(1).with_columns(t=pl.lit(end))])
            look = {"strokeWidth": 1.5, "clip": True, "color": color, "strokeDash": dash}
            steps = alt.Chart(line).mark_line(interpolate="step-after", **look)
            layers.append(steps.encode(x=alt.X("t:Q", **time), y=y))
    layers += _goal_labels(bounds, goals, low, high)
    looks = _marks(table)
    marks = alt.Chart(table).encode(y=y, color=looks["color"])
    bars = marks.mark_rule(strokeWidth=2.4, opacity=0.7).encode(x=alt.X("start:Q", **time), x2="end:Q")
    points = marks.mark_point(filled=True, size=58, opacity=1, aria=True)
    middle = points.encode(x=alt.X("middle:Q", **time), shape=looks["shape"], description="text:N")
    return alt.layer(*layers, bars, middle)


def _goal_labels(bounds: pl.DataFrame, goals: Sequence[SearchGoal], low: float, high: float) -> list[Any]:
    """Names of the goals behind the ends of their lower bounds, moved apart where they would overlap."""
    apart = (high - low) * 15 / HEIGHT
    ends = []
    for place, goal in enumerate(goals):
        line = bounds.filter(pl.col("goal") == goal.name, pl.col("side") == "lower bound")
        if not line.is_empty() and low <= line.item(-1, "load") <= high:
            ends.append((float(line.item(-1, "load")), goal.name, _goal_color(place)))
    layers, floor = [], -float("inf")
    for load, name, color in sorted(ends):
        floor = max(load, floor + apart)
        word = alt.Chart(pl.DataFrame({"load": [floor], "name": [name]}))
        word = word.mark_text(align="left", dx=6, color=color, fontWeight=600)
        layers.append(word.encode(x=alt.value("width"), y="load:Q", text="name:N"))
    return layers


def _marks(table: pl.DataFrame) -> Mapping[str, object]:
    """Colour and shape by outcome, the same in every plot."""
    seen = set(table.get_column("outcome"))
    order = [each for each in ("no loss", "meets every goal") if each in seen]
    order += sorted(each for each in seen if each.startswith("meets") and each not in order)
    order += [each for each in ("too much loss", "load not offered", "warm-up") if each in seen]
    roles, shapes = zip(*(_LOOKS.get(each, ("middling", "diamond")) for each in order), strict=True)
    legend = alt.Legend(orient="top", symbolOpacity=1)
    return {
        "color": by_name(alt.Color, "outcome", order, [LIGHT[role] for role in roles], legend=legend),
        "shape": by_name(alt.Shape, "outcome", order, shapes, legend=legend),
    }


def _goal_color(place: int) -> str:
    return LIGHT[_GOAL_COLORS[place % len(_GOAL_COLORS)]]


_GOAL_COLORS = ("blue", "violet", "pink", "olive")
_LOOKS = {
    "no loss": ("good", "circle"),
    "meets every goal": ("good", "circle"),
    "too much loss": ("bad", "triangle-down"),
    "load not offered": ("muted", "cross"),
    "warm-up": ("muted", "square"),
}


def _trial_table(
    trials: Sequence[Trial], states: Sequence[SearchState], goals: Sequence[SearchGoal], factor: float
) -> pl.DataFrame:
    rows = []
    for place, trial in enumerate(trials):
        spec = trial.spec
        what = outcome(trial, goals)
        end = spec.elapsed_s + trial.effective_duration_s
        rows.append(
            {
                "start": spec.elapsed_s,
                "end": end,
                "middle": (spec.elapsed_s + end) / 2,
                "load": spec.intended_load_fps * factor,
                "loss": trial.loss_ratio,
                "outcome": what,
                "phase": states[place].phase if place < len(states) else "",
                "text": (
                    f"trial {spec.index}: {spec.intended_load_fps:,.0f} frames/s for {spec.duration_s:g} s, "
                    f"{trial.sent_frames - trial.received_frames:,} of {trial.sent_frames:,} frames lost "
                    f"({trial.loss_ratio:.3g}): {what}"
                ),
            }
        )
    return pl.DataFrame(rows, schema_overrides={"loss": pl.Float64})


def _bound_table(trials: Sequence[Trial], states: Sequence[SearchState], factor: float) -> pl.DataFrame:
    """Bounds by goal and side at the start of each trial, and at the end."""
    ends = [trial.spec.elapsed_s for trial in trials]
    ends.append(trials[-1].spec.elapsed_s + trials[-1].effective_duration_s)
    rows = [
        {"t": ends[place], "goal": goal, "side": f"{side} bound", "load": bound * factor}
        for place, state in enumerate(states[: len(ends)])
        for goal, pair in state.bounds.items()
        for side, bound in zip(("lower", "upper"), pair, strict=True)
        if bound is not None
    ]
    return pl.DataFrame(
        rows, schema={"t": pl.Float64, "goal": pl.String, "side": pl.String, "load": pl.Float64}
    )


def _phases(table: pl.DataFrame) -> pl.DataFrame:
    """Runs of trials of one phase, in order."""
    return (
        table.with_columns(place=pl.col("phase").rle_id())
        .group_by("place", maintain_order=True)
        .agg(pl.col("phase").first(), pl.col("start").min(), pl.col("end").max())
    )


def _window(results: Sequence[GoalResult], loads: pl.Series, factor: float) -> tuple[float, float] | None:
    """Loads around the last bounds, wide enough for half of the trials; None without bounds on both sides."""
    lowers = [result.lower.load_fps for result in results if result.lower is not None]
    uppers = [result.upper.load_fps for result in results if result.upper is not None]
    if not lowers or not uppers:
        return None
    low, high = min(lowers + uppers) * factor, max(lowers + uppers) * factor
    farness = pl.max_horizontal(low - pl.col("load"), pl.col("load") - high, 0.0)
    half = float(pl.DataFrame({"load": loads}).select(farness.median()).item())
    margin = max(0.5 * (high - low), 1.1 * half)
    return max(0.0, low - margin), high + margin
