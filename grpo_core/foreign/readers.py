"""Access to untrusted files through processes that each read one file. A spare process is kept ready."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grpo_core.child.answering import Poll
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.formats import knows, open_source
from grpo_core.foreign.line import SPEED, Line, ReaderProcess, size_of
from grpo_core.foreign.recording import Source
from grpo_core.foreign.source import RemoteSource
from grpo_core.progress import unpolled
from grpo_core.runs.database import explained
from grpo_core.text import tr

if TYPE_CHECKING:
    from grpo_core.lm.prompt_file import Prompts
    from grpo_core.runs.manifest import Manifest

SILENCE = 60.0
"""Seconds without a message after which a reading process is considered hung."""
MOST_FOLDERS = 200
"""Maximum number of sources for which the cache contains data."""
IN_SIGHT = 2.0
"""Seconds that the window's main thread waits for a reply."""


SPARE_AFTER = 3.0
"""Seconds to wait after opening a source before starting a spare process, so that drawing is not slowed down."""


class Readers:
    """Readers of untrusted files. Each is a separate process, or the calling thread if processes are not used.

    Attributes:
        own_process: whether processes are started.
        spare: a process without a source; None if there is none.
        lines: connections to the processes of the open sources.
    """

    def __init__(self, *, own_process: bool, window: bool = False, silence: float = SILENCE, columns: str = "") -> None:
        """Create readers without starting a process.

        Args:
            window: whether the main thread draws a window; it then waits only briefly, and a spare process is kept.
            silence: seconds without a message after which a process is considered hung.
            columns: what columns of the user's own mean (:func:`grpo_core.foreign.formats.open_source`).
        """
        self.own_process, self._columns = own_process, columns
        self._window, self._silence = window, silence
        self._lock = threading.Lock()
        self.spare: ReaderProcess | None = None
        self._closed = False
        self.lines: weakref.WeakSet[Line] = weakref.WeakSet()

    def warm(self, after: float = 0.0) -> None:
        """Start a spare process from a thread, after ``after`` seconds."""
        if self.own_process:
            timer = threading.Timer(after, self._warm)
            timer.name, timer.daemon = "spare", True
            timer.start()

    def open(
        self,
        path: Path,
        *,
        index: Path | None = None,
        poll: Poll = unpolled,
        scratch: Path | None = None,
        columns: str = "",
    ) -> Source:
        """Open the recorded run at ``path`` (:func:`grpo_core.foreign.formats.open_source`). ``poll`` can cancel this.

        The process that reads it writes to its own folder in ``index``, or to ``scratch``. ``columns`` are those of
        this source alone.

        Raises:
            RunFileError: it cannot be read, or the process that reads it has ended.
        """
        columns = columns or self._columns
        if not self.own_process:
            return open_source(path, index=index, columns=columns)
        folder = None if index is None else scratch_of(path, index, columns)
        line = self._line(path, scratch if folder is None else folder, poll)
        return self._opened(line, path, folder, columns)

    def open_known(self, path: Path, *, index: Path, poll: Poll = unpolled) -> Source | None:
        """Open like :meth:`open`, but return None for an unknown format, unless the name is typical of a trainer."""
        if not self.own_process:
            return open_source(path, index=index) if knows(path) else None
        folder = scratch_of(path, index)
        line = self._line(path, folder, poll)
        return self._opened(line, path, folder) if line.ask("known", str(path)) else None

    def results(
        self,
        what: str,
        path: Path,
        *arguments: object,
        poll: Poll,
        scratch: Path | None = None,
        space: int | None = None,
    ) -> Iterator[Any]:
        """Yield results that a process reads or computes from ``path``, as they arrive. The process ends afterwards.

        Args:
            what: a name in :func:`grpo_core.foreign.answers.files_table`.
            poll: called while waiting; an exception raised by it cancels the request.
            scratch: the folder to which the process can write; by default one that is deleted afterwards.
            space: number of bytes that it can write there (:meth:`grpo_core.foreign.line.ReaderProcess.read`).

        Raises:
            Cancelled: ``poll`` raised it.
            GrpoError: it cannot be read, or the process has ended.
        """
        if not self.own_process:
            from grpo_core.foreign.answers import files_table

            yield from files_table()[what](str(path), *arguments, poll=poll)
            return
        process = self._taken()
        try:
            with tempfile.TemporaryDirectory(prefix="grpo-lab-reader-", ignore_cleanup_errors=True) as own:
                process.read(path, Path(own) if scratch is None else scratch, space)
                silence = self._silence + size_of(path) / SPEED
                yield from process.results(what, (str(path), *arguments), poll, silence)
        finally:
            process.kill()
            process.close()

    def prompts(self, path: Path, *, checker: str, longest: int | None, poll: Poll) -> Prompts:
        """Read prompts like :func:`grpo_core.lm.prompt_file.read_prompts`."""
        from grpo_core.lm.prompt_file import Prompts

        ((texts, answers, systems, left_out),) = self.results("prompts", path, checker, longest, poll=poll)
        having = {text: system for text, system in zip(texts, systems, strict=True) if system}
        return Prompts(dict(zip(texts, answers, strict=True)), having, left_out)

    def session(self, path: Path, folder: Path, poll: Poll) -> tuple[Manifest, tuple[Path, ...]]:
        """Copy the runs of a session file to ``folder`` under new names, either all of them or none.

        See :func:`grpo_core.runs.session.open_session`.
        """
        from grpo_core.runs.manifest import manifest_from
        from grpo_core.runs.session import LARGEST, adopt_copies

        with explained(folder, "written"):
            folder.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix=".session-", dir=folder)
        with scratch as name:
            ((text, copies),) = self.results("session", path, name, poll=poll, scratch=Path(name), space=LARGEST)
            manifest = manifest_from(text.encode("utf-8"), path.name)
            return manifest, adopt_copies(manifest, [Path(name) / Path(copy).name for copy in copies], folder)

    def is_converted(self, path: Path, *, poll: Poll) -> bool:
        """Return whether another trainer's run was converted into the run file at ``path``.

        Raises:
            GrpoError: it cannot be read.
        """
        (converted,) = self.results("converted_run", path, poll=poll)
        return bool(converted)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spare, self.spare = self.spare, None
        for line in [*self.lines]:
            line.close()
        if spare is not None:
            spare.kill()
            spare.close()

    def _line(self, path: Path, scratch: Path | None, poll: Poll) -> Line:
        line = Line(path, scratch, self._taken, self._patience, self._silence, poll)
        self.lines.add(line)
        return line

    def _opened(self, line: Line, path: Path, folder: Path | None, columns: str = "") -> RemoteSource:
        facts = line.ask("open", 0, str(path), None if folder is None else str(folder), columns)
        line.opened[0] = None
        if self._window:
            self.warm(SPARE_AFTER)
        return RemoteSource(line, path, folder, 0, facts, columns)

    def _patience(self) -> float | None:
        waits = not self._window or threading.current_thread() is not threading.main_thread()
        return None if waits else IN_SIGHT

    def _taken(self) -> ReaderProcess:
        with self._lock:
            if self._closed:
                raise RunFileError(tr("The program is closing; nothing more is read."))
            process, self.spare = self.spare, None
        if process is None or process.has_ended:
            process = ReaderProcess()
        return process

    def _warm(self) -> None:
        with suppress(GrpoError), self._lock:
            if self.spare is None and not self._closed:
                self.spare = ReaderProcess()


def scratch_of(path: Path, cache: Path, columns: str = "") -> Path:
    """Return the folder in ``cache`` reserved for the source at ``path``, read with these ``columns``.

    The least recently used folders are deleted if there are too many. If the folder cannot be created, the source is
    read without one.
    """
    key = os.fsencode(path.absolute()) + columns.encode("utf-8", "surrogatepass")
    scratch = cache / hashlib.sha256(key).hexdigest()[:32]
    with suppress(OSError):
        scratch.mkdir(parents=True, exist_ok=True)
        os.utime(scratch)
        folders = sorted(
            (entry for entry in cache.iterdir() if entry.is_dir()), key=lambda entry: entry.stat().st_mtime
        )
        for old in folders[: max(len(folders) - MOST_FOLDERS, 0)]:
            shutil.rmtree(old, ignore_errors=True)
    return scratch


@contextmanager
def recorded(path: Path, poll: Callable[[], None], columns: str = "") -> Iterator[Source]:
    """Open the recorded run at ``path`` in a process that ends with the block. ``poll`` can cancel a request.

    ``columns`` says what columns of the user's own mean (:func:`grpo_core.foreign.formats.open_source`).

    Raises:
        RunFileError: it cannot be read, or the process that reads it has ended.
    """
    with tempfile.TemporaryDirectory(prefix="grpo-lab-reader-", ignore_cleanup_errors=True) as scratch:
        readers = Readers(own_process=True, columns=columns)
        try:
            yield readers.open(path, poll=poll, scratch=Path(scratch))
        finally:
            readers.close()


def probed() -> dict[str, str]:
    """Return what a process that reads a file could do outside of its sandbox (:func:`grpo_core.foreign.probes.probe`).

    Raises:
        GrpoError: no process can be started here, or it has ended.
    """
    with tempfile.TemporaryDirectory(prefix="grpo-lab-probe-") as name:
        source, secret = Path(name, "source.txt"), Path(name, "user", "secret")
        secret.parent.mkdir()
        for file in (source, secret, secret.with_name("deleted")):
            file.write_bytes(b"secret")
        (outcomes,) = Readers(own_process=True).results("probe", source, str(secret), poll=unpolled)
        return {str(attempt): str(outcome) for attempt, outcome in outcomes.items()}
