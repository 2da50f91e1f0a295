"""Event handlers that report their exceptions.

PySide 6.11 keeps an exception of an overridden event handler for the Python code that has called Qt. If a second
handler raises before that code continues, the process ends with a segmentation fault.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from PySide6.QtCore import QObject


def report_exceptions() -> None:
    """Make the event handlers of all classes defined from now on pass their exceptions to ``sys.excepthook``."""
    QObject.__init_subclass__ = classmethod(_wrap_handlers)  # type: ignore[assignment]


def _wrap_handlers(cls: type[QObject]) -> None:
    super(QObject, cls).__init_subclass__()  # that of Generic
    for name, handler in list(vars(cls).items()):
        if isinstance(handler, FunctionType) and (name.endswith("Event") or name in ("event", "eventFilter")):
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
