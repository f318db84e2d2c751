"""What is wrong with the text of a scenario, for tests of messages."""

from pathlib import Path

import pytest

from weirlab.errors import ScenarioError
from weirlab.scenario import loads

GOOD = """\
weirlab: 1
name: incast
network: {kind: star, hosts: 4, link: {rate: 10 Gbit/s, delay: 0.5 us}}
traffic:
  load:
    from: host-[0-2]
    to: host-3
    source: {kind: poisson, load: 49 %, frame_size: 1500 B}
run: {duration: 10 ms}
"""

SEARCH = """\
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 10.6 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: [10 kframe/s, 400 kframe/s]
  goals: {NDR: {loss: 0 %}}
  trial: {duration: 10 s}
"""


def complaints(text: str) -> list[str]:
    """The lines of the error."""
    with pytest.raises(ScenarioError) as caught:
        loads(text, file="f.yaml")
    return str(caught.value).splitlines()


def cases(name: str) -> dict[str, tuple[str, ...]]:
    """What is spoilt, as `scenario/NAME.txt` lists it: by the mistake, what goes (-), what comes (+), and the
    message. `\\n` is the end of a line, `\\s` a blank at the end."""
    text = (Path(__file__).parent / "scenario" / f"{name}.txt").read_text(encoding="utf-8")
    found = {}
    for case in text.strip("\n").split("\n\n"):
        mistake, *lines = (line.replace("\\n", "\n").replace("\\s", " ") for line in case.split("\n"))
        found[mistake] = (*(line[2:] for line in lines[:-1]), lines[-1])
    return found
