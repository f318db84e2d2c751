"""Ctrl-C while a command starts."""

import os
import signal
import subprocess
import sys

import pytest

from weirlab.cli import app

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers of POSIX")

INTERRUPT = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def run(code, place):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=place, capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(place), *sys.path])},
    )  # fmt: skip


def test_before_a_command_begins_it_ends_the_process_with_a_message(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPT)
    code = "from weirlab.cli.interruptions import leave_at_once\nleave_at_once()\nimport interrupted\n"
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "weir: interrupted\n")


def test_a_module_that_is_being_loaded_is_loaded_to_its_end(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPT + "print('loaded')\n")
    code = """
import time
from weirlab.cli.interruptions import raise_when_made
raise_when_made()
try:
    import interrupted
    time.sleep(50)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("loaded\ninterrupted\n", "")


def test_a_model_that_is_being_made_is_made_to_its_end(tmp_path):
    """pydantic would say that its schema is wrong."""
    code = f"""
import time
from pydantic import BaseModel
from weirlab.cli.interruptions import raise_when_made
raise_when_made()

class Part:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        {INTERRUPT.replace(chr(10), "; ")}
        return handler.generate_schema(int)

class Noted(BaseModel):
    @classmethod
    def __pydantic_init_subclass__(cls):
        made.append(cls)

made = []
try:
    class Whole(Noted):  # which may be interrupted before it has its name
        part: Part
    time.sleep(50)
except KeyboardInterrupt:
    print("interrupted,", made[0](part=3))
"""
    done = run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("interrupted, part=3\n", "")


def test_ctrl_c_stays_ignored_where_it_was(tmp_path):
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from weirlab.cli import interruptions
interruptions.leave_at_once()
interruptions.raise_when_made()
{INTERRUPT}
print("goes on")
"""
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


def test_nothing_that_comes_at_the_end_changes_the_exit_code(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPT)
    code = """
import os, signal, sys
from weirlab.cli import interruptions
interruptions._AGAIN_S = 60.0
interruptions.raise_when_made()
import interrupted
print(signal.getitimer(signal.ITIMER_REAL)[0] > 0)
interruptions.ignore()
print(signal.getitimer(signal.ITIMER_REAL)[0] > 0)
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGINT)
sys.exit(4)
"""
    done = run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (4, "True\nFalse\n", "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_interruption_before_the_command_begins_is_told(weir, monkeypatch, options):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(app._Command, "parse_args", interrupted)
    outcome = weir("check", "incast", *options)
    assert (outcome.code, outcome.err) == (130, "weir: interrupted\n")
    assert bool(outcome.out) == bool(options)
