"""Plots as figures of a paper: as wide as a column, legible, with their fonts."""

import re

import pytest

import weirlab
from weirlab.report import write_report
from weirlab.scenario import loads

SCENARIO = """
weirlab: 1
name: printed
network: {kind: star, hosts: 4, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic:
  a: {from: "host-[0-2]", to: host-3, source: {kind: poisson, load: 40 %, frame_size: 1000 B}}
run: {duration: 2 ms}
record: {out: {queue: "switch-0->*", every: 100 us}, in: {flow: a, every: 100 us}}
"""


@pytest.fixture(scope="module", params=[("single", 252.0), ("double", 515.52)], ids=lambda each: each[0])
def printed(request, tmp_path_factory):
    column, points = request.param
    directory = tmp_path_factory.mktemp("printed")
    weirlab.run(loads(SCENARIO), replicates=3).save(directory)
    return write_report(directory, pictures=False, figures=column).plots, points


def test_every_plot_is_exactly_as_wide_as_the_column(printed):
    files, points = printed
    assert {path.suffix for path in files} == {".pdf", ".svg"}
    assert len(files) >= 6
    for path in files:
        if path.suffix == ".pdf":
            box = re.search(rb"/MediaBox \[([^\]]*)\]", path.read_bytes())
            width = float(box[1].split()[2])
        else:
            width = float(re.search(r' width="([\d.]+)"', path.read_text())[1])
        assert width == pytest.approx(points, abs=1.0), path.name


def test_text_is_as_large_as_that_of_a_caption_and_its_fonts_are_embedded(printed):
    files, _ = printed
    for path in files:
        if path.suffix == ".pdf":
            assert b"/FontFile2" in path.read_bytes(), path.name
        else:
            sizes = {float(size) for size in re.findall(r'font-size="([\d.]+)px"', path.read_text())}
            assert sizes, path.name
            assert 6 <= min(sizes) <= max(sizes) <= 8, path.name
