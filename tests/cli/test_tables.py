"""Tables on stdout: nothing is cut, whatever the width, and programs read them in the format they like."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.cells import cell_len

from weirlab.cli.tables import formatted, show
from weirlab.report.page import Column, Table

CAPTURE = Path(__file__).parents[2] / "examples/slow-transfer.pcap"
WIDTHS = pytest.mark.parametrize("width", [60, 80, 120, 200])


def table(rows: int) -> Table:
    """Wider than most terminals, with a text, numbers with thousands apart, and a µ."""
    columns = [
        Column("device", numeric=False),
        Column("controller", numeric=False),
        *(Column(f"measured value {n}", "µs") for n in range(9)),
        Column("remark", numeric=False),
    ]
    body = [
        [
            f"dev-{row // 2}",
            f"ctl-{row % 2}",
            *(f"{row}\N{NARROW NO-BREAK SPACE}{n:03}" for n in range(9)),
            "a sentence that is long enough to be broken at its words when the terminal is narrow",
        ]
        for row in range(rows)
    ]
    return Table("What was measured", columns, body)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def print_at(width: int, shown: Table) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        show(shown)
        return capsys.readouterr().out

    return print_at


@WIDTHS
@pytest.mark.parametrize("rows", [1, 2, 12])
def test_no_line_is_wider_than_the_terminal_and_no_cell_or_name_is_cut(
    printed, width: int, rows: int
) -> None:
    made = table(rows)
    text = printed(width, made)
    assert max(map(cell_len, text.splitlines())) <= width
    words = " ".join(text.split())
    for column in made.columns:
        assert column.name in words
    for row in made.rows:
        for cell in row[:-1]:
            assert " ".join(cell.split()) in words
    assert words.count("narrow") == rows


@pytest.mark.parametrize(("width", "fewest"), [(60, 5), (80, 4), (120, 2), (400, 1)])
def test_each_part_of_a_table_names_its_rows(printed, width: int, fewest: int) -> None:
    text = printed(width, table(12))
    parts = text.count("controller")
    assert fewest <= parts <= fewest + 1
    assert len(re.findall(r"dev-5\s+ctl-1", text)) == parts


def test_a_short_table_on_a_narrow_terminal_is_a_block_of_lines_for_each_row_with_the_units(printed) -> None:
    lines = printed(80, table(2)).splitlines()
    assert lines[:3] == ["", "What was measured", "device dev-0, controller ctl-0"]
    assert lines[3].split() == ["measured", "value", "0", "0", "000", "µs"]


def test_a_quantity_in_the_first_column_keeps_its_unit(printed) -> None:
    columns = [Column("window", "kB"), *(Column(f"some measured value {n}") for n in range(5))]
    text = printed(60, Table("", columns, [["294.2", *"12345"]]))
    assert "window 294.2 kB" in text


def test_a_table_that_fits_stands_as_it_is(printed) -> None:
    small = Table("", [Column("name", numeric=False), Column("rate", "Gbit/s")], [["a", "1.5"], ["b", "10"]])
    lines = [line.rstrip() for line in printed(80, small).splitlines()]
    assert lines == [
        "",
        "          rate",
        "name  [Gbit/s]",
        "──────────────",
        "a          1.5",
        "b           10",
    ]


def test_csv_holds_every_row_with_units_in_the_header_and_numbers_that_parse(capsys) -> None:
    with formatted("csv"):
        typer.echo("a sentence for people")
        show(table(3))
        show(table(1))
    out, err = capsys.readouterr()
    assert err == "a sentence for people\n"
    first, second = out.split("\n\n")
    rows = list(csv.DictReader(io.StringIO(first)))
    assert len(rows) == 3
    assert int(rows[2]["measured value 4 [µs]"]) == 2004
    assert len(list(csv.DictReader(io.StringIO(second)))) == 1


def test_json_is_one_list_of_tables(capsys) -> None:
    with formatted("json"):
        show(table(2))
        show(table(1))
    tables = json.loads(capsys.readouterr().out)
    assert [len(each["rows"]) for each in tables] == [2, 1]
    assert tables[0]["columns"][2] == {"name": "measured value 0", "unit": "µs"}


@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_ends_by_its_exit_code_prints_its_tables_as_json(capsys, code: int) -> None:
    def command() -> None:
        show(table(2))
        raise typer.Exit(code)

    with pytest.raises(typer.Exit), formatted("json"):
        command()
    assert len(json.loads(capsys.readouterr().out)) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("rows", [1, 9])
def test_sentences_as_names_and_numbers_with_others_in_brackets_are_not_cut(
    printed, width: int, rows: int
) -> None:
    """As in published studies."""
    columns = [
        Column("statement", numeric=False),
        Column("published, as a share of what it would be"),
        Column("ours"),
        Column("verdict", numeric=False),
    ]
    row = ["In inconsistent tests the durations vary wildly, and on average more than elsewhere"]
    row += ["+10.2 (+347.123 to +1000.5)", "50.123456 ± 0.001234 of 8123.5", "known misfit"]
    body = [[f"{row[0]} {number}", *row[1:]] for number in range(rows)]
    text = printed(width, Table("What was said", columns, body))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    found = re.sub(r"\s", "", text)
    for word in " ".join(row).split():
        assert word in found
    assert text.count("8123.5") == rows


def test_programs_find_each_number_in_a_column_of_its_own_with_its_unit(capsys) -> None:
    columns = [
        Column("load", numeric=False),
        Column("goodput", "Mbit/s"),
        Column("95 % interval"),
        Column("RTT", "ms, min / mean"),
        Column("lost", "loaded / unloaded"),
        Column("measured"),
    ]
    rows = [
        ["15 %", "1\N{THIN SPACE}234.5 ± 0.5", "± 3e-05", "10.0 / 11.5", "2 % / 0.5 %", "3 (1 failed)"],
        ["20 %", "–", "–", "–", "0 % / 0 %", "4"],
    ]
    with formatted("json"):
        show(Table("T", columns, rows))
    (told,) = json.loads(capsys.readouterr().out)
    assert [f"{column['name']} [{column['unit']}]" for column in told["columns"]] == [
        "load [%]",
        "goodput [Mbit/s]",
        "goodput ± [Mbit/s]",
        "95 % interval ± []",
        "RTT, min [ms]",
        "RTT, mean [ms]",
        "lost, loaded [%]",
        "lost, unloaded [%]",
        "measured []",
        "measured, failed []",
    ]
    assert told["rows"] == [
        [15, 1234.5, 0.5, 3e-05, 10.0, 11.5, 2, 0.5, 3, 1],
        [20, None, None, None, None, None, 0, 0, 4, None],
    ]
    with formatted("csv"):
        show(Table("T", columns, rows))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["15,1234.5,0.5,3e-05,10.0,11.5,2,0.5,3,1", "20,,,,,,0,0,4,"]


def test_markdown_says_which_columns_are_numbers(capsys) -> None:
    with formatted("md"):
        show(Table("T", [Column("a|b", numeric=False), Column("n")], [["x|y", "1"]]))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "**T**",
        "",
        "| a\\|b | n |",
        "| --- | ---: |",
        "| x\\|y | 1 |",
    ]


@pytest.mark.parametrize(
    ("words", "column", "cell"),
    [
        (["scenarios", "--kind", "search"], "name", "search-knee"),
        (["reproduce"], "name", "mdr"),
        (["doctor", "--no-clock"], "name", "Python"),
        (["diagnose", str(CAPTURE)], "kind", "queue-overflow"),
    ],
)
def test_what_is_said_in_sentences_is_a_table_for_programs(weir, words, column, cell) -> None:
    rows = list(csv.DictReader(weir(*words, "--format", "csv").out.splitlines()))
    assert cell in [row[column] for row in rows]
    (table,) = json.loads(weir(*words, "--format", "json").out)
    assert [each["name"] for each in table["columns"]] == list(rows[0])
    assert len(table["rows"]) == len(rows)


def test_a_command_without_tables_has_no_formats(weir) -> None:
    assert "No such option: --format" in weir("report", "nowhere", "--format", "csv").err


def test_json_of_a_command_and_another_format_exclude_each_other(weir) -> None:
    refused = weir("search-lab", "--json", "--format", "csv")
    assert refused.code == 2
    assert "give one of them" in refused.err


def test_a_terminal_without_unicode_spells_out_what_it_lacks() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200", "TERM": "dumb"}
    command = [sys.executable, "-m", "weirlab", "search-lab", "--devices", "knee", "--searches", "1"]
    shown = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    assert b"?" not in shown
    text = shown.decode("ascii")
    assert "device" in text


@pytest.mark.parametrize(("term", "colours"), [("xterm-256color", True), ("dumb", False)])
def test_a_terminal_has_bold_captions_where_it_can_and_no_line_beyond_its_width(
    term: str, colours: bool
) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": term, "COLUMNS": "72"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "weirlab", "search-lab", "--devices", "knee", "--searches", "1"]
    with subprocess.Popen(command, env=environment, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
    os.close(ours)
    assert process.returncode == 0
    assert (b"\x1b[1m" in text) == colours
    if not colours:
        assert max(map(cell_len, text.decode().replace("\r", "").splitlines())) <= 72
