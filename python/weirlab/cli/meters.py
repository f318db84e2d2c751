"""Meters of an emulated path at work, at the foot of a terminal on which a command writes meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

EVERY_S = 0.25
_LEAST_ROWS = 8
"""A terminal of fewer rows is left to the command."""
_MOST_SHARE = 4
"""Of the rows of a terminal, one in so many is for meters."""


@dataclass(frozen=True)
class Gauge:
    """One direction of a hop at a time."""

    name: str
    left_bytes: int
    waiting_bytes: int
    dropped: int
    marked: int
    lost: int
    rate_bps: float | None
    """Of the transmitter, where it stays; for how long that takes to send what waits."""


def meter_line(before: Gauge, now: Gauge, seconds: float) -> str:
    """What went through a direction since an earlier reading, what waits, and what was thrown away so far."""
    rate_bps = 8 * (now.left_bytes - before.left_bytes) / seconds if seconds > 0 else 0.0
    waits = f"{now.waiting_bytes / 1000:7.1f} kB"
    if now.rate_bps:
        waits += f" {8e3 * now.waiting_bytes / now.rate_bps:6.1f} ms"
    counts = [(now.dropped, "dropped"), (now.lost, "lost"), (now.marked, "marked")]
    reported = ", ".join(f"{count} {word}" for count, word in counts if count or word == "dropped")
    return f"{now.name}: {rate_bps / 1e6:8.2f} Mbit/s, waiting {waits}, {reported}"


def delay_line(reported: Mapping[str, object]) -> str:
    """One-way delays of the last test packets in both directions, as `one_way_delays` reports them: the
    median, and the mean change from packet to packet."""
    import numpy as np

    there, back = (np.asarray(reported[name], dtype=float) for name in ("forward_s", "backward_s"))
    seen = int(np.isfinite(there).sum())
    words = []
    for name, delays, sent in (("up", there, there.size), ("down", back, seen)):
        came = delays[np.isfinite(delays)]
        if not came.size:
            words.append(f"{name}: no packet")
            continue
        changes = np.abs(np.diff(delays))
        changes = changes[np.isfinite(changes)]
        jitter = f", jitter {1e3 * changes.mean():.2f} ms" if changes.size else ""
        lost = f", {sent - came.size} of {sent} lost" if came.size < sent else ""
        words.append(f"{name} {1e3 * np.median(came):.2f} ms{jitter}{lost}")
    return f"one-way delay: {'; '.join(words)}"


class DelayMeter:
    """One-way delays of a path at work: test packets, a second's worth at a time, for as long as the block
    runs."""

    def __init__(self, measure: Callable[[], Mapping[str, object]]) -> None:
        """Args: measure: Sends some packets and gives what `one_way_delays` gives; raises OSError."""
        self._measure = measure
        self._line = "one-way delay: -"
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="delays", daemon=True)

    def lines(self) -> list[str]:
        """What is known now."""
        return [self._line]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._done.is_set():
            try:
                self._line = delay_line(self._measure())
            except OSError as error:
                self._line = f"one-way delay: not known: {error}"
                return


def can_show() -> bool:
    """Whether there is a terminal for meters."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return os.get_terminal_size(sys.stderr.fileno()).lines >= _LEAST_ROWS


@contextmanager
def shown_below(
    read: Callable[[], Sequence[Gauge]], more: Callable[[], Sequence[str]] = list
) -> Iterator[None]:
    """Show meters, and `more` lines, in the last rows of the terminal while the block runs; what is written
    meanwhile scrolls above them.
    """
    terminal = _Foot(len(read()) + len(more()))
    done = threading.Event()

    def work() -> None:
        before, since = read(), time.monotonic()
        while not done.wait(EVERY_S):
            now, at = read(), time.monotonic()
            lines = [meter_line(old, new, at - since) for old, new in zip(before, now, strict=True)]
            with suppress(OSError):
                terminal.show([*lines, *more()])
            before, since = now, at

    thread = threading.Thread(target=work, name="meters", daemon=True)
    with suppress(OSError):
        terminal.take()
    previous = signal.signal(signal.SIGWINCH, lambda *_: terminal.resized())
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGWINCH, previous)
        with suppress(OSError):
            terminal.give_back()


class _Foot:
    """The last rows of the terminal of stderr, kept out of what scrolls (DECSTBM)."""

    def __init__(self, wanted: int) -> None:
        self._fd = sys.stderr.fileno()
        self._wanted = wanted
        self._stale = False
        self._measure()

    def _measure(self) -> None:
        size = os.get_terminal_size(self._fd)
        self._rows, self._columns = size.lines, size.columns
        self._count = max(1, min(self._wanted, size.lines // _MOST_SHARE))

    def take(self) -> None:
        """Keep the rows; the cursor stays in its line."""
        self._write("\n" * self._count + f"\x1b[{self._count}A\x1b7\x1b[1;{self._rows - self._count}r\x1b8")

    def resized(self) -> None:
        """The terminal has another size; the next showing takes other rows."""
        self._stale = True

    def show(self, lines: Sequence[str]) -> None:
        """Write the lines into the rows."""
        text = "\x1b7"
        if self._stale:
            self._stale = False
            self._measure()
            text += f"\x1b[1;{self._rows - self._count}r"
        first = self._rows - self._count + 1
        for row, line in enumerate(lines[: self._count], start=first):
            text += f"\x1b[{row};1H\x1b[2K\x1b[7m{line[: self._columns]:<{self._columns}}\x1b[0m"
        self._write(text + "\x1b8")

    def give_back(self) -> None:
        """Clear the rows and let everything scroll again."""
        first = self._rows - self._count + 1
        cleared = "".join(f"\x1b[{row};1H\x1b[2K" for row in range(first, self._rows + 1))
        self._write(f"\x1b7{cleared}\x1b[r\x1b8")

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode())


def gauges(
    names: Sequence[str], rates_bps: Sequence[float | None], readings: Sequence[Mapping[str, int]]
) -> list[Gauge]:
    """Readings of the compiled core as gauges."""
    return [
        Gauge(
            name=name,
            left_bytes=reading["left_bytes"],
            waiting_bytes=reading["waiting_bytes"],
            dropped=reading["dropped"],
            marked=reading["marked"],
            lost=reading["lost"],
            rate_bps=rate_bps,
        )
        for name, rate_bps, reading in zip(names, rates_bps, readings, strict=True)
    ]
