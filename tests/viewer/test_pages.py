"""The viewer in a browser: listing, filtering, opening, comparing, watching work and stopping it."""

import json
import shutil
import signal
import subprocess
import sys

import polars as pl
import pytest

import weirlab
from browsing import in_browser
from made_studies import keep_only
from weirlab.results import Manifest
from weirlab.scenario import loads
from weirlab.working import ProgressLog, at_work

from .conftest import RUN, STUDY

pytestmark = in_browser

WIDTHS = [360, 768, 1280]


def until(page, expression):
    """Until an expression is true, perhaps on the page that a link leads to; Playwright's own waiting would
    need a page that may evaluate texts."""
    for _ in range(1200):
        try:
            if page.evaluate(expression):
                return
        except Exception as error:  # Playwright's own class: without it, these tests are skipped
            if "because of a navigation" not in str(error):
                raise
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def rows(page):
    return page.locator("table.grid tbody tr")


def until_rows(page, many):
    until(page, f"document.querySelectorAll('table.grid tbody tr').length === {many}")


def drawn(page, number=0):
    """A chart once it is drawn."""
    chart = page.locator("#charts figure").nth(number)
    chart.locator("svg .mark-symbol path, svg .mark-rect path, svg .mark-line path").first.wait_for(
        state="attached"
    )
    return chart


def test_typing_narrows_the_list_and_stands_in_the_address(viewer, browse):
    page = browse(viewer, "/")
    assert rows(page).count() == 10
    page.get_by_label("Words").fill("search")
    until_rows(page, 2)
    assert page.url.endswith("/?q=search")
    page.get_by_label("Conditions").fill("NDR > 1 Gframe/s")
    until(page, "document.getElementById('found').textContent.includes('Nothing here matches')")
    page.get_by_label("Conditions").fill("")
    until_rows(page, 2)
    page.reload()
    assert rows(page).count() == 2
    page.get_by_role("link", name="Show all").click()
    until_rows(page, 10)


def test_facets_filter_and_columns_sort(viewer, browse):
    page = browse(viewer, "/")
    page.get_by_role("region", name="kind", exact=True).get_by_role("link", name="run").click()
    page.wait_for_url("**/?kind=run")
    assert rows(page).count() == 3
    assert page.locator(".facets a[aria-current]").inner_text().split() == ["run", "3"]
    for order in ("ascending", "descending"):
        page.get_by_role("link", name="loss").click()
        page.locator(f"th[aria-sort={order}]", has_text="loss").wait_for()
    shown = [float(cell.inner_text()) for cell in page.locator("td[data-label^='loss']").all()]
    assert shown == sorted(shown, reverse=True)


def test_a_result_opens_as_its_report_which_answers(viewer, browse):
    page = browse(viewer, "/")
    page.get_by_role("link", name="low", exact=True).click()
    page.get_by_role("heading", name="small", level=1, exact=True).wait_for()
    page.locator("figure.lively").first.wait_for()
    page.get_by_role("link", name="Tables").click()
    page.get_by_role("link", name="flows").click()
    page.get_by_role("columnheader", name="flow_name").wait_for()
    until_rows(page, 6)
    example = page.get_by_label("Conditions").get_attribute("placeholder")
    assert example.removesuffix(" > 0") in page.locator("thead").inner_text()
    page.get_by_role("navigation", name="Viewer").get_by_role("link", name="low").click()
    page.get_by_role("heading", name="small", level=1, exact=True).wait_for()
    page.get_by_role("navigation", name="Viewer").get_by_role("link", name="Results").click()
    until_rows(page, 10)


def test_chosen_results_are_remembered_and_compared(viewer, browse):
    page = browse(viewer, "/?kind=run")
    button = page.get_by_role("button", name="Compare the chosen")
    assert button.is_disabled()
    page.get_by_label("Compare low").check()
    page.get_by_label("Words").fill("high")
    until_rows(page, 1)
    page.get_by_label("Compare high").check()
    assert page.locator(".chosen output").inner_text() == "2 chosen."
    button.click()
    page.wait_for_url("**/compare?r=low&r=high")
    until(page, "document.querySelector('h1')?.textContent === 'low and high'")
    assert "traffic.a.source.load" in page.locator("#what-differs").inner_text()


def test_without_scripts_links_and_buttons_do_the_same(viewer, browse):
    page = browse(viewer, "/", scripts=False)
    page.get_by_label("Words").fill("low")
    page.get_by_role("button", name="Find").click()
    page.wait_for_url("**/?q=low**")
    assert rows(page).count() == 1
    page.goto(f"{viewer.base}/?kind=run")
    for name in ("low", "high"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.get_by_role("button", name="Compare the chosen").click()
    page.wait_for_url("**/compare?r=**")


def test_filters_that_a_narrow_screen_folds_are_there_once_it_is_wide(tmp_path, browse, serve):
    weirlab.run(loads(RUN), out=tmp_path / "one")
    weirlab.run(loads(RUN.replace("name: small", "name: other")), out=tmp_path / "two")
    with serve(tmp_path) as viewer:
        page = browse(viewer.wait_for(2), "/", width=700)
        page.locator("body[data-ready]").wait_for(state="attached")
        filters = page.get_by_role("region", name="scenario")
        assert filters.is_hidden()
        page.set_viewport_size({"width": 1024, "height": 700})
        filters.wait_for()


def test_a_new_result_appears_while_the_list_is_open(tmp_path, browse, serve):
    with serve(tmp_path) as viewer:
        page = browse(viewer, "/")
        assert "no results below this directory yet" in page.inner_text("#found")
        page.locator("body[data-ready]").wait_for(state="attached")
        weirlab.run(loads(RUN), out=tmp_path / "fresh")
        page.get_by_role("link", name="fresh").wait_for()


TESTER = """
import json, sys, time
from pathlib import Path
load, seconds, place = float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
number = len(list(place.glob("begun-*")))
(place / f"begun-{number}").touch()
while not (place / f"go-{number}").exists():
    time.sleep(0.02)
sent = round(load * seconds)
print(json.dumps({"sent_frames": sent, "received_frames": min(sent, round(1e6 * seconds))}))
"""
LED_SEARCH = """
weirlab: 1
name: led
testbed:
  kind: command
  run: [{python}, {tester}, "{{load_fps}}", "{{duration_s}}", {place}]
  timeout: 600 s
traffic: {{offered: {{from: sender, to: receiver, source: {{kind: constant, frame_size: 64 B}}}}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 2 Mframe/s]
  goals: {{NDR: {{loss: 0 %, width: 0.5 %}}}}
  trial: {{duration: 1 s}}
  algorithm: {{kind: binary}}
"""


@pytest.fixture
def led(tmp_path):
    """A search whose trials end when they are let go, in a process of its own."""
    tester = tmp_path / "tester.py"
    tester.write_text(TESTER)
    place = tmp_path / "trials"
    place.mkdir()
    file = tmp_path / "led.yaml"
    file.write_text(LED_SEARCH.format(python=sys.executable, tester=tester, place=place))
    command = [sys.executable, "-m", "weirlab", "search", str(file), "--out", str(tmp_path / "shown" / "led")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (tmp_path / "shown").mkdir()
    yield process, lambda number: (place / f"go-{number}").touch()
    for number in range(100):
        (place / f"go-{number}").touch()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)


def test_a_search_is_watched_and_stopped_and_keeps_its_trials(tmp_path, led, browse, serve):
    process, let_go = led
    with serve(tmp_path / "shown") as viewer:
        while viewer.json("/results.json?status=running")["matching"] == 0:
            assert process.poll() is None, process.communicate()
        page = browse(viewer, "/")
        page.get_by_role("link", name="led", exact=True).click()
        until(page, "document.getElementById('status')?.textContent === 'running'")
        for done in range(1, 4):
            let_go(done - 1)
            page.locator(f"#live[data-done='{done}']").wait_for()
            assert page.locator("#newest tbody tr").count() == done
        page.set_viewport_size({"width": 360, "height": 900})
        heads = page.evaluate("[...document.querySelectorAll('#newest th')].map(head => head.offsetHeight)")
        assert max(heads) < 100, "no head stands letter by letter"
        page.set_viewport_size({"width": 1280, "height": 900})
        drawn(page)
        assert "NDR" in page.locator("#sentence").inner_text()
        page.get_by_role("button", name="Stop and keep what is finished").click()
        said = process.communicate(timeout=300)
        assert process.returncode == 130, said
        until(page, "document.getElementById('status').textContent === 'interrupted'")
        assert page.get_by_role("button", name="Stop").count() == 0
        assert Manifest.read(tmp_path / "shown" / "led").status == "interrupted"
        lines = (tmp_path / "shown" / "led" / "trials.jsonl").read_text().splitlines()
        assert sum("trial" in json.loads(line) for line in lines) == 3
        page.get_by_role("link", name="Report", exact=True).click()
        until(page, "document.querySelector('h1')?.textContent === 'led'")
        assert "interrupted" in page.inner_text("main")


def test_a_search_is_stopped_without_scripts(tmp_path, led, browse, serve):
    process, _ = led
    with serve(tmp_path / "shown") as viewer:
        while viewer.json("/results.json?status=running")["matching"] == 0:
            assert process.poll() is None, process.communicate()
        page = browse(viewer, "/result/led", scripts=False)
        page.get_by_role("button", name="Stop and keep what is finished").click()
        process.communicate(timeout=300)
        assert process.returncode == 130


def test_points_fill_the_plane_of_a_study_that_runs(tmp_path, browse, serve):
    place = tmp_path / "study"
    weirlab.study(loads(STUDY), out=place)
    keep_only(place, 2)
    with at_work(place, "study", "small"), serve(tmp_path) as viewer:
        viewer.wait_for(1)
        page = browse(viewer, "/result/study")
        chart = drawn(page)
        cells = chart.locator(".mark-rect.role-mark").nth(1).locator("path")
        assert cells.count() == 2
        weirlab.study(loads(STUDY), out=place)
        until(page, "document.getElementById('status').textContent === 'complete'")
        page.locator("#live[data-done='12']").wait_for()
        assert cells.count() == 6


def test_series_of_a_run_grow(tmp_path, browse, serve):
    with at_work(tmp_path, "run", "long"), serve(tmp_path) as viewer:
        log = ProgressLog(tmp_path, None)
        viewer.wait_for(1)
        page = browse(viewer, "/result/.")
        for step in (1, 2):
            log.news(0, [(n * 10**9, n * 120, n * 100, n * 125_000, n * 10, n) for n in range(4 * step)])
            log._next = 0.0
            log(step * 500, 1000)
            page.locator(f"#live[data-done='{step * 500}']").wait_for()
        assert page.locator("#charts figcaption").all_inner_texts() == [
            "Delivered",
            "Dropped",
            "In queues and on links",
        ]
        drawn(page, 2)
        chart = page.locator("#charts figure").first
        chart.hover(position={"x": 200, "y": 120})
        assert page.get_by_role("progressbar").get_attribute("value") == "1000"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_screen_in_either_theme(viewer, browse, width, scheme):
    for path in (
        "/",
        "/result/low",
        "/data/low",
        "/data/low?table=flows",
        "/compare?r=low&r=high",
        "/result/margins",
    ):
        page = browse(viewer, path, width=width, scheme=scheme)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, path
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        page.context.close()


def test_the_keyboard_reaches_everything(viewer, browse):
    page = browse(viewer, "/")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.textContent.trim()"))
    assert {"Skip to the content", "q", "where", "Find", "low", "r", "result"} <= reached


def test_a_viewer_that_ends_is_told_on_the_page(tmp_path, browse, serve):
    with at_work(tmp_path, "run", "long"), serve(tmp_path) as viewer:
        viewer.wait_for(1)
        page = browse(viewer, "/result/.")
        page.locator("body[data-ready]").wait_for(state="attached")
        viewer.process.terminate()
        viewer.process.wait()
        page.get_by_text("'weir view' does not answer").wait_for()
    page.context.close()


def test_texts_of_a_result_are_never_taken_for_html(tmp_path, results, browse, serve):
    hostile = "\"'></script><img src=x onerror='window.hit = 1'><a href='javascript:window.hit=1'>"
    for name in ("low", "high"):
        shutil.copytree(results / name, tmp_path / name)
        manifest = tmp_path / name / "manifest.json"
        content = json.loads(manifest.read_text())
        content |= {
            "name": hostile,
            "remark": hostile,
            "status": "interrupted",
            "overrides": {hostile: hostile},
        }
        content["provenance"] |= {"host": hostile, "weirlab": hostile, "command": [hostile]}
        manifest.write_text(json.dumps(content))
        for table in ("port_names", "traffic_names", "flow_names"):
            file = tmp_path / name / "tables" / f"{table}.parquet"
            rows = pl.read_parquet(file)
            rows.with_columns(name=pl.col("name") + hostile).write_parquet(
                file, metadata=pl.read_parquet_metadata(file)
            )
    with serve(tmp_path) as viewer:
        viewer.wait_for(2)
        for path in ("/", "/?kind=run", "/result/low", "/data/low?table=port_names", "/compare?r=low&r=high"):
            page = browse(viewer, path)
            page.locator("main").wait_for()
            for figure in page.locator("figure[data-plot]").all():
                figure.scroll_into_view_if_needed()
                figure.locator(".plot svg").first.wait_for(state="attached")
            assert hostile[:20] in page.inner_text("body"), path
            assert page.evaluate("window.hit === undefined"), path
            assert page.locator("img[src=x], a[href^=javascript]").count() == 0, path
