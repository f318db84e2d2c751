"""Pages as axe-core audits them: no serious finding in either theme, wide or narrow."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import polars as pl
import pytest

import weirlab
from browsing import in_browser
from made_campaigns import FILE as CAMPAIGN
from made_paths import MadeHop, MadePath
from test_contests import CHOSEN, HALVED
from test_study_designs import PAIRED
from testbed.test_path_report import report as reported
from weirlab.campaigns.path import Effort, characterize, find_route, save_path
from weirlab.report import write_comparison, write_report
from weirlab.report.emulation import emulation_page
from weirlab.reproductions import Claim, Findings, Row
from weirlab.results import Manifest, Provenance
from weirlab.scenario import load, loads

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


def flow_control_page(place):
    changes = {"run.duration": "100 us", "measure": {}}
    return write_report(weirlab.run("pfc", assign=changes).save(place / "run"), pictures=False).page


def slotted_page(place):
    return write_report(weirlab.run("zrl-og").save(place / "run"), pictures=False).page


def messages_page(place):
    changes = {"run.duration": "200 us", "measure": {}}
    return write_report(weirlab.run("all-reduce", assign=changes).save(place / "run"), pictures=False).page


def kept_study(text):
    def page(place):
        return write_report(weirlab.study(loads(text)).save(place / "study"), pictures=False).page

    return page


def reproduction_page(place):
    rows = [
        Row(name=f"row {i}", published=2.0, ours=2.0 + i / 10, tolerance=0.15, unit="us", source="them")
        for i in range(4)
    ]
    claims = [Claim(statement="longer is longer", holds=True, evidence="2 s > 1 s")]
    found = Findings(name="fabric", title="Fabrics", source="them", quick=True, rows=rows, claims=claims)
    found.save(place, Provenance.now().ended())
    return write_report(place, pictures=False).page


def fabric_tests_page(place):
    mean = {"id": "9.1", "unit": "bit/s", "mean": 4e10, "deviation": 1e9, "cv": 0.025}
    rows = [
        mean | {"condition": condition, "measure": measure}
        for condition in ("1 MB, ECMP", "8 MB, ECMP")
        for measure in ("bandwidth", "worst")
    ]
    found = Findings(name="ai-fabric", title="Tests", source="drafts", quick=True, rows=[], claims=[])
    found = replace(found, tables={"tests": pl.DataFrame(rows)})
    found.save(place, Provenance.now().ended())
    return write_report(place, pictures=False).page


def emulated_page(place):
    page = emulation_page(loads(CAMPAIGN), reported(), seed=1, began=Provenance.now())
    return page.write(place / "page.html")


PAGES = {
    "run": run_page,
    "run with flow control": flow_control_page,
    "run on the slotted engine": slotted_page,
    "run with messages": messages_page,
    "trace": trace_page,
    "search": search_page,
    "study": study_page,
    "pairs": kept_study(PAIRED),
    "contest": kept_study(HALVED),
    "optimisation": kept_study(CHOSEN),
    "path": path_page,
    "emulation": emulated_page,
    "reproduction": reproduction_page,
    "tests of fabrics": fabric_tests_page,
    "comparison": comparison_page,
}


def note(noted, what, event):
    noted.append(getattr(event, what))


@pytest.mark.parametrize("made", PAGES.values(), ids=PAGES)
def test_an_audit_finds_nothing_serious_and_the_page_asks_for_nothing(made, browser, tmp_path):
    page = made(tmp_path)
    for scheme, width in (("light", 1280), ("dark", 360)):
        context = browser.new_context(
            bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900}
        )
        opened = context.new_page()
        noted: list[str] = []
        opened.on("console", partial(note, noted, "text"))
        opened.on("pageerror", partial(note, noted, "message"))
        opened.on("request", partial(note, noted, "url"))
        opened.goto(page.as_uri())
        for figure in opened.locator("figure[data-plot], figure[data-network], figure[data-sequence]").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".plot").first.wait_for(state="attached")
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert noted == [page.as_uri()], "nothing on the console, and no other request"
        found = [
            (each["id"], each["impact"], each["nodes"][0]["html"][:200])
            for each in axe.Axe().run(opened).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        context.close()
        assert found == [], (scheme, width)
