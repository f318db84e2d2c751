"""`weirlab.perfetto`: the frames of a capture or a run on a timeline that Perfetto shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.analysis.timeline import Timeline, write_run_timeline, write_timeline
from weirlab.errors import InputError
from weirlab.units import Rate

if TYPE_CHECKING:
    from weirlab.api.simulated import RunResult


def perfetto(
    source: str | Path | RunResult,
    file: str | Path,
    *,
    link_rate: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Timeline:
    """Write a timeline in the format of Perfetto (https://ui.perfetto.dev opens it, as does any other viewer
    of the format).

    Ports and flows have tracks of their own; a frame is a slice as long as its transmission, arrows lead it
    from port to port, and queues are counters. Times are whole nanoseconds.

    Args:
        source: A capture (pcap, pcapng or ERF); the directory of the result of a run; or what `weirlab.run`
            gave.
        file: Where to write it.
        link_rate: Rate of the links of a capture that does not say it; without one, frames are marks.
        progress: Called with how far the reading has come.

    Raises:
        InputError: There is no capture, and nothing was recorded over time.
    """
    from weirlab.runs import Run

    place = Path(file)
    if isinstance(source, (str, Path)):
        path = Path(source)
        if not path.is_dir():
            rate = None if link_rate is None else Rate.parse(link_rate).bps
            return write_timeline(place, [([path.stem], path)], rate_bps=rate, watch=progress)
        if not (path / "tables").is_dir() or not (path / "scenario.yaml").exists():
            raise InputError(f"{path}: not the result of a run")
        run = Run.load(path)
        kept: dict[str, bytes | Path] = {each.name: each for each in sorted(path.glob("*.pcapng"))}
        return write_run_timeline(place, run.scenario, run.records, kept, progress)
    kept = dict(source.captures)
    if not kept and source.directory is not None:
        kept = {each.name: each for each in sorted(source.directory.glob("*.pcapng"))}
    return write_run_timeline(place, source.scenario, source.records, kept, progress)
