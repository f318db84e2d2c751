"""The page of a characterized path."""

from __future__ import annotations

from dataclasses import replace

import pytest

from made_paths import MadeHop, MadePath
from weirlab.campaigns.path import Effort, characterize, find_route, load_path, save_path
from weirlab.campaigns.path.reverse import read_traceroute
from weirlab.report import write_report
from weirlab.report.path import hop_table, stamped_text
from weirlab.results import Manifest, Provenance, read_json, write_json

HOPS = [
    MadeHop(rate_bps=10e6, address="192.0.2.11"),
    MadeHop(rate_bps=50e6, address=None),
    MadeHop(rate_bps=20e6, address="192.0.2.13"),
    MadeHop(rate_bps=100e9, address="192.0.2.14"),
]


def found(hops=HOPS, **effort):
    path = MadePath(hops, noise_s=2e-6)
    return characterize(path, find_route(path, "192.0.2.14"), Effort(**effort), clock=path.clock)


def test_the_table_has_capacities_bounds_and_silent_hops():
    first, silent, third, fast = hop_table(found()).rows
    assert float(first[3]) == pytest.approx(10, rel=0.05)
    assert silent[1] == "silent"
    assert set(silent[2:]) == {"–"}
    assert third[3].endswith("(2 links)")
    assert float(third[3].split()[0]) == pytest.approx(1 / (1 / 50 + 1 / 20), rel=0.05)
    assert fast[3].startswith(">= ")
    assert fast[4] == "–"


def test_the_page_shows_the_hops_the_plots_and_the_way_back(tmp_path):
    back = read_traceroute(" 1  192.0.2.77  0.5 ms 0.4 ms 0.6 ms\n", "far", "192.0.2.77")
    save_path(found(), back, tmp_path)
    Manifest(kind="path", name="far.example.net", provenance=Provenance.now()).ended("complete").write(
        tmp_path
    )
    report = write_report(tmp_path)
    page = report.page.read_text()
    for words in ("Path to far.example.net", "192.0.2.13", "The way back from far", "Least capacity"):
        assert words in page
    assert {file.name for file in report.plots} == {
        f"{name}.{ending}" for name in ("round-trips", "links", "waiting") for ending in ("png", "svg")
    }


def test_what_is_to_be_doubted_stands_in_the_result_and_on_the_page(tmp_path):
    quick = MadePath([replace(HOPS[3], rate_bps=1e9)], noise_s=1e-7)
    fast = characterize(quick, find_route(quick, "192.0.2.14"), Effort(), clock=quick.clock)
    (doubt,) = fast.doubts()
    save_path(fast, None, tmp_path)
    assert read_json(tmp_path / "result.json")["doubts"] == [doubt]
    Manifest(kind="path", name="192.0.2.14", provenance=Provenance.now()).ended("complete").write(tmp_path)
    assert "leave out the time per byte of hosts" in write_report(tmp_path, pictures=False).page.read_text()


@pytest.mark.parametrize(("stamps", "words"), [(True, "reported when 100 %"), (False, "reported when 0 %")])
def test_how_many_departures_the_kernel_stamped_is_kept_and_told(stamps, words, tmp_path):
    path = MadePath(HOPS, noise_s=2e-6, stamps=stamps)
    told = characterize(path, find_route(path, "192.0.2.14"), Effort(), clock=path.clock)
    save_path(told, None, tmp_path)
    again, _ = load_path(tmp_path)
    assert again.stamped == told.stamped == (told.probes.height if stamps else 0)
    assert words in stamped_text(again)
    older = read_json(tmp_path / "result.json")
    del older["stamped"]
    write_json(tmp_path / "result.json", older)
    assert stamped_text(load_path(tmp_path)[0]) == ""


def test_a_page_of_a_path_that_ends_early_says_so(tmp_path):
    refusing = [HOPS[0], replace(HOPS[2], refuses=13), HOPS[3]]
    save_path(found(refusing, most_rounds=8), None, tmp_path)
    Manifest(kind="path", name="192.0.2.14", provenance=Provenance.now()).ended("interrupted").write(tmp_path)
    page = write_report(tmp_path, pictures=False).page.read_text()
    assert "192.0.2.13 says: filtered" in page
    assert "the work was interrupted" in page
