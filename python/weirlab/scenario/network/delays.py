"""A propagation delay that changes: steps in the file, or a trace of one."""

from __future__ import annotations

from pathlib import Path

from weirlab.errors import InputError, UnitError
from weirlab.fields.base import File, Model
from weirlab.fields.values import PositiveSpan
from weirlab.files import named_text
from weirlab.units import Span

MAX_TRACE_BYTES = 100_000_000


class DelayStep(Model):
    """A delay from some time on."""

    at: Span
    """Since the start, or since the last repetition."""
    delay: Span
    """Of what leaves the transmitter from then on."""


class Delays(Model):
    """A propagation delay that changes. The delay of a frame is that at the time at which it leaves the
    transmitter."""

    steps: tuple[DelayStep, ...] = ()
    """When it changes, and to what; the first step is at 0 s."""
    trace: File | None = None
    """A file of such steps, a time and a delay in ms on each line; relative to the scenario file. Instead of
    `steps`."""
    repeat: PositiveSpan | None = None
    """Time after which the steps start again. Absent: the last delay stays."""


def read_delay_trace(path: Path) -> tuple[DelayStep, ...]:
    """The steps in a file: on each line a time since the start and the delay from then on, both in ms, with
    blanks or a comma between; the first time is 0. What follows a `#` is a remark.

    Raises InputError, with the line, for a file that is none.
    """
    steps: list[DelayStep] = []
    for number, line in enumerate(named_text(path, MAX_TRACE_BYTES).splitlines(), start=1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            at, delay = (Span.parse(f"{word} ms") for word in words)
        except (UnitError, ValueError):
            raise InputError(
                f"{path}:{number}: a time and a delay in ms were expected, such as '1500 42.5' "
                f"(got '{line.strip()[:40]}')"
            ) from None
        if not steps and at.ps:
            raise InputError(f"{path}:{number}: the first delay holds from 0 ms on (got {at})")
        if steps and at <= steps[-1].at:
            raise InputError(f"{path}:{number}: times ascend (got {at} after {steps[-1].at})")
        steps.append(DelayStep(at=at, delay=delay))
    if not steps:
        raise InputError(f"{path}: a trace of delays has lines with a time and a delay in ms")
    return tuple(steps)
