"""Values of fields: what is read, what is refused and how, and that text and value agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from weirlab.fields.values import (
    AnyLoad,
    AnyRate,
    Count,
    Counter,
    Flag,
    Fraction,
    Limit,
    LoadRange,
    Natural,
    Number,
    PositiveSpan,
    Threshold,
    Window,
    per_cent,
)
from weirlab.units import FrameRate, Frames, Interval, Rate, Size, Span


def read(kind: Any, value: object) -> Any:
    return TypeAdapter(kind).validate_python(value)


def refusal(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    (fault,) = caught.value.errors()
    return str(fault["ctx"]["error"])


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Span, "0.5 us", Span(500_000)),
        (Span, "1 min", Span(60 * 10**12)),
        (Size, "150 kB", Size(150_000)),
        (Size, "150 KiB", Size(153_600)),
        (Rate, "10 Gbit/s", Rate(10**10)),
        (FrameRate, "10.6 Mframe/s", FrameRate(10_600_000_000)),
        (Fraction, "49 %", 0.49),
        (Fraction, "0.49", 0.49),
        (Fraction, 0.49, 0.49),
        (Fraction, "3e-4", 3e-4),
        (Fraction, "0.5%", 0.005),
        (Count, "8", 8),
        (Count, 8, 8),
        (Count, "10_000", 10_000),
        (Natural, "0", 0),
        (Number, "12.42", 12.42),
        (Number, "-6.09e-3", -6.09e-3),
        (Flag, "true", True),
        (Flag, False, False),
        (Limit, "16 frames", Frames(16)),
        (Limit, "1 frame", Frames(1)),
        (Limit, "unlimited", "unlimited"),
        (Counter, "10 MB", Size(10**7)),
        (Counter, "none", "none"),
        (Threshold, "112.5 kB", Size(112_500)),
        (AnyRate, "300 Mbit/s", Rate(3 * 10**8)),
        (AnyRate, "10 kframe/s", FrameRate.from_fps(1e4)),
        (AnyLoad, "80 %", 0.8),
        (Window, "20 ms .. 80 ms", Interval(Span.from_s(0.02), Span.from_s(0.08))),
        (Window, ["20 ms", "80 ms"], Interval(Span.from_s(0.02), Span.from_s(0.08))),
        (LoadRange, ["1 %", "100 %"], Interval(0.01, 1.0)),
    ],
)
def test_text_becomes_the_value_that_it_names(kind: Any, text: object, value: object) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Span, "10", "write a duration with its unit, such as '0.5 us' (got '10')"),
        (Span, 10, "write a duration with its unit, such as '0.5 us' (got '10')"),
        (Span, None, "write a duration, such as '0.5 us' (got nothing)"),
        (Rate, ["1 bit/s"], "write a rate, such as '10 Gbit/s' (got a list)"),
        (Size, {"B": "1"}, "write a size, such as '64 B' (got a mapping)"),
        (
            FrameRate,
            "soon",
            "write a frame rate as a number and a unit, such as '10.6 Mframe/s' (got 'soon')",
        ),
        (PositiveSpan, "0 s", "more than zero is needed (got '0 s')"),
        (Fraction, "49", "a fraction lies between 0 % and 100 % (got '49'); did you mean '49 %'?"),
        (Fraction, "149 %", "a fraction lies between 0 % and 100 % (got '149 %')"),
        (Fraction, "-1 %", "a fraction lies between 0 % and 100 % (got '-1 %')"),
        (Fraction, "half", "write a fraction such as '49 %' or '0.49' (got 'half')"),
        (Fraction, "nan", "write a fraction such as '49 %' or '0.49' (got 'nan')"),
        (Natural, "9" * 5000, f"less than 2^64 is needed (got '{'9' * 5000}')"),
        (Count, "0", "at least 1 is needed (got '0')"),
        (Count, "2.5", "write a whole number, such as '8' (got '2.5')"),
        (Natural, "-1", "at least 0 is needed (got '-1')"),
        (Number, "inf", "write a number, such as '12.42' (got 'inf')"),
        (Flag, "yes", "write 'true' or 'false' (got 'yes')"),
        (Limit, "16", "write a limit as '150 kB', '300 frames' or 'unlimited' (got '16')"),
        (Counter, "0 B", "more than zero is needed (got '0 B')"),
        (Counter, "never", "write a size as '10 MB', or 'none' (got 'never')"),
        (Threshold, "unlimited", "write an amount as '150 kB' or '16 frames' (got 'unlimited')"),
        (
            AnyRate,
            "10 gframe/s",
            "'gframe/s' is not a unit of frame rate; did you mean 'Gframe/s'?; units: frame/s, frames/s, "
            "fps, pps, kframe/s, kframes/s, kfps, kpps, Mframe/s, Mframes/s, Mfps, Mpps, Gframe/s, Gframes/s "
            "(got '10 gframe/s')",
        ),
        (AnyRate, "-1 Mbit/s", "a rate cannot be negative (got '-1 Mbit/s')"),
        (Limit, "1.5 B", "'1.5 B' is finer than 1 B, the resolution of a size"),
        (AnyRate, "3 kB", "write a rate as '300 Mbit/s' or '400 kframe/s' (got '3 kB')"),
        (
            AnyLoad,
            "0.8",
            "write a load as '400 kframe/s', '300 Mbit/s' or '80 %' (of the line rate) (got '0.8')",
        ),
        (Window, "20 ms", "write a range as '20 ms .. 80 ms' or [20 ms, 80 ms] (got '20 ms')"),
        (Window, ["20 ms"], "write a range as '20 ms .. 80 ms' or [20 ms, 80 ms] (got a list)"),
        (
            Window,
            "80 ms .. 20 ms",
            "the first end of a range is less than the second (got '80 ms' and '20 ms')",
        ),
        (
            LoadRange,
            ["1 %", "3 kframe/s"],
            "both ends of a range are quantities of one kind (got '0.01' and '3 kframe/s')",
        ),
    ],
)
def test_a_refusal_says_what_is_expected_and_what_was_found(kind: Any, value: object, message: str) -> None:
    assert refusal(kind, value) == message


class Everything(BaseModel):
    span: Span
    size: Size
    rate: Rate
    frame_rate: FrameRate
    fraction: Fraction
    limit: Limit
    counter: Counter
    window: Window
    load: AnyLoad
    between: LoadRange


STORED = st.integers(0, 2**64 - 1)
LOADS = st.one_of(
    STORED.map(Rate),
    STORED.map(FrameRate),
    st.floats(0, 1),
)


@given(
    everything=st.builds(
        Everything,
        span=STORED.map(Span),
        size=STORED.map(Size),
        rate=STORED.map(Rate),
        frame_rate=STORED.map(FrameRate),
        fraction=st.floats(0, 1),
        limit=st.one_of(st.just("unlimited"), STORED.map(Size), STORED.map(Frames)),
        counter=st.one_of(st.just("none"), st.integers(1, 2**64 - 1).map(Size)),
        window=st.tuples(STORED, STORED)
        .filter(lambda ends: ends[0] < ends[1])
        .map(lambda ends: Interval(Span(ends[0]), Span(ends[1]))),
        load=LOADS,
        between=st.just(Interval(Rate(1), Rate(2))),
    )
)
def test_a_value_written_as_text_is_read_back_exactly(everything: Everything) -> None:
    assert Everything.model_validate(everything.model_dump(mode="json")) == everything
    assert Everything.model_validate_json(everything.model_dump_json()) == everything


@given(st.floats(0, 1))
def test_per_cent_is_exact(fraction: float) -> None:
    assert read(Fraction, per_cent(fraction)) == fraction
