"""The command, in this process and in one of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from weirlab.cli.app import execute

RUN = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 60 %, frame_size: 1000 B}}
run: {duration: 2 ms}
record: {out: {queue: switch-0->host-2, every: 100 us}}
measure: {loss: {kind: loss-ratio, of: a}}
"""
STUDY = RUN + "study: {replicates: 2, factors: {traffic.a.source.load: [30 %, 60 %]}}\n"
SEARCH = """
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: 10 kframe/s .. 3 Mframe/s
  goals: {NDR: {loss: 0 %}, PDR: {loss: 0.5 %}}
  trial: {duration: 10 s}
  algorithm: {kind: mdr}
"""


@dataclass(frozen=True)
class Outcome:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one document on stdout; anything else there is an error."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


Command = Callable[..., Outcome]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own directory with three scenarios in it, in which the commands run."""
    for name, text in (("run", RUN), ("study", STUDY), ("search", SEARCH)):
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEIRLAB_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def weir(place: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process."""

    def command(*words: str | Path) -> Outcome:
        capsys.readouterr()
        code = execute([str(word) for word in words])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return command


@pytest.fixture
def weir_process(place: Path) -> Callable[..., Outcome]:
    """The command in a process of its own; once `interrupt_when` holds, it is sent `interrupt`: Ctrl-C."""

    def command(
        *words: str,
        interrupt_when: Callable[[], bool] | None = None,
        interrupt: signal.Signals = signal.SIGINT,
        env: dict[str, str] | None = None,
    ) -> Outcome:
        process = subprocess.Popen(
            [sys.executable, "-m", "weirlab", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            text=True,
        )
        try:
            if interrupt_when is not None:
                deadline = time.monotonic() + 300
                while not interrupt_when():
                    assert process.poll() is None, process.communicate()
                    assert time.monotonic() < deadline
                    time.sleep(0.02)
                process.send_signal(interrupt)
            out, err = process.communicate(timeout=300)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return Outcome(process.returncode, out, err)

    return command
