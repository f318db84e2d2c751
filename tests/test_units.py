"""Quantities: text and value agree, and what the parser reads is what editors are told."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from weirlab.errors import UnitError, WeirlabError
from weirlab.units import FrameRate, Frames, Interval, Rate, Size, Span

STORED = st.integers(0, 2**64 - 1)


def test_a_unit_error_is_a_mistake_of_the_input() -> None:
    with pytest.raises(UnitError) as caught:
        Span.parse("10")
    assert isinstance(caught.value, WeirlabError)
    assert caught.value.exit_code == 2


@given(value=STORED, kind=st.sampled_from([Span, Size, Rate, FrameRate]))
def test_a_quantity_written_as_text_is_read_back_exactly(value: int, kind: Any) -> None:
    assert kind.parse(str(kind(value))) == kind(value)


@given(value=STORED, kind=st.sampled_from([Span, Size, Rate, FrameRate]))
def test_what_is_printed_matches_the_pattern_for_editors(value: int, kind: Any) -> None:
    assert re.fullmatch(kind.pattern(), str(kind(value)))


@pytest.mark.parametrize("kind", [Span, Size, Rate, FrameRate])
def test_the_units_for_editors_are_those_of_the_parser(kind: Any) -> None:
    with pytest.raises(UnitError) as caught:
        kind.parse("1 x")
    accepted = re.findall(r"units: (.*?) \(got", str(caught.value))[0].split(", ")
    assert [unit for unit in kind.units if unit.isascii()] == accepted
    for unit in kind.units:
        kind.parse(f"1 {unit}")
    assert all(kind.parse(example) for example in kind.examples)


def test_quantities_of_different_kinds_do_not_compare() -> None:
    span: Any = Span(1)
    assert span != Size(1)
    with pytest.raises(TypeError):
        sorted([span, Size(2)])


def test_quantities_travel_between_processes() -> None:
    values = [Span(5), Frames(3), Interval(Size(1), Size(2))]
    assert pickle.loads(pickle.dumps(values)) == values
