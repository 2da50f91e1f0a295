"""Surroundings that must neither stop nor change a recorded training, for tests and for the real trainers."""

from __future__ import annotations

import builtins
import errno
import inspect
import io
import logging
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple
from unittest.mock import patch


class Panic(BaseException):
    """An error that is not an ``Exception``, like a panic of Rust code."""


class WordlessError(Exception):
    """An error that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Recorded(NamedTuple):
    """A recording: the recorder's module, the object whose methods it wraps, and the folder of the trace."""

    module: ModuleType
    owner: Any
    folder: Path


Surrounding = Callable[[Recorded, ExitStack], object]
"""Enters a surrounding, which the stack leaves."""


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises ``error``, whatever its arguments are."""

    def raises(*args: Any, **kwargs: Any) -> Any:
        raise error

    return raises


def hooks(module: ModuleType) -> list[str]:
    """Return the names of all methods and properties of a module's recorder, without its constructor."""
    kinds = (property, type(hooks))
    return [name for name, value in vars(module.Recorder).items() if isinstance(value, kinds) and name != "__init__"]


def hook_raises(*names: str, error: BaseException | None = None) -> Surrounding:
    """Return the surrounding in which the named hooks raise, or all if none is named."""
    function = raising(error or RuntimeError("planted"))

    def enter(recorded: Recorded, stack: ExitStack) -> None:
        kind = recorded.module.Recorder
        for name in names or hooks(recorded.module):
            planted = property(function) if isinstance(vars(kind)[name], property) else function
            stack.enter_context(patch.object(kind, name, planted))

    return enter


def warnings_are_errors(recorded: Recorded, stack: ExitStack) -> None:
    """Raise every warning as an error."""
    _filter(stack, "error")


def _filter(stack: ExitStack, action: Literal["error", "always"]) -> None:
    """Treat warnings in one way, except for those by which Transformers announces changes, and which would end it."""
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter(action)
    warnings.simplefilter("ignore", FutureWarning)


def no_threads(recorded: Recorded, stack: ExitStack) -> None:
    """Refuse to start threads."""
    stack.enter_context(patch.object(threading.Thread, "start", raising(RuntimeError("can't start new thread"))))


def no_files(recorded: Recorded, stack: ExitStack) -> None:
    """Let every call fail that opens, renames or makes a file or a folder, except in ``/proc``, which verl reads."""
    for module, name in ((builtins, "open"), (io, "open"), (os, "open"), (os, "replace"), (os, "mkdir")):
        plain = getattr(module, name)

        def refused(path: Any, *args: Any, plain: Callable[..., Any] = plain, **kwargs: Any) -> Any:
            if str(path).startswith("/proc/"):
                return plain(path, *args, **kwargs)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        stack.enter_context(patch.object(module, name, refused))


def disk_full(recorded: Recorded, stack: ExitStack) -> None:
    """Let every file of a step be written to a full disk."""
    plain = recorded.module.whole

    def on_a_full_disk(path: Path) -> Any:
        if path.name.startswith("step_"):
            path.with_name(f".{path.name}.part").symlink_to("/dev/full")
        return plain(path)

    stack.enter_context(patch.object(recorded.module, "whole", on_a_full_disk))


def folder_gone(recorded: Recorded, stack: ExitStack) -> None:
    """Remove the folder of the trace, and make a file of the same name."""
    shutil.rmtree(recorded.folder, ignore_errors=True)
    recorded.folder.write_bytes(b"")


def no_stderr(recorded: Recorded, stack: ExitStack) -> None:
    """Close standard error, and let every hook raise, so that there is something to say."""
    closed = io.StringIO()
    closed.close()
    stack.enter_context(patch.object(sys, "stderr", closed))
    _filter(stack, "always")
    hook_raises()(recorded, stack)


def logging_broken(recorded: Recorded, stack: ExitStack) -> None:
    """Send warnings to a logger that raises, and let every hook raise, so that there is something to say."""
    handler = logging.Handler()
    logger = logging.getLogger("py.warnings")
    stack.enter_context(patch.object(handler, "emit", raising(RuntimeError("no logging"))))
    _filter(stack, "always")
    logger.addHandler(handler)
    stack.callback(logger.removeHandler, handler)
    logging.captureWarnings(True)
    stack.callback(logging.captureWarnings, False)
    hook_raises()(recorded, stack)


def methods_stay(recorded: Recorded, stack: ExitStack) -> None:
    """Forbid to replace a method of an object, as ``__slots__`` and frozen classes do."""
    _refuse(recorded, stack, lambda kind, name: inspect.isroutine(getattr(kind, name, None)))


def no_new_attributes(recorded: Recorded, stack: ExitStack) -> None:
    """Forbid the attribute that names the recorder, after the methods have been wrapped."""
    _refuse(recorded, stack, lambda kind, name: name.startswith("grpo_lab"))


def _refuse(recorded: Recorded, stack: ExitStack, forbidden: Callable[[type, str], bool]) -> None:
    kind = type(recorded.owner)
    plain: Any = kind.__setattr__

    def kept(self: Any, name: str, value: Any) -> None:
        if forbidden(kind, name):
            raise AttributeError(f"{kind.__name__!r} object attribute {name!r} is read-only")
        plain(self, name, value)

    stack.enter_context(patch.object(kind, "__setattr__", kept))


def together(*surroundings: Surrounding) -> Surrounding:
    """Return the surrounding in which all of the given ones are."""

    def enter(recorded: Recorded, stack: ExitStack) -> None:
        for surrounding in surroundings:
            surrounding(recorded, stack)

    return enter


SURROUNDINGS: dict[str, Surrounding] = {
    "every hook raises": hook_raises(),
    "every hook panics": hook_raises(error=Panic("planted")),
    "every hook raises without words": hook_raises(error=WordlessError()),
    "warnings are errors": together(warnings_are_errors, hook_raises()),
    "no threads": no_threads,
    "no threads and warnings are errors": together(no_threads, warnings_are_errors),
    "no files": no_files,
    "no files and warnings are errors": together(no_files, warnings_are_errors),
    "disk full": disk_full,
    "folder gone": folder_gone,
    "standard error closed": no_stderr,
    "logging broken": logging_broken,
    "methods cannot be replaced": methods_stay,
    "no new attributes": no_new_attributes,
}
"""Name -> a surrounding in which a training goes on with the same losses, whenever it begins."""


@contextmanager
def entered(surrounding: Surrounding, recorded: Recorded) -> Iterator[None]:
    """Be in a surrounding."""
    with ExitStack() as stack:
        surrounding(recorded, stack)
        yield
