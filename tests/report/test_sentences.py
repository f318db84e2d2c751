"""Bars that show a series in one line."""

import weirlab
from weirlab.report.run import sparklines
from weirlab.report.search import replay
from weirlab.report.search_tables import bound_lines
from weirlab.report.shared import sparkline


def test_bars_reach_from_none_to_the_largest() -> None:
    assert sparkline([0.0, 1.0, 0.5, 0.25]) == "▁█▅▃"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_run_shows_queue_and_rate_of_its_busiest_port_with_their_largest_values() -> None:
    run = weirlab.run("incast")
    head, queue, rate = sparklines(run.records)
    assert head == "switch-0->host-4, from 0 to 100 ms:"
    assert queue.startswith(("queue ▇", "queue █"))
    assert queue.endswith("█ up to 150 kB")
    assert rate.endswith("█ up to 10.00 Gbit/s")
    assert len(queue.split()[1]) == 50
    bare = weirlab.run("incast", assign={"record": None, "measure": None})
    assert sparklines(bare.records) == []


def test_a_search_shows_how_its_bounds_came_together(tmp_path) -> None:
    weirlab.search("search-knee", out=tmp_path / "knee")
    kept = replay(tmp_path / "knee")
    head, *lines = bound_lines(kept.states, kept.result)
    assert (
        head == f"Distance between the bounds over {len(kept.result.trials)} trials (logarithms, from 100 %):"
    )
    assert [line.split()[0] for line in lines] == ["NDR", "PDR"]
    for line in lines:
        assert len(line.split()[1]) == len(kept.states)
        assert line.split()[1][0] == "█"
        assert line.split()[1][-1] == "▂"
        assert line.endswith(" 0.499 % of the upper bound")
    assert bound_lines(kept.states[:1], kept.result) == []
