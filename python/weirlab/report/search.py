"""The report of a search: the rates, the trials that they rest on, and how the search came there.

One file: page and JSON say the same of one `SearchRecord`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from weirlab.documents import fields_of
from weirlab.errors import InputError, WeirlabError
from weirlab.plots.search import loss_plots, outcome, progress_plots
from weirlab.plots.style import Plot, scaled
from weirlab.report import search_tables, shared
from weirlab.report.page import (
    Block,
    Callout,
    Card,
    Column,
    Details,
    Numbers,
    Page,
    Table,
    Text,
    Tone,
    heads,
    number,
    percent,
)
from weirlab.report.search_terms import deviations, meaning, terms, terms_table
from weirlab.results import Manifest, read_json
from weirlab.scenario import Scenario, load
from weirlab.searches import Bound, Ending, FoundRates, GoalResult, SearchState, read_trials
from weirlab.searches.build import build
from weirlab.searches.controlled import OFFER_TOLERANCE
from weirlab.searches.forwarding import forwarding_cost
from weirlab.searches.sweep import swept
from weirlab.testbed import Trial

_TRIALS = 300


@dataclass(frozen=True)
class SearchRecord:
    """A search as its directory has it."""

    scenario: Scenario
    states: Sequence[SearchState]
    """Where it stood before each trial, and at the end."""
    result: FoundRates


def replay(directory: Path) -> SearchRecord:
    """Tell a fresh search the trials of the log, and watch it. Raises InputError when they do not fit, or
    when there are fewer than the manifest or `result.json` report."""
    manifest = Manifest.read(directory)
    if manifest.kind != "search":
        raise InputError(f"{directory}: holds a {manifest.kind}, not a search")
    scenario = load(directory / "scenario.yaml")
    log = directory / "trials.jsonl"
    if manifest.status == "complete" and not log.exists():
        raise InputError(f"{log}: missing, but manifest.json says that this search came to its end")
    trials = read_trials(log) if log.exists() else []
    search = build(scenario, limited=False)
    states = []
    for place, trial in enumerate(trials, start=1):
        if search.ask() != trial.spec:
            raise InputError(
                f"{log}: trial {place} of {len(trials)} is not what this search asks for; was it edited?"
            )
        states.append(search.state())
        try:
            search.tell(trial)
        except WeirlabError as error:
            raise InputError(f"{log}: trial {place} of {len(trials)}: {error}") from error
    if manifest.status == "complete" and search.ask() is not None:
        raise InputError(
            f"{log}: ends after {len(trials)} trials, but manifest.json says that this search came to its end"
        )
    result = search.result()
    kept = kept_ending(directory, len(trials))
    if kept is not None:
        ending, message, count = kept
        if ending not in (Ending.FINISHED, Ending.UNFINISHED) and len(trials) == count:
            result = result.ended(ending, message)
    return SearchRecord(scenario, [*states, search.state()], result)


def kept_ending(directory: Path, trials: int) -> tuple[Ending, str, int] | None:
    """Ending, message and number of trials that `result.json` reports; None without that file. Raises
    InputError when it reports more trials than the log holds."""
    path = directory / "result.json"
    if not path.exists():
        return None
    ending, message, reported = _ending_in(path)
    if trials < reported:
        raise InputError(f"{directory / 'trials.jsonl'}: {trials} trials, but result.json reports {reported}")
    return ending, message, reported


def _ending_in(path: Path) -> tuple[Ending, str, int]:
    content = read_json(path)
    try:
        ending, message, trials = Ending(str(content["ending"])), content["message"], content["trials"]
        if not isinstance(message, str) or type(trials) is not int:
            raise ValueError("message or number of trials")
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not the result of a search: {error}") from error
    return ending, message, trials


def search_page(record: SearchRecord, manifest: Manifest) -> tuple[Page, list[Plot]]:
    """The page, and its plots."""
    result, scenario = record.result, record.scenario
    plots = [
        *progress_plots(result.trials, record.states, result.goals),
        *loss_plots(result.trials, result.goals),
    ]
    page = shared.result_page(
        "Search",
        manifest,
        scenario,
        lead=_lead(result, scenario),
        sections=[
            shared.section(
                "Rates",
                search_tables.goal_table(result, scenario),
                *map(Text, search_tables.half_texts(result)),
                Text(meaning(result, scenario)),
                terms_table(result, scenario),
            ),
            shared.section("How the search went", plots=plots, otherwise="No trial was made."),
            shared.section("Evidence", *_evidence(record)),
            shared.section("Trials", _trial_details(record)),
        ],
        story=search_sentences(result, scenario)[:3],
    )
    return page, plots


def search_sentences(result: FoundRates, scenario: Scenario) -> list[str]:
    """The rates, the reason of each that is irregular, and what they cost."""
    frame_size, _ = search_tables.shape(result, scenario)
    found, remarks = [], []
    for goal in result.goals:
        if goal.lower is None:
            found.append(f"{goal.goal.name}: none found")
        else:
            load = goal.lower.offered_fps
            factor, unit = scaled(load, "frame_rate")
            bits = search_tables.bit_rates(load, frame_size)[1]
            found.append(f"{goal.goal.name} {number(load * factor, 4)} {unit} ({bits} Gbit/s on the wire)")
            found[-1] += _disputed_text(goal)
        if not goal.regular:
            found[-1] += ", irregular"
            remarks.append(f"{goal.goal.name} is irregular: {goal.remark}.")
    cost = f"{len(result.trials)} trials, {shared.seconds_text(result.time_s)} of trial time."
    return ["; ".join(found) + ".", *remarks, cost]


def _disputed_text(goal: GoalResult) -> str:
    """That trials contradict each other, for a sentence; empty where they do not."""
    if goal.disputed is None:
        return ""
    same = goal.disputed[0].duration_s == goal.disputed[1].duration_s
    lasted = ("one" if same else shared.seconds_text(each.duration_s) for each in goal.disputed)
    failed, passed = (
        f"{how} at {number(each.load_fps * factor, 4)} {unit}"
        for how, each in zip(lasted, goal.disputed, strict=True)
        for factor, unit in [scaled(each.load_fps, "frame_rate")]
    )
    return f", but trials disagree: {failed} failed, {passed} passed"


def result_json(result: FoundRates, scenario: Scenario) -> dict[str, object]:
    """A search result as JSON values."""
    frame_size, directions = search_tables.shape(result, scenario)

    def bound(found: Bound | None) -> dict[str, object] | None:
        if found is None:
            return None
        return {
            "load_fps": found.offered_fps,
            "load_per_direction_fps": found.offered_fps / directions,
            "intended_load_fps": found.load_fps,
            "loss_ratio": found.trial.loss_ratio,
            "trial": found.trial.spec.index,
        }

    return {
        "kind": "search",
        "name": scenario.name,
        "testbed": scenario.testbed.kind,
        "algorithm": scenario.search.algorithm.kind if scenario.search is not None else None,
        "ending": str(result.ending),
        "message": result.message,
        "regular": result.regular,
        "frame_size_bytes": frame_size,
        "directions": directions,
        "trials": len(result.trials),
        "time_s": result.time_s,
        "disturbance": None if result.disturbance is None else asdict(result.disturbance),
        "forwarding": None
        if (cost := forwarding_cost(result.trials)) is None
        else {**asdict(cost), "capacity_fps": cost.capacity_fps},
        "sweep": None if (found := swept(result)) is None else found._asdict(),
        "goals": [
            {
                **fields_of(goal.goal, "name", "loss_ratio"),
                "goal_width": goal.goal.width,
                **fields_of(goal.goal, "duration_s", "exceed_ratio", "duration_sum_s"),
                "rfc9971_deviations": deviations(goal.goal, result, scenario),
                "regular": goal.regular,
                "irregularities": [str(each) for each in goal.irregularities],
                "remark": goal.remark,
                "disputed": None
                if goal.disputed is None
                else [[each.load_fps, each.trial.effective_duration_s] for each in goal.disputed],
                "lower": bound(goal.lower),
                "upper": bound(goal.upper),
                **fields_of(goal, "width", "conditional_throughput_fps"),
                "evidence": _evidence_json(goal),
                "half": _half_json(goal),
            }
            for goal in result.goals
        ],
    }


def _directions_json(bound: Bound | None) -> list[dict[str, object]]:
    found = () if bound is None else bound.trial.per_direction
    return [{**asdict(each), "loss_ratio": each.loss_ratio} for each in found]


def _half_json(goal: GoalResult) -> dict[str, object] | None:
    if (found := goal.half) is None:
        return None
    return {**asdict(found), **fields_of(found, "relative_error", "is_usable", "is_doubtful")}


def _evidence_json(goal: GoalResult) -> dict[str, object] | None:
    if (found := goal.evidence) is None:
        return None
    return {
        **fields_of(found, "full_trials", "exceeding_trials", "exceed_estimate"),
        "exceed_interval": None if found.exceed_interval is None else list(found.exceed_interval),
        "stationarity": str(found.stationarity),
        **fields_of(found, "time_s", "stationarity_note"),
        "lower_trials": [trial.spec.index for trial in found.lower_trials],
        "upper_trials": [trial.spec.index for trial in found.upper_trials],
        "lower_directions": _directions_json(goal.lower),
        "upper_directions": _directions_json(goal.upper),
    }


def _lead(result: FoundRates, scenario: Scenario) -> Sequence[Block]:
    frame_size, directions = search_tables.shape(result, scenario)
    cards = []
    for goal in result.goals:
        lacking = deviations(goal.goal, result, scenario)
        name = f"{goal.goal.name}{', deviates from RFC 9971' if lacking else ''} ({terms(goal.goal)})"
        tone: Tone = "good" if goal.regular else "bad"
        badge = "" if goal.regular else "irregular"
        if goal.lower is None:
            cards.append(Card(name, "none found", goal.remark, tone, badge))
            continue
        load, intended = goal.lower.offered_fps, goal.lower.load_fps
        factor, unit = scaled(load, "frame_rate")
        each = f"{number(load / directions * factor, 4)} {unit} in each of {directions} directions"
        bits = search_tables.bit_rates(load, frame_size)[1]
        detail = f"{each if directions > 1 else 'one direction'}, {bits} Gbit/s on the wire"
        if number(intended * factor, 4) != number(load * factor, 4):
            detail += f"; intended {number(intended * factor, 4)} {unit}"
        if (conditional := goal.conditional_throughput_fps) is not None:
            detail += f"; conditional throughput {number(conditional * factor, 4)} {unit}"
        if lacking:
            detail += f". RFC 9971: {', '.join(lacking)}"
        cards.append(Card(name, f"{number(load * factor, 4)} {unit}", detail, tone, badge))
    algorithm = scenario.search.algorithm.kind if scenario.search is not None else ""
    cards.append(
        Card(
            "Search",
            f"{len(result.trials)} trials",
            f"{shared.seconds_text(result.time_s)} of trial time; {algorithm} on {_testbed(scenario)}",
        )
    )
    irregular = [
        Callout(f"{goal.goal.name} is irregular: do not use it as a rate of the device", goal.remark, "bad")
        for goal in result.goals
        if not goal.regular
    ]
    return [Numbers(cards), *irregular]


def _testbed(scenario: Scenario) -> str:
    device = getattr(scenario.testbed, "device", None)
    return f"simulated device '{device.kind}'" if device is not None else f"testbed '{scenario.testbed.kind}'"


def _counted(record: SearchRecord) -> list[str]:
    """Of each trial why it does not count; empty where it does."""
    trials, search = record.result.trials, record.scenario.search
    replaces = search is not None and search.algorithm.kind in ("binary", "mdr")
    reasons = []
    for place, trial in enumerate(trials):
        later = trials[place + 1 :]
        again = later[0] if later and later[0].spec.purpose == "repeat" else None
        newer = [
            each for each in later if _same_load(each, trial) and each.spec.purpose == trial.spec.purpose
        ]
        if trial.spec.purpose == "warm-up":
            reasons.append("no: warm-up")
        elif again is not None:
            short = f"{percent(trial.unsent_ratio)} were not sent"
            reasons.append(f"no: made again as trial {again.spec.index}: {trial.disturbance or short}")
        elif replaces and newer:
            reasons.append(f"no: trial {newer[-1].spec.index} of the same load replaces it")
        else:
            reasons.append("")
    return reasons


def _same_load(one: Trial, other: Trial) -> bool:
    return one.spec.intended_load_fps == other.spec.intended_load_fps


def _evidence(record: SearchRecord) -> Sequence[Block]:
    result, reasons = record.result, _counted(record)
    summary = search_tables.evidence_table(result)
    blocks: list[Block] = [table for table in (summary, search_tables.direction_table(result)) if table.rows]
    if text := search_tables.sweep_text(result):
        blocks.append(Text(text))
    for goal in result.goals:
        rows, tones = [], []
        for side, bound in (("lower", goal.lower), ("upper", goal.upper)):
            for trial, reason in zip(result.trials, reasons, strict=True) if bound is not None else ():
                if bound is not None and _same_load(trial, bound.trial):
                    rows.append([side, *_trial_cells(trial, goal), reason or "yes"])
                    tones.append("" if reason else _tone(trial, goal))
        blocks.append(
            Table(
                f"{goal.goal.name}: all trials at its bounds",
                [Column("bound", numeric=False), *_TRIAL_COLUMNS, Column("counts", numeric=False)],
                rows,
                tones=tones,
                note="" if rows else "There is no bound.",
                most=_TRIALS,
                where="trials.jsonl",
            )
        )
    return blocks


_TRIAL_COLUMNS = heads(
    "trial | load [frame/s] | duration [s] | sent [frames] | lost [frames] | loss ratio | unsent | outcome:"
)


def _trial_cells(trial: Trial, *goals: GoalResult) -> list[str]:
    spec = trial.spec
    what = outcome(trial, [goal.goal for goal in goals])
    return [
        str(spec.index),
        number(round(spec.intended_load_fps)),
        f"{spec.duration_s:.4g}",
        number(trial.sent_frames),
        number(trial.sent_frames - trial.received_frames),
        percent(trial.loss_ratio),
        percent(trial.unsent_ratio),
        what + (", stopped early" if trial.stopped_early else ""),
    ]


def _tone(trial: Trial, *goals: GoalResult) -> Tone:
    if trial.unsent_ratio > OFFER_TOLERANCE or trial.spec.purpose == "warm-up":
        return ""
    met = [trial.loss_ratio <= goal.goal.loss_ratio for goal in goals]
    return "good" if all(met) else "middling" if any(met) else "bad"


def _trial_details(record: SearchRecord) -> Details:
    result = record.result
    latency = any(trial.latency_s for trial in result.trials)
    table = Table(
        "All trials in the order of measurement",
        [*_TRIAL_COLUMNS, Column("phase", numeric=False), *([Column("p99 delay", "µs")] if latency else [])],
        [
            [
                *_trial_cells(trial, *result.goals),
                record.states[place].phase if trial.spec.purpose == "search" else trial.spec.purpose,
                *([number(_micro(trial.latency_s))] if latency else []),
            ]
            for place, trial in enumerate(result.trials)
        ],
        tones=[_tone(trial, *result.goals) for trial in result.trials],
        most=_TRIALS,
        where="trials.jsonl",
    )
    return Details(f"{len(result.trials)} trials", [table])


def _micro(latency_s: Mapping[str, float]) -> float | None:
    return latency_s["p99"] * 1e6 if "p99" in latency_s else None
