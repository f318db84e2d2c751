"""What an emulator reports of its lines and itself, and when that is to be doubted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weirlab.documents import fields_of
from weirlab.testbed.account import MachineAccount

LATENESS_EDGES_S = (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1)
"""Upper ends of the bins in which lateness is counted; one more bin holds what is later."""


LEAST_FOR_P99 = 100
"""Packets, for a 99th percentile that is not the latest of them alone."""
EMULATOR = "the emulator"


@dataclass(frozen=True)
class LineReport:
    """One direction of a hop, as it was."""

    hop: str
    direction: str
    """``forward`` (from near to far) or ``backward``."""
    name: str
    """What its chance depends on, besides the seed."""
    line: str
    """The direction as the compiled core takes it, as JSON."""
    counts: Mapping[str, int]
    """Packets: `arrived`, `lost`, `dropped` and `dropped_early` (by a full queue, by its management),
    `marked`, `duplicated`, `reordered`, `left`, and what went wrong:
    `refused` by the device, `unbuffered`, `device_drops`, `stack_drops` (no room before the far stack),
    joined and moved `whole`, not cut.
    """
    transmitters: tuple[Mapping[str, int], ...]
    """What each transmitter sent, traffic of others included."""
    lateness_s: Mapping[str, float] | None
    """Percentiles of how late packets were written; None without any."""
    lateness_counts: tuple[int, ...]
    """Packets by lateness, in bins that end at `LATENESS_EDGES_S`, and beyond."""
    record: Mapping[str, object]
    """Recorded arrivals and what became of them, as arrays; times in ps since the start."""

    @property
    def dropped(self) -> int:
        """Packets that its queue dropped, full or managed."""
        return self.counts["dropped"] + self.counts["dropped_early"]

    @property
    def written(self) -> int:
        """Packets whose lateness is known."""
        return sum(self.lateness_counts)

    @property
    def lateness_p99_s(self) -> float | None:
        """The 99th percentile of the lateness; None of fewer than 100 packets, of which one is more than
        1 %."""
        if self.lateness_s is None or self.written < LEAST_FOR_P99:
            return None
        return self.lateness_s["p99"]


@dataclass(frozen=True)
class PathReport:
    """How well a path was emulated."""

    real_time: bool
    """Whether the emulator ran under SCHED_FIFO."""
    elapsed_s: float
    on_cpu_s: float
    """How long of that the emulator was on its CPU."""
    joined: tuple[str, ...]
    """Transports (``tcp``, ``udp``) whose packets the devices gave and took joined, while the models saw each
    alone. None: every packet was read and written alone.
    """
    threshold_s: float
    """Lateness whose 99th percentile must not exceed this."""
    lines: tuple[LineReport, ...]
    account: MachineAccount
    """What else the machine did meanwhile, and how long the emulator waited for a CPU."""
    cpu: int | None = None
    """The emulator's. None: any."""
    stack_cpus: tuple[int, ...] = ()
    """CPUs on which the stacks took packets from the devices. Empty: within the emulator's writes, as on slow
    paths, where each packet then reaches its stack sooner and more evenly."""

    @property
    def disturbance(self) -> str:
        """What took time from the emulator: steal, run delay, softirq work that waited. Empty: nothing that
        matters, and lateness is the emulator's own."""
        return self.account.disturbance

    @property
    def degraded(self) -> tuple[str, ...]:
        """Why results on this path are to be doubted; empty when they are not."""
        return tuple(reason for line in self.lines for reason in self._doubts(line))

    @property
    def verdict(self) -> str:
        """Whether what was measured over the path is the path's, as half a sentence."""
        if self.degraded:
            return "do not rely on results over this path, for the reasons above"
        known = [line.lateness_p99_s for line in self.lines if line.lateness_p99_s is not None]
        if not known:
            return "too few packets to say how late they were"
        return f"the path was faithful: 99 % of the packets were at most {1e6 * max(known):.0f} us late"

    def _doubts(self, line: LineReport) -> list[str]:
        found = []
        place = f"{line.hop} {line.direction}"
        if line.lateness_p99_s is not None and line.lateness_p99_s > self.threshold_s:
            late, limit = 1e6 * line.lateness_p99_s, 1e6 * self.threshold_s
            found.append(
                f"{place}: 1 % of the packets were more than {late:.0f} us late (limit {limit:.0f} us)"
            )
        for count, words in (
            ("device_drops", "packets came faster than the emulator took them"),
            ("unbuffered", "packets found no buffer"),
            ("refused", "packets were refused by the far device"),
            ("stack_drops", "packets found the queue before the far stack full"),
            ("whole", "joined packets could not be cut into segments: each was one packet to the model"),
        ):
            if line.counts[count]:
                found.append(f"{place}: {line.counts[count]} {words}")
        return found

    def as_json(self) -> dict[str, object]:
        """The report without the records, as JSON values."""
        return {
            **fields_of(self, "real_time", "elapsed_s", "on_cpu_s", "cpu", "threshold_s", "disturbance"),
            "stack_cpus": list(self.stack_cpus),
            "joined": list(self.joined),
            "degraded": list(self.degraded),
            "account": account_facts(self.account),
            "lateness_edges_s": list(LATENESS_EDGES_S),
            "ways": [
                {
                    "hop": line.hop,
                    "direction": line.direction,
                    "counts": dict(line.counts),
                    "transmitters": [dict(reported) for reported in line.transmitters],
                    "lateness_s": None if line.lateness_s is None else dict(line.lateness_s),
                    "lateness_counts": list(line.lateness_counts),
                }
                for line in self.lines
            ],
        }


def account_facts(account: MachineAccount) -> dict[str, float | int | str | None]:
    """The account of a machine on which a path was emulated, in figures: times in s, None where the kernel
    does not tell."""
    return {**account.facts(), "emulator_waited_s": account.waits_s.get(EMULATOR)}
