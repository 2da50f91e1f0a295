"""A longer export in a separate background process, run as on the command line."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from multiprocessing.connection import Connection

from PySide6.QtCore import QTemporaryDir

from app import parts
from app.jobs import runner
from grpo_core.child.answering import Poll, answer
from grpo_core.child.asking import Asked
from grpo_core.text import tr

BEAT = 0.02
"""Seconds between two checks for messages from the process, and for whether its export has been cancelled."""


def exporting(command: str, *arguments: str) -> runner.Make:
    """Return the computation that runs a command such as ``export`` or ``film``, as in a terminal.

    It yields the results of the process, from JSON, and each time that files, or pictures of a film, have been written,
    their number so far. If it is cancelled, the process is killed at once, and finished files are kept. The process's
    temporary files are in a folder that is removed even then.
    """

    def compute(poll: runner.Poll) -> Iterator[object]:
        temporary, written = QTemporaryDir(), 0

        def add(count: int) -> None:
            nonlocal written
            written += count

        environment = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), temporary.path())
        process = Asked(serve, tr("The export has ended unexpectedly ({how})."), environment=environment)
        try:
            process.ask(command, arguments)
            while process.busy:
                time.sleep(BEAT)
                poll()
                before = written
                yield from process.heard(add)
                if written > before:
                    yield written
        finally:
            process.kill()
            process.close()
            temporary.remove()

    return compute


class _Lines(io.TextIOBase):
    """An output stream that counts lines as progress. Each line corresponds to a written file or picture."""

    def __init__(self, poll: Poll) -> None:
        self._poll = poll

    def write(self, text: str) -> int:
        for _ in range(text.count("\n")):
            self._poll()
        return len(text)


def serve(connection: Connection) -> None:
    """Run the process: receive the command, execute it, and report the result."""
    from app.export import command, film_command

    table = {"export": printed(command.export), "film": printed(film_command.film), **parts.merged("answers")}
    answer(connection, table)


def printed(command: Callable[[Sequence[str]], None]) -> Callable[..., Iterator[object]]:
    """Return a function that runs ``command``, reports its printed lines as progress, and yields no results."""

    def answered(*arguments: str, poll: Poll) -> Iterator[object]:
        with redirect_stdout(_Lines(poll)):
            command(arguments)
        yield from ()

    return answered
