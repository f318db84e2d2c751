"""The page of a live transfer by Rapid."""

from __future__ import annotations

import polars as pl
import pytest

from weirlab.plots.rapid import rapid_plots
from weirlab.records import save_tables
from weirlab.report import write_report
from weirlab.results import Manifest, Provenance, write_json
from weirlab.testbed.rapid import Settings, Transfer

LINK_BPS = 200_000_000
COUNTS = {
    "segments": 40_000,
    "bytes": 57_200_000,
    "acked_bytes": 57_000_000,
    "retransmits": 12,
    "fast_retransmits": 12,
    "forward_retransmits": 0,
    "slow_start_retransmits": 0,
    "timeout_retransmits": 0,
    "rescue_retransmits": 0,
    "lost_retransmits": 0,
    "timeouts": 1,
    "recoveries": 2,
    "recovery_failures": 1,
    "acks": 40_000,
}
STREAMS = 50


def made(
    *,
    fitting: int = 75,
    spilt: int = 0,
    available_bps: float = 140e6,
    losses: tuple[tuple[float, float | None, str], ...] = (),
    **counts: int,
) -> Transfer:
    """A transfer of 5 s: streams of 80 packets, one every 0.1 s, at 190 Mbit/s of which 100 are delivered."""
    start = [0.1 * place for place in range(STREAMS)]
    streams = pl.DataFrame(
        {
            "stream": list(range(STREAMS)),
            "start_s": start,
            "end_s": [at + 0.05 for at in start],
            "closed_s": [at + 0.06 for at in start],
            "packets": [80] * STREAMS,
            "samples": [80] * STREAMS,
            "rate_bps": [190_000_000] * STREAMS,
            "low_rate_bps": [100_000_000] * STREAMS,
            "high_rate_bps": [300_000_000] * STREAMS,
            "outcome": ["estimated"] * STREAMS,
            "available_bps": [available_bps] * STREAMS,
            "excursion_start": pl.Series([None] * STREAMS, dtype=pl.UInt32),
            "excursion_gaps": pl.Series([None] * STREAMS, dtype=pl.UInt32),
            "next_rate_bps": [190_000_000] * STREAMS,
            "backlog_s": [0.001 * (place + 1) for place in range(STREAMS)],
            "fitting_gaps": [fitting] * STREAMS,
            "spilt_gaps": [spilt] * STREAMS,
            "intact": [fitting >= 64] * STREAMS,
        }
    )
    rates = pl.DataFrame(
        {
            "end_s": [0.1 * (place + 1) for place in range(STREAMS)],
            "acked_bytes": [1_250_000] * STREAMS,
            "sent_bytes": [1_250_000] * STREAMS,
            "retransmits": [0] * STREAMS,
            "rate_bps": [190_000_000] * STREAMS,
            "smoothed_rtt_s": [0.002] * STREAMS,
            "flight_bytes": [20_000] * STREAMS,
            "sends_streams": [True] * STREAMS,
        }
    )
    schema = {"began_s": pl.Float64, "ended_s": pl.Float64, "cause": pl.String}
    tables = {
        "streams": streams,
        "rates": rates,
        "losses": pl.DataFrame(list(losses), schema=schema, orient="row"),
        "gaps": pl.DataFrame({"quantile": [0.5], "error_s": [1e-7]}),
        "packets": pl.DataFrame(
            {
                "stream": [0, 0, 0, 1, 1],
                "place": [0, 1, 2, 0, 1],
                "due_s": [0.0, 60e-6, 110e-6, 0.1, 0.10006],
                "left_s": [1e-6, 62e-6, 111e-6, 0.1, 0.10007],
                "received_s": [None, None, None, None, None],
            }
        ),
    }
    facts = {
        "ending": "complete",
        "elapsed_ns": 5_000_000_000,
        "min_rtt_ns": 1_100_000,
        "srtt_ns": 2_000_000,
        "counts": {**COUNTS, **counts},
        "receiver": None,
        "gaps": {
            "count": 39_000,
            "within_1_us": 30_000,
            "within_a_quarter": 38_000,
            "quantiles": [0.5],
            "error_ns": [100],
        },
        "real_time": True,
        "on_cpu_ns": 2_000_000_000,
        "blocked": 0,
        "strangers": 0,
    }
    return Transfer(Settings(link="200 Mbit/s", duration="5 s"), "192.0.2.7:8642", facts, tables)


FLAWED = {
    "fitting": 30,
    "spilt": 4,
    "available_bps": float(LINK_BPS),
    "losses": (
        (1.0, 1.1, "recovery"),
        (2.0, 2.1, "recovery"),
        (2.1, 2.4, "timeout"),
        (3.0, None, "recovery"),
    ),
}


def page_of(transfer, directory):
    save_tables(transfer.tables, directory / "tables")
    write_json(directory / "settings.json", transfer.settings.model_dump(mode="json"))
    write_json(directory / "result.json", transfer.document())
    Manifest(kind="rapid", name="rapid", provenance=Provenance.now()).ended("complete").write(directory)
    report = write_report(directory)
    return report.page.read_text(), {file.stem for file in report.plots}


def test_a_transfer_that_went_well_has_no_findings():
    fine = made(recovery_failures=0)
    # Queues grow in every stream and no excursion is seen, but the estimates are below the link's rate.
    assert fine.findings() == []


def test_each_finding_of_the_study_is_found_where_it_is():
    found = {finding.kind: finding for finding in made(**FLAWED).findings()}
    assert set(found) == {"ramp-lost", "no-excursion", "over-estimation", "tail-spill"}
    assert found["ramp-lost"].values["intact_ratio"] == 0
    assert found["no-excursion"].values["at_link_ratio"] == 1
    # Three times without streams, one of them with a timeout on top of the recovery: 1.0, 2.0 to 2.4, 3.0.
    over = found["over-estimation"].values
    assert (over["recoveries"], over["over_estimated"], over["timeouts"]) == (3, 3, 1)
    assert over["off_ratio"] == pytest.approx((0.1 + 0.4 + (4.96 - 3.0)) / 4.96)
    # 1 250 000 B of payload in 0.1 s, with the headers and the framing of packets of 1430 B.
    row = found["over-estimation"].evidence[0]
    assert row["delivered_mbps"] == pytest.approx(100 * 1538 / 1430, rel=1e-3)
    assert found["tail-spill"].values["spilt_ratio"] == 1


def test_counters_that_do_not_add_up_are_found():
    (finding,) = made(recovery_failures=0, retransmits=15).findings()
    assert finding.kind == "bookkeeping"
    assert "15 and 12" in finding.text


def test_the_page_has_the_findings_the_gaps_and_the_plots(tmp_path):
    page, plots = page_of(made(**FLAWED), tmp_path)
    for words in ("Rapid to 192.0.2.7:8642", "ramp-lost", "Achieved minus requested gaps", "timeout", "p50"):
        assert words in page
    story = page.split('<p class="story">')[1].split("</p>")[0]
    assert "Found: ramp-lost (I), no-excursion (II), over-estimation (III), tail-spill (IV)." in story
    assert "No losses were repaired." not in page
    assert plots == {"rate", "estimates", "streams", "gaps", "round-trips"}


def test_the_goodput_is_drawn_from_the_begin_to_the_end_of_the_sending():
    tables = dict(made(losses=((4.9, None, "recovery"), (5.05, 5.1, "timeout"))).tables)
    # What is acknowledged after the end: little, in an interval of which most has nothing to tell.
    drain = tables["rates"].tail(1).with_columns(end_s=pl.lit(5.1), acked_bytes=pl.lit(20_000, pl.Int64))
    tables["rates"] = pl.concat([tables["rates"], drain])
    (plot,) = (each for each in rapid_plots(tables, LINK_BPS, 5.1, sending_s=5.0) if each.name == "rate")
    rows = [row for data in plot.spec["datasets"].values() for row in data]
    goodput = [(row["t_s"], row["rate"]) for row in rows if row.get("what") == "goodput"]
    # A step reaches back to the row before it, so that the first interval begins with a row at 0.
    assert [at for at, _ in goodput] == pytest.approx([0.1 * place for place in range(STREAMS + 1)])
    assert [rate for _, rate in goodput] == pytest.approx([100.0] * (STREAMS + 1))
    off = [(row["began_s"], row["ended_s"]) for row in rows if "began_s" in row]
    assert off == [(4.9, 5.0)]


def test_a_transfer_that_ended_before_anything_was_sent_has_a_page(tmp_path):
    whole = made()
    nothing = {name: table.clear() for name, table in whole.tables.items()}
    page, plots = page_of(Transfer(whole.settings, whole.peer, whole.facts, nothing), tmp_path)
    assert "Nothing was sent." in page
    assert "No losses were repaired." in page
    assert plots == set()
