"""In which units measures are shown."""

import polars as pl
import pytest

from weirlab.evaluation import evaluate, summary
from weirlab.measures.rows import frame_counts
from weirlab.report.page import half_width_text, percent, typeset
from weirlab.report.run import measure_table, traffic_table
from weirlab.report.shared import display_unit, quantities, time_text
from weirlab.runs import run, simulate
from weirlab.scenario import loads


def test_a_time_of_nothing_is_shown_in_seconds_and_not_in_the_unit_it_is_stored_in() -> None:
    assert display_unit("ps", 0.0) == (1e-12, "s")
    factor, unit = display_unit("ps", 3e6)
    assert (round(3e6 * factor, 9), unit) == (3.0, "µs")


def test_acknowledgements_have_a_row_of_their_own_so_that_table_and_measure_tell_one_loss_ratio() -> None:
    scenario = loads(
        """
        weirlab: 1
        name: lossy
        network: {kind: star, hosts: 2, link: {rate: 1 Gbit/s, delay: 1 ms, loss: {kind: random, ratio: 1%}}}
        traffic:
          bulk:
            from: host-0
            to: host-1
            source: {kind: bulk}
            transport: {kind: tcp, congestion_control: {kind: reno}}
        measure: {lost: {kind: loss-ratio, of: bulk}}
        run: {duration: 300 ms}
        """
    )
    made = run(scenario)
    data, back = traffic_table(made.records).rows
    assert (data[0], back[0]) == ("bulk", "bulk, acknowledgements")
    flows = made.records["flows"]
    assert sum(int(each[1].replace("\u202f", "")) for each in (data, back)) == flows["sent_frames"].sum()
    lost = evaluate(made)["value"][0]
    assert 0 < lost < 1
    assert data[5] == percent(lost) != back[5]
    (counts,) = frame_counts(made.records).to_dicts()
    assert counts["dropped_frames"] / counts["sent_frames"] == lost
    assert counts["sent_frames"] + counts["acknowledgement_frames"] == flows["sent_frames"].sum()
    assert counts["dropped_frames"] + counts["dropped_acknowledgements"] == flows["dropped_frames"].sum()


def test_times_that_nothing_gave_are_in_seconds_too() -> None:
    # Frames need 1 us for a link: within that time none arrives, and there is no delay.
    scenario = loads(
        """
        weirlab: 1
        name: short
        network: {kind: star, hosts: 2, link: {rate: 10 Gbit/s, delay: 1 us}}
        traffic: {load: {from: host-0, to: host-1, source: {kind: constant, load: 50 %, frame_size: 1500 B}}}
        run: {duration: 1 us}
        """
    )
    table = traffic_table(simulate(scenario, [1]))
    units = {column.name: column.unit for column in table.columns}
    assert {units[f"{which} delay"] for which in ("least", "mean", "largest")} == {"s"}
    assert table.rows[0][-1] == "–"
    assert time_text(0.0) == "0 s"


def test_replicates_have_a_standard_deviation() -> None:
    """Of 0.11, 0.13 and 0.18: 0.0361."""
    values = pl.DataFrame(
        {"measure": "rms", "replicate": [0, 1, 2], "value": [0.11, 0.13, 0.18], "unit": "1"}
    )
    table = measure_table(values)
    place = [column.name for column in table.columns].index("std. dev.")
    assert table.rows[0][place] == "0.036"
    (row,) = summary(values)
    assert row["sd"] == pytest.approx(0.036056, abs=1e-6)
    (alone,) = summary(values.head(1))
    assert alone["sd"] is None


def test_what_replicates_differ_by_in_their_last_digits_is_no_interval() -> None:
    values = [0.1 + 0.2, 0.3, 0.3]
    table = measure_table(
        pl.DataFrame(
            [
                {"measure": "share", "replicate": place, "value": value, "unit": ""}
                for place, value in enumerate(values)
            ]
        )
    )
    assert [table.rows[0][place] for place in (1, 2, 3)] == ["0.3000", "± 0", "0"]
    assert half_width_text(94.913, 1.234) == "± 1.2"
    assert half_width_text(0.0, 1e-20) == "± 1.0e-20"
    assert half_width_text(1.0, float("nan")) == "± –", "no interval is not one without width"


def test_small_values_next_to_large_ones_have_units_of_their_own() -> None:
    unit, (queues,) = quantities("bytes", [8.4e6, 9661.0, 1.0, 0.0, None, float("nan")])
    assert (unit, queues) == ("", ["8.400 MB", "9.661 kB", "1 B", "0", "–", "–"])
    unit, (least, most) = quantities("time", [4.5e6, 5e6], [2e9, 7e8])
    assert (unit, least[0], most) == ("ms", "0.004500", ["2", "0.7000"])
    assert quantities("time", [None], []) == ("s", [["–"], []])


def test_sentences_have_numbers_as_tables_have_them() -> None:
    said = "461 of 4,895 packets (9.42%) came 1,234,567 us late; ports 1,2 and 12,3456 are names, %s no share"
    assert typeset(said) == (
        "461 of 4\u202f895 packets (9.42 %) came 1\u202f234\u202f567 µs late; "
        "ports 1,2 and 12,3456 are names, %s no share"
    )
