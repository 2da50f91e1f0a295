"""Connection to the process that reads one source, started on demand and restarted after a crash."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from grpo_core.child.asking import STARTING, Asked
from grpo_core.child.limits import Limits
from grpo_core.errors import RunFileError
from grpo_core.text import tr
from grpo_core.traces.importers import place_of

if TYPE_CHECKING:
    from grpo_core.child.answering import Poll

MEMORY = 4 << 30
"""Bytes of address space of a process that reads untrusted files."""
FILES = 256
"""Maximum number of files that it may have open."""
SPEED = 10_000_000
"""File size in bytes for which a process gets one more second: a large file may have to be scanned completely."""


def _never() -> None:
    pass


class ReaderProcess(Asked):
    """A process that reads one source. A spare process has none yet.

    Raises:
        GrpoError: none can be started here.
    """

    def __init__(self) -> None:
        from grpo_core.foreign.answers import serve
        from grpo_core.jobs.packing import packed, unpacked  # many folders that a window may never need

        limits = Limits(memory=MEMORY, files=FILES)
        super().__init__(serve, "{how}", pack=packed, unpack=unpacked, limits=limits, error=RunFileError)

    def read(self, path: Path, scratch: Path | None) -> None:
        """From now on it reads ``path``, which the sentence for its unexpected end names, and writes into ``scratch``.

        Raises:
            RunFileError: it has ended already.
        """
        name = path.name.replace("{", "{{").replace("}", "}}")
        self.lost = tr(
            "{name} could not be read: the process that reads it has ended ({how}). Another one is started when it is "
            "asked for again."
        ).replace("{name}", name)
        for _ in self.results("enclose", (str(path), None if scratch is None else str(scratch)), _never, STARTING):
            pass


class LateError(RunFileError):
    """The answer takes longer than the window can wait."""


class Line:
    """Questions to the process of one source, from any number of threads, answered one at a time.

    Attributes:
        path: of the source.
        poll: what it raises gives a question up.
        opened: what the process said when it was asked a question that comes before others, by its first argument.
        processes: the one that reads the source; none before the first question.
    """

    def __init__(
        self,
        path: Path,
        scratch: Path | None,
        take: Callable[[], ReaderProcess],
        patience: Callable[[], float | None],
        silence: float,
        poll: Poll,
    ) -> None:
        """
        Args:
            path: of the source.
            scratch: a folder for what the process writes.
            take: a process that reads nothing yet.
            patience: seconds that the thread which asks can wait in all; None where it can wait for any answer.
            silence: seconds without a word after which a process is taken to hang.
            poll: what it raises gives a question up.
        """
        self.path, self.poll = path, poll
        self._scratch, self._take, self._patience, self._silence = scratch, take, patience, silence
        self._read_from: object = None
        self._lock = threading.Lock()
        self.processes: list[ReaderProcess] = []
        self._late = False
        self.opened: dict[int, object] = {}
        self._end = weakref.finalize(self, _end, self.processes)

    def ask(self, what: str, *arguments: object, before: Sequence[tuple[str, Sequence[object]]] = ()) -> Any:
        """The one result of a question.

        Args:
            what: is asked.
            arguments: of the question.
            before: questions that a process has to be asked first which was started anew; their results are kept in
                :attr:`opened` by their first argument.

        Raises:
            LateError: the thread could not wait for it.
            GrpoError: what went wrong there, or the process has ended.
        """
        patience = self._patience()
        if patience is None:
            with self._lock:
                result = self._asked(what, arguments, before, None)
            self._late = False
            return result
        end = time.monotonic() + patience
        if self._late or not self._lock.acquire(timeout=patience):
            raise self._too_late()
        try:
            return self._asked(what, arguments, before, end)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process, from any thread. The next question starts a new one."""
        for process in [*self.processes]:
            process.kill()
        if self._lock.acquire(blocking=False):  # else whoever asks hears of its end
            try:
                _end(self.processes)
            finally:
                self._lock.release()

    def _asked(
        self, what: str, arguments: Sequence[object], before: Sequence[tuple[str, Sequence[object]]], end: float | None
    ) -> Any:
        process = self.processes[0] if self.processes else None
        now = _files_of(self.path)
        if process is None or not process.usable or process.has_ended or now != self._read_from:
            _end(self.processes)
            self.opened.clear()
            process, self._read_from = self._take(), now
            self.processes.append(process)
            process.read(self.path, self._scratch)
        for first, known in before:
            if known[0] not in self.opened:
                self.opened[int(str(known[0]))] = self._result(process, first, known, end)
        return self._result(process, what, arguments, end)

    def _result(self, process: ReaderProcess, what: str, arguments: Sequence[object], end: float | None) -> Any:
        def poll() -> None:
            if end is not None and time.monotonic() > end:
                process.kill()
                self._late = True
                raise self._too_late()
            try:
                self.poll()
            except BaseException:
                process.kill()  # what it is at is wanted no more, and it may not hear of that
                raise

        results = [*process.results(what, arguments, poll, self._silence + size_of(self.path) / SPEED)]
        if len(results) != 1:
            raise RunFileError(tr("{name} could not be read.").format(name=self.path.name))
        return results[0]

    def _too_late(self) -> LateError:
        return LateError(
            tr("{name} takes longer to read than the window can wait; it is read beside it.").format(
                name=self.path.name
            )
        )


def size_of(path: Path) -> int:
    """Bytes of the file of a source. 0 of a folder, whose files are read one by one."""
    try:
        facts = place_of(path).stat()
    except (OSError, ValueError):
        return 0
    return facts.st_size if S_ISREG(facts.st_mode) else 0


def _files_of(path: Path) -> list[tuple[int, int] | None]:
    """Identities of a source's file and of its database's logs, since a process can access only those that existed at
    its start.
    """
    place = place_of(path)
    if place.is_dir():
        return []
    files: list[tuple[int, int] | None] = []
    for name in (place.name, f"{place.name}-wal", f"{place.name}-shm"):
        try:
            facts = place.with_name(name).stat()
            files.append((facts.st_dev, facts.st_ino))
        except OSError:
            files.append(None)
    return files


def _end(holder: list[ReaderProcess]) -> None:
    """End the process, which has nothing to keep."""
    while holder:
        process = holder.pop()
        process.kill()
        process.close()
