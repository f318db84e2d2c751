"""Several campaigns on one page: what tells them apart, and what changed."""

import dataclasses

import pytest

from made_campaigns import FILE, measured
from weirlab.campaigns import Campaign, run_campaign
from weirlab.comparisons import compared
from weirlab.comparisons.quantities import names_of
from weirlab.errors import InputError
from weirlab.report import write_comparison
from weirlab.report.compare import comparison_page
from weirlab.report.compare_campaigns import _ratios
from weirlab.scenario import loads


def campaign(place, factor=1.0, file=FILE):
    """The made campaign with so many times the goodput, a little different in each cycle."""
    cycles = iter(range(100))

    def made(what, path, seed):
        found = measured(what, path, seed)
        if found.transfer is None:
            return found
        bytes_of = round(factor * (1 + 0.01 * (next(cycles) % 3)) * 1_000_000)
        streams = tuple(dataclasses.replace(each, received_bytes=bytes_of) for each in found.transfer.streams)
        return dataclasses.replace(found, transfer=dataclasses.replace(found.transfer, streams=streams))

    run_campaign(loads(file), place, measure=made)
    return place


def test_campaigns_are_called_by_as_much_of_their_place_as_tells_them_apart(tmp_path):
    places = [tmp_path / "one" / "kept", tmp_path / "two" / "kept"]
    assert names_of(places) == ["one/kept", "two/kept"]
    assert names_of([tmp_path / "one", tmp_path / "two"]) == ["one", "two"]
    with pytest.raises(InputError, match="named twice"):
        names_of([tmp_path, tmp_path / "one" / ".."])


def test_a_page_has_each_campaign_in_a_colour_of_its_own_and_their_ratio(tmp_path):
    first, second = campaign(tmp_path / "reno"), campaign(tmp_path / "bbr", 2.0)
    written = write_comparison([first, second], pictures=False)
    assert written.page == first / "comparison.html"
    page = written.page.read_text()
    for words in (
        "reno and bbr",
        "Round-trip times under load",
        "Compared with reno",
        "Goodput against streams",
    ):
        assert words in page
    for name in ("reno", "bbr"):
        assert page.count(f"The whole scenario of {name}, with every default") == 1
    plain, plots = comparison_page(compared([first, second]))
    names = [plot.name for plot in plots]
    assert "streams-mbps" in names
    assert not [name for name in names if name.startswith(("cpu", "distribution"))], "campaigns in one"
    assert plain.kind == "Comparison of campaigns"


def test_the_ratio_of_matching_points_has_an_interval_of_both_sides(tmp_path):
    places = [campaign(tmp_path / "one"), campaign(tmp_path / "two", 2.0)]
    table = _ratios(["one", "two"], [Campaign.load(place) for place in places])
    assert [row[:2] for row in table.rows] == [["two", "1"], ["two", "2"]]
    for row in table.rows:
        low, high = (float(value) for value in row[3].split(" to "))
        assert float(row[2]) == pytest.approx(2.0, rel=0.02)
        assert low <= float(row[2]) <= high
        assert high - low < 0.1


def test_points_of_different_factors_are_not_the_same_though_their_levels_are(tmp_path):
    ports = FILE.replace("{traffic.bulk.streams: [1, 2]}", "{run.seed: [1, 2]}")
    places = [campaign(tmp_path / "one"), campaign(tmp_path / "two", file=ports)]
    assert _ratios(["one", "two"], [Campaign.load(place) for place in places]) is None


def test_what_is_no_campaign_is_refused(tmp_path):
    first = campaign(tmp_path / "reno")
    with pytest.raises(InputError):
        write_comparison([first, tmp_path])
