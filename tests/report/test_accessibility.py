"""Pages as axe-core audits them: no serious finding in either theme, wide or narrow."""

from __future__ import annotations

import pytest

import weirlab
from browsing import in_browser
from made_paths import MadeHop, MadePath
from weirlab.campaigns.path import Effort, characterize, find_route, save_path
from weirlab.report import write_comparison, write_report
from weirlab.results import Manifest, Provenance
from weirlab.scenario import load

pytestmark = in_browser
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")


def made_run(place):
    scenario = load("tcp-dumbbell", {"run.duration": "500 ms", "measure": None})
    records = {"frames": ["left-0->left", "left->left-0"], "as": "pcapng"}
    return weirlab.run(scenario.assign({"record.wire": records})).save(place)


def run_page(place):
    return write_report(made_run(place / "run"), pictures=False).page


def trace_page(place):
    capture = next(made_run(place / "run").glob("*.pcapng"))
    return write_report(weirlab.trace(capture).save(place / "trace"), pictures=False).page


def search_page(place):
    return write_report(weirlab.search("search-knee").save(place / "search"), pictures=False).page


def study_page(place):
    found = weirlab.study("load-and-buffer", assign={"run.duration": "20 ms"}, replicates=2)
    return write_report(found.save(place / "study"), pictures=False).page


def path_page(place):
    path = MadePath([MadeHop(address="192.0.2.11"), MadeHop(rate_bps=50e6, address="192.0.2.14")])
    found = characterize(path, find_route(path, "192.0.2.14"), Effort(), clock=path.clock)
    save_path(found, None, place)
    Manifest(kind="path", name="far", provenance=Provenance.now()).ended("complete").write(place)
    return write_report(place, pictures=False).page


def comparison_page(place):
    return write_comparison([made_run(place / "a"), made_run(place / "b")], pictures=False).page


@pytest.mark.parametrize("made", [run_page, trace_page, search_page, study_page, path_page, comparison_page])
def test_an_audit_finds_nothing_serious(made, browser, tmp_path):
    page = made(tmp_path)
    for scheme, width in (("light", 1280), ("dark", 360)):
        context = browser.new_context(
            bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        opened = context.new_page()
        opened.goto(page.as_uri())
        for figure in opened.locator("figure[data-plot], figure[data-network], figure[data-sequence]").all():
            figure.scroll_into_view_if_needed()
        opened.wait_for_selector("figure")
        found = [
            (each["id"], each["impact"], each["nodes"][0]["html"][:200])
            for each in axe.Axe().run(opened).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        context.close()
        assert found == [], (scheme, width)
