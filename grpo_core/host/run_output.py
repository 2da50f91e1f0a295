"""Output of a run in training: writes finished updates from the run's buffer to its file. Used by one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from grpo_core.config import Settings
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.host.commands import Begin
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.watch import LostFileError
from grpo_core.runs.writer import LIMIT
from grpo_core.text import plural


def run_writer(begin: Begin, settings: Settings, new: bool) -> RunWriter:
    """Open the writer of the run file that ``begin`` names. ``settings`` are those of its first update, if it is
    ``new``.

    Raises:
        RunFileError: the file cannot be written, or another window is writing to it.
    """
    limit = LIMIT if begin.limit is None else begin.limit
    if not new:
        return RunWriter.open(begin.path, limit=limit)
    if begin.parent is None:
        return RunWriter.create(begin.path, settings, title=begin.title, limit=limit)
    path, point = begin.parent
    with closing(RunReader.open(path)) as reader:
        return RunWriter.create(begin.path, settings, title=begin.title, parent=(reader, point), limit=limit)


class RunOutput:
    """Writes the finished updates of a run to its file, and marks in the buffer which ones the file contains.

    After any error, the file is closed and unwritten updates stay in the buffer. The next call reopens the file,
    counts its updates, and continues writing after them.

    Args:
        begin: names the file, and the buffer that the updates come from.
    """

    def __init__(self, begin: Begin) -> None:
        self._begin, self._buffer = begin, begin.buffer
        self._writer: RunWriter | None = None
        self._appended = self._buffer.committed  # number of the last update that the writer has taken

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def catch_up(self) -> None:
        """Write the finished updates that could not be written before, and open the file if it exists.

        Raises:
            RunFileError: it cannot be written, or the file or the disk is full.
        """
        if self._appended < self._buffer.head:
            self.save()
        if self._writer is None and self._begin.path.exists():
            with self._closing_on_error():
                self._opened(self._begin.settings)

    def keep_answer(self, question: AnyQuestion, answer: AnyAnswer) -> None:
        """Write the answer to a question, if the run has a file.

        Raises:
            RunFileError: it cannot be written.
        """
        if self._begin.path.exists():
            with self._closing_on_error():
                self._opened(self._begin.settings).keep_answer(question, answer)

    def save(self) -> None:
        """Pass every finished update to the file, which commits if 50 ms have passed since the last commit.

        Raises:
            RunFileError: writing failed, or the file or the disk is full.
        """
        with self._closing_on_error():
            waiting = self._buffer.waiting(self._appended)
            if waiting:
                writer = self._opened(waiting[0][0].settings)
                if lacking := [(step, scalars) for step, scalars in waiting if step.step > self._appended]:
                    writer.extend(lacking)
                    self._appended = self._buffer.head
            self._note_committed()

    def commit(self) -> None:
        """Write every finished update to disk.

        Raises:
            RunFileError: as for :meth:`save`.
        """
        self.save()
        with self._closing_on_error():
            if self._writer is not None and self._buffer.committed < self._appended:
                self._writer.commit()
                self._note_committed()

    def close(self) -> None:
        """Write everything to the file and close it.

        Raises:
            RunFileError: some updates could not be written; the message says how many.
        """
        reason: GrpoError | None = None
        try:
            self.save()
        except GrpoError as error:
            reason = error
        try:
            if self._writer is not None:
                self._writer.close()
        except GrpoError as error:
            reason = error
        self._forget_writer()
        if isinstance(reason, LostFileError):
            raise reason
        lost = self._buffer.head - self._buffer.committed
        if reason is not None and lost:
            raise RunFileError(
                plural(
                    "The last update could not be written to {name}. {reason}",
                    "The last {lost} updates could not be written to {name}. {reason}",
                    lost,
                ).format(lost=lost, name=self._begin.path.name, reason=reason)
            )

    def _opened(self, settings: Settings) -> RunWriter:
        if self._writer is None:
            new = self._buffer.committed == self._begin.start and not self._begin.path.exists()
            writer = run_writer(self._begin, settings, new)
            self._writer = writer
            if not self._buffer.committed <= writer.committed <= self._buffer.head:
                raise RunFileError(
                    plural(
                        "{name} contains {committed} update, but this run continues from update {head}; reopen the "
                        "file, or branch into a new one.",
                        "{name} contains {committed} updates, but this run continues from update {head}; reopen the "
                        "file, or branch into a new one.",
                        writer.committed,
                    ).format(name=self._begin.path.name, committed=writer.committed, head=self._buffer.committed)
                )
            self._appended = writer.committed
        return self._writer

    def _note_committed(self) -> None:
        if self._writer is None:
            return
        if self._writer.committed > self._buffer.committed:
            self._buffer.mark_committed(self._writer.committed)
        if self._writer.full is not None:
            raise RunFileError(self._writer.full)

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close the file after an error. It is reopened, and its updates counted, when the run continues."""
        try:
            yield
        except BaseException:
            if self._writer is not None:
                with suppress(Exception):
                    self._writer.close()
            self._forget_writer()
            raise

    def _forget_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and self._buffer.committed < writer.committed <= self._buffer.head:
            self._buffer.mark_committed(writer.committed)
        self._appended = self._buffer.committed
