"""Handling of unexpected exceptions.

An exception can occur in any thread, in the middle of painting or while the program ends. A hook therefore touches
no widget: it writes the log and appends a ``CrashReport`` to a locked list, which the window empties on its frame
timer.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any

from PySide6.QtCore import QObject

from grpo_core.errors import GrpoError
from grpo_core.text import tr

DISTINCT = 100
"""Maximum number of different tracebacks reported in one session. Further ones are only logged."""
LONGEST = 20_000
"""Maximum length in characters of the part of a traceback that is kept."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CrashReport:
    """An uncaught exception.

    Attributes:
        text: the traceback, for the clipboard.
        expected: whether the exception has a message for users, so that no traceback is offered.
        where: name of the thread.
    """

    sentence: str
    text: str
    expected: bool
    where: str


class CrashHooks:
    """The interpreter's three exception hooks. A repeated traceback is reported only once.

    Attributes:
        on_report: function called after a new report, in any thread; for example the ``emit`` of a signal that requests
            a frame.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: list[CrashReport] = []
        self._seen: set[tuple[object, ...]] = set()
        self._before: tuple[Any, Any, Any] | None = None
        self.on_report: Callable[[], object] | None = None

    def install(self) -> None:
        if self._before is None:
            self._before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
            sys.excepthook = self._on_exception
            threading.excepthook = self._on_thread
            sys.unraisablehook = self._on_unraisable

    def uninstall(self) -> None:
        if self._before is not None:
            sys.excepthook, threading.excepthook, sys.unraisablehook = self._before
            self._before = None

    def take_reports(self) -> list[CrashReport]:
        """Return and remove the reports added since the last call. Called by the GUI thread's frame timer."""
        if not self._reports:
            return []
        with self._lock:
            taken, self._reports = self._reports, []
        return taken

    def report(self, error: BaseException, trace: TracebackType | None, where: str) -> None:
        """Log an exception and, the first time it occurs, add it to the reports. Thread-safe."""
        text = "".join(traceback.format_exception(type(error), error, trace))
        if len(text) > LONGEST:
            text = text[: LONGEST // 2] + "\n …\n" + text[-LONGEST // 2 :]
        expected = isinstance(error, GrpoError)
        key = (type(error), str(error) if expected else _place(trace))
        with self._lock:
            new = key not in self._seen and len(self._seen) < DISTINCT
            if new:
                self._seen.add(key)
                sentence = _safe_text(error) if expected else _sentence(error)
                self._reports.append(CrashReport(sentence=sentence, text=text, expected=expected, where=where))
        _log.error("in thread %s%s\n%s", where, "" if new else ", again", text if new else text.splitlines()[-1])
        if new and self.on_report is not None:
            with contextlib.suppress(RuntimeError):  # at the end of the program the signal's owner may be gone
                self.on_report()
        if new and not expected and sys.stderr is not None:
            with contextlib.suppress(OSError):  # the terminal may be closed
                print(text, file=sys.stderr, end="")

    def _on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            self.report(error, trace, threading.current_thread().name)

    def _on_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            self.report(args.exc_value, args.exc_traceback, args.thread.name if args.thread else "unknown")

    def _on_unraisable(self, args: sys.UnraisableHookArgs) -> None:
        # the object itself may be half destroyed, so it is neither kept nor printed
        if args.exc_value is not None:
            self.report(args.exc_value, args.exc_traceback, threading.current_thread().name)


def _place(trace: TracebackType | None) -> tuple[tuple[str, int], ...]:
    """Return the lines of code through which an exception passed. Exceptions with the same lines count as equal."""
    lines = []
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return tuple(lines[-20:])


def _sentence(error: BaseException) -> str:
    text = _safe_text(error).splitlines() or [""]
    detail = f"{type(error).__name__}: {text[0][:200]}" if text[0] else type(error).__name__
    return tr("Something went wrong inside the program ({detail}). Your runs are on disk; you can go on.").format(
        detail=detail
    )


def _safe_text(error: BaseException) -> str:
    """Return ``str(error)``, or an empty string if the exception's own ``__str__`` fails."""
    try:
        return str(error)
    except Exception:
        return ""


def report_exceptions() -> None:
    """Make the event handlers of all classes defined from now on pass their exceptions to ``sys.excepthook``.

    PySide 6.11 keeps an exception of an overridden event handler for the Python code that has called Qt. If a second
    handler raises before that code continues, the process ends with a segmentation fault.
    """
    QObject.__init_subclass__ = classmethod(_wrap_handlers)  # type: ignore[assignment]


def _wrap_handlers(cls: type[QObject]) -> None:
    super(QObject, cls).__init_subclass__()  # that of Generic
    of_qt = {name for base in cls.__mro__ if base.__module__.startswith("PySide6.") for name in vars(base)}
    handlers = {
        name: handler
        for owner in reversed(cls.__mro__)
        if owner is cls or not issubclass(owner, QObject)  # its own, and those of a mixin
        for name, handler in vars(owner).items()
        if isinstance(handler, FunctionType) and (name.endswith("Event") or name in ("event", "eventFilter"))
        if name in of_qt  # not a method that Qt does not call, such as GraphicsScene.itemsNearEvent of pyqtgraph
    }
    for name, handler in handlers.items():
        if getattr(cls, name) is handler:
            setattr(cls, name, _reported(handler))


def _reported(handler: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(handler)
    def reported(*arguments: Any) -> Any:
        try:
            return handler(*arguments)
        except Exception:
            sys.excepthook(*sys.exc_info())
            return False  # the event is not handled

    return reported
