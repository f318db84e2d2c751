"""Which requests count, and the responsiveness of a measurement and of a point."""

import dataclasses
import json
import math

import pytest

from made_campaigns import FILE, WITH_REQUESTS, measured
from weirlab.campaigns import Campaign, plan_of, run_campaign, summaries
from weirlab.campaigns.measurement import Measurement, Request, Stream, Transfer
from weirlab.campaigns.responsiveness import answered, loaded_responsiveness, requests_lost
from weirlab.campaigns.tables import measurement_table
from weirlab.report import write_report
from weirlab.report.bulk import responsiveness_table
from weirlab.scenario import loads

REQUESTS = (
    Request(0.0, 0.5, 0.5),
    Request(15.5, 0.2, 0.2),  # answered before the last four seconds
    Request(15.8, 0.1, 0.2),  # in them
    Request(18.0, 0.3, 0.6),
    Request(19.0, 0.4, None),
    Request(19.5, 0.3, 0.4),  # answered after the end
    Request(19.6, None, None),
)


def beside(requests, rtts_s=(9.0, 0.1, 0.1, 0.1, 0.1)):
    stream = Stream(1, 1.0, 0, 0.1, 1, rtts_s=rtts_s)
    return Measurement(
        Transfer((stream,), (1.0,), {}, {}), None, 0.0, 20.0, None, None, (), None, 0, 0, requests
    )


def test_beside_a_transfer_the_answers_of_its_last_four_seconds_count():
    told = answered(beside(REQUESTS), 20.0)
    assert told.handshakes_s == (0.1, 0.3)
    assert told.answers_s == (0.2, 0.6)


def test_without_a_transfer_all_answers_until_the_end_count():
    alone = dataclasses.replace(beside(REQUESTS), transfer=None)
    assert answered(alone, 20.0).handshakes_s == (0.5, 0.2, 0.1, 0.3)
    assert loaded_responsiveness(alone, 20.0) is None


def test_responsiveness_is_half_of_new_and_half_of_loaded_connections():
    told = loaded_responsiveness(beside((Request(18.0, 0.1, 0.3),)), 20.0)
    assert told.foreign == pytest.approx(60 / 0.2)
    assert told.loaded == pytest.approx(60 / 0.1)  # the first second's 9 s is not among the last four
    assert told.rpm == pytest.approx((300 + 600) / 2)


def test_a_handshake_of_tls_is_a_third_of_what_new_connections_meet():
    over_tls = (Request(17.0, 0.1, 0.3, 0.2), Request(17.5, 0.1, 0.3, 0.2))
    told = loaded_responsiveness(beside(over_tls), 20.0)
    assert told.foreign == pytest.approx(60 / 0.2)
    assert told.rpm == pytest.approx((300 + 600) / 2)
    assert answered(beside(over_tls), 20.0).tls_handshake_s == pytest.approx(0.2)
    # Answered 10 ms after the end with the handshake of TLS, and before it without.
    late = (Request(19.0, 0.5, 0.3, 0.21),)
    assert answered(beside(late), 20.0) is None


def test_without_answers_or_round_trips_there_is_no_responsiveness():
    assert answered(beside(None), 20.0) is None
    assert answered(beside((Request(0.0, 0.1, None),)), 20.0) is None
    assert loaded_responsiveness(beside((Request(0.0, 0.1, 0.1),)), 20.0) is None
    assert loaded_responsiveness(beside((Request(18.0, 0.1, 0.1),), rtts_s=()), 20.0) is None


def test_what_is_not_answered_is_lost_whether_it_was_connected_or_not():
    assert requests_lost(REQUESTS) == pytest.approx(2 / 7)


def test_a_point_and_its_rows_tell_what_the_formula_gives(tmp_path):
    campaign = run_campaign(loads(WITH_REQUESTS), tmp_path, measure=measured)
    one, two = summaries(campaign)
    # Two streams: a handshake of 20 ms and an answer of 40 ms; 12 ms in the connections.
    assert (two.handshake_s, two.answer_s) == (pytest.approx(0.020), pytest.approx(0.040))
    assert two.foreign_per_minute == pytest.approx(60 / 0.030)
    assert two.rpm == pytest.approx((60 / 0.030 + 60 / 0.012) / 2)
    assert one.rpm == pytest.approx((60 / 0.0225 + 60 / 0.012) / 2)
    assert two.requests_lost == pytest.approx(1 / 10)
    # Unloaded, all count: three early ones of 30 ms, one late one of 10 ms and 20 ms.
    assert two.unloaded_handshake_s == pytest.approx(0.025)
    assert two.unloaded_answer_s == pytest.approx(0.0275)
    row = measurement_table(campaign).filter(streams=2).row(0, named=True)
    assert row["rpm"] == pytest.approx(two.rpm)
    assert row["foreign_per_minute"] == pytest.approx(two.foreign_per_minute)
    assert (row["handshake_s"], row["unloaded_handshake_s"]) == (pytest.approx(0.020), pytest.approx(0.025))
    assert row["requests_lost"] == pytest.approx(1 / 10)
    assert Campaign.load(tmp_path).kept == campaign.kept


def test_the_page_tells_of_it_and_only_where_requests_were_made(tmp_path):
    run_campaign(loads(WITH_REQUESTS), tmp_path / "with", measure=measured)
    page = write_report(tmp_path / "with", pictures=False).page.read_text()
    assert "Responsiveness under load" in page
    without = run_campaign(loads(FILE), tmp_path / "without", measure=measured)
    assert responsiveness_table(summaries(without)) is None
    assert all(math.isnan(point.rpm) for point in summaries(without))
    assert measurement_table(without).get_column("rpm").null_count() == 6


def test_requests_over_tls_have_a_column_of_their_own(tmp_path):
    def over_tls(what, path, seed):
        found = measured(what, path, seed)
        told = tuple(dataclasses.replace(each, tls_s=each.handshake_s) for each in found.requests)
        return dataclasses.replace(found, requests=told)

    text = WITH_REQUESTS.replace("kind: requests,", "kind: requests, tls: true,")
    plan = plan_of(loads(text))
    assert all(step.requests.tls for steps in plan.steps for step in steps)
    campaign = run_campaign(loads(text), tmp_path, measure=over_tls)
    _, two = summaries(campaign)
    assert (two.tls_s, two.unloaded_tls_s) == (pytest.approx(0.020), pytest.approx(0.025))
    assert two.foreign_per_minute == pytest.approx(60 / ((0.020 + 0.020 + 0.040) / 3))
    assert two.rpm == pytest.approx((two.foreign_per_minute + 60 / 0.012) / 2)
    row = measurement_table(campaign).filter(streams=2).row(0, named=True)
    assert (row["tls_s"], row["unloaded_tls_s"]) == (pytest.approx(0.020), pytest.approx(0.025))
    table = responsiveness_table(summaries(campaign))
    assert "TLS" in [column.name for column in table.columns]
    assert len({len(row) for row in table.rows} | {len(table.columns)}) == 1
    assert "over TLS" in table.note


def test_a_campaign_that_was_kept_before_there_were_requests_is_still_read(tmp_path):
    campaign = run_campaign(loads(FILE), tmp_path, measure=measured)
    log = tmp_path / "measurements.jsonl"
    head, *entries = log.read_text().splitlines()
    older = []
    for line in entries:
        entry = json.loads(line)
        del entry["measurement"]["requests"]
        older.append(json.dumps(entry))
    log.write_text("\n".join([head, *older]) + "\n")
    assert Campaign.load(tmp_path).kept == campaign.kept
