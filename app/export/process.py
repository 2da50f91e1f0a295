"""A longer export in a separate background process, run as on the command line."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from multiprocessing.connection import Connection

from PySide6.QtCore import QObject, QTemporaryDir, Signal, Slot

from app import parts
from app.clock import Timer
from grpo_core.child.answering import Poll, answer
from grpo_core.child.asking import Asked
from grpo_core.errors import GrpoError
from grpo_core.text import tr

BEAT_MS = 50
"""Milliseconds between two checks for messages from the process."""


class ExportProcess(QObject):
    """Runs a command such as ``export`` or ``film``, with the same results as in a terminal.

    Its temporary files are in a folder that is removed even if the process is killed.

    Signals:
        gave: emitted with a result of the process, from JSON.
        wrote: emitted with the number of files, or pictures of a film, written so far.
        done: emitted when all files have been written.
        failed: emitted with a message explaining why the process failed; empty if it was cancelled.
    """

    gave = Signal(object)
    wrote = Signal(int)
    done = Signal()
    failed = Signal(str)

    def __init__(self, command: str, arguments: Sequence[str], parent: QObject) -> None:
        super().__init__(parent)
        self._command, self._arguments = command, [*arguments]
        self._count = 0
        self._temporary = QTemporaryDir()
        self._process: Asked | None = None
        self._beat = Timer(self, self._on_beat, BEAT_MS, repeats=True)

    def start(self) -> None:
        """Start the process. Either ``done`` or ``failed`` is emitted later."""
        environment = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._temporary.path())
        try:
            self._process = Asked(serve, tr("The export has ended unexpectedly ({how})."), environment=environment)
            self._process.ask(self._command, self._arguments)
        except GrpoError as error:
            self._fail(str(error))
            return
        self._beat.start()

    def cancel(self) -> None:
        """Cancel the process, keeping finished files."""
        self._fail("")

    def close(self) -> None:
        """End the process without emitting a signal."""
        self._beat.stop()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.close()
        self._temporary.remove()

    @Slot()
    def _on_beat(self) -> None:
        process, before = self._process, self._count
        if process is None:
            return
        try:
            for result in process.heard(self._add):
                self.gave.emit(result)
        except GrpoError as error:
            self._fail(str(error))
            return
        if self._count > before:
            self.wrote.emit(self._count)
        if not process.busy:
            self.close()
            self.done.emit()

    def _add(self, count: int) -> None:
        self._count += count

    def _fail(self, sentence: str) -> None:
        self.close()
        self.failed.emit(sentence)


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
