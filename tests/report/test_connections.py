"""What the page of a run says of its connections is what was recorded."""

from __future__ import annotations

from weirlab.records import Records
from weirlab.report.connections import connection_sections
from weirlab.report.page import Callout, Table
from weirlab.runs import run
from weirlab.scenario import load


def tables(name: str, duration: str) -> tuple[dict[str, Table], list[Callout], Records]:
    done = run(load(name, {"run.duration": duration, "measure": {}}))
    blocks = [block for section in connection_sections(done.records) for block in section.blocks]
    named = {block.caption: block for block in blocks if isinstance(block, Table)}
    return named, [block for block in blocks if isinstance(block, Callout)], done.records


def test_a_probing_sender_is_shown_with_its_streams_states_and_findings() -> None:
    named, findings, records = tables("rapid-flawed", "3 s")
    (row,) = records["connections"].iter_rows(named=True)
    shown = named["Connections, most bytes first"]
    told = dict(zip((column.name for column in shown.columns), shown.rows[0], strict=True))
    assert told["sent again"] == str(row["retransmits"])
    assert "replicate" not in told, "there is one only"
    causes = named["Segments sent again, by cause"].rows
    assert sum(int(cause[1]) for cause in causes[:-1]) == int(causes[-1][1]) == row["retransmits"]
    resent = named["How often segments were sent again"].rows
    assert sum(int(times) * int(count) for times, count in resent) == row["retransmits"]
    states = {state[0]: state for state in named["States of the senders"].rows}
    assert sum(float(state[2]) for state in states.values()) > 2.9
    assert "on" in states
    assert any("ramp-lost" in finding.title for finding in findings)


def test_a_run_of_plain_tcp_has_connections_and_no_probing_senders() -> None:
    named, findings, _ = tables("tcp-dumbbell", "1 s")
    assert "Connections, most bytes first" in named
    assert "States of the senders" not in named
    assert not findings


def test_a_run_without_tcp_has_neither() -> None:
    named, _, _ = tables("dumbbell-udp", "10 ms")
    assert not named
