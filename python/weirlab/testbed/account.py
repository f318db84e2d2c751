"""What else this machine did during a live measurement: the kernel's accounts, read before and after.

    before = Reading.now()
    ...                                        # the measurement
    account = (Reading.now() - before).with_waits({"the sender": 0.02})
    print(account.cpus[0].stolen_s, account.words())

A live result shows the machine as well as what was measured. The account says how much of each: time that a
hypervisor took away (*steal*), time of other programs and of interrupts, and how long work that was ready had
to wait. How long one's own threads waited (*run delay*), they must say themselves, before they end:
`thread_waits` for those of this process that still live, ``weir_live::host::ThreadTime`` in Rust.

A measurement is *undisturbed* where each of these took less than 0.5 % of its time: percentiles up to the
99th are then those of what was measured.

Linux only; elsewhere readings are empty. Nothing here needs a privilege.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

PROC = Path("/proc")
SAMPLE_S = 0.25
"""How long `busy_now` looks."""
BUSY_SHARE = 0.25
"""Share of one CPU from which on what others take of it is worth a warning."""
WORTH_TELLING = 0.005
"""Share of a measurement below which the words leave something out: the kernel counts in ticks of 10 ms."""


@dataclass(frozen=True, kw_only=True)
class CpuTime:
    """Time of one CPU [s], counted by the kernel in ticks of mostly 10 ms.

    Source: Linux accounts, proc.rst, section 1.7.
    """

    programs_s: float = 0.0
    """User, nice and system: programs, one's own threads among them."""
    interrupts_s: float = 0.0
    """Interrupts and what they leave to be done (softirq), forwarding of frames among it."""
    stolen_s: float = 0.0
    """A hypervisor gave the CPU to another machine."""
    idle_s: float = 0.0

    def __sub__(self, before: CpuTime) -> CpuTime:
        return CpuTime(
            programs_s=max(0.0, self.programs_s - before.programs_s),
            interrupts_s=max(0.0, self.interrupts_s - before.interrupts_s),
            stolen_s=max(0.0, self.stolen_s - before.stolen_s),
            idle_s=max(0.0, self.idle_s - before.idle_s),
        )

    def __add__(self, other: CpuTime) -> CpuTime:
        return CpuTime(
            programs_s=self.programs_s + other.programs_s,
            interrupts_s=self.interrupts_s + other.interrupts_s,
            stolen_s=self.stolen_s + other.stolen_s,
            idle_s=self.idle_s + other.idle_s,
        )


@dataclass(frozen=True, kw_only=True)
class MachineAccount:
    """What a machine did in a time."""

    duration_s: float
    cpus: Mapping[int, CpuTime] = field(default_factory=dict)
    """By number of the CPU. Empty where the kernel does not report it."""
    softirq_wait_s: Mapping[int, float] = field(default_factory=dict)
    """By CPU, how long softirq work that the kernel had left to a thread (ksoftirqd) waited for its CPU.
    Empty where those threads cannot be seen, as in most containers."""
    softirq_ran_s: Mapping[int, float] = field(default_factory=dict)
    """The same, how long that thread ran. Interrupts do most of the work without it."""
    waiting_s: float | None = None
    """How long at least one program of the machine was ready and waited for a CPU. None: not known."""
    own_s: float = 0.0
    """CPU time of this process, and of those that it started and that have ended."""
    waits_s: Mapping[str, float] = field(default_factory=dict)
    """How long threads of the measurement were ready and waited for a CPU, by a name for the words."""

    def with_waits(self, waits_s: Mapping[str, float | None]) -> MachineAccount:
        """The same, with how long threads of the measurement waited; None: the kernel does not report it."""
        reported = {name: waited_s for name, waited_s in waits_s.items() if waited_s is not None}
        return replace(self, waits_s={**self.waits_s, **reported})

    @property
    def total(self) -> CpuTime:
        """Over all CPUs."""
        return sum(self.cpus.values(), CpuTime())

    def facts(self) -> dict[str, float | int | str | None]:
        """The account in figures for a table or a log, all times in seconds of CPU or of waiting, ``None``
        where the kernel does not report it: ``programs_s interrupts_s stolen_s idle_s`` over all CPUs,
        ``softirq_wait_s`` over all CPUs, ``waiting_s``."""
        total = asdict(self.total) if self.cpus else dict.fromkeys(asdict(CpuTime()))
        return {
            **total,
            "softirq_wait_s": sum(self.softirq_wait_s.values()) if self.softirq_wait_s else None,
            "waiting_s": self.waiting_s,
        }

    @property
    def disturbance(self) -> str:
        """What others took from the measurement, in one line: steal, run delay and softirq work that waited.
        Empty where nothing of it took 0.5 % of the time. Programs that use CPUs which nobody waits for
        disturb nobody.
        """
        return ", ".join(self._taken())

    def words(self) -> str:
        """The disturbance, and what other programs used; empty for a machine that did nothing else."""
        return ", ".join([*self._taken(), *self._others()])

    def _taken(self) -> Iterator[str]:
        if self.duration_s <= 0.0:
            return
        capacity_s, stolen_s = len(self.cpus) * self.duration_s, self.total.stolen_s
        if stolen_s > WORTH_TELLING * capacity_s:
            yield f"a hypervisor took {stolen_s / capacity_s:.1%} of the CPU time away"
        for name, waited_s in self.waits_s.items():
            if waited_s > WORTH_TELLING * self.duration_s:
                yield f"{name} waited {waited_s / self.duration_s:.1%} of the time for a CPU"
        waited_s = sum(self.softirq_wait_s.values())
        if waited_s > WORTH_TELLING * capacity_s:
            yield f"the kernel's network work waited {waited_s / self.duration_s:.1%} of the time for a CPU"

    def _others(self) -> Iterator[str]:
        count = len(self.cpus)
        if not count or self.duration_s <= 0.0:
            return
        others_s = self.total.programs_s - self.own_s
        if others_s > WORTH_TELLING * count * self.duration_s:
            yield f"other programs used {others_s / self.duration_s:.2g} of {count} CPUs"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The kernel's sums since the machine was started. Two of them make a `MachineAccount`."""

    at_s: float
    cpus: Mapping[int, CpuTime]
    softirq: Mapping[int, tuple[float, float]]
    """Of ksoftirqd, by CPU: how long it ran, and how long it waited [s]."""
    waiting_s: float | None
    own_s: float = 0.0

    @classmethod
    def now(cls, proc: Path = PROC) -> Reading:
        """Read them: some 0.2 ms of CPU time."""
        reading = cls.of(time.monotonic(), [_text(path) for path in cls.files(proc)], proc)
        return replace(reading, own_s=sum(os.times()[:4]))

    @staticmethod
    def files(proc: Path = PROC) -> list[Path]:
        """What is read, for whoever reads it at an instant that Python does not know."""
        threads = _softirq_threads(proc).values()
        return [
            proc / "stat",
            proc / "pressure" / "cpu",
            *(proc / str(thread) / "schedstat" for thread in threads),
        ]

    @classmethod
    def of(cls, at_s: float, texts: Sequence[str], proc: Path = PROC) -> Reading:
        """The reading of ``files`` whose contents are ``texts``, empty where a file could not be read."""
        stat, pressure, *threads = texts
        found = zip(_softirq_threads(proc), map(_thread_times, threads), strict=True)
        return cls(
            at_s=at_s,
            cpus=_cpu_times(stat),
            softirq={cpu: times for cpu, times in found if times is not None},
            waiting_s=_pressure_s(pressure),
        )

    def __sub__(self, before: Reading) -> MachineAccount:
        waiting_s = None
        if self.waiting_s is not None and before.waiting_s is not None:
            waiting_s = max(0.0, self.waiting_s - before.waiting_s)
        softirq = {
            cpu: [max(0.0, now_s - then_s) for now_s, then_s in zip(times, before.softirq[cpu], strict=True)]
            for cpu, times in self.softirq.items()
            if cpu in before.softirq
        }
        return MachineAccount(
            duration_s=self.at_s - before.at_s,
            cpus={cpu: times - before.cpus[cpu] for cpu, times in self.cpus.items() if cpu in before.cpus},
            softirq_wait_s={cpu: waited_s for cpu, (_, waited_s) in softirq.items()},
            softirq_ran_s={cpu: ran_s for cpu, (ran_s, _) in softirq.items()},
            waiting_s=waiting_s,
            own_s=max(0.0, self.own_s - before.own_s),
        )


def thread_waits(process: int | None = None, proc: Path = PROC) -> dict[int, float]:
    """How long each thread of a process (None: of this one) that still lives has waited for a CPU since it
    was made [s], by its number; empty where the kernel does not report it."""
    tasks = proc / ("self" if process is None else str(process)) / "task"
    try:
        threads = [int(path.name) for path in tasks.iterdir()]
    except OSError:
        return {}
    times = {thread: _thread_times(_text(tasks / str(thread) / "schedstat")) for thread in threads}
    return {thread: found[1] for thread, found in times.items() if found is not None}


def frequencies(proc: Path = PROC) -> dict[int, float]:
    """Clock rate of each CPU now [Hz], as the kernel says; a virtual machine sees a constant. Empty where
    it does not say."""
    found, cpu = {}, None
    for line in _text(proc / "cpuinfo").splitlines():
        name, _, value = line.partition(":")
        match name.strip():
            case "processor" if value.strip().isdecimal():
                cpu = int(value)
            case "cpu MHz" if cpu is not None:
                found[cpu] = float(value) * 1e6
    return found


def busy_now(cpus: Collection[int] | None = None, sample_s: float = SAMPLE_S) -> str:
    """What speaks against a live measurement that begins now, as a sentence; empty when nothing does. Takes
    ``sample_s``.

    Args:
        cpus: Those that the measurement will use. None: all that this process may run on.
    """
    before = Reading.now()
    time.sleep(sample_s)
    account = Reading.now() - before
    mine = sorted(_usable_cpus() if cpus is None else cpus)
    taken = {
        cpu: (account.cpus[cpu].programs_s + account.cpus[cpu].stolen_s) / account.duration_s
        for cpu in mine
        if cpu in account.cpus
    }
    busy = {cpu: share for cpu, share in taken.items() if share > BUSY_SHARE}
    if not busy:
        return ""
    which = ", ".join(f"CPU {cpu} {min(share, 1.0):.0%}" for cpu, share in busy.items())
    return f"this machine does other work now ({which}): live results will be lower and less certain"


def _usable_cpus() -> Collection[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()


def _text(path: Path) -> str:
    """The file's content; empty where it does not exist or may not be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _cpu_times(text: str) -> dict[int, CpuTime]:
    """Of the lines ``cpuN user nice system idle iowait irq softirq steal guest guest_nice``, in ticks. Time
    of guests is part of that of their programs."""
    found = {}
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01
    for line in text.splitlines():
        name, *numbers = line.split() or [""]
        if not (name.startswith("cpu") and name[3:].isdecimal()):
            continue
        ticks = [int(number) for number in numbers[:8]]
        user, nice, system, idle, iowait, irq, softirq, steal = (*ticks, *[0] * (8 - len(ticks)))
        found[int(name[3:])] = CpuTime(
            programs_s=(user + nice + system) * tick_s,
            interrupts_s=(irq + softirq) * tick_s,
            stolen_s=steal * tick_s,
            idle_s=(idle + iowait) * tick_s,
        )
    return found


def _pressure_s(text: str) -> float | None:
    """The line ``some avg10=... total=MICROSECONDS``.

    Source: Linux accounts, psi.rst, Pressure interface."""
    for line in text.splitlines():
        if line.startswith("some ") and "total=" in line:
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def _thread_times(text: str) -> tuple[float, float] | None:
    """How long a thread ran and waited [s]: ``ON_CPU_NS WAITED_NS TURNS``. A kernel without the account
    prints zeros.

    Source: Linux accounts, sched-stats.rst, /proc/<pid>/schedstat."""
    fields = text.split()
    if len(fields) < 2 or fields[0] == "0":
        return None
    return int(fields[0]) / 1e9, int(fields[1]) / 1e9


@functools.cache
def _softirq_threads(proc: Path) -> dict[int, int]:
    """The thread of each CPU that does softirq work which was put off, by CPU."""
    found = {}
    for directory in proc.glob("[1-9]*"):
        name = _text(directory / "comm").strip()
        if name.startswith("ksoftirqd/") and name[10:].isdecimal():
            found[int(name[10:])] = int(directory.name)
    return found
