"""The study `half-loaded`: how long frames of one size wait at a port that is used half of the time.

By the formula of Pollaczek and Khinchine for equal times of service and random arrivals, a frame waits
rho / (2 (1 - rho)) times of service on average: half of one at a load of
1/2. By Little's law 1/4 of a frame waits.

Source: Kleinrock 1975, section 5.6
"""

from __future__ import annotations

import weirlab
from weirlab.reproductions import Effort, Findings, Reproduction, Row
from weirlab.stats import mean_interval

__all__ = ["STUDY", "reproduce"]

STUDY = Reproduction(
    title="The mean wait at a half loaded port",
    source="Kleinrock 1975, section 5.6",
    rows="half_loaded:reproduce",
)

FRAME_BYTES = 1250
SCENARIO = {
    "weirlab": 1,
    "name": "half-loaded",
    "network": {"kind": "star", "hosts": 2, "link": {"rate": "1 Gbit/s"}},
    "traffic": {
        "load": {
            "from": "host-0",
            "to": "host-1",
            "source": {"kind": "poisson", "load": "50 %", "frame_size": f"{FRAME_BYTES} B"},
        }
    },
    "run": {"duration": "200 ms"},
    "record": {"own": {"queue": "host-0->*", "every": "1 ms"}},
    "measure": {"waiting": {"kind": "mean-queue", "of": "host-0->*", "window": "20 ms .. 200 ms"}},
}


def reproduce(effort: Effort) -> Findings:
    """Simulate, and compare."""
    found = weirlab.run(SCENARIO, seed=effort.seed, replicates=10 if effort.quick else 40)
    queues = found.measures.get_column("value").to_numpy() / FRAME_BYTES
    mean = mean_interval(queues, confidence=0.999)
    row = Row(
        name="frames that wait, on average",
        published=0.25,
        ours=mean.mean,
        tolerance=mean.half_width,
        basis="99.9 % interval of ours",
        error=float(queues.std(ddof=1)) / len(queues) ** 0.5,
        unit="frames",
    )
    return Findings.of("half-loaded", effort, rows=[row])
