"""How well this machine keeps time."""

from __future__ import annotations

from collections.abc import Iterator

from weirlab import _core
from weirlab.doctor.checks import Check, checked, on_linux, read
from weirlab.testbed.account import CpuTime, MachineAccount, Reading, thread_waits


def checks(*, measure: bool) -> Iterator[Check]:
    """Where time comes from; with `measure` how late threads wake, which takes longest."""
    if not on_linux():
        return
    source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    slow = source in ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
    yield checked(
        "time source",
        str(source),
        lacks=None if source is None else slow,
        means="reading the clock costs as much as sending a frame",
        remedy="boot with clocksource=tsc where the machine allows it",
    )
    if not measure:
        return
    before, waits = Reading.now(), thread_waits()
    quality = _core.clock_quality()
    account = Reading.now() - before
    waited = [waited_s - waits.get(thread, 0.0) for thread, waited_s in thread_waits().items()]
    yield _taken(account.with_waits({"a normal thread": max(waited, default=None)}), before)
    normal, real_time = quality["overshoot_ns"], quality["real_time_overshoot_ns"]
    yield checked(
        "clock",
        f"resolution {quality['resolution_ns']} ns, {quality['reading_ns']} ns to read",
        lacks=quality["resolution_ns"] > 1_000 or quality["reading_ns"] > 1_000,
        means="departures and delays are coarser than a microsecond",
        remedy="another machine: the clock is part of it",
    )
    yield checked(
        "sleep",
        f"wakes {_overshoot(normal)} late",
        lacks=normal["p99"] > 5_000_000,
        means="normal threads wait long for a CPU: the machine is busy",
        remedy="end other programs",
    )
    yield checked(
        "real-time sleep",
        f"wakes {_overshoot(real_time)} late" if real_time else "no real-time priority",
        lacks=real_time is None or real_time["p99"] > 1_000_000,
        means="live loads come in bursts after pauses; results carry the lateness",
        remedy="run with sudo, on a dedicated machine, or with CPUs that a hypervisor does not share",
    )


def _taken(account: MachineAccount, since_boot: Reading) -> Check:
    """What others took from the time in which the clock was measured, and what a hypervisor took so far."""
    total = sum(since_boot.cpus.values(), CpuTime())
    all_s = total.programs_s + total.interrupts_s + total.stolen_s + total.idle_s
    stolen = (
        f"{total.stolen_s / all_s:.2%} stolen by a hypervisor since the start" if all_s else "steal unknown"
    )
    return checked(
        "taken by others",
        f"in {account.duration_s:.1f} s: {account.disturbance or 'nothing that matters'}; {stolen}",
        lacks=bool(account.disturbance) if account.cpus else None,
        means="emulated packets are late, live loads uneven; results say how much was taken from them",
        remedy="end other programs; steal ends on a machine whose CPUs a hypervisor does not share",
    )


def _overshoot(late: dict[str, int]) -> str:
    return f"{late['p50'] / 1e3:.0f} us (median), {late['p99'] / 1e3:.0f} us (99 %)"
