"""Measures: numbers from the records of a run, each with one definition.

Each is a class, whose fields a scenario fills in; `taken` takes one of any records. Its values are a frame
with the columns `replicate` and `value`, one row per replicate, in order. Where a replicate gives no answer,
such as the delay of frames that never arrived, the value is null. Where the records lack what a measure
needs, it raises MissingRecordError: no measure falls back to something similar.

A `window` is a pair of times from the start of the run, on edges of the recorded intervals; None means the
whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weirlab.fields.base import kind_of
from weirlab.measures.base import PortMeasure, Subject
from weirlab.measures.hotspots import recovery_time as recovery_time, relative_fairness as relative_fairness
from weirlab.measures.registry import MEASURES
from weirlab.measures.rows import MissingRecordError as MissingRecordError, Window as Window
from weirlab.units import Interval, Span

if TYPE_CHECKING:
    import polars as pl

    from weirlab.records import Records

_KINDS = {kind_of(measure): measure for measure in MEASURES}


def taken(
    kind: str,
    records: Records,
    ids: Sequence[int],
    *,
    window: Window | None = None,
    **fields: object,
) -> pl.DataFrame:
    """A measure of records, without a scenario that asks for it: columns `replicate` and `value`.

    Args:
        kind: As in scenarios, such as `max-queue`; not one of a hotspot, which needs the scenario.
        ids: Those of the ports, or of the entries of traffic, that it is of (see `Records`).
        window: Two times [ps] from the start of the run; None: the whole run.
        fields: Its other fields, as a file has them or as their values.

    Raises MissingRecordError where the records lack what the measure needs.
    """
    if window is not None:
        fields["window"] = Interval(*map(Span, window))
    measure = _KINDS[kind]
    every = "*->*" if issubclass(measure, PortMeasure) else "*"
    return measure.model_validate({"kind": kind, "of": every, **fields}).values(Subject(records, ids))
