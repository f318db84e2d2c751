"""Bars that show a series in one line."""

import weirlab
from weirlab.report.run import sparkline, sparklines


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
