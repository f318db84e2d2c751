"""The command as a process: signals, pipes, terminals, start-up."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from weirlab.campaigns.path import Effort
from weirlab.cli.path import _length
from weirlab.cli.programs import _tell_of_end
from weirlab.errors import WeirlabError
from weirlab.results import Manifest
from weirlab.studies import Study

HEAVY = {
    "numpy",
    "polars",
    "pydantic",
    "yaml",
    "rich",
    "altair",
    "psutil",
    "weirlab._core",
    "weirlab.scenario",
}


@pytest.mark.parametrize(
    ("words", "brought_by_typer"),
    [(["--help"], set()), (["--bogus"], set()), ([], set()), (["run", "--help"], {"pydantic"})],
)
def test_help_and_usage_errors_load_typer_and_nothing_heavy(words, brought_by_typer):
    """The promise is 0.3 s; what makes it is that nothing slow is imported, on whatever machine."""
    code = f"""
import atexit, sys
atexit.register(lambda: sys.stderr.write("modules " + " ".join(sys.modules)))
sys.argv = ["weir", *{words!r}]
from weirlab.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    modules = set(done.stderr.rpartition("modules ")[2].split())
    assert "typer" in modules
    assert not modules.intersection(HEAVY - brought_by_typer)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_long_run_before_its_end_and_leaves_nothing(weir_process, place, sent):
    """The run would take hours; the process is waited for a minute."""
    text = (place / "run.yaml").read_text().replace("every: 100 us", "every: 1 s")
    long = text.replace("duration: 2 ms", "duration: 10000 s")
    (place / "long.yaml").write_text(long)
    results = place / "results"

    def running() -> bool:
        return results.exists() and any(results.iterdir())

    outcome = weir_process("run", "long.yaml", "--json", interrupt_when=running, interrupt=sent)
    assert outcome.code == 130
    assert outcome.err.endswith("weir: interrupted; nothing is kept\n")
    assert outcome.json["error"]["kind"] == "Interrupted"
    assert list(results.iterdir()) == []


@pytest.mark.parametrize("study", ["zrl", "mdr"])
def test_ctrl_c_during_a_reproduction_that_keeps_no_parts_says_that_nothing_is_kept(
    weir_process, place, study
):
    out = place / "again"
    outcome = weir_process("reproduce", study, "--out", "again", interrupt_when=out.exists)
    assert outcome.code == 130
    assert outcome.err.endswith("weir: interrupted; nothing is kept\n")
    assert not out.exists()


def test_ctrl_c_ends_a_study_keeps_its_points_and_says_how_to_go_on(weir_process, place):
    text = (place / "study.yaml").read_text()
    loads = ", ".join(f"{load} %" for load in range(30, 70))
    text = text.replace("[30 %, 60 %]", f"[{loads}]").replace("duration: 2 ms", "duration: 10 s")
    (place / "long.yaml").write_text(text)

    def a_point_is_whole() -> bool:
        with suppress(WeirlabError):
            return Study.load(place / "s").points.height > 0
        return False

    words = ["run", "long.yaml", "--out", "s", "--threads", "1"]
    outcome = weir_process(*words, interrupt_when=a_point_is_whole)
    assert outcome.code == 130
    assert "of 40 points; runs that have ended are kept. Continue with" in outcome.err
    assert "the same command and --out s" in outcome.err
    assert 1 <= Study.load(place / "s").points.height < 40
    assert Manifest.read(place / "s").status == "interrupted"


def test_ctrl_c_ends_a_search_with_what_was_found_and_resuming_finishes_it(weir_process, place):
    tester = (
        "import json, sys, time; time.sleep(0.15); load, s = map(float, sys.argv[1:]); "
        "n = round(load * s); got = min(n, round(1e6 * s)); "
        "print(json.dumps(dict(sent_frames=n, received_frames=got, effective_duration_s=s)))"
    )
    (place / "tester.py").write_text(tester)
    program = '{kind: command, run: [python3, tester.py, "{load_fps}", "{duration_s}"]}'
    text = (
        (place / "search.yaml")
        .read_text()
        .replace("{kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}", program)
    )
    (place / "live.yaml").write_text(text)
    log = place / "s" / "trials.jsonl"
    outcome = weir_process(
        "search", "live.yaml", "--out", "s", "--json",
        interrupt_when=lambda: log.exists() and log.read_bytes().count(b"\n") >= 4,
    )  # fmt: skip
    assert outcome.code == 130, outcome.err
    assert outcome.json["ending"] == "interrupted"
    assert not outcome.json["regular"]
    assert outcome.json["trials"] >= 3
    assert "weir search --resume s" in outcome.err
    resumed = weir_process("search", "--resume", "s", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["regular"]
    assert f"{outcome.json['trials']} trials were measured before" in resumed.err


def test_a_reader_who_leaves_is_no_error():
    command = f"{sys.executable} -m weirlab schema | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "{\n"
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_terminal_without_unicode_gets_other_characters_and_its_result(weir_process):
    outcome = weir_process(
        "run", "run.yaml", "--seed", "3", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert outcome.code == 0
    assert "[us]" in outcome.out
    assert "?" not in outcome.out
    assert outcome.out.isascii()


def test_colours_are_for_terminals_that_want_them(weir_process):
    for words in (("run", "run.yaml"), ("doctor", "--no-clock"), ("search", "search.yaml")):
        outcome = weir_process(*words, env={"NO_COLOR": "1"})
        assert "\x1b" not in outcome.out + outcome.err, words


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_a_search_shows_its_bounds_and_leaves_a_clean_screen(place):
    leader, follower = os.openpty()
    command = [sys.executable, "-m", "weirlab", "search", "search.yaml", "--json"]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=follower, text=True) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        out = process.stdout.read()
    os.close(leader)
    assert process.returncode == 0
    assert json.loads(out)["regular"]
    assert b"lower bound" in shown
    assert b"\x1b[?25h" in shown, "the cursor is shown again"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_can_be_had(place):
    # The shell is recognised by the parent process: bash, which must not be replaced by the command.
    words = ["bash", "-c", '"$0" -m weirlab --show-completion; exit $?', sys.executable]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=60, check=True)
    assert "_WEIRLAB_COMPLETE" in done.stdout or "_WEIR_COMPLETE" in done.stdout


@pytest.mark.parametrize("words", [("run", "run.yaml", "--json"), ("search", "search.yaml"), ("schema",)])
def test_a_full_disk_behind_stdout_is_a_message_without_a_traceback(place, words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "weirlab", *words],
            cwd=place, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interruption_while_a_class_is_made_has_the_exit_code_of_one(tmp_path):
    """'python -m' would end by the signal instead, after the message."""
    (tmp_path / "interrupted.py").write_text("""
import sys
import weirlab.cli.app
from weirlab.cli import main

try:
    exec("raise KeyboardInterrupt")  # as where a data class is made
except KeyboardInterrupt:
    pass
module = sys.modules["weirlab.cli.app"]
module.execute = lambda *_, **__: module._told(module.Interrupted("interrupted"), as_json=False)
main(["run"])
""")
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "weir: interrupted\n")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "weir: --far: 'false' ended with exit code 1 before the command at the near end did\n"),
        (-9, "weir: --far: 'false' was ended by SIGKILL before the command at the near end did\n"),
        (0, ""),
        (None, ""),
    ],
)
def test_a_far_end_that_fails_by_itself_is_told_with_its_status(capsys, code, said):
    _tell_of_end(["false"], code)
    assert capsys.readouterr().err == said


def test_a_host_that_ssh_does_not_reach_is_told_before_minutes_of_probes(weir, tmp_path):
    missing = str(tmp_path / "missing")
    outcome = weir("path", "127.0.0.1", "--ssh", "far", "--ssh-config", missing)
    assert outcome.code == 1
    assert outcome.err.startswith("weir: --ssh far: ")
    assert "probes for" not in outcome.err


def test_how_long_probes_take_is_told_with_a_shorter_way():
    assert _length(Effort(), 8) == (
        "probes for 5 min at most, less where each capacity is known to 3% before; --time '1 min' or "
        "--precision 0.1 take less. Ctrl-C keeps what was measured"
    )
    assert "--time" not in _length(Effort(most_s=30.0), 8)
