"""The machine, and what is installed on it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from weirlab import _core
from weirlab.doctor.checks import LIVE_ONLY, NEEDS_LINUX, Check, checked, on_linux


def checks() -> Iterator[Check]:
    """The platform, Python and packages, CPUs, memory, other work."""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield checked("platform", system, lacks=not on_linux(), means=LIVE_ONLY, remedy=NEEDS_LINUX)
    version = f"{platform.python_implementation()} {platform.python_version()}"
    yield checked(
        "Python",
        version,
        lacks=sys.version_info < (3, 11),
        means="Weirlab is made for 3.11 and later",
        remedy="install a newer Python",
    )
    yield checked(
        "compiled core",
        f"{_core.version()}, {'release' if _core.is_release() else 'debug'} build",
        lacks=not _core.is_release(),
        means="simulations take ten times as long, and a live sender sends less",
        remedy="maturin develop --release",
    )
    yield _place()
    yield _cpus()
    yield from _memory_and_load()
    for name, modules, what in (
        ("report packages", ("altair", "jinja2", "vl_convert"), "no plots and no HTML reports: tables only"),
        ("view packages", ("starlette", "uvicorn"), "no results in the browser: 'weir view'"),
        ("live packages", ("pyroute2",) if on_linux() else (), LIVE_ONLY),
    ):
        yield _packages(name, modules, what)


def _place() -> Check:
    """Whether other users may start this Python and read this package, each of them below all its parents."""
    roots = {Path(sys.executable).absolute(), Path(sys.prefix).absolute(), Path(__file__).resolve().parent}
    above = sorted({place for root in roots for place in (root, *root.parents)})
    closed = next(
        (place for place in above if place.is_dir() and not place.stat().st_mode & stat.S_IXOTH), None
    )
    return checked(
        "installed",
        f"in {sys.prefix}" + (f": {closed} is closed to other users" if closed else ""),
        # The owner of a private place may mean it so; root installs for all.
        lacks=closed is not None and on_linux() and os.geteuid() == 0,
        means="ordinary users cannot run weir, nor can programs that become the user who called sudo",
        remedy="install it where all may read, such as: python3 -m venv /opt/weirlab",
    )


def _cpus() -> Check:
    count = len(os.sched_getaffinity(0)) if on_linux() else os.cpu_count() or 1
    return checked(
        "CPUs",
        f"{count} usable" + (": the receiver shares the router's" if count == 2 and on_linux() else ""),
        lacks=count < 2,
        means=(
            "a live router on the only CPU forwards inside the sender's own system calls and never loses: a "
            "search on 'netns' ends with 'no upper bound seen'"
        ),
        remedy="give the machine a second CPU; with three or more the receiver has its own",
    )


def _memory_and_load() -> Iterator[Check]:
    import psutil

    available = psutil.virtual_memory().available
    yield checked(
        "memory",
        f"{available / 1e9:.1f} GB available",
        lacks=available < 1e9,
        means="large networks, many replicates at once and fast live trials may not fit",
        remedy="end other programs",
    )
    load, count = psutil.getloadavg()[0], os.cpu_count() or 1
    yield checked(
        "other work",
        f"{load:.2f} waiting or running on {count} CPUs in the last minute",
        lacks=load > 0.5 * count,
        means="live results are uneven: losses and delays also show what else this machine does",
        remedy="wait until it is idle",
    )


def _packages(name: str, modules: Sequence[str], means: str) -> Check:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    present = [f"{module} {_package_version(module)}" for module in modules if module not in missing]
    return checked(
        name,
        ", ".join([*present, *(f"no {module}" for module in missing)]) or "none needed",
        lacks=bool(missing),
        means=means,
        remedy=f"in a checkout: pip install -e '.[{name.split()[0]}]'"
        if name.split()[0] in ("report", "view")
        else "in a checkout: pip install .",
    )


def _package_version(module: str) -> str:
    names = importlib.metadata.packages_distributions().get(module, [module])
    try:
        return importlib.metadata.version(names[0])
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
