"""An audit of every kind of page by axe-core, in both themes: nothing serious is left."""

import shutil
import tarfile
from pathlib import Path

import pytest

import weirlab
from browsing import in_browser
from made_paths import MadeHop, MadePath
from made_studies import keep_only
from weirlab.campaigns.path import Effort, characterize, find_route, save_path
from weirlab.reproductions import Claim, Findings, Row
from weirlab.results import Manifest, Provenance
from weirlab.scenario import loads
from weirlab.working import at_work

from .conftest import SEARCH, STUDY

pytestmark = in_browser

EARLIER = Path(__file__).parent.parent / "data"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def audit():
    """What axe-core calls serious on a page, with the first place of each."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

    def run(page):
        found = axe.Axe().run(page).response["violations"]
        return [
            f"{each['id']}, {len(each['nodes'])} times: {each['help']}: {each['nodes'][0]['html'][:160]} "
            f"({each['nodes'][0]['any'][0]['message'] if each['nodes'][0]['any'] else ''})"
            for each in found
            if each["impact"] in SERIOUS
        ]

    return run


def see_all(page):
    """Until every plot is drawn: they are when they come into view."""
    for figure in page.locator("figure[data-plot]").all():
        figure.scroll_into_view_if_needed()
        figure.locator(".plot[role=img]").wait_for(state="attached")


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Results of kinds that take long to make, as an earlier version kept them, and a study of searches."""
    root = tmp_path_factory.mktemp("kinds")
    for kept in ("results-0.1.0", "trace-without-places"):
        with tarfile.open(EARLIER / f"{kept}.tar.xz") as archive:
            archive.extractall(root / kept, filter="data")
    shutil.rmtree(root / "results-0.1.0" / "trace")  # which this version has to read from the capture again
    path = MadePath(
        [MadeHop(rate_bps=10e6, address="192.0.2.1"), MadeHop(rate_bps=20e6, address="192.0.2.2")],
        noise_s=2e-6,
    )
    hops = characterize(path, find_route(path, "192.0.2.2"), Effort(), clock=path.clock)
    save_path(hops, None, root / "path")
    done = Manifest(kind="path", name="far.example.net", provenance=Provenance.now()).ended("complete")
    done.write(root / "path")
    rows = [Row(name="mean", published=10.0, ours=10.1, tolerance=0.5, unit="s")]
    claims = [Claim(statement="longer is longer", holds=True, evidence="2 s > 1 s")]
    made_up = Findings(name="made-up", title="A study", source="nobody", quick=True, rows=rows, claims=claims)
    made_up.save(root / "reproduced", Provenance.now().ended())
    weirlab.search(
        loads(SEARCH + "study: {factors: {search.trial.duration: [5 s, 10 s]}}\n"), out=root / "searches"
    )
    return root


def test_pages_of_the_viewer(viewer, browse, audit):
    wrong = {}
    for scheme in ("light", "dark"):
        for path in (
            "/",
            "/?kind=run&q=low",
            "/?q=nowhere",
            "/data/low",
            "/data/low?table=flows",
            "/data/store",
        ):
            page = browse(viewer, path, scheme=scheme)
            wrong[scheme, path] = audit(page)
            page.context.close()
    assert {where: found for where, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "path",
    ["low", "study", "search", "campaign", "margins", "compare?r=low&r=high"],
)
def test_reports(viewer, browse, audit, path):
    for scheme in ("light", "dark"):
        page = browse(viewer, f"/{path}" if path.startswith("compare") else f"/result/{path}", scheme=scheme)
        for details in page.locator("details").all():
            details.evaluate("each => each.open = true")
        see_all(page)
        assert audit(page) == []
        page.context.close()


def test_reports_of_all_other_kinds(kinds, browse, audit, serve):
    places = {
        str(file.parent.relative_to(kinds)): Manifest.read(file.parent).kind
        for file in kinds.rglob("manifest.json")
    }
    chosen = {kind: path for path, kind in places.items()}
    assert {"search-study", "trace", "path", "rapid", "reproduce"} - set(chosen) == set()
    wrong = {}
    with serve(kinds) as viewer:
        viewer.wait_for(len(places))
        for kind, path in chosen.items():
            page = browse(viewer, f"/result/{path}", scheme="dark")
            see_all(page)
            wrong[kind] = audit(page)
            page.context.close()
    assert {kind: found for kind, found in wrong.items() if found} == {}


def test_a_page_of_work_that_goes_on(tmp_path, browse, audit, serve):
    place = tmp_path / "study"
    weirlab.study(loads(STUDY), out=place)
    keep_only(place, 4)
    with at_work(place, "study", "small"), serve(tmp_path) as viewer:
        viewer.wait_for(1)
        for scheme in ("light", "dark"):
            page = browse(viewer, "/result/study", scheme=scheme)
            page.locator("#charts svg").first.wait_for()
            assert audit(page) == []
            page.context.close()
    shutil.rmtree(place)
