"""Programs as testbeds: well-behaved ones are believed, all others end in an error that says why."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from weirlab.errors import ImpossibleTrial, InputError, TestbedError, TrialTimeout
from weirlab.searches import ControlledSearch, LoadRange, SearchGoal, run_search
from weirlab.searches.weir import Weir
from weirlab.testbed.base import TrialSpec
from weirlab.testbed.command import CommandTestbed

SPEC = TrialSpec(index=3, intended_load_fps=1000.0, duration_s=0.5, frame_size_bytes=64, elapsed_s=2.25)


def program(directory: Path, body: str, name: str = "tester.py") -> list[str]:
    path = directory / name
    path.write_text(textwrap.dedent(body))
    return [sys.executable, str(path)]


def trial_of(
    directory: Path, body: str, *arguments: str, grace_s: float = 20.0, loss_budget: float | None = None
):
    bed = CommandTestbed([*program(directory, body), *arguments], grace_s=grace_s)
    return bed.trial(replace(SPEC, loss_budget=loss_budget))


def printing(answer: object) -> str:
    return f"print({json.dumps(answer)!r})"


def test_counts_of_a_well_behaved_program_become_a_trial(tmp_path):
    trial = trial_of(tmp_path, printing({"sent_frames": 500, "received_frames": 490}))
    assert (trial.intended_frames, trial.sent_frames, trial.received_frames) == (500, 500, 490)
    assert trial.loss_ratio == pytest.approx(0.02)
    assert trial.offered_load_fps == 1000.0
    assert trial.effective_duration_s > 0.0


def test_an_argument_that_is_too_long_for_the_name_of_a_file_is_one_all_the_same(tmp_path):
    answer = json.dumps({"sent_frames": 500, "received_frames": 490}).replace("{", "{{").replace("}", "}}")
    bed = CommandTestbed(["echo", answer + " " * 5000], directory=tmp_path)
    assert bed.trial(SPEC).received_frames == 490


def test_everything_that_a_program_may_say_is_kept(tmp_path):
    answer = {
        "sent_frames": 250,
        "received_frames": 200,
        "intended_frames": 250,
        "duplicated_frames": 2,
        "reordered_frames": 3,
        "effective_duration_s": 0.75,
        "offered_load_fps": 999.5,
        "stopped_early": True,
        "latency_s": {"p50": 1e-5, "max": 2e-3},
        "directions": {
            "east": {"sent_frames": 125, "received_frames": 75},
            "west": {"sent_frames": 125, "received_frames": 125},
        },
        "facts": {"port": "eth7", "late": 4, "unknown": None},
    }
    trial = trial_of(tmp_path, printing(answer), loss_budget=0.05)
    assert trial.intended_frames == 250
    assert (trial.duplicated_frames, trial.reordered_frames) == (2, 3)
    assert (trial.effective_duration_s, trial.offered_load_fps) == (0.75, 999.5)
    assert trial.stopped_early
    assert trial.latency_s == {"p50": 1e-5, "max": 2e-3}
    assert [(each.name, each.loss_ratio) for each in trial.per_direction] == [("east", 0.4), ("west", 0.0)]
    assert trial.facts == {"port": "eth7", "late": 4, "unknown": None}


def test_the_trial_goes_in_as_arguments_and_as_json(tmp_path):
    body = """
        import json, sys
        spec = json.load(sys.stdin)
        assert sys.argv[1:] == ["1000.0", "0.5 s of 64 B", "no. 3", "{}"], sys.argv
        assert float(sys.argv[1]) == spec["load_fps"] == 1000.0
        assert spec["index"] == 3 and spec["elapsed_s"] == 2.25 and spec["purpose"] == "search"
        print(json.dumps({"sent_frames": spec["intended_frames"], "received_frames": 1}))
    """
    arguments = ("{load_fps}", "{duration_s} s of {frame_size_bytes} B", "no. {index}", "{{}}")
    assert trial_of(tmp_path, body, *arguments).sent_frames == 500


def test_a_program_that_does_not_read_its_input_is_fine(tmp_path):
    body = "import os; os.close(0)\n" + printing({"sent_frames": 500, "received_frames": 500})
    assert trial_of(tmp_path, body).loss_ratio == 0.0


def test_standard_error_is_kept_with_the_trial(tmp_path):
    body = "import sys; print('port 0 was slow', file=sys.stderr)\n"
    trial = trial_of(tmp_path, body + printing({"sent_frames": 500, "received_frames": 500}))
    assert trial.facts["stderr"] == "port 0 was slow"


def test_only_the_end_of_a_long_standard_error_is_kept(tmp_path):
    body = "import sys; sys.stderr.write('x' * 3_000_000 + 'the end')\n"
    trial = trial_of(tmp_path, body + printing({"sent_frames": 500, "received_frames": 500}))
    assert str(trial.facts["stderr"]).endswith("the end")
    assert len(str(trial.facts["stderr"])) <= 4000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "printed nothing"),
        ("print('link up')", "printed no JSON object, but 'link up'"),
        ("print('[1, 2]')", "printed no JSON object"),
        ("print('{\"sent_frames\": 1')", "printed no JSON object"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", "printed no JSON object"),
        ("print('[' * 100_000)", "printed no JSON object"),
        (
            "print('INFO link up'); " + printing({"sent_frames": 500, "received_frames": 1}),
            "printed 'INFO link up' before its JSON object; standard output is for the object alone",
        ),
        (
            printing({"sent_frames": 500, "received_frames": 1}) + "; print('bye')",
            "printed 'bye' after its JSON object; standard output is for the object alone",
        ),
        (
            "import sys; sys.stdout.buffer.write(b'\\xef\\xbb\\xbf{}')",
            r"printed a byte-order mark (UTF-8) first; print UTF-8 without one",
        ),
        ("print('{}')", "printed no sent_frames"),
        (printing({"sent_frames": 500}), "printed no received_frames"),
        (printing({"sent_frames": 500, "recieved_frames": 1}), "unknown field 'recieved_frames'"),
        ('print(\'{"sent_frames": NaN, "received_frames": 1}\')', "printed NaN"),
        ('print(\'{"sent_frames": Infinity, "received_frames": 1}\')', "printed Infinity"),
        (
            printing({"sent_frames": 500.5, "received_frames": 1}),
            "500.5 for sent_frames, which must be a whole",
        ),
        (
            printing({"sent_frames": 500.0, "received_frames": 1}),
            "500.0 for sent_frames, which must be a whole",
        ),
        (
            printing({"sent_frames": "500", "received_frames": 1}),
            'printed "500" for sent_frames, which must be a whole',
        ),
        (
            printing({"sent_frames": True, "received_frames": 1}),
            "true for sent_frames, which must be a whole",
        ),
        (printing({"sent_frames": 10**30, "received_frames": 1}), "for sent_frames, which must be a whole"),
        (
            printing({"sent_frames": 500, "received_frames": 1, "offered_load_fps": "fast"}),
            "'fast' for offered_load_fps",
        ),
        ('print(\'{"sent_frames": 5, "received_frames": 1, "offered_load_fps": 1e999}\')', "offered_load"),
        (printing({"sent_frames": 500, "received_frames": 1, "latency_s": 3}), "for latency_s"),
        (
            printing({"sent_frames": 500, "received_frames": 1, "latency_s": {"p50": "slow"}}),
            "printed 'slow' for latency_s.p50, which must be a number",
        ),
        (printing({"sent_frames": 500, "received_frames": 1, "facts": {"a": [1]}}), "facts.a"),
        (printing({"sent_frames": 500, "received_frames": 1, "stopped_early": 1}), "for stopped_early"),
        (
            printing({"sent_frames": 500, "received_frames": 1, "stopped_early": True}),
            "printed stopped_early without intended_frames",
        ),
        (
            printing({"sent_frames": 500, "received_frames": 1, "effective_duration_s": 10**400}),
            "for effective_duration_s, which must be a number",
        ),
        (
            printing({"sent_frames": 500, "received_frames": 1, "facts": {"a": -(10**400)}}),
            "for facts.a, which is too large",
        ),
        ("raise SystemExit(7)", "ended with code 7"),
        ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("import sys; sys.exit('no link on port 1')", "ended with code 1; it said: no link on port 1"),
    ],
)
def test_an_answer_that_is_none_is_named_with_the_script_that_gave_it(tmp_path, body, message):
    script = program(tmp_path, body)[1]
    with pytest.raises(TestbedError, match=f"trial 3: .* {script} ") as caught:
        trial_of(tmp_path, body)
    assert message in str(caught.value)


def test_delays_of_clocks_that_disagree_are_left_out_and_the_counts_of_the_trial_are_believed(tmp_path):
    latency = {"p50": 2e-6, "min": -1e-6}
    trial = trial_of(tmp_path, printing({"sent_frames": 500, "received_frames": 490, "latency_s": latency}))
    assert (trial.sent_frames, trial.received_frames) == (500, 490)
    assert trial.latency_s == {}
    assert trial.facts["latency"] == "left out: min was -1e-06 s, and no delay is below 0"


@pytest.mark.parametrize(
    "body",
    [
        printing({"sent_frames": 500, "received_frames": 1, "x" * 500_000: 1}),
        printing({"sent_frames": 500, "received_frames": 1, "stopped_early": "x" * 500_000}),
        printing({"sent_frames": 500, "received_frames": 1, "facts": {"x" * 500_000: [1]}}),
        printing({"sent_frames": 500, "received_frames": 1, "latency_s": {"x" * 500_000: "slow"}}),
        printing({"sent_frames": 1, "received_frames": 2, "facts": {"a": "x" * 500_000}}),
        "import sys; sys.exit('x' * 500_000)",
        "print('x' * 500_000)",
    ],
)
def test_nonsense_of_any_length_is_cut_to_size_in_the_message(tmp_path, body):
    with pytest.raises(TestbedError, match="trial 3: ") as caught:
        trial_of(tmp_path, body)
    assert "xxxx" in str(caught.value), "it says what the program said"
    assert len(str(caught.value)) < 1000 + len(str(tmp_path))


def test_what_a_program_says_cannot_move_the_cursor_of_a_terminal(tmp_path):
    body = "import sys; sys.stderr.write('\\x1b[2Jall is well'); print('{}')"
    with pytest.raises(TestbedError, match=r"it said: \?\[2Jall is well"):
        trial_of(tmp_path, body)


def test_counts_that_cannot_be_are_told_with_what_the_program_printed_and_said(tmp_path):
    body = "import sys; print('port 1 is down', file=sys.stderr)\n"
    with pytest.raises(ImpossibleTrial) as caught:
        trial_of(tmp_path, body + printing({"sent_frames": 5, "received_frames": 10}))
    assert "received 10 frames of 5 sent" in str(caught.value)
    assert 'printed {"sent_frames": 5, "received_frames": 10}' in str(caught.value)
    assert str(caught.value).endswith("it said: port 1 is down")


@pytest.mark.parametrize(
    ("answer", "loss_budget", "message"),
    [
        ({"intended_frames": 2**63 - 1}, None, "9223372036854775807 frames were intended, 500"),
        ({"intended_frames": 497}, None, "497 frames were intended, 500 were requested"),
        ({"intended_frames": 0}, None, "500 frames were sent where none was intended"),
        ({"offered_load_fps": 1e300}, None, "1e+300 frames/s were offered, 1000 were requested"),
        ({"reordered_frames": 10**9}, None, "1000000000 of 475 received frames came out of order"),
        (
            {"directions": {"east": {"sent_frames": 499, "received_frames": 475}}},
            None,
            "sent_frames of the directions add up to 499, not to 500",
        ),
        ({"stopped_early": True, "intended_frames": 500}, None, "nothing was to end this trial"),
        (
            {"effective_duration_s": 1e-3},
            None,
            "effective_duration_s is 0.001, less than the 0.5 s for which the load was offered",
        ),
        (
            {"stopped_early": True, "intended_frames": 500},
            0.05,
            "stopped early after 25 lost frames, which are no more than 0.05",
        ),
    ],
)
def test_an_answer_to_another_trial_is_impossible(tmp_path, answer, loss_budget, message):
    text = printing({"sent_frames": 500, "received_frames": 475} | answer)
    with pytest.raises(ImpossibleTrial, match="trial 3: ") as caught:
        trial_of(tmp_path, text, loss_budget=loss_budget)
    assert message in str(caught.value)


@pytest.mark.parametrize(("loss_budget", "told"), [(None, 1.0), (0.005, 0.005), (0.0, 0.0)])
def test_a_program_is_told_which_loss_ends_a_trial(tmp_path, loss_budget, told):
    body = """
        import json, sys
        budget = json.load(sys.stdin)["loss_budget"]
        print(json.dumps({"sent_frames": 500, "received_frames": 490, "facts": {"budget": budget}}))
    """
    assert trial_of(tmp_path, body, loss_budget=loss_budget).facts["budget"] == told


def test_a_search_does_not_take_a_trial_that_was_stopped_early_for_a_fault_of_the_tester(tmp_path):
    body = """
        import json, sys
        spec = json.load(sys.stdin)
        frames, capacity_fps = spec["intended_frames"], 5000.0
        most = int(spec["loss_budget"] * frames)
        sent = int((most + 5) / max(1.0 - capacity_fps / spec["load_fps"], 1e-9))
        answer = {"sent_frames": frames, "effective_duration_s": spec["duration_s"]}
        answer["received_frames"] = min(frames, int(capacity_fps * spec["duration_s"]))
        if spec["loss_budget"] < 1.0 and sent < frames:
            answer |= {"sent_frames": sent, "received_frames": sent - most - 5}
            answer |= {"intended_frames": sent, "stopped_early": True}
        print(json.dumps(answer))
    """
    goal = SearchGoal.ndr(duration_s=10.0, width=0.1)
    search = ControlledSearch(Weir([goal], LoadRange(1000.0, 20_000.0)), frame_size_bytes=64)
    result = run_search(search, CommandTestbed(program(tmp_path, body)))
    assert any(trial.stopped_early for trial in result.trials)
    assert "repeat" not in [trial.spec.purpose for trial in result.trials]
    (found,) = result.goals
    assert found.regular
    assert found.lower.load_fps <= 5000.0 <= found.upper.load_fps


@pytest.mark.parametrize(
    ("sent", "received", "message"),
    [
        (500, 501, "received 501 frames of 500 sent"),
        (-1, 0, "sent_frames is negative"),
        (500, -2, "received_frames is negative"),
        (0, 0, "no frame was sent"),
    ],
)
def test_counts_that_contradict_each_other_are_impossible(tmp_path, sent, received, message):
    with pytest.raises(ImpossibleTrial, match=message):
        trial_of(tmp_path, printing({"sent_frames": sent, "received_frames": received}))


def test_a_program_that_took_no_time_is_impossible(tmp_path):
    answer = {"sent_frames": 500, "received_frames": 1, "effective_duration_s": 0.0}
    with pytest.raises(ImpossibleTrial, match="took 0 s"):
        trial_of(tmp_path, printing(answer))


def test_a_program_that_writes_without_end_is_stopped(tmp_path):
    with pytest.raises(TestbedError, match="wrote more than 1000000 bytes and was killed"):
        trial_of(tmp_path, "while True: print('frame ' * 1000)")


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 5.0
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def family(tmp_path: Path, *, parent_waits: bool) -> str:
    """A program with a child that sleeps, ignores all that can be ignored, and holds the pipes open."""
    return f"""
        import os, pathlib, signal, sys, time
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            time.sleep(600)
        pathlib.Path({str(tmp_path / "pids")!r}).write_text(f"{{os.getpid()}} {{child}}")
        print('{{"sent_frames": 500, "received_frames": 500}}', flush=True)
        if {parent_waits}:
            time.sleep(600)
        os._exit(0)
    """


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see processes")


@needs_proc
def test_a_program_that_hangs_is_killed_with_its_children(tmp_path):
    with pytest.raises(TrialTimeout, match=r"did not end within 1.5 s"):
        trial_of(tmp_path, family(tmp_path, parent_waits=True), grace_s=1.0)
    parent, child = map(int, (tmp_path / "pids").read_text().split())
    assert ends(parent)
    assert ends(child)


@needs_proc
def test_what_a_program_leaves_running_is_killed_and_not_waited_for(tmp_path):
    trial = trial_of(tmp_path, family(tmp_path, parent_waits=False))  # the child would sleep for ten minutes
    assert trial.received_frames == 500
    assert ends(int((tmp_path / "pids").read_text().split()[1]))


@needs_proc
def test_ctrl_c_kills_the_program(tmp_path):
    def interrupt(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(KeyboardInterrupt):
            trial_of(tmp_path, family(tmp_path, parent_waits=True))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert ends(int((tmp_path / "pids").read_text().split()[0]))


def test_a_missing_program_is_told_before_the_first_trial(tmp_path):
    with pytest.raises(InputError, match=r"no such program on the PATH; write './no-such-tester'"):
        CommandTestbed(["no-such-tester"])
    with pytest.raises(InputError, match="no such program"):
        CommandTestbed(["./tester"], directory=tmp_path)


def test_a_program_that_may_not_be_executed_is_told_before_the_first_trial(tmp_path):
    (tmp_path / "tester").write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match="not executable; 'chmod \\+x'"):
        CommandTestbed(["./tester"], directory=tmp_path)
    with pytest.raises(InputError, match="not executable"):
        CommandTestbed([str(tmp_path)])


def test_a_program_without_a_format_cannot_be_started(tmp_path):
    path = tmp_path / "tester"
    path.write_bytes(b"\0\1\2 no program")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(InputError, match="cannot be started"):
        CommandTestbed([str(path)]).trial(SPEC)


def test_a_missing_directory_is_told(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        CommandTestbed(["true"], directory=tmp_path / "nowhere")


def test_an_unknown_field_in_braces_is_told_with_the_known_ones():
    with pytest.raises(InputError, match="no field is called 'rate'; there are index, load_fps"):
        CommandTestbed(["true", "{rate}"])


def test_a_program_runs_in_its_directory(tmp_path):
    path = tmp_path / "tester"
    path.write_text('#!/bin/sh\npwd >&2\necho \'{"sent_frames": 1, "received_frames": 1}\'\n')
    path.chmod(0o755)
    trial = CommandTestbed(["./tester"], directory=tmp_path).trial(SPEC)
    assert os.path.realpath(str(trial.facts["stderr"])) == os.path.realpath(tmp_path)
