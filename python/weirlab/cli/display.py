"""What a search shows while it runs: a live picture on a terminal, a line per trial elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from weirlab.cli.shared import stderr_console, tell

if TYPE_CHECKING:
    from rich.console import RenderableType

    from weirlab.searches import Progress, SearchGoal
    from weirlab.testbed import Trial


_LAST_TRIALS = 6


class Display(Protocol):
    """Called with the state of a search."""

    def __call__(self, progress: Progress) -> None:
        """Take the news."""
        ...


@contextmanager
def search_display(title: str, goals: Sequence[SearchGoal], timeout_s: float | None) -> Iterator[Display]:
    """A display for the search in the block."""
    console = stderr_console()
    if not console.is_terminal:
        yield _Lines()
        return
    from rich.live import Live

    picture = _Picture(title, goals, timeout_s)
    with Live(get_renderable=picture.render, console=console, refresh_per_second=5, transient=True):
        yield picture


def rate_text(fps: float | None) -> str:
    """A frame rate for people."""
    if fps is None:
        return "?"
    for size, unit in ((1e6, "Mframe/s"), (1e3, "kframe/s")):
        if fps >= size:
            return f"{fps / size:.5g} {unit}"
    return f"{fps:.5g} frame/s"


def time_text(seconds: float | None) -> str:
    """A time for people."""
    if seconds is None:
        return "?"
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


def outcome_text(trial: Trial) -> str:
    """What a trial lost, when it was stopped for it, and whether it was made again for the tester's fault."""
    lost = trial.sent_frames - trial.received_frames
    ratio = f"{trial.loss_ratio:.3%}" if trial.loss_ratio >= 5e-6 else "below 0.001%"
    text = "no loss" if lost == 0 else f"lost {lost:,} of {trial.sent_frames:,} ({ratio})"
    if trial.stopped_early:
        text += f", stopped after {trial.intended_frames / trial.spec.intended_load_fps:.2g} s"
    if trial.unsent_ratio > 0.005:
        text += f", {trial.unsent_ratio:.2%} unsent"
    return text + (", a repetition" if trial.spec.purpose == "repeat" else "")


def beyond_text(progress: Progress, known_fps: float | None) -> str:
    """That a load is beyond the tester, where this is news; empty else.

    Args:
        known_fps: The lowest load that was known to be.
    """
    beyond_fps, trial = progress.state.beyond_tester_fps, progress.trial
    if beyond_fps is None or beyond_fps == known_fps:
        return ""
    why = ""
    if trial is not None and trial.spec.intended_load_fps == beyond_fps:
        why = f", which sent {rate_text(trial.offered_load_fps)}"
    return f"{rate_text(beyond_fps)} and more are beyond the tester{why}; they are not offered again"


def _bounds(bounds: Mapping[str, tuple[float | None, float | None]]) -> str:
    return "; ".join(f"{goal} {rate_text(low)} .. {rate_text(high)}" for goal, (low, high) in bounds.items())


class _Lines:
    """One line per trial."""

    def __init__(self) -> None:
        self._phase = ""
        """Of the trial that runs."""
        self._beyond_fps: float | None = None

    def __call__(self, progress: Progress) -> None:
        self._tell(progress)
        if news := beyond_text(progress, self._beyond_fps):
            tell(news)
        self._beyond_fps = progress.state.beyond_tester_fps

    def _tell(self, progress: Progress) -> None:
        phase, self._phase = self._phase, progress.state.phase
        if progress.failure:
            tell(f"trial {progress.trials}: failed, tried once more: {progress.failure}")
        if progress.trial is None:
            if progress.resumed_trials and not progress.failure:
                tell(f"{progress.resumed_trials} trials were measured before")
            return
        spec = progress.trial.spec
        left = "" if progress.time_left_s is None else f", about {time_text(progress.time_left_s)} left"
        tell(
            f"trial {spec.index} ({phase}): {rate_text(spec.intended_load_fps)} for "
            f"{spec.duration_s:.3g} s: {outcome_text(progress.trial)} | {_bounds(progress.state.bounds)} | "
            f"{time_text(progress.time_used_s)} used{left}"
        )


class _Picture:
    """Bounds, the trial that runs, and the last ones."""

    def __init__(self, title: str, goals: Sequence[SearchGoal], timeout_s: float | None) -> None:
        self._title = title
        self._goals = goals
        self._timeout_s = timeout_s
        self._last: deque[str] = deque(maxlen=_LAST_TRIALS)
        self._news: Progress | None = None
        self._since = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if progress.trial is not None:
            spec = progress.trial.spec
            self._last.append(
                f"{spec.index:>4}  {rate_text(spec.intended_load_fps):>17}  {spec.duration_s:>7.3g} s  "
                f"{outcome_text(progress.trial)}"
            )
        if progress.failure:
            self._last.append(f"      failed, trying once more: {progress.failure}")
        known_fps = None if self._news is None else self._news.state.beyond_tester_fps
        if news := beyond_text(progress, known_fps):
            self._last.append(f"      {news}")
        self._news = progress
        self._since = time.monotonic()

    def render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        parts: list[RenderableType] = [Text(self._title, style="bold")]
        news = self._news
        if news is None:
            return Group(*parts, Text("preparing the testbed"))
        bounds = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for column, right in (("goal", False), ("lower bound", True), ("upper bound", True), ("width", True)):
            bounds.add_column(column, justify="right" if right else "left", header_style="dim")
        for goal in self._goals:
            low, high = news.state.bounds.get(goal.name, (None, None))
            width = f"{1 - low / high:.3%}" if low is not None and high else "?"
            wanted = "" if goal.width is None else f" (goal {goal.width:.2%})"
            bounds.add_row(goal.name, rate_text(low), rate_text(high), width + wanted)
        parts += [bounds, Text("\n".join(self._last), style="dim")]
        if news.next is not None:
            spent = time.monotonic() - self._since
            trial = Table.grid(padding=(0, 2, 0, 0))
            trial.add_row(
                f"trial {news.next.index}, {news.state.phase}",
                rate_text(news.next.intended_load_fps),
                ProgressBar(total=news.next.duration_s, completed=min(spent, news.next.duration_s), width=24),
                f"{min(spent, news.next.duration_s):.0f} of {news.next.duration_s:.3g} s",
            )
            parts.append(trial)
        limit = "" if self._timeout_s is None else f" of at most {time_text(self._timeout_s)}"
        parts.append(
            Text(
                f"{news.trials} trials, {time_text(news.time_used_s)} used{limit}, "
                f"about {time_text(news.time_left_s)} left"
            )
        )
        return Group(*parts)
