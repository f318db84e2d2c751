"""The answer of a tester that is a program: one JSON object, read and doubted."""

from __future__ import annotations

import codecs
import contextlib
import json
import math
from collections.abc import Mapping

from weirlab.errors import ImpossibleTrial
from weirlab.testbed.base import Direction, Trial, TrialSpec

_TOLERANCE = 0.005
"""Share by which a program may round the load that it was asked for."""
_COUNTS = (
    "sent_frames",
    "received_frames",
    "intended_frames",
    "duplicated_frames",
    "reordered_frames",
    "disturbed_frames",
)


_NUMBERS = ("effective_duration_s", "offered_load_fps")


_ANSWERS = (*_COUNTS, *_NUMBERS, "stopped_early", "disturbance", "latency_s", "directions", "facts")


_MARKS = {codecs.BOM_UTF8: "UTF-8", codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


_MOST_TOLD = 300
"""Letters of an answer that a message repeats."""


class AnswerError(Exception):
    """The output of a program is not the JSON object that was asked for."""


def cut(text: str) -> str:
    """A text of somebody else, fit for a message: on one line, and not too long."""
    return readable(text if len(text) <= _MOST_TOLD else f"{text[: _MOST_TOLD - 4]} ...")


def readable(text: str) -> str:
    """The text without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def answer_of(output: bytes) -> dict[str, object]:
    def refuse(constant: str) -> float:
        raise AnswerError(f"printed {constant}, which is not a number")

    text = output.decode(errors="replace").strip()
    if not text:
        raise AnswerError("printed nothing; one JSON object is expected on standard output")
    try:
        answer = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise AnswerError(_why_no_object(output, text)) from None
    if not isinstance(answer, dict):
        raise AnswerError(f"printed no JSON object, but {text[:80]!r}")
    unknown = [name for name in answer if name not in _ANSWERS]
    if unknown:
        raise AnswerError(f"printed the unknown field {unknown[0]!r}; there are {', '.join(_ANSWERS)}")
    return answer


def _why_no_object(output: bytes, text: str) -> str:
    """What a program printed that is no JSON object, and what to do about it where that is plain."""
    for mark, name in _MARKS.items():
        if output.startswith(mark):
            return f"printed a byte-order mark ({name}) first; print UTF-8 without one"
    begin, end = text.find("{"), text.rfind("}")
    if begin >= 0 and end > begin and (begin > 0 or end + 1 < len(text)):
        try:
            holds = isinstance(json.loads(text[begin : end + 1]), dict)
        except (ValueError, RecursionError):
            holds = False
        if holds:
            other, where = (text[:begin], "before") if begin > 0 else (text[end + 1 :], "after")
            return (
                f"printed {other.strip()[:80]!r} {where} its JSON object; standard output is for the object "
                f"alone: print the rest to standard error, which is kept with the trial"
            )
    return f"printed no JSON object, but {text[:80]!r}"


def trial_of(spec: TrialSpec, answer: Mapping[str, object], took_s: float, errors: str) -> Trial:
    counts = {name: _count(name, answer[name]) for name in _COUNTS if name in answer}
    for name in ("sent_frames", "received_frames"):
        if name not in counts:
            raise AnswerError(f"printed no {name}")
    numbers = {name: _number(name, answer[name]) for name in _NUMBERS if name in answer}
    stopped_early = answer.get("stopped_early", False)
    if not isinstance(stopped_early, bool):
        raise AnswerError(f"printed {stopped_early!r} for stopped_early, which is true or false")
    latency, skewed = _latency(answer)
    facts: dict[str, float | int | str | None] = {}
    for name, fact in _mapping("facts", answer).items():
        if not isinstance(fact, float | int | str | None):
            raise AnswerError(f"printed for facts.{name} what is neither text nor number")
        if isinstance(fact, int) and abs(fact) >= 2**63:
            raise AnswerError(f"printed {str(fact)[:40]} for facts.{name}, which is too large")
        facts[name] = fact
    if stopped_early and "intended_frames" not in counts:
        raise AnswerError(
            "printed stopped_early without intended_frames: how many frames it intended until it stopped"
        )
    intended_frames = counts.pop("intended_frames", spec.intended_frames)
    offered_fps = counts["sent_frames"] / spec.duration_s
    if stopped_early:
        offered_fps = spec.intended_load_fps * min(1.0, counts["sent_frames"] / max(intended_frames, 1))
    disturbance = answer.get("disturbance", "")
    if not isinstance(disturbance, str):
        raise AnswerError(f"printed {str(disturbance)[:40]!r} for disturbance, which is text")
    trial = Trial(
        spec=spec,
        intended_frames=intended_frames,
        sent_frames=counts["sent_frames"],
        received_frames=counts["received_frames"],
        duplicated_frames=counts.get("duplicated_frames", 0),
        reordered_frames=counts.get("reordered_frames", 0),
        disturbed_frames=counts.get("disturbed_frames", 0),
        disturbance=cut(disturbance),
        effective_duration_s=numbers.get("effective_duration_s", took_s),
        offered_load_fps=numbers.get("offered_load_fps", offered_fps),
        stopped_early=stopped_early,
        latency_s=latency,
        per_direction=_directions(answer),
        facts=facts | ({"latency": skewed} if skewed else {}) | ({"stderr": errors} if errors else {}),
    )
    _refuse_another_trial(trial)
    if "effective_duration_s" in numbers and trial.effective_duration_s < trial.ran_s * (1.0 - _TOLERANCE):
        raise ImpossibleTrial(
            f"trial {spec.index}: effective_duration_s is {trial.effective_duration_s:g}, less than the "
            f"{trial.ran_s:g} s for which the load was offered; it is that time and the waits around it, "
            f"or left out"
        )
    return trial


def _refuse_another_trial(trial: Trial) -> None:
    """Raise ImpossibleTrial when the answer is not one to the trial that was asked for."""
    spec = trial.spec
    asked = spec.intended_frames
    slack = max(spec.directions, _TOLERANCE * asked)
    if trial.intended_frames > asked + slack or (
        trial.intended_frames < asked - slack and not trial.stopped_early
    ):
        raise ImpossibleTrial(
            f"trial {spec.index}: {trial.intended_frames} frames were intended, {asked} were requested"
        )
    if trial.offered_load_fps > spec.intended_load_fps + slack / spec.duration_s:
        raise ImpossibleTrial(
            f"trial {spec.index}: {trial.offered_load_fps:g} frames/s were offered, "
            f"{spec.intended_load_fps:g} were requested"
        )
    if trial.stopped_early:
        lost = trial.sent_frames - trial.received_frames
        if spec.loss_budget is None:
            raise ImpossibleTrial(f"trial {spec.index}: stopped early, but nothing was to end this trial")
        least = asked if spec.look_s is None else round(spec.intended_load_fps * spec.look_s)
        if lost <= math.floor(spec.loss_budget * least):
            raise ImpossibleTrial(
                f"trial {spec.index}: stopped early after {lost} lost frames, which are no more than "
                f"{spec.loss_budget:g} of {least}"
            )


def _directions(answer: Mapping[str, object]) -> tuple[Direction, ...]:
    """What a program says of each direction; nothing where it does not tell them apart."""
    found = []
    for name, counts in _mapping("directions", answer).items():
        if not isinstance(counts, dict) or set(counts) != {"sent_frames", "received_frames"}:
            raise AnswerError(
                f"printed {str(counts)[:80]!r} for directions.{name}, which has sent_frames and "
                f"received_frames"
            )
        given = {each: _count(f"directions.{name}.{each}", count) for each, count in counts.items()}
        found.append(Direction(name=name, **given))
    return tuple(found)


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
        raise AnswerError(
            f"printed {json.dumps(value)[:40]} for {name}, which must be a whole number of frames"
        )
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # of a whole number that no float holds
            if math.isfinite(number := float(value)):
                return number
    raise AnswerError(f"printed {str(value)[:40]!r} for {name}, which must be a number")


def _latency(answer: Mapping[str, object]) -> tuple[dict[str, float], str]:
    """Delay percentiles; none, and why, where the clocks of the program cannot be right. The counts of the
    trial do not depend on them."""
    found = {
        name: _number(f"latency_s.{name}", value) for name, value in _mapping("latency_s", answer).items()
    }
    for name, delay_s in found.items():
        if delay_s < 0.0:
            return {}, f"left out: {cut(name)} was {delay_s:g} s, and no delay is below 0"
    return found, ""


def _mapping(name: str, answer: Mapping[str, object]) -> dict[str, object]:
    value = answer.get(name, {})
    if not isinstance(value, dict):
        raise AnswerError(f"printed {str(value)[:40]!r} for {name}, which must be a JSON object")
    return value
