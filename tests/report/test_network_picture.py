"""The picture of a network: its places, its numbers, and how it plays in a real browser."""

import json
import math
import re

import polars as pl
import pytest

import weirlab
from browsing import in_browser
from weirlab.plots.topology import arranged
from weirlab.report import network, write_report
from weirlab.scenario import loads
from weirlab.scenario.network.layout import layout_of, plan_network

SCENARIO = """
weirlab: 1
name: spreading
network: {kind: xgft, children: [4, 5], parents: [1, 2], link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {egress: {at: "@switches->*", kind: drop-tail, limit: 30 kB}}
traffic:
  quiet: {from: "host-[1-3]", to: host-19, source: {kind: poisson, load: 12 %, frame_size: 1000 B}}
  hot: {from: "host-[4-18]", to: host-0, start: 2 ms, source: {kind: poisson, load: 20 %, frame_size: 1000 B}}
run: {duration: 5 ms}
record: {all: {queue: "*->*", every: 100 us}}
"""
LARGE = """
weirlab: 1
name: large
network: {kind: xgft, children: [16, 16, 8], parents: [1, 8, 8], link: {rate: 10 Gbit/s, framing: none}}
traffic:
  a: {from: "host-[1000-1099]", to: host-17, source: {kind: poisson, load: 0.5 %, frame_size: 1500 B}}
run: {duration: 1 ms}
record: {all: {queue: "*->*", every: 20 us}}
"""
NETWORKS = {
    "star": "{kind: star, hosts: 40, link: {rate: 1 Gbit/s}}",
    "small star": "{kind: star, hosts: 5, link: {rate: 1 Gbit/s}}",
    "fat tree": "{kind: fat-tree, k: 4, link: {rate: 1 Gbit/s}}",
    "large star": "{kind: star, hosts: 2048, link: {rate: 1 Gbit/s}}",
    "dumbbell": "{kind: dumbbell, pairs: 3, access: {rate: 1 Gbit/s}, bottleneck: {rate: 1 Gbit/s}}",
    "wide dumbbell": "{kind: dumbbell, pairs: 9, access: {rate: 1 Gbit/s}, bottleneck: {rate: 1 Gbit/s}}",
    "path": "{kind: path, ends: [a, b], link: {rate: 1 Gbit/s}}",
    "ring": "{kind: graph, link: {rate: 1 Gbit/s}, nodes: {h: {kind: host, count: 16}, "
    "s: {kind: switch, count: 16}}, links: {own: {join: ['h-*', 's-*'], pair: by-index}, "
    f"round: {{join: [{[f's-{n}' for n in range(16)]}, {[f's-{(n + 1) % 16}' for n in range(16)]}], "
    "pair: by-index}}}",
}
FIGURE = "figure[data-network]"
LINES = f"{FIGURE} .plot > svg line[data-e]"


def layout(text):
    source = "{kind: poisson, load: 1 %, frame_size: 64 B}"
    traffic = f"traffic: {{a: {{from: '@hosts', to: '@hosts', pattern: uniform, source: {source}}}}}"
    found = loads(f"weirlab: 1\nname: n\nnetwork: {text}\n{traffic}\nrun: {{duration: 1 ms}}\n")
    return layout_of(plan_network(found.network).spec)


@pytest.fixture(scope="module")
def ran():
    return weirlab.run(loads(SCENARIO))


@pytest.fixture(scope="module")
def written(ran, tmp_path_factory):
    directory = tmp_path_factory.mktemp("spreading")
    ran.save(directory)
    return write_report(directory, pictures=False).page


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    directory = tmp_path_factory.mktemp("large")
    weirlab.run(loads(LARGE)).save(directory)
    return write_report(directory, pictures=False).page


class TestPlaces:
    @pytest.mark.parametrize("name", NETWORKS)
    def test_nodes_stand_apart_inside_the_picture_and_every_port_is_one_line(self, name):
        known = layout(NETWORKS[name])
        picture = arranged(known, known.nodes[:1])
        for node in picture.nodes:
            assert 0 <= node.x - node.width / 2 <= node.x + node.width / 2 <= picture.width
            assert 0 <= node.y - node.height / 2 <= node.y + node.height / 2 <= picture.height
        places = [(node.x, node.y) for node in picture.nodes]
        nearest = min(math.dist(a, b) for i, a in enumerate(places) for b in places[:i])
        assert nearest > 2 * min(node.width for node in picture.nodes) / 2
        assert sorted(port for edge in picture.edges for port in edge.ports) == list(range(len(known.ports)))
        members = sorted(member for node in picture.nodes for member in node.members)
        assert members == list(range(len(known.nodes)))

    def test_directions_of_a_link_do_not_cover_each_other(self):
        picture = arranged(layout(NETWORKS["small star"]))
        starts = {edge.start for edge in picture.edges} | {edge.end for edge in picture.edges}
        assert len(starts) == 2 * len(picture.edges)

    def test_a_link_in_a_row_leads_from_side_to_side(self):
        known = layout(NETWORKS["wide dumbbell"])
        picture = arranged(known)
        (edge,) = [e for e in picture.edges if known.ports[e.ports[0]].name == "left->right"]
        left, right = picture.nodes[edge.source], picture.nodes[edge.target]
        assert edge.start[0] == pytest.approx(left.x + left.width / 2)
        assert edge.end[0] == pytest.approx(right.x - right.width / 2)

    def test_hosts_of_a_switch_are_one_node_in_a_large_network(self):
        picture = arranged(layout(NETWORKS["large star"]))
        assert len(picture.nodes) == 1 + 2048 // 64
        assert {len(node.members) for node in picture.nodes if node.is_host} == {64}

    def test_a_ring_is_no_row(self):
        picture = arranged(layout(NETWORKS["ring"]))
        heights = {round(node.y) for node in picture.nodes if not node.is_host}
        assert len(heights) > 4


class TestNumbers:
    def test_totals_are_those_of_the_ports(self, ran):
        found = network.totals(ran.records, 60)
        row = ran.records.named("ports").sort("busy_ps").row(-1, named=True)
        end_ps = ran.records["runs"]["end_ps"][0]
        used = (row["bytes"] + row["frames"] * row["framing_bytes"]) * 8e15 / row["rate_bps"] / end_ps
        assert found.utilisation[row["port"]] == round(used)
        assert found.drops.sum() == ran.records["ports"]["drops"].sum() > 0
        assert found.queue[row["port"]] == row["queue_max_bytes"]

    def test_steps_are_the_recorded_intervals(self, ran):
        found = network.series(ran.records)
        rows = ran.records.named("intervals").sort("port", "t_ps")
        assert found.ends_ps == rows["t_ps"].unique().sort().to_list()
        assert found.drops.ravel().tolist() == rows["drops"].to_list()
        assert found.queue.ravel().tolist() == rows["queue_max_bytes"].to_list()
        bits = 8 * (rows["bytes"] + rows["frames"] * rows["framing_bytes"]).cast(pl.Float64)
        used = (bits * 1e15 / (rows["rate_bps"].cast(pl.Float64) * 100e6)).round()
        assert found.utilisation.ravel().tolist() == used.to_list()

    def test_merged_steps_keep_all_drops_and_the_longest_queues(self, ran, monkeypatch):
        monkeypatch.setattr(network, "STEPS", 7)
        found = network.series(ran.records)
        rows = ran.records["intervals"]
        assert len(found.ends_ps) <= 7
        assert found.merged == 8
        assert found.ends_ps[-1] == rows["t_ps"].max()
        assert found.drops.sum() == rows["drops"].sum()
        assert found.queue.max() == rows["queue_max_bytes"].max()

    def test_a_port_with_longer_intervals_shows_the_one_that_a_step_lies_in(self):
        text = SCENARIO.replace(
            'record: {all: {queue: "*->*", every: 100 us}}',
            'record: {a: {queue: "host-1->*", every: 100 us}, b: {queue: "host-2->*", every: 500 us}}',
        )
        records = weirlab.run(loads(text)).records
        found = network.series(records)
        rows = records.named("intervals").filter(pl.col("port_name").str.starts_with("host-2"))
        slow = found.ports.index(rows["port"][0])
        assert len(found.ends_ps) == 5 * rows.height
        assert found.queue[slow].tolist() == [q for q in rows["queue_max_bytes"] for _ in range(5)]
        assert found.drops[slow].sum() == rows["drops"].sum()

    def test_a_network_of_2048_hosts_is_small(self, large):
        text = large.read_text()
        assert len(text) < 10e6
        part = text[text.index("<figure data-network>") :]
        part = part[: part.index("</figure>")]
        assert part.count("<circle") + part.count("<rect") < 600
        assert "2048 hosts" in part

    def test_without_series_the_note_says_how_to_get_them(self, tmp_path):
        weirlab.run(loads(SCENARIO.split("record:")[0])).save(tmp_path)
        text = write_report(tmp_path, pictures=False).page.read_text()
        assert "No port was recorded over time" in text


def levels(page):
    """Classes of all lines, by the name of their port."""
    pairs = page.locator(LINES).evaluate_all(
        "all => all.map((each) => [each.getAttribute('aria-label'), each.getAttribute('class')])"
    )
    return dict(pairs)


def ready(page):
    page.wait_for_selector(f"{FIGURE}.lively")
    return page


class TestInABrowser:
    pytestmark = in_browser

    def test_the_slider_shows_congestion_where_and_when_it_was_recorded(self, opened):
        page = ready(opened())
        slider = page.get_by_label("Time", exact=True)
        slider.fill("10")
        before = levels(page)
        slider.fill("40")
        after = levels(page)
        assert before["level1-0->host-0"] == "c0"
        assert after["level1-0->host-0"] == "c8"
        assert slider.get_attribute("aria-valuetext") == "3.9 ms to 4 ms"
        bars = page.locator(f"{FIGURE} .plot line.bar").evaluate_all(
            "all => all.filter((each) => each.getAttribute('visibility') === 'visible').length"
        )
        assert bars > 3

    def test_the_slider_moves_by_keys(self, opened):
        page = ready(opened())
        slider = page.get_by_label("Time", exact=True)
        slider.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext") == "100 µs to 200 µs"

    def test_play_goes_to_the_end_and_stops(self, opened):
        page = ready(opened())
        page.get_by_label("Time", exact=True).fill("47")
        page.get_by_role("button", name="Play").click()
        page.get_by_role("button", name="Pause").wait_for()
        page.get_by_role("button", name="Play").wait_for()
        assert page.get_by_label("Time", exact=True).input_value() == "50"

    def test_a_click_on_a_link_shows_its_numbers_and_its_series(self, opened, ran):
        page = ready(opened())
        line = page.locator(f"{LINES}[aria-label='level2-0->level1-0']")
        ends = line.evaluate(
            "each => { const m = each.getScreenCTM(), found = []; for (const k of [1, 2]) {"
            " const at = new DOMPoint(each[`x${k}`].baseVal.value, each[`y${k}`].baseVal.value);"
            " found.push(at.matrixTransform(m).x, at.matrixTransform(m).y); } return found; }"
        )
        page.mouse.click((ends[0] + ends[2]) / 2, (ends[1] + ends[3]) / 2)
        panel = page.get_by_role("region", name="Chosen link")
        row = (
            ran.records.named("ports").filter(pl.col("port_name") == "level2-0->level1-0").row(0, named=True)
        )
        text = panel.inner_text()
        assert "level2-0->level1-0 (whole run): 1 Gbit/s" in text
        assert f"{row['drops']} frames dropped" in text
        assert f"longest queue {row['queue_max_bytes'] / 1000:g} kB" in text
        assert panel.get_by_role("img", name="queue of level2-0->level1-0 over time").count() == 1

    def test_a_chosen_flow_shows_its_way_and_what_became_of_its_frames(self, opened, ran):
        page = ready(opened())
        choice = page.locator(f"{FIGURE} .controls label", has_text="Flow").locator("select")
        flow = (
            ran.records.named("flows").filter(pl.col("flow_name") == "hot/host-18->host-0").row(0, named=True)
        )
        choice.select_option(label="hot/host-18->host-0")
        told = page.get_by_role("region", name="Chosen flow")
        assert f"{flow['delivered_frames']} of {flow['sent_frames']} frames delivered" in told.inner_text()
        assert f"{flow['dropped_frames']} dropped" in told.inner_text()
        ways = page.locator(f"{FIGURE} line.way").count()
        assert ways == 4  # up to the top of the tree, and down
        choice.select_option("")
        assert page.locator(f"{FIGURE} line.way").count() == 0
        assert told.is_hidden()

    def test_links_are_chosen_by_keys_with_their_names_said(self, opened):
        page = ready(opened())
        page.locator(f"{LINES}[tabindex='0']").focus()
        panel = page.get_by_role("region", name="Chosen link")
        first = panel.locator("b").inner_text()
        page.keyboard.press("ArrowRight")
        second = panel.locator("b").inner_text()
        assert first != second
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == second
        assert page.locator(f"{LINES}[tabindex='0']").count() == 1
        page.keyboard.press("Escape")
        assert panel.is_hidden()

    def test_colours_are_of_what_the_reader_asks_for(self, opened):
        page = ready(opened())
        page.get_by_label("Colour").select_option("drops")
        shown = {name for name, kind in levels(page).items() if kind != "c0"}
        assert "level2-0->level1-0" in shown
        assert "host-1->level1-0" not in shown
        assert "paused" not in page.get_by_label("Colour").locator("option").evaluate_all(
            "all => all.map((each) => each.value)"
        )

    def test_links_have_the_colours_of_what_flow_control_held_where_it_held_much(self, open_page, tmp_path):
        run = weirlab.run("pfc-victim", assign={"run.duration": "300 us", "measure": {}})
        page = ready(open_page(write_report(run.save(tmp_path / "held"), pictures=False).page))
        assert page.get_by_label("Colour").input_value() == "paused"
        held = run.records["holds"].filter(pl.col("held_ps") > 0).get_column("port").unique()
        names = run.records["port_names"].filter(pl.col("port").is_in(held.implode())).get_column("name")
        assert {name for name, kind in levels(page).items() if kind not in ("c0", "u")} == set(names)

    def test_hosts_of_a_switch_open_and_close(self, opened, large):
        page = ready(opened(large))
        assert page.locator(LINES).count() < 5000
        page.get_by_role("button", name="Show 16 hosts host-16 to host-31", exact=True).dispatch_event(
            "click"
        )
        inner = page.locator(".hosts svg line[role=button]")
        assert inner.count() == 32
        own = page.locator(".hosts line[aria-label$='->host-17']")
        assert own.get_attribute("class") not in ("c0", "u")
        own.focus()
        assert "->host-17" in page.get_by_role("region", name="Chosen link").inner_text()
        page.get_by_role("button", name="Close").click()
        assert inner.first.is_hidden()

    @pytest.mark.parametrize("width", [360, 768, 1280])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_the_picture_fits_and_its_controls_are_seen(self, opened, width, scheme):
        page = ready(opened(width=width, scheme=scheme))
        for each in [page.locator(f"{FIGURE} .plot > svg"), *page.locator(".controls > *").all()]:
            box = each.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        colours = page.locator(f"{LINES}.c5").first.evaluate(
            "each => [getComputedStyle(each).stroke, getComputedStyle(document.body).backgroundColor]"
        )
        assert colours[0] != colours[1]

    def test_paper_has_the_whole_run(self, opened):
        page = ready(opened())
        page.get_by_label("Time", exact=True).fill("1")
        page.emulate_media(media="print")
        assert page.locator(f"{FIGURE} > svg").is_visible()
        assert not page.locator(f"{FIGURE} > .plot").is_visible()

    def test_without_scripts_the_whole_run_stands(self, opened):
        page = opened(scripts=False)
        still = page.locator(f"{FIGURE} > svg")
        assert still.is_visible()
        assert "20 hosts" in still.get_attribute("aria-label")
        assert still.locator("line.c5").count() > 0


@pytest.fixture
def opened(open_page, written):
    def made(page=None, **more):
        return open_page(page or written, **more)

    return made


def test_a_flow_with_a_series_has_what_was_delivered_of_it():
    scenario = loads(SCENARIO).assign({"record.flows": {"flow": "hot", "by": "flow", "every": "50 us"}})
    run = weirlab.run(scenario).run
    known = layout_of(plan_network(scenario.network).spec)
    flows = {each["name"]: each for each in network._flows(run, known)}
    hot, quiet = flows["hot/host-4->host-0"], flows["quiet/host-1->host-19"]
    assert quiet["series"] is None
    whole = (
        run.records.named("flows")
        .filter(pl.col("flow_name") == "hot/host-4->host-0")["delivered_bytes"]
        .item()
    )
    assert sum(hot["series"]) / len(hot["series"]) * 5e-3 / 8 == pytest.approx(whole, rel=1e-3)
    assert known.ports[hot["ports"][0]].source == "host-4"
    assert known.ports[hot["ports"][-1]].target == "host-0"


def test_hosts_of_a_collective_operation_send():
    run = weirlab.run("all-reduce", assign={"run.duration": "300 us", "measure": {}})
    (section,) = network.network_sections(run)
    assert len(re.findall(r'class="[^"]*\bsender\b', section.blocks[0].svg)) == 16


def test_data_cannot_end_the_script_that_holds_it(ran):
    found = network.network_sections(ran)[0].blocks[0]
    assert "<" not in found.data
    assert json.loads(found.data)["nodes"][0] == "host-0"
    assert re.search(r"level1-0", found.svg)
