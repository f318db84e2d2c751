"""Time-sequence graphs of TCP: what they hold, how they are thinned, and how they answer in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import weirlab
from browsing import in_browser
from weirlab.report import sequence, write_report
from weirlab.scenario import load
from weirlab.traces import read_trace

FIGURE = "figure[data-sequence]"


@pytest.fixture(scope="module")
def run():
    scenario = load("tcp-dumbbell", {"run.duration": "1 s", "record": None, "measure": None})
    ports = [f"left-{n}->left" for n in (0, 1)] + [f"left->left-{n}" for n in (0, 1)]
    return weirlab.run(scenario.assign({"record.wire": {"frames": ports, "as": "pcapng"}}))


@pytest.fixture(scope="module")
def trace(run, tmp_path_factory):
    file = tmp_path_factory.mktemp("capture") / "wire.pcapng"
    file.write_bytes(run.captures["wire-0.pcapng"])
    return read_trace(file)


def named(trace):
    return trace["packets"].join(trace["kind_names"], on="kind")


def heaviest(trace):
    return trace.flows().item(0, "flow")


def test_without_thinning_each_segment_acknowledgment_and_sack_block_is_there(trace):
    flow = heaviest(trace)
    graph = sequence.thinned(trace, named(trace), flow, 10**9)
    assert graph.step_ns == 0
    packets = trace["packets"].filter(flow=flow)
    assert graph.segments["low"].to_list() == packets.sort("t_ps")["seq"].to_list()
    assert graph.acks.height == trace["acks"].filter(flow=flow).height
    assert graph.sacks.height == trace["sacks"].filter(flow=flow).height > 0
    assert graph.acks["duplicates"].sum() == trace["acks"].filter(flow=flow)["duplicate"].sum() > 0


@pytest.mark.parametrize("most", [50, 1000, 8000])
def test_thinned_marks_cover_all_that_was_sent_and_keep_the_extremes(trace, most):
    flow = heaviest(trace)
    whole = sequence.thinned(trace, named(trace), flow, 10**9)
    thin = sequence.thinned(trace, named(trace), flow, most)
    assert thin.segments.height + thin.acks.height + thin.sacks.height <= most
    for before, after in ((whole.segments, thin.segments), (whole.sacks, thin.sacks)):
        assert after["many"].sum() == before.height
        kinds = [
            dict(frame.group_by("kind").agg(pl.col("many").sum()).iter_rows()) for frame in (before, after)
        ]
        assert kinds[0] == kinds[1]
        assert after["low"].min() == before["low"].min()
        assert after["high"].max() == before["high"].max()
        for row in before.sample(min(100, before.height), seed=1).iter_rows(named=True):
            around = after.filter(
                pl.col("kind") == row["kind"],
                pl.col("from_ns") <= row["from_ns"],
                pl.col("to_ns") >= row["from_ns"],
                pl.col("low") <= row["low"],
                pl.col("high") >= row["high"],
            )
            assert not around.is_empty()
    assert thin.acks["duplicates"].sum() == whole.acks["duplicates"].sum()
    assert thin.acks["ack"].max() == whole.acks["ack"].max()
    assert thin.acks["edge_low"].min() == whole.acks["edge_low"].min()
    assert thin.acks["edge_high"].max() == whole.acks["edge_high"].max()


def test_numbers_are_packed_without_loss():
    chance = np.random.default_rng(1)
    numbers = np.concatenate([chance.integers(-(2**40), 2**40, 1000), [0, -1, 1, 63, 64, -64, -65, 2**62]])
    packed, found = sequence._varints(numbers), []
    value, weight = 0, 0
    for byte in packed:
        value |= (byte & 127) << weight
        weight += 7
        if byte < 128:
            found.append(value >> 1 ^ -(value & 1))
            value, weight = 0, 0
    assert found == numbers.tolist()


def test_the_page_of_a_trace_of_a_million_segments_stays_small(trace):
    packets = trace["packets"].filter(flow=heaviest(trace)).sort("t_ps")
    length, span = packets["seq"].max() + 1448, packets["t_ps"].max()
    copies = 1 + 1_000_000 // packets.height
    many = pl.concat(
        [packets.with_columns(pl.col("t_ps") + n * span, pl.col("seq") + n * length) for n in range(copies)]
    )
    tables = dict(trace.tables) | {"packets": many}
    block, _ = sequence.sequence_block(replace(trace, tables=tables))
    assert len(block.data) < 4e6
    assert sum(json.loads(block.data)["flows"][0]["rows"]) <= sequence.ROWS


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return write_report(run.save(tmp_path_factory.mktemp("run") / "r"), pictures=False).page


def test_the_page_of_a_run_with_a_capture_has_the_graph_with_names_of_flows(page):
    data = json.loads(
        re.search(r"<figure data-sequence>.*?<script[^>]*>(.*?)</script>", page.read_text(), re.S)[1]
    )
    assert {flow["name"] for flow in data["flows"]} >= {"bulk/left-0->right-0", "bulk/left-1->right-1"}
    assert all(zlib.decompress(base64.b64decode(flow["marks"])) for flow in data["flows"])


def shown(opened):
    return [int(each) for each in opened.locator(FIGURE).get_attribute("data-range").split()]


def drawn(opened):
    figure = opened.locator(FIGURE)
    figure.scroll_into_view_if_needed()
    opened.wait_for_selector(f"{FIGURE}[data-range]")
    return figure


class TestInABrowser:
    pytestmark = in_browser

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [360, 768, 1280])
    def test_the_graph_is_drawn_at_each_width_and_in_both_themes(self, page, open_page, width, scheme):
        opened = open_page(page, width, scheme)
        canvas = drawn(opened).locator("canvas")
        ink = canvas.evaluate(
            "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
            ".filter((v, i) => i % 4 === 3 && v).length"
        )
        assert ink > 1000
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert "segments sent again" in canvas.get_attribute("aria-label")

    def test_keys_and_buttons_zoom_move_and_go_to_recoveries(self, page, open_page):
        opened = open_page(page)
        figure = drawn(opened)
        whole = shown(opened)
        figure.get_by_role("button", name="Next recovery").click()
        opened.wait_for_selector(f"{FIGURE}:not([data-range='{whole[0]} {whole[1]}'])")
        near = shown(opened)
        assert near[1] - near[0] < whole[1] - whole[0]
        figure.locator("canvas").focus()
        opened.keyboard.press("+")
        opened.wait_for_selector(f"{FIGURE}:not([data-range='{near[0]} {near[1]}'])")
        closer = shown(opened)
        assert closer[1] - closer[0] == pytest.approx((near[1] - near[0]) / 1.5, rel=0.01)
        opened.keyboard.press("Home")
        opened.wait_for_selector(f"{FIGURE}[data-range='{whole[0]} {whole[1]}']")

    def test_the_pointer_reads_what_was_acknowledged_and_is_in_flight(self, page, open_page):
        opened = open_page(page)
        figure = drawn(opened)
        box = figure.locator("canvas").bounding_box()
        opened.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        said = figure.locator(".said")
        said.filter(has_text=re.compile("acknowledged up to .* in flight")).wait_for()
        assert "at " in said.inner_text()

    def test_another_connection_is_chosen_and_a_kind_hidden(self, page, open_page):
        opened = open_page(page)
        figure = drawn(opened)
        first = figure.get_attribute("data-flow")
        figure.get_by_label("Connection").select_option("1")
        opened.wait_for_selector(f"{FIGURE}:not([data-flow='{first}'])")
        box = figure.get_by_label("SACK")
        assert box.is_checked()
        box.uncheck()
        assert not box.is_checked()

    def test_without_scripts_the_drawing_for_paper_stands(self, page, open_page):
        opened = open_page(page, scripts=False)
        assert opened.locator(f"{FIGURE} > svg").is_visible()
