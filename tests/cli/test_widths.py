"""Whole commands on terminals of different widths, and on those without colours and other letters."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from weirlab.cli.app import application, execute

CAPTURE = str(Path(__file__).parents[2] / "examples/slow-transfer.pcap")
COMMANDS = {
    "run": (["run", "incast", "--out", "out"], "load"),
    "study": (["study", "load-and-buffer", "--replicates", "1", "--out", "out"], "small"),
    "search": (["search", "search-knee", "--out", "out"], "NDR"),
    "check": (["check", "zrl-og"], "control.bcn.reaction_point.gd"),
    "stability": (["stability", "bcn"], "cs->es-4"),
    "rank": (["rank", "bcn"], "cs->es-4"),
    "scenarios": (["scenarios"], "incast"),
    "reproduce": (["reproduce"], "rapid"),
    "doctor": (["doctor", "--no-clock"], "privileges"),
    "trace": (["trace", CAPTURE], "198.18.0.1:44388"),
    "diagnose": (["diagnose", CAPTURE], "queue-overflow"),
    "compare": (["compare", "{results}/one", "{results}/other"], "load: mean delay"),
    "search-lab": (
        ["search-lab", "--controllers", "mdr,weir", "--devices", "knee", "--searches", "2"],
        "controller",
    ),
    "report": (["report", "{results}/one", "--no-pictures"], "report.html"),
    "bulk": (["bulk", "{results}/campaign.yaml", "--out", "out"], "streams"),
    "results": (["results", "{results}/study"], "load-and-buffer"),
    "rapid key": (["rapid", "key", "secret"], ""),
    "nothing": ([], "incast"),
    "help": (["--help"], "search-lab"),
}
"""Words, and a name that is never left out; `{results}` holds results of runs."""
LIVE = {
    "path": (["path", "127.0.0.1", "--time", "1 s"], "127.0.0.1"),
    "emulate": (["emulate", "--rate", "20mbit", "--delay", "4ms", "--", "true"], "20 Mbit/s"),
}
ELSEWHERE = {"rapid send", "rapid serve", "schema", "view"}
"""Both ends of one transfer, below; JSON for editors, which has no width; a browser (tests/viewer)."""
CAMPAIGN = """weirlab: 1
name: small
testbed: {kind: sim, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 20 Mbit/s, delay: 10 ms, framing: none}}
traffic:
  bulk: {from: a, to: b, source: {kind: bulk}, transport: {kind: tcp, congestion_control: {kind: reno}}}
  ping: {from: a, to: b, source: {kind: ping, every: 0.5 s}}
campaign:
  cycles: 1
  cycle: [{name: loaded, run: [bulk, ping], for: 6 s}, {name: unloaded, run: ping, for: 2 s}]
study: {factors: {traffic.bulk.streams: [1, 2]}}
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": "dumb"}
WITH_COLOUR = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "FORCE_COLOR": "1"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    (place / "campaign.yaml").write_text(CAMPAIGN)
    for name, seed in (("one", "1"), ("other", "2")):
        printed(["run", "incast", "--seed", seed, "--out", str(place / name)], place)
    printed(["study", "load-and-buffer", "--replicates", "1", "--out", str(place / "study")], place)
    return place


def all_commands():
    """Every command by the words with which it is called."""
    app = application()
    grouped = [
        f"{group.name} {each.name or each.callback.__name__}"
        for group in app.registered_groups
        for each in group.typer_instance.registered_commands
    ]
    return [each.name for each in app.registered_commands] + grouped


def test_no_command_is_left_out_here():
    assert set(all_commands()) - {"rank"} <= {*COMMANDS, *LIVE, *ELSEWHERE}


def printed(words, place, *, everything=False, **environment):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "LANG", "PYTHONUTF8"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "weirlab", *words],
        cwd=place, capture_output=True, timeout=120, check=False, env=kept | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout + done.stderr if everything else done.stdout


def lines_of(text, results):
    """Lines, without those of names of files, which are never broken."""
    return [line for line in text.splitlines() if str(results) not in line]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_names_are_kept(command, width, results, tmp_path):
    words, name = COMMANDS[command]
    words = [word.format(results=results) for word in words]
    text = printed(words, tmp_path, LC_ALL="C.UTF-8", COLUMNS=str(width)).decode()
    assert [line for line in lines_of(text, results) if cell_len(line) > width] == []
    assert name in text
    assert "\x1b" not in text


@pytest.mark.live
@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("command", LIVE)
def test_what_real_paths_say_is_no_wider_than_the_terminal(command, width, tmp_path):
    words, name = LIVE[command]
    text = printed(words, tmp_path, everything=True, LC_ALL="C.UTF-8", COLUMNS=str(width)).decode()
    # Directories may be longer than a line, and are never broken.
    assert [line for line in text.splitlines() if cell_len(line) > width and "results/" not in line] == []
    assert name in text


@pytest.mark.live
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_what_both_ends_of_rapid_say_is_no_wider_than_the_terminal(width, tmp_path):
    everything = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    shown = everything | {"env": os.environ | {"LC_ALL": "C.UTF-8", "COLUMNS": str(width)}, "cwd": tmp_path}
    weir = [sys.executable, "-m", "weirlab", "rapid"]
    subprocess.run([*weir, "key", "secret"], check=True, **shown)
    common = ["--key", "secret", "--port", "18642", "--no-real-time"]
    with subprocess.Popen([*weir, "serve", *common, "--once"], **shown) as serving:
        try:
            first = serving.stdout.readline()
            sending = [*weir, "send", "127.0.0.1", *common, "--link", "20 Mbit/s", "--duration", "1 s"]
            sent = subprocess.run(sending, check=True, timeout=60, **shown).stdout
            served = first + serving.communicate(timeout=60)[0]
        finally:
            serving.kill()
    lines = (sent + served).splitlines()
    assert [line for line in lines if cell_len(line) > width and "results/" not in line] == []
    assert "listening" in first
    assert "to 127.0.0.1:18642" in sent


def has_formats(words, capsys):
    execute([*words, "--help"])
    return "--format" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_programs_read_the_tables_of_every_command_that_has_some(
    command, results, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    words = [word.format(results=results) for word in COMMANDS[command][0]]
    if not has_formats(words[:1], capsys):
        pytest.skip("has no table")
    tables = {}
    for chosen in ("csv", "json", "md"):
        own = [tmp_path.joinpath(chosen).as_posix() if word == "out" else word for word in words]
        assert execute([*own, "--format", chosen]) == 0
        tables[chosen] = capsys.readouterr().out
        assert "\x1b" not in tables[chosen]
    documents = json.loads(tables["json"])
    blocks = [list(csv.reader(block.splitlines())) for block in tables["csv"].strip().split("\n\n")]
    assert documents
    assert [len(block) - 1 for block in blocks] == [len(document["rows"]) for document in documents]
    assert all({len(row) for row in block} == {len(block[0])} for block in blocks)
    rows = [line for line in tables["md"].splitlines() if line.startswith("|")]
    assert len(rows) == sum(2 + len(document["rows"]) for document in documents)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("command", all_commands())
def test_the_help_of_a_command_fits_the_terminal_and_its_examples_stay_whole(
    command, width, monkeypatch, capsys
):
    def shown(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert execute([*command.split(), "--help"]) == 0
        return capsys.readouterr().out

    def examples(text):
        joined = re.sub(r" \\\n +", " ", text)
        return [line for line in joined.splitlines() if line.strip().startswith("weir ")]

    text = shown(width)
    assert [line for line in text.splitlines() if cell_len(line) > width] == []
    assert examples(text) == examples(shown(200))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_without_other_letters_gets_them_spelled_out_within_its_width(
    command, width, results, tmp_path
):
    words, name = COMMANDS[command]
    words = [word.format(results=results) for word in words]
    content = printed(words, tmp_path, COLUMNS=str(width), **ASCII)
    assert content.isascii()
    text = content.decode()
    assert [line for line in lines_of(text, results) if len(line) > width] == []
    assert name in text
    assert not re.search(r"\?(?!\s*\n|\s+[A-Z])", text)
    assert "\x1b" not in text


def test_colours_change_no_letter(tmp_path):
    plain = printed(["stability", "bcn"], tmp_path, COLUMNS="80", LC_ALL="C.UTF-8").decode()
    coloured = printed(["stability", "bcn"], tmp_path, COLUMNS="80", **WITH_COLOUR).decode()
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
