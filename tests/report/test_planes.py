"""Maps: numbers that lines leave free, and colours that are read on any page."""

import itertools
import math
import re

import pytest

from weirlab.plots.placing import Box, chained, clear_place
from weirlab.plots.plane import BRIGHT, CLEAR, DARK, HEIGHT, LETTER, TALL, AxisOf, Line, heat_map
from weirlab.plots.style import LIGHT, WIDTH

GAINS = AxisOf("gain", [0.001, 0.01, 0.1], logarithmic=True)
LOADS = AxisOf("load", [0.2, 0.4, 0.6, 0.8])


def cells_of(plot):
    rows = [row for rows in plot.spec["datasets"].values() for row in rows]
    return {(row["at_x"], row["at_y"]): row for row in rows if "value" in row}


def drawn(values=None, **more):
    values = values or [[0.1, 0.2, 0.3, 0.4]] * 3
    return heat_map("map", "A map", x=LOADS, y=GAINS, values=values, value_title="share", labels=True, **more)


def text_box(row):
    x, y = LOADS.pixel(row["text_x"], WIDTH), GAINS.pixel(row["text_y"], HEIGHT)
    wide = LETTER * len(row["text"]) / 2
    return Box(x - wide, x + wide, y - TALL / 2, y + TALL / 2)


def in_pixels(line):
    places = [[(LOADS.pixel(x, WIDTH), GAINS.pixel(y, HEIGHT)) for x, y in piece] for piece in line.pieces]
    return [pair for piece in places for pair in itertools.pairwise(piece)]


@pytest.mark.parametrize(
    "line",
    [
        Line("flat", [[(0.1, 0.01), (0.9, 0.01)]]),
        Line("steep", [[(0.4, 0.0005), (0.4, 0.3)]]),
        Line("falling", [[(0.15, 0.2), (0.4, 0.01), (0.85, 0.001)]]),
    ],
    ids=lambda line: line.label,
)
def test_a_number_stands_beside_a_line_that_passes_through_its_cell(line):
    middles = {
        key
        for key, row in cells_of(drawn()).items()
        if any(text_box(row).crossed(piece) for piece in in_pixels(line))
    }
    assert middles, "the line strikes through a number that stands in the middle"
    for key, row in cells_of(drawn(lines=[line])).items():
        assert not any(text_box(row).crossed(piece) for piece in in_pixels(line))
        assert row["x"] < row["text_x"] < row["x2"]
        assert row["y"] < row["text_y"] < row["y2"]
        if key not in middles:
            shift = math.dist(
                (LOADS.pixel(row["text_x"], WIDTH), GAINS.pixel(row["text_y"], HEIGHT)),
                (LOADS.pixel(key[0], WIDTH), GAINS.pixel(key[1], HEIGHT)),
            )
            assert shift <= TALL + 2 * CLEAR, "only as far as it must"


def test_no_place_is_made_up_where_lines_leave_no_room():
    cell = Box(0, 40, 0, 20)
    hatched = [((0.0, float(y)), (40.0, float(y))) for y in range(0, 21, 5)]
    assert clear_place((20, 10), cell, (24, 12), hatched) is None
    assert clear_place((20, 10), cell, (24, 12), []) == (20, 10)


def test_pieces_of_a_boundary_become_one_line_in_whatever_order_they_come():
    points = [(float(x), x * x / 10) for x in range(9)]
    pieces = list(itertools.pairwise(points))
    shuffled = [pieces[i][:: (-1) ** i] for i in (5, 0, 3, 7, 1, 6, 2, 4)]
    (line,) = chained(shuffled)
    assert line in (points, points[::-1])
    assert len(chained([*shuffled, ((20.0, 0.0), (21.0, 0.0))])) == 2


def test_numbers_of_a_map_have_decimals_in_common():
    texts = [row["text"] for row in cells_of(drawn([[0.83, 0.829, 0.05, 0.0011]] * 3)).values()]
    assert texts[:4] == [".830", ".829", ".050", ".0011"]
    large = [row["text"] for row in cells_of(drawn([[16.4, 14, 9.65, 0.0]] * 3)).values()]
    assert large[:4] == ["16.4", "14.0", "9.7", "0"]
    below = [row["text"] for row in cells_of(drawn([[-0.5, 0.25, -120.0, 7.0]] * 3)).values()]
    assert below[:4] == ["-.5", ".25", "-120", "7"]


def test_numbers_are_bright_on_dark_cells_and_dark_on_bright_ones():
    inks = {row["value"]: row["ink"] for row in cells_of(drawn(domain=(0.0, 0.5))).values()}
    assert inks == {0.1: BRIGHT, 0.2: BRIGHT, 0.3: DARK, 0.4: DARK}


def test_what_is_drawn_over_cells_keeps_its_colours_on_a_dark_page():
    line = Line("limit", [[(0.1, 0.01), (0.9, 0.02)]])
    svg = drawn(lines=[line], box=(0.4, 0.6, 0.01, 0.1)).inline_svg()
    for color in (DARK, BRIGHT, "#f0541e"):
        assert color not in LIGHT.values()
        assert color in svg


def test_a_frame_goes_around_the_cells_of_its_levels():
    plot = drawn(box=(0.4, 0.6, 0.01, 0.1))
    (frame,) = [
        row for rows in plot.spec["datasets"].values() for row in rows if len(rows) == 1 and "x2" in row
    ]
    assert (frame["x"], frame["x2"]) == pytest.approx((0.3, 0.7))
    assert (frame["y"], frame["y2"]) == pytest.approx((10**-2.5, 10**-0.5))


@pytest.mark.parametrize("zero", [None, 0.0005])
def test_every_level_has_its_text_where_there_is_room(zero):
    gains = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05]
    side = AxisOf("gain", gains, logarithmic=True, zero=zero)
    plot = heat_map("map", "A map", x=LOADS, y=side, values=[[0.1, 0.2, 0.3, 0.4]] * 7, value_title="share")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg())
    first = "0.0005" if zero is None else "0"
    assert {first, "0.001", "0.002", "0.005", "0.01", "0.02", "0.05"} <= set(texts[: texts.index("gain")])


def test_a_line_has_one_entry_in_the_legend_of_a_screen():
    vega = drawn(lines=[Line("flat", [[(0.1, 0.01), (0.9, 0.01)]])]).answering().vega
    legends = [legend for legend in vega["legends"] if legend.get("symbolType") == "stroke"]
    assert len(legends) == 1
