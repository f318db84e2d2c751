"""Interruptions that come while something is begun or ended: they wait until it is whole."""

from __future__ import annotations

import functools
import signal
import threading
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    _Handler = Callable[[int, FrameType | None], object] | int | None

_T = TypeVar("_T")
_P = ParamSpec("_P")

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]
"""What may end the work; an alarm repeats an interruption that came while a module was loaded."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep back signals that end the work until the block has ended, so that what it made is known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {each: signal.getsignal(each) for each in _ENDING}
    holds = False

    def receive(number: int, frame: FrameType | None) -> None:
        # It may stay where the last lines below are interrupted: it then does what the handler before it did.
        if holds:
            came.append(number)
        else:
            _pass_on(number, frame, handlers[signal.Signals(number)])

    try:
        for each in handlers:
            signal.signal(each, receive)
        holds = True
        yield
    finally:
        holds = False
        for each, handler in handlers.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])


def _pass_on(number: int, frame: FrameType | None, handler: _Handler) -> None:
    """Do what `handler` does."""
    if callable(handler):
        handler(number, frame)
    elif handler != signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


class _Claim(AbstractContextManager[_T]):
    def __init__(self, inner: AbstractContextManager[_T]) -> None:
        self._inner = inner
        self._ends = False

    def __enter__(self) -> _T:
        entered = False
        try:
            with uninterrupted():
                value = self._inner.__enter__()
                entered = True
            return value
        except BaseException as error:
            if entered:
                self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            with uninterrupted():
                self._ends = True
                return self._inner.__exit__(kind, error, trace)
        except BaseException as other:
            if not self._ends:
                self.__exit__(type(other), other, other.__traceback__)
            raise


def claiming(function: Callable[_P, Iterator[_T]]) -> Callable[_P, AbstractContextManager[_T]]:
    """As `contextlib.contextmanager`, but an interruption never comes within the beginning or the end of a
    context, or between them and its block: what was made is always given back. Both have to be short.

    Holds for `with`; `ExitStack.enter_context` leaves a gap of its own. At the very call of `__exit__` an
    interruption still comes: what was made is then given back when the context is collected.
    """
    inner = contextmanager(function)

    @functools.wraps(function)
    def made(*arguments: _P.args, **options: _P.kwargs) -> AbstractContextManager[_T]:
        return _Claim(inner(*arguments, **options))

    return made
