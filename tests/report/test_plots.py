"""Plots: bounded in size, honest about what they leave out, readable in light and dark."""

import itertools
import math
import re
import sys
import zlib
from base64 import b64decode
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from weirlab.errors import MissingCapability
from weirlab.plots.envelopes import FINE, POINTS, SERIES
from weirlab.plots.sensitivity import sensitivity_plots
from weirlab.plots.series import delay_plots, delivery_plots, port_plots
from weirlab.plots.study import effect_plots, plane_plots
from weirlab.plots.style import (
    DARK,
    LIGHT,
    WIDTH,
    Plot,
    _series_scales,
    alike,
    altair,
    finished,
    scaled,
    series_color,
    series_colors,
)
from weirlab.records import Records


def data_of(plot: Plot) -> list[dict[str, float]]:
    """All rows of the data sets of a plot."""
    return [row for rows in plot.spec["datasets"].values() for row in rows]


def by_name(plots: list[Plot]) -> dict[str, Plot]:
    return {plot.name: plot for plot in plots}


def test_a_short_series_is_drawn_point_by_point(records):
    made = records(ports=1, intervals=50)
    plots = by_name(port_plots(made))
    rows = [row for row in data_of(plots["port-rate"]) if "mean" in row]
    assert len(rows) == 51, "one per interval, and the start"
    assert all(row["low"] == row["mean"] == row["high"] for row in rows)
    assert plots["port-rate"].note == ""


def test_a_long_series_becomes_an_envelope_that_says_so(records):
    made = records(ports=1, intervals=20_000)
    plot = by_name(port_plots(made))["port-rate"]
    rows = [row for row in data_of(plot) if "mean" in row]
    assert len(rows) <= POINTS + 1
    assert "Each point represents 63 intervals of 1 ms" in plot.note
    intervals = made["intervals"]
    rate = (intervals["bytes"] + intervals["frames"] * 20) * 8 / 1e-3 / 1e9
    assert max(row["high"] for row in rows) == pytest.approx(rate.max())
    assert min(row["low"] for row in rows) == pytest.approx(rate.min())
    assert sum(row["mean"] for row in rows[1:-1]) / (len(rows) - 2) == pytest.approx(rate.mean(), rel=0.01)


def test_a_closer_look_at_a_long_series_has_many_more_points_and_every_extreme(records):
    made = records(ports=2, intervals=60_000)
    plot = by_name(port_plots(made))["port-queue"]
    closer = plot.closer
    assert sum(closer["counts"]) <= FINE
    assert (
        "Each point represents 188 intervals of 1 ms; on screen, a closer look shows 2 of them." in plot.note
    )
    raw = zlib.decompress(b64decode(closer["packed"]))
    count = sum(closer["counts"])
    ends = np.frombuffer(raw, "<f8", count)[: closer["counts"][0]].cumsum()
    assert ends[-1] == pytest.approx(60.0)
    mean, low, high = (
        np.frombuffer(raw, "<u2", 3 * count, 8 * count).reshape(3, count) * closer["step"] + closer["base"]
    )
    queue = made["intervals"]["queue_max_bytes"].to_numpy() / 1e3
    assert high == pytest.approx(queue.reshape(-1, 2).max(axis=1), abs=closer["step"])
    assert (low <= mean + 1e-9).all()
    assert (mean <= high + 1e-9).all()
    assert by_name(port_plots(records(ports=1, intervals=50)))["port-queue"].closer is None


def test_replicates_become_a_band_of_the_same_size(records):
    one, many = records(replicates=1), records(replicates=300)
    for plots in (port_plots, delivery_plots, delay_plots):
        for single, band in zip(plots(one), plots(many), strict=True):
            assert len(band.inline_svg()) < 3 * len(single.inline_svg()), band.name
    assert "300 replicates" in by_name(port_plots(many))["port-rate"].note


def test_of_many_ports_the_busiest_are_shown_and_the_rest_is_counted(records):
    plot = by_name(port_plots(records(ports=40)))["port-rate"]
    assert f"the {SERIES} busiest of 40" in plot.note
    assert len({row["name"] for row in data_of(plot) if "name" in row}) == SERIES


def test_ports_that_carried_nothing_are_not_drawn(records):
    made = records(ports=2)
    silent = made["intervals"].with_columns(
        bytes=pl.when(pl.col("port") == 0).then(0).otherwise(pl.col("bytes"))
    )
    plot = by_name(port_plots(Records({**made, "intervals": silent})))["port-rate"]
    assert plot.title == "Transmitted rate of switch-0->host-1, framing included"


def test_events_within_the_run_are_marked_at_their_times_with_their_names(records):
    made = records()
    end_ps = int(made["intervals"].get_column("t_ps").max())
    moments = [(0, "cut begins"), (end_ps // 2, "cut ends"), (2 * end_ps, "never begins")]
    for plot, plain in zip(port_plots(made, (), moments), port_plots(made), strict=True):
        assert "Dashed: events of the scenario." in plot.note
        assert "Dashed" not in plain.note
        datasets = plot.spec["datasets"].values()
        marked = {row["text"]: row["t"] for rows in datasets for row in rows if "text" in row and "t" in row}
        assert set(marked) == {"cut begins", "cut ends"}
        last = max(row["t"] for rows in datasets for row in rows if "t" in row)
        assert marked["cut begins"] == 0
        assert marked["cut ends"] == pytest.approx(last / 2)
        assert "cut ends" in plot.svg()


def test_without_series_there_is_no_plot(records):
    made = records()
    empty = Records({**made, **{name: made[name].clear() for name in ("intervals", "deliveries", "delays")}})
    assert port_plots(empty) == delivery_plots(empty) == delay_plots(empty) == []


def test_without_drops_there_is_no_plot_of_drops(records):
    made = records()
    lossless = Records({**made, "intervals": made["intervals"].with_columns(drops=pl.lit(0, pl.UInt64))})
    assert "port-drops" not in by_name(port_plots(lossless))


def test_the_share_of_longer_delays_falls_from_one(records):
    (plot,) = delay_plots(records())
    rows = data_of(plot)
    for name in {row["name"] for row in rows}:
        shares = [row["longer"] for row in rows if row["name"] == name]
        assert shares == sorted(shares, reverse=True)
        assert 0 < shares[-1] <= shares[0] <= 1


def test_delays_are_drawn_from_where_their_share_can_be_seen_to_fall():
    frames = {1_000: 3, 100_000: 9_000, 103_000: 997}
    delays = pl.DataFrame(
        {"flow": 0, "low_ps": high, "high_ps": high, "frames": count} for high, count in frames.items()
    )
    named = {
        "flow_names": pl.DataFrame({"flow": [0], "traffic": [0]}),
        "traffic_names": pl.DataFrame({"traffic": [0], "name": ["load"]}),
    }
    (plot,) = delay_plots(Records({"delays": delays, **named}))
    assert [row["delay"] for row in data_of(plot)] == pytest.approx([90, 100, 103])
    assert "99.9 %" in plot.note


def test_parts_of_plots_on_one_page_have_names_of_their_own():
    chart = (
        altair().Chart(pl.DataFrame({"x": [1, 2], "z": [1.0, 9.0]})).mark_rect().encode(x="x:O", color="z:Q")
    )
    one, two = (
        finished([chart], name=name, title="t", description="d").inline_svg() for name in ("one", "two")
    )
    names = [set(re.findall(r'id="([^"]*)"', svg)) for svg in (one, two)]
    assert names[0], "a gradient has a name"
    assert not names[0] & names[1]
    assert set(re.findall(r"url\(#([^)]*)\)", one)) <= names[0]


def test_a_picture_is_well_formed_described_and_fits_the_page(records):
    for plot in port_plots(records(ports=3)):
        svg = plot.inline_svg()
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        assert plot.title in root.get("aria-label")
        assert root.get("width") is None
        assert root.get("viewBox") is not None


def test_on_a_page_every_colour_is_one_that_the_page_defines(records):
    svg = "".join(plot.inline_svg() for plot in [*port_plots(records()), *delay_plots(records())])
    assert set(re.findall(r"var\(--w-([a-z]+)\)", svg)) <= set(LIGHT)
    fixed = set(re.findall(r'(?:fill|stroke)="(?!none|transparent|var)([^"]+)"', svg))
    assert fixed == set()


def test_the_palettes_name_the_same_roles_and_no_colour_twice():
    assert set(LIGHT) == set(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)


def test_files_are_written_as_svg_and_png(records, tmp_path):
    (plot, *_) = port_plots(records())
    svg, png = plot.save(tmp_path)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_text_of_users_cannot_break_out_of_a_picture(records):
    made = records(ports=1)
    names = made["port_names"].with_columns(name=pl.lit('</svg><script>alert("x")</script>&'))
    (plot, *_) = port_plots(Records({**made, "port_names": names}))
    assert "<script>" not in plot.inline_svg()
    ElementTree.fromstring(plot.inline_svg())


@pytest.mark.parametrize(
    ("largest", "kind", "unit"),
    [
        (2e12, "time", "s"),
        (5e8, "time", "µs"),
        (0.0, "time", "s"),
        (20.0, "time", "ps"),
        (1500, "bytes", "kB"),
        (2.5e9, "rate", "Gbit/s"),
    ],
)
def test_quantities_are_shown_in_a_unit_of_their_size(largest, kind, unit):
    factor, shown = scaled(largest, kind)
    assert shown == unit
    assert largest == 0 or 1 <= largest * factor < 1000


def test_a_missing_package_is_a_message_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingCapability, match=r"need Altair.*pip install -e '\.\[report\]'"):
        altair()
    monkeypatch.undo()
    chart = altair().Chart(pl.DataFrame({"x": [1.0]})).mark_point().encode(x="x:Q")
    plot = finished([chart], name="n", title="t", description="d")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingCapability, match="need vl-convert"):
        plot.svg()


def test_two_factors_of_numbers_make_a_plane_for_each_combination_of_the_others():
    levels = [(kind, gd, every) for kind in ("OG", "IG") for gd in (0.1, 0.2, 3) for every in (64, 128, 192)]
    points = pl.DataFrame(
        [
            {"point": i, "kind": kind, "a.gd": str(gd), "a.every": f"{every} B"}
            for i, (kind, gd, every) in enumerate(levels)
        ]
    )
    measures = pl.DataFrame(
        [
            {"point": i, "measure": name, "replicate": replicate, "value": value, "unit": "B"}
            for i, (_, gd, every) in enumerate(levels)
            for replicate in (0, 1)
            for name, value in (("queue", 1000.0 * gd + every + replicate), ("same", 0.0))
        ]
    )
    plots = by_name(plane_plots(points, measures, ["kind", "a.gd", "a.every"]))
    assert sorted(plots) == ["plane-queue-ig", "plane-queue-og"], "a measure that never changes has none"
    cells = [row for row in data_of(plots["plane-queue-og"]) if "value" in row]
    found = {(row["at_x"], row["at_y"]): row["value"] for row in cells}
    assert len(found) == 9
    assert found[3, 192] == pytest.approx(3.1925), "kB, mean over the replicates"
    assert plane_plots(points, measures, ["kind", "a.gd"]) == []


def test_axes_say_the_levels_themselves():
    """45 between 30 and 60, not 50."""
    levels = list(itertools.product((30, 45, 60), (0.0125, 0.02, 0.04)))
    points = pl.DataFrame(
        [{"point": i, "load": f"{load} %", "gd": str(gd)} for i, (load, gd) in enumerate(levels)]
    )
    measures = pl.DataFrame(
        [
            {"point": i, "measure": "loss", "replicate": 0, "value": float(i), "unit": "1"}
            for i, _ in enumerate(levels)
        ]
    )
    for plot in (
        *plane_plots(points, measures, ["load", "gd"]),
        *effect_plots(points, measures, ["load", "gd"]),
    ):
        texts = [text.strip() for text in ElementTree.fromstring(plot.svg()).itertext()]
        assert {"30", "45", "60"} <= set(texts), plot.name
        if plot.name.startswith("plane"):
            assert {"0.0125", "0.02", "0.04"} <= set(texts)


def test_a_level_of_0_stands_a_step_below_the_others_of_a_logarithmic_axis():
    levels = [(gi, gd) for gi in ("0", "0.1", "1", "10") for gd in ("0.1", "0.2", "0.3")]
    points = pl.DataFrame([{"point": i, "gi": gi, "gd": gd} for i, (gi, gd) in enumerate(levels)])
    measures = pl.DataFrame(
        [
            {"point": i, "measure": "queue", "replicate": 0, "value": float(i), "unit": "1"}
            for i in range(len(levels))
        ]
    )
    sides = []
    (plot,) = plane_plots(points, measures, ["gi", "gd"], lambda *given: sides.append(given) or ())
    cells = {(row["at_x"], row["at_y"]): row["value"] for row in data_of(plot) if "value" in row}
    assert sorted({x for x, _ in cells}) == pytest.approx([0.01, 0.1, 1, 10])
    assert cells[min(cells)] == 0.0, "the level of 0 is the first point"
    widths = [math.log(row["x2"] / row["x"]) for row in data_of(plot) if "value" in row]
    assert widths == pytest.approx([math.log(10)] * 12), "all cells are as wide"
    assert "0 stands a step below" in plot.note
    assert "'0' : datum.label" in str(plot.spec)
    ((across, _, _),) = sides
    assert across.levels == {"0": pytest.approx(0.01), "0.1": 0.1, "1": 1, "10": 10}


@pytest.mark.parametrize("replicates", [1, 2])
def test_a_point_with_an_irregular_result_is_ringed_and_bars_are_named_only_where_there_are_some(replicates):
    points = pl.DataFrame({"point": [0, 1], "size": ["64 B", "128 B"]})
    measures = pl.DataFrame(
        [
            {"point": point, "measure": "NDR", "replicate": replicate, "value": 1.0 + point + replicate}
            | {"unit": "Mframe/s", "irregular": point == 1 and replicate == 0}
            for point in (0, 1)
            for replicate in range(replicates)
        ]
    )
    (plot,) = effect_plots(points, measures, ["size"])
    assert "Ringed: an irregular result" in plot.note
    assert ("bar: 95 % interval" in plot.note) is (replicates > 1)
    rows = [row for row in data_of(plot) if "irregular" in row]
    assert {row["level"]: row["irregular"] for row in rows} == {"64 B": False, "128 B": True}
    marked = re.findall(r'aria-label="[^"]*, irregular"', plot.svg())
    assert len(marked) == 2, "the point and its ring"
    (plain,) = effect_plots(points, measures.drop("irregular"), ["size"])
    assert "Ringed" not in plain.note
    assert ", irregular" not in plain.svg()


def test_the_marks_at_the_ends_of_an_axis_of_numbers_are_seen_whole():
    points = pl.DataFrame({"point": [0, 1, 2], "load": ["0 %", "50 %", "100 %"]})
    measures = pl.DataFrame(
        {"point": [0, 1, 2], "measure": "loss", "replicate": 0, "value": [0.1, 0.2, 0.3], "unit": "1"}
    )
    (plot,) = effect_plots(points, measures, ["load"])
    low, high = plot.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low < 0 < 100 < high


def test_parameters_that_end_alike_have_a_place_each():
    rows = [
        {"measure": "queue", "parameter": f"traffic.{name}.rate", "pawn": weight, "pawn_chance": 0.1}
        for name, weight in (("fast", 0.4), ("slow", 0.2))
    ]
    (plot,) = sensitivity_plots(pl.DataFrame(rows), "latin-hypercube", [])
    assert [row["name"] for row in data_of(plot) if "name" in row] == ["fast.rate", "slow.rate"]


def study_of(counts):
    """Points and measures of a study with so many levels of each factor, two replicates each."""
    levels = list(itertools.product(*(range(count) for count in counts.values())))
    points = pl.DataFrame(
        [
            {"point": i, **{name: f"{name}-{level}" for name, level in zip(counts, row, strict=True)}}
            for i, row in enumerate(levels)
        ]
    )
    measures = pl.DataFrame(
        [
            {"point": i, "measure": "bias", "replicate": replicate, "value": i + 0.1 * replicate, "unit": "1"}
            for i, _ in enumerate(levels)
            for replicate in (0, 1)
        ]
    )
    return points, measures


def test_more_series_than_colours_become_panels_that_fit_the_page():
    points, measures = study_of({"estimator": 6, "cross": 3, "load": 2, "hosts": 5})
    (plot,) = effect_plots(points, measures, ["estimator", "cross", "load", "hosts"])
    assert len(plot.spec["vconcat"]) == 6
    assert {row["series"] for row in data_of(plot) if "series" in row} == {f"hosts-{i}" for i in range(5)}
    width = float(re.search(r'<svg [^>]*?width="([\d.]+)"', plot.svg())[1])
    assert width < 1.2 * WIDTH
    many = effect_plots(*study_of({"a": 9, "b": 8, "c": 5}), ["a", "b", "c"])
    assert [plot.name for plot in many] == ["measure-bias-1", "measure-bias-2"]
    assert sum(len(plot.spec["vconcat"]) for plot in many) == 8


def test_an_interval_that_dwarfs_all_means_is_cut_and_said_to_be():
    points = pl.DataFrame({"point": [0, 1], "kind": ["a", "b"]})
    values = {0: (1.0, 1.1), 1: (0.0, 3.0)}
    measures = pl.DataFrame(
        [
            {"point": point, "measure": "bias", "replicate": replicate, "value": value, "unit": "1"}
            for point, pair in values.items()
            for replicate, value in enumerate(pair)
        ]
    )
    (plot,) = effect_plots(points, measures, ["kind"])
    assert "longer than drawn" in plot.note
    measures = measures.with_columns(value=pl.col("point") + 0.01 * pl.col("replicate"))
    (plot,) = effect_plots(points, measures, ["kind"])
    assert "longer than drawn" not in plot.note


def test_a_picture_of_differences_shows_zero_and_whole_intervals():
    points = pl.DataFrame({"point": [0, 1], "kind": ["a", "b"]})
    values = {0: (2.0, 2.2, 2.4), 1: (3.0, 4.0, 3.1)}
    measures = pl.DataFrame(
        [
            {"point": point, "measure": "apart", "replicate": replicate, "value": value, "unit": "1"}
            for point, several in values.items()
            for replicate, value in enumerate(several)
        ]
    )
    (plot,) = effect_plots(points, measures, ["kind"], zero=True)
    rows = [row for row in data_of(plot) if "low" in row]
    low, high = plot.spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low <= min(0.0, *(row["low"] for row in rows)) < max(row["high"] for row in rows) <= high
    assert "longer than drawn" not in plot.note


def test_eight_series_have_eight_colors_in_both_palettes():
    chosen = series_colors([str(number) for number in range(8)])
    roles = [role for color in chosen for role, known in LIGHT.items() if known == color]
    assert len(roles) == len({DARK[role] for role in roles}) == 8


def _series_of(name, names):
    alt = altair()
    rows = pl.DataFrame({"x": [0.0] * len(names), "name": names})
    lines = alt.Chart(rows).mark_line().encode(x="x:Q", color=series_color("name", names))
    return Plot(name, name, "", lines)


def test_what_has_the_same_name_has_one_colour_on_a_page_and_none_shares_it_within_a_plot():
    plots = alike(
        [
            _series_of("a", ["one", "two"]),
            _series_of("b", ["two", "three"]),
            _series_of("c", ["three"]),
            _series_of("d", list("abcdefg")),
        ]
    )
    seen = {}
    for each in plots:
        (scale,) = _series_scales(each.spec)
        assert len(set(scale["range"])) == len(scale["domain"])
        for name, color in zip(scale["domain"], scale["range"], strict=True):
            assert seen.setdefault(name, color) == color
    assert len({seen[name] for name in ("one", "two", "three")}) == 3


def test_the_only_flow_of_a_traffic_has_the_colour_of_the_traffic():
    plots = alike([_series_of("a", ["one", "two"]), _series_of("b", ["two/a->b", "one/a->c", "one/b->c"])])
    traffic, flows = (
        dict(zip(scale["domain"], scale["range"], strict=True))
        for each in plots
        for scale in _series_scales(each.spec)
    )
    assert flows["two/a->b"] == traffic["two"]
    assert not {flows["one/a->c"], flows["one/b->c"]} & {*traffic.values()}
