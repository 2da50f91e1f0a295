"""Connection to the process that reads one source, started on demand and restarted after a crash."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any

from grpo_core.child.answering import Poll
from grpo_core.child.asking import STARTING, Asked
from grpo_core.child.start import Limits, Main
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.formats import place_of
from grpo_core.foreign.replies import fits
from grpo_core.progress import unpolled
from grpo_core.runs.database import COMPANIONS
from grpo_core.text import tr

LIMITS = Limits(memory=4 << 30, files=256, encloses=True, answer=400 << 20)
"""Limits on a process that reads untrusted files."""
SPEED = 10_000_000
"""Number of bytes in a file for which its process gets one more second, because it may have to scan the entire file."""


SPACE, TIMES = 64 << 20, 3
"""Bytes that a process may write to its folder: this many, and this many times the size of its source."""
LOOK = 0.5
"""Seconds between two looks at the size of its folder."""
_MOST_FILES = 20_000
_BLOCK = 4096


class ReaderProcess(Asked):
    """A process that reads one source, or a spare process that has not been assigned one.

    Raises:
        GrpoError: a process cannot be started here.
    """

    def __init__(self, main: Main | None = None) -> None:
        """Start the process, whose main function is by default :func:`grpo_core.foreign.answers.serve`."""
        from grpo_core.foreign.answers import serve
        from grpo_core.packing import packed, unpacked  # many folders, which a window may never need

        super().__init__(main or serve, "{how}", pack=packed, unpack=unpacked, limits=LIMITS, error=RunFileError)

    def results(
        self, what: str, arguments: Sequence[object], poll: Poll, seconds: float | None = None
    ) -> Iterator[Any]:
        from grpo_core.foreign.answers import kind_of_reply

        def killing() -> None:
            try:
                poll()
            except BaseException:
                self.kill()  # its result is no longer needed, and it may not notice that
                raise

        kind = kind_of_reply(what)
        try:
            for result in super().results(what, arguments, killing, seconds):
                if not fits(result, kind):
                    raise self.malformed(type(result).__name__)
                yield result
        except GrpoError:
            raise
        except RuntimeError as error:  # from its message about an error that is none of ours
            raise self.malformed(error) from error

    def read(self, path: Path, scratch: Path | None, space: int | None = None) -> None:
        """Assign ``path`` to the process, which writes to ``scratch``. The error for an unexpected end names ``path``.

        If ``scratch`` comes to contain more than ``space`` bytes, by default an amount that depends on the size of the
        source, the process is killed.

        Raises:
            RunFileError: the process has already ended.
        """
        name = path.name.replace("{", "{{").replace("}", "}}")
        self.lost = tr(
            "{name} could not be read: the process that reads it has ended ({how}). Another one starts when the file "
            "is requested again."
        ).replace("{name}", name)
        if space is None:
            space = SPACE + TIMES * space_of(place_of(path))
        folder = None if scratch is None else str(scratch)
        for _ in self.results("enclose", (str(path), folder, space), unpolled, STARTING):
            pass
        if scratch is not None:
            watch = (weakref.ref(self), scratch, space_of(scratch) + space)
            threading.Thread(target=_watch, args=watch, name="space", daemon=True).start()


class LateError(RunFileError):
    """Raised if the reply takes longer than the window can wait."""


class Line:
    """Requests to the process of one source, from any number of threads, handled one at a time.

    Attributes:
        opened: results of the requests to open the source in a restarted process, by the first argument of each.
        processes: list that contains the process that reads the source; empty before the first request.
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
        """Prepare the connection without starting a process.

        Args:
            scratch: a folder to which the process writes.
            take: function that returns a process without a source.
            patience: function that returns how many seconds in total the calling thread can wait; None for no limit.
            silence: seconds without a message after which a process is considered hung.
            poll: called while waiting; an exception raised by it cancels the request.
        """
        self.path, self.poll = path, poll
        self._scratch, self._take, self._patience, self._silence = scratch, take, patience, silence
        self._read_from: object = None
        self._lock = threading.Lock()
        self.processes: list[ReaderProcess] = []
        self._late = False
        self.opened: dict[int, object] = {}
        self._end = weakref.finalize(self, _end, self.processes)

    def ask(self, what: str, *arguments: object, opening: tuple[Any, ...] = ()) -> Any:
        """Return the single result of a request.

        Args:
            opening: arguments of a request to open the source, which comes first in a restarted process; its result is
                stored in :attr:`opened` by the first of them.

        Raises:
            LateError: the calling thread cannot wait for the result.
            GrpoError: the request failed, or the process has ended.
        """
        patience = self._patience()
        if patience is None:
            with self._lock:
                result = self._asked(what, arguments, opening, None)
            self._late = False
            return result
        end = time.monotonic() + patience
        if self._late or not self._lock.acquire(timeout=patience):
            self._late = True
            raise self._too_late()
        try:
            return self._asked(what, arguments, opening, end)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process, from any thread. The next request starts a new one."""
        for process in [*self.processes]:
            process.kill()
        if self._lock.acquire(blocking=False):  # otherwise the caller would be notified of its end
            try:
                _end(self.processes)
            finally:
                self._lock.release()

    def _asked(self, what: str, arguments: Sequence[object], opening: tuple[Any, ...], end: float | None) -> Any:
        process = self.processes[0] if self.processes else None
        now = _files_of(self.path)
        if process is None or not process.usable or process.has_ended or now != self._read_from:
            _end(self.processes)
            self.opened.clear()
            process, self._read_from = self._take(), now
            self.processes.append(process)
            process.read(self.path, self._scratch)
        if opening and opening[0] not in self.opened:
            self.opened[opening[0]] = self._result(process, "open", opening, end)
        return self._result(process, what, arguments, end)

    def _result(self, process: ReaderProcess, what: str, arguments: Sequence[object], end: float | None) -> Any:
        def poll() -> None:
            if end is not None and time.monotonic() > end:
                self._late = True
                raise self._too_late()
            self.poll()

        results = process.results(what, arguments, poll, self._silence + size_of(self.path) / SPEED)
        found = [*islice(results, 2)]
        if len(found) != 1:
            raise process.malformed(tr("{count} results").format(count=len(found)))
        return found[0]

    def _too_late(self) -> LateError:
        return LateError(
            tr("{name} takes longer to read than the window can wait; it is being read in the background.").format(
                name=self.path.name
            )
        )


def _watch(watched: weakref.ref[ReaderProcess], scratch: Path, most: int) -> None:
    """Kill a process when its folder contains more than ``most`` bytes."""
    while (process := watched()) is not None and not process.has_ended:
        if space_of(scratch) > most:
            process.kill(tr("it wrote more than {size:,.0f} MB to its folder").format(size=most / 1e6))
        del process
        time.sleep(LOOK)


def space_of(path: Path) -> int:
    """Return the size in bytes of a file, or of the files in a folder, of which the first 20,000 count. An empty file
    and a folder count as a block.
    """
    total, left, folders = 0, _MOST_FILES, [path]
    if not path.is_dir():
        return sum(size_of(path.with_name(path.name + ending)) for ending in ("", *COMPANIONS))
    while folders and left > 0:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in islice(entries, left):
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry))
                total += max(entry.stat().st_size, _BLOCK)
    return total


def size_of(path: Path) -> int:
    """Return the size of a source's file in bytes, or 0 for a folder, whose files are read one by one."""
    try:
        facts = place_of(path).stat()
    except (OSError, ValueError):
        return 0
    return facts.st_size if S_ISREG(facts.st_mode) else 0


def _files_of(path: Path) -> list[tuple[int, int] | None]:
    """Return the identities of a source's file and its database's logs.

    A process can only access the files that existed when it was started.
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
    """End the process in ``holder``, if there is one. It has no state to save."""
    while holder:
        process = holder.pop()
        process.kill()
        process.close()
