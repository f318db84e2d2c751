"""Reports in a real browser that is driven: plots answer the pointer, tables sort and filter."""

import functools
import tomllib
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest

import weirlab
from browsing import in_browser
from weirlab.plots.interactive import interactive
from weirlab.report import write_report
from weirlab.report.page import Column, Page, Table
from weirlab.scenario import loads

STATIC = Path(weirlab.__file__).parent / "report" / "static"
SCENARIO = """
weirlab: 1
name: seen
network: {kind: star, hosts: 14, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {egress: {at: "switch-0->*", kind: drop-tail, limit: 30 kB}}
traffic:
  a: {from: "host-[0-5]", to: host-13, source: {kind: poisson, load: 12 %, frame_size: 1000 B}}
  b: {from: "host-[6-12]", to: host-13, source: {kind: poisson, load: 12 %, frame_size: 500 B}}
run: {duration: 5 ms}
record:
  out: {queue: switch-0->host-13, every: 100 us}
  a: {flow: a, every: 100 us}
  b: {flow: b, every: 100 us}
"""
BY_FLOW = (
    SCENARIO.replace("name: seen", "name: flows")
    .replace("  a: {flow: a, every: 100 us}", '  a: {flow: "*", by: flow, every: 100 us}')
    .replace("  b: {flow: b, every: 100 us}\n", "")
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("seen")
    weirlab.run(loads(SCENARIO)).save(directory)
    return write_report(directory, pictures=False).page


@pytest.fixture
def opened(open_page, written):
    return functools.partial(open_page, written)


def plot(page, name):
    """A plot once it answers."""
    found = page.locator(f"figure[data-plot='{name}']")
    found.scroll_into_view_if_needed()
    page.wait_for_selector(f"figure[data-plot='{name}'].lively")
    return found


def eventually(page, holds):
    """Until a condition holds; a plot is drawn again some time after what it answers to."""
    for _ in range(3000):
        if holds():
            return
        page.wait_for_timeout(20)
    raise AssertionError("the plot never answers")


def middle(found):
    box = found.locator(".plot").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def x_labels(found):
    """Numbers below the horizontal axis; none while it is drawn again."""
    labels = """figure => {
        const groups = [...figure.querySelectorAll(".plot .role-axis-label")];
        const texts = groups.map(each => [...each.querySelectorAll("text")].map(text => text.textContent));
        return texts.find(each => each.length) ?? [];
    }"""
    return [float(text) for text in found.evaluate(labels)]


class TestPlots:
    pytestmark = in_browser

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_the_values_at_the_pointer_are_shown_with_their_units(self, opened, scheme):
        page = opened(scheme=scheme)
        page.mouse.move(*middle(plot(page, "port-queue")))
        page.wait_for_selector(".tooltip:visible")
        text = page.inner_text(".tooltip")
        for words in ("switch-0->host-13", "time [ms]", "queue [kB]"):
            assert words in text

    def test_a_zoom_is_shared_by_all_plots_over_the_same_axis_and_undone_by_a_double_click(self, opened):
        page = opened()
        queue, rate = plot(page, "port-queue"), plot(page, "port-rate")
        whole = x_labels(rate)
        assert (whole[0], whole[-1]) == (0, 5)
        queue.scroll_into_view_if_needed()
        page.mouse.move(*middle(queue))
        page.mouse.wheel(0, -400)
        eventually(page, lambda: (seen := x_labels(rate)) and whole[0] < seen[0] and seen[-1] < whole[-1])
        eventually(page, lambda: x_labels(queue) == x_labels(rate))
        page.mouse.dblclick(*middle(queue))
        eventually(page, lambda: x_labels(rate) == x_labels(queue) == whole)

    def test_a_closer_look_at_a_long_series_shows_each_interval(self, open_page, tmp_path):
        changes = {
            "run.duration": "50 ms",
            "record": {"out": {"queue": "switch-0->host-13", "every": "10 us"}},
        }
        records = weirlab.run(loads(SCENARIO), assign=changes, out=tmp_path / "long").records
        page = open_page(write_report(tmp_path / "long", pictures=False).page)
        queue = plot(page, "port-queue")
        page.mouse.move(*middle(queue))
        line = queue.locator(".plot .mark-line path").first
        while not (labels := sorted(x_labels(queue))) or labels[-1] - labels[0] > 2:
            drawn = line.get_attribute("d")
            page.mouse.wheel(0, -400)
            eventually(page, lambda drawn=drawn: line.get_attribute("d") != drawn)
        steps = """path => {
            const width = path.closest("svg").viewBox.baseVal.width;
            const places = path.getAttribute("d").match(/[\\d.-]+(?=,)/g).map(Number);
            return new Set(places.filter(each => each > 0 && each < width)).size;
        }"""

        def each_is_shown():
            if not (labels := sorted(x_labels(queue))):
                return False
            there = pl.col("t_ps").is_between(labels[0] * 1e9, labels[-1] * 1e9)
            wanted = records["intervals"].filter(there).height
            return line.evaluate(steps) >= wanted > 30

        eventually(page, each_is_shown)
        page.mouse.dblclick(*middle(queue))
        eventually(page, lambda: x_labels(queue)[-1:] == [50])

    def test_an_entry_of_a_legend_shows_its_series_alone(self, opened):
        page = opened()
        found = plot(page, "delivered-rate")

        def strong():
            lines = found.locator(".plot .mark-line path").all()
            return sum(1 for line in lines if float(line.get_attribute("opacity") or 1) > 0.5)

        assert strong() == 2
        found.locator(".plot .role-legend-label text").first.click()
        eventually(page, lambda: strong() == 1)

    @pytest.mark.parametrize("width", [360, 768, 1280])
    def test_plots_are_redrawn_at_the_width_of_the_page_with_text_of_the_same_size(self, opened, width):
        page = opened(width)
        found = plot(page, "port-queue")
        box = found.locator(".plot svg").bounding_box()
        assert box["width"] <= width
        size = "each => parseFloat(getComputedStyle(each).fontSize)"
        assert found.locator(".plot text").first.evaluate(size) > 11
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    def test_paper_has_the_drawings_that_need_no_script(self, opened):
        page = opened()
        plot(page, "port-queue")
        page.emulate_media(media="print")
        assert page.locator("figure[data-plot='port-queue'] > svg").is_visible()
        assert not page.locator("figure[data-plot='port-queue'] > .plot").is_visible()


class TestTables:
    pytestmark = in_browser

    def test_a_heading_sorts_by_numbers_both_ways_and_says_so(self, opened):
        page = opened()
        table = page.locator("table", has_text="Ports, those with most drops first")
        heading = table.locator("thead th", has_text="sent")

        def column():
            place = heading.evaluate("each => each.cellIndex")
            texts = table.locator(f"tbody tr td:nth-child({place + 1})").all_inner_texts()
            return [float(text.replace("\u202f", "")) for text in texts if text not in ("–", "")]

        heading.locator("button").click()
        assert column() == sorted(column())
        assert heading.get_attribute("aria-sort") == "ascending"
        heading.locator("button").press("Enter")
        assert column() == sorted(column(), reverse=True)
        assert len(column()) > 3

    def test_cells_with_units_of_their_own_are_sorted_by_what_they_are(self, open_page, tmp_path):
        columns = [Column("window", numeric=False), Column("held"), Column("rate")]
        held = ["27.53 µs", "1.464 ms", "900 ns", "0", "2 s", "–"]
        windows = ["4 MB", "100 kB", "64 B", "1 GB", "12 MB", "1.5 MB"]
        rates = ["3 Gbit/s", "20 Mbit/s", "1 000 Mbit/s", "5 hosts", "7", "< 8 kbit/s"]
        table = Table("t", columns, [list(row) for row in zip(windows, held, rates, strict=True)])
        page = open_page(Page("p", "Run", "", [table], []).write(tmp_path / "page.html"))

        def column(place):
            page.locator("th button").nth(place - 1).click()
            return page.locator(f"tbody tr :nth-child({place})").all_inner_texts()

        assert column(1) == ["64 B", "100 kB", "1.5 MB", "4 MB", "12 MB", "1 GB"]
        assert column(2) == ["0", "900 ns", "27.53 µs", "1.464 ms", "2 s", "–"]
        assert column(3) == ["5 hosts", "7", "< 8 kbit/s", "20 Mbit/s", "1 000 Mbit/s", "3 Gbit/s"]

    def test_a_filter_keeps_the_rows_that_have_all_words(self, opened):
        page = opened()
        box = page.get_by_label("Filter rows: Ports, those with most drops first")
        box.fill("host-3")
        table = page.locator("table", has_text="Ports, those with most drops first")
        shown = table.locator("tbody tr:visible").all_inner_texts()
        assert shown
        assert all("host-3" in row for row in shown)
        assert f"{len(shown)} of" in box.locator("xpath=following-sibling::output[1]").inner_text()
        box.fill("")
        assert table.locator("tbody tr:visible").count() > len(shown)


def test_a_plot_of_paper_is_not_changed_by_what_a_screen_adds():
    x = {"field": "t", "type": "quantitative", "title": "time [s]"}
    spec = {"layer": [{"mark": "line", "encoding": {"x": x}}]}
    before = repr(spec)
    assert interactive(spec)["layer"][0]["params"][0]["bind"] == "scales"
    assert repr(spec) == before


def test_what_is_vendored_is_what_its_list_says():
    listed = tomllib.loads((STATIC / "VENDOR.toml").read_text())
    for entry in listed.values():
        assert sha256((STATIC / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]


def test_a_table_on_a_narrow_screen_has_the_cells_of_a_row_below_each_other_with_their_names(opened):
    page = opened()
    page.set_viewport_size({"width": 420, "height": 900})
    eventually(page, lambda: page.evaluate("document.documentElement.scrollWidth") <= 420)
    wide = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth + 1)"
    assert page.evaluate(f"{wide}.length") == 0
    table = page.locator("table.stack").first
    cells = "each => [...each.tBodies[0].rows[0].cells]"
    tops = table.evaluate(f"{cells}.map(cell => cell.getBoundingClientRect().top)")
    assert tops == sorted(set(tops))
    names = table.evaluate(f"{cells}.map(cell => cell.dataset.name)")
    heads = table.evaluate("each => [...each.tHead.rows[0].cells].map(cell => cell.textContent.trim())")
    assert all(head.startswith(name.split(", ")[0]) for name, head in zip(names, heads, strict=True))


class TestLegends:
    pytestmark = in_browser

    @pytest.mark.parametrize("width", [360, 768, 1280])
    def test_long_ones_wrap_instead_of_making_a_plot_wider_than_the_screen(self, width, open_page, tmp_path):
        weirlab.run(loads(BY_FLOW)).save(tmp_path / "run")
        page = open_page(write_report(tmp_path / "run", pictures=False).page, width)
        found = plot(page, "delivered-rate-by-flow").locator(".plot")
        wide, seen = found.evaluate("each => [each.scrollWidth, each.clientWidth]")
        assert wide <= seen + 1
        assert found.locator(".role-legend-label text").count() == 6
