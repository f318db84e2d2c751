"""Any program as a testbed: the trial goes in as arguments and as JSON, one JSON object comes out.

    run: [./my-tester, --load, "{load_fps}", --seconds, "{duration_s}"]

Fields in braces are replaced (`{{` and `}}` are braces); the same fields stand in one JSON object on standard
input. The program prints one JSON object and ends with code 0:

    {"sent_frames": 1000000, "received_frames": 999990}

Optional besides these: `intended_frames duplicated_frames reordered_frames effective_duration_s
offered_load_fps stopped_early`, `latency_s` (percentiles by name), `directions` (the counts of each, by name:
`{"east": {"sent_frames": 500000, "received_frames": 499990}, ...}`) and `facts` (what else should be kept).
A program that knows what else its machine did says so in `disturbance` (text), and in `disturbed_frames` how
many of the lost frames that may have cost: such a trial is made again.
A program may stop early once it has lost more than `loss_budget` of the frames that the whole trial intends,
or by the time `look_s` more than that share of those intended until then; it then says so, and how many
frames it intended until it stopped (`intended_frames`).
Whatever it writes to standard error is kept with the trial. It runs in a process group of its own, which is
killed when it takes too long, writes too much, leaves something running, or outlives the search: two testers
at once would measure each other. Until then it holds the lock of the search's log."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from weirlab.errors import ImpossibleTrial, InputError, Problem, TestbedError, TrialTimeout, UnsupportedError
from weirlab.files import held_locks
from weirlab.testbed.base import Trial, TrialSpec
from weirlab.testbed.command_answer import AnswerError, answer_of, cut, readable, trial_of
from weirlab.testbed.mixes import Mix, mix_of, mix_text, settle_s_of
from weirlab.testbed.refusals import COMMAND, only_the_load
from weirlab.testbed.watchdog import Watchdog

if TYPE_CHECKING:
    from weirlab.runs import Run
    from weirlab.scenario import Scenario


MOST_OUTPUT_BYTES = 1_000_000
"""Standard output beyond this ends the trial."""
KEPT_ERROR_BYTES = 4_000
"""How much of the end of standard error is kept."""

_FIELDS: Mapping[str, Callable[[TrialSpec], float | int | str]] = {
    "index": lambda spec: spec.index,
    "load_fps": lambda spec: spec.intended_load_fps,
    "load_per_direction_fps": lambda spec: spec.load_per_direction_fps,
    "duration_s": lambda spec: spec.duration_s,
    # Of several sizes the mean.
    "frame_size_bytes": lambda spec: spec.frame_size_bytes,
    "directions": lambda spec: spec.directions,
    "intended_frames": lambda spec: spec.intended_frames,
    "elapsed_s": lambda spec: spec.elapsed_s,
    "purpose": lambda spec: spec.purpose,
    # 1: nothing ends the trial early.
    "loss_budget": lambda spec: 1.0 if spec.loss_budget is None else spec.loss_budget,
    # The whole duration: there is no earlier look.
    "look_s": lambda spec: spec.duration_s if spec.look_s is None else spec.look_s,
}
_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z_0-9]*)\}")
_SIZES, _SETTLE = "frame_sizes", "settle_s"
"""Fields that are the same for all trials."""


class CommandTestbed:
    """A tester that is a program."""

    def __init__(
        self,
        run: Sequence[str],
        *,
        directory: Path | None = None,
        settle_s: float = 0.5,
        grace_s: float = 60.0,
        mix: Mix | None = None,
    ) -> None:
        """Args:
            run: The program and its arguments, with fields in braces. No shell is involved.
            directory: Where it runs; a program given by a relative path is looked for there. None: where we
            are.
            settle_s: What the program has to wait after the last frame before it counts.
            grace_s: How much longer than the trial's duration the program may take.
            mix: Frame sizes with their weights. None: those of the trials.

        Raises InputError when the program is missing or not executable, or a field in braces is unknown.
        """
        if not run:
            raise InputError("a command testbed needs a program to run")
        if directory is not None and not directory.is_dir():
            raise InputError(f"{directory}: no such directory")
        for argument in run:
            _check_braces(argument)
        self._program = _found(run[0], directory)
        self._arguments = list(run[1:])
        self._name = _name(self._program, self._arguments, directory)
        self._directory = directory
        self._settle_s = settle_s
        self._grace_s = grace_s
        self._mix = mix
        self._watchdog = Watchdog()

    def refuses(self, scenario: Scenario) -> list[Problem]:
        """All but a constant load: a program receives loads, durations and frame sizes, nothing else. And
        what is wrong with the program itself."""
        return refusals(scenario)

    def run(self, scenario: Scenario, *, seeds: Sequence[int]) -> Run:  # noqa: ARG002 (the protocol's name)
        """Refused: a program measures trials."""
        message = "a command is measured by a search; write 'kind: sim' and a network to simulate"
        raise UnsupportedError([scenario.problem_at(("testbed",), message)])

    def trial(self, spec: TrialSpec) -> Trial:
        """Run the program once. Raises TrialTimeout, ImpossibleTrial or another TestbedError when it gives no
        believable result, InputError when it cannot be started."""
        fields = {name: value(spec) for name, value in _FIELDS.items()}
        fields |= {_SIZES: mix_text(self._mix or ((spec.frame_size_bytes, 1),)), _SETTLE: self._settle_s}
        command = [self._program, *(_filled(argument, fields) for argument in self._arguments)]
        begin_s = time.monotonic()
        timeout_s = spec.duration_s + self._grace_s
        name = f"trial {spec.index}: {self._name}"
        output, errors = _call(command, json.dumps(fields), self._directory, timeout_s, name, self._watchdog)
        took_s = time.monotonic() - begin_s
        try:
            return trial_of(spec, answer_of(output), took_s, errors)
        except AnswerError as error:
            raise TestbedError(f"{name} {cut(str(error))}{_said(errors)}") from None
        except ImpossibleTrial as error:
            printed = cut(output.decode(errors="replace").strip())
            text = f"{cut(str(error))}; {self._name} printed {printed}{_said(errors)}"
            raise ImpossibleTrial(text) from None

    def close(self) -> None:
        """End what watches over the program. May be called twice; nothing else outlives a trial."""
        self._watchdog.close()


def refusals(scenario: Scenario) -> list[Problem]:
    """Every part of ``scenario`` that a program cannot honour; an argument with a field that does not exist,
    a program or a directory that is missing."""
    from weirlab.scenario.testbeds import Command

    problems = only_the_load(scenario, COMMAND)
    testbed = scenario.testbed
    assert isinstance(testbed, Command)
    for place, argument in enumerate(testbed.run):
        with _told_at(scenario, ("testbed", "run", place), problems):
            _check_braces(argument)
    directory = directory_of(scenario)
    if not directory.is_dir():
        problems.append(scenario.problem_at(("testbed", "directory"), f"{directory}: no such directory"))
        return problems
    with _told_at(scenario, ("testbed", "run", 0), problems):
        _found(testbed.run[0], directory)
    return problems


def opened(scenario: Scenario) -> CommandTestbed:
    """The program, ready to be started for each trial."""
    from weirlab.scenario.testbeds import Command

    assert isinstance(scenario.testbed, Command)
    return CommandTestbed(
        scenario.testbed.run,
        directory=directory_of(scenario),
        settle_s=settle_s_of(scenario),
        grace_s=scenario.testbed.timeout.s,
        mix=mix_of(scenario),
    )


def directory_of(scenario: Scenario) -> Path:
    """Where the program of ``scenario`` runs."""
    from weirlab.scenario.testbeds import Command

    assert isinstance(scenario.testbed, Command)
    beside = Path(scenario.file).parent if scenario.file else Path()
    return beside / (scenario.testbed.directory or "")


@contextlib.contextmanager
def _told_at(scenario: Scenario, path: tuple[str | int, ...], problems: list[Problem]) -> Iterator[None]:
    """What is wrong in the block becomes a problem with its place."""
    try:
        yield
    except InputError as error:
        problems.append(scenario.problem_at(path, str(error)))


def _found(program: str, directory: Path | None) -> str:
    """The program's path; absolute when it is given by a relative one."""
    if os.sep in program:
        path = ((directory or Path()) / program).absolute()
        if not path.exists():
            raise InputError(f"{path}: no such program")
        if path.is_dir() or not os.access(path, os.X_OK):
            raise InputError(f"{path}: not executable; 'chmod +x' makes it so, or name its interpreter first")
        return str(path)
    path_or_none = shutil.which(program)
    if path_or_none is None:
        raise InputError(
            f"{program}: no such program on the PATH; write './{program}' for one next to the scenario"
        )
    return path_or_none


def _name(program: str, arguments: Sequence[str], directory: Path | None) -> str:
    """What messages call the program: its path, and the script where it interprets one."""
    script = arguments[0] if arguments else ""
    with contextlib.suppress(OSError):  # of an argument that is too long for a name
        if script and ((directory or Path()) / script).is_file():
            return f"{program} {script}"
    return program


def _check_braces(argument: str) -> None:
    """Raise InputError where an argument has a field in braces that does not exist."""
    fields = [*_FIELDS, _SIZES, _SETTLE]
    for match in _BRACES.finditer(argument):
        if match[1] is not None and match[1] not in fields:
            raise InputError(f"{argument!r}: no field is called {match[1]!r}; there are {', '.join(fields)}")


def _filled(argument: str, fields: Mapping[str, object]) -> str:
    """The argument with its fields replaced, all of which exist."""

    def fill(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        value = fields[match[1]]
        return repr(value) if isinstance(value, float) else str(value)

    return _BRACES.sub(fill, argument)


def _call(
    command: Sequence[str],
    given: str,
    directory: Path | None,
    timeout_s: float,
    name: str,
    watchdog: Watchdog,
) -> tuple[bytes, str]:
    """Standard output, and the end of standard error. `name`: of the trial and the program, for messages."""
    watchdog.start()
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=held_locks(),
        )
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be started ({error.strerror or error})") from error
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("all three are pipes")
    with watchdog.watching(process.pid):
        output = _Collected(process.stdout, MOST_OUTPUT_BYTES, on_excess=lambda: _kill(process))
        errors = _Collected(process.stderr, KEPT_ERROR_BYTES)
        timed_out = False
        try:
            # A program that does not read its input closes the pipe at any time.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(given.encode())
                process.stdin.flush()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _kill(process)
            process.wait()
            output.finish()
            errors.finish()
    said = errors.content.decode(errors="replace").strip()
    if timed_out:
        raise TrialTimeout(f"{name} did not end within {timeout_s:g} s and was killed{_said(said)}")
    if output.excess:
        raise TestbedError(f"{name} wrote more than {MOST_OUTPUT_BYTES} bytes and was killed{_said(said)}")
    if process.returncode:
        how = (
            f"ended with code {process.returncode}"
            if process.returncode > 0
            else f"was killed by {_signal_name(-process.returncode)}"
        )
        raise TestbedError(f"{name} {how}{_said(said)}")
    return output.content, said


class _Collected:
    """What arrives on a pipe, read by a thread of its own: its beginning up to a limit, or its end."""

    def __init__(self, pipe: IO[bytes], limit: int, on_excess: Callable[[], None] | None = None) -> None:
        self.content = b""
        self.excess = False
        self._pipe, self._limit, self._on_excess = pipe, limit, on_excess
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):  # closed by finish()
            while block := os.read(self._pipe.fileno(), 65536):
                self.content += block
                if len(self.content) > self._limit:
                    self.excess = True
                    self.content = self.content[-self._limit :]
                    if self._on_excess:
                        self._on_excess()
                        return

    def finish(self) -> None:
        """The process has ended. A grandchild in another session may still hold the pipe: it is not waited
        for."""
        self._thread.join(1.0)
        if not self._thread.is_alive():
            self._pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _said(errors: str) -> str:
    """The end of standard error, for a message."""
    return f"; it said: {readable(errors.splitlines()[-1][-200:])}" if errors else ""
