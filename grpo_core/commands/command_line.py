"""Parts common to all command lines: exit codes, error messages, numbers and Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NoReturn

from grpo_core import parts
from grpo_core.errors import Cancelled

FAILED, INTERRUPTED = 2, 130
"""Exit codes after an error that was reported in a message, and after Ctrl-C."""
LARGEST = 10**12
"""Upper limit, above any plausible number of updates, rows or seeds. A larger number is a typing error."""

Run = Callable[[argparse.Namespace, Callable[[], None]], int]
"""The function of a command, given the options and ``poll``, which raises ``Cancelled`` after Ctrl-C."""


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in a single message."""

    def error(self, message: str) -> NoReturn:
        self.exit(FAILED, f"{message[:1].upper()}{message[1:]}; for usage, run: {self.prog} --help\n")


class Instead(argparse.Action):
    """An option of a part that replaces what its command does.

    Args:
        run: called in place of the command's own function, with the same arguments.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, *, run: Callable[..., Any], **keywords: Any) -> None:
        super().__init__(option_strings, dest, **keywords)
        self._run = run

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, values)
        namespace.instead = self._run


def add_options_of_parts(command: str, parser: argparse.ArgumentParser, rows: Sequence[Any] | None = None) -> None:
    """Add the options that parts contribute to a command of the lab. ``rows``: theirs; by default those of the core."""
    parser.set_defaults(instead=None)
    for options in parts.rows("options") if rows is None else rows:
        if command in options:
            options[command](parser)


def count(text: str) -> int:
    """Parse a positive integer from a command-line argument.

    Raises:
        argparse.ArgumentTypeError: it is not a positive integer, or it is unreasonably large.
    """
    digits = len(text.lstrip("0"))
    if not text.isascii() or not text.isdecimal() or not digits:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is not a whole number of at least 1")
    if digits > len(str(LARGEST)) or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is more than {LARGEST:,}")
    return int(text)


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Let the first Ctrl-C only make the yielded function raise ``Cancelled``. A second one has its usual effect."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def poll() -> None:
        if asked:
            raise Cancelled("Stopped on request.")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield poll
    finally:
        signal.signal(signal.SIGINT, before)


_HARMLESS = "\n\t"
_CONTROLS = {n: "\N{REPLACEMENT CHARACTER}" for n in (*range(32), *range(127, 160)) if chr(n) not in _HARMLESS}
"""Control characters of ASCII and Latin-1, including those that begin a terminal's escape sequences."""


class PlainOutput:
    """A text stream that neutralises terminal escape sequences, which can occur in file contents.

    A carriage return at the start of a string is passed on, since progress bars write one.

    Args:
        stream: receives the text; access to all other attributes is forwarded to it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        start = "\r" if text.startswith("\r") else ""
        self._stream.write(start + text[len(start) :].translate(_CONTROLS))
        return len(text)


@contextmanager
def plain_output() -> Iterator[None]:
    """Context manager in which all output goes through :class:`PlainOutput`."""
    with redirect_stdout(_plain(sys.stdout)), redirect_stderr(_plain(sys.stderr)):
        yield


def _plain(stream: Any) -> Any:
    return None if stream is None else PlainOutput(stream)  # an executable without a console has none
