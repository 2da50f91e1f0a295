"""Detection that a run file being written is no longer at its path, and recovery of its content.

On POSIX a file can be deleted, moved or replaced while it is open. SQLite then continues to write to a file without a
name, without an error, and everything is lost when the last handle is closed. While that handle is open, everything can
be read and saved under another name. If the file was truncated, the part before the cut can be read (``salvage.py``).
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.runs.database import RunConnection, connected, opened
from grpo_core.runs.files import replacing
from grpo_core.runs.library import free_name
from grpo_core.runs.salvage import salvage
from grpo_core.runs.verify import verified
from grpo_core.text import tr

LONG_LOG = 4_000_000
"""Size in bytes of SQLite's log at which it is merged into the file."""


PAGES_OF_A_COMMIT = 32_000
"""Number of bytes by which a commit extends that log in addition to its records."""


class LostFileError(RunFileError):
    """Raised if the file of a run is no longer at its path. The message says what was saved, and where.

    Attributes:
        saved: path of a copy of all committed updates; None if they could not be saved.
    """

    def __init__(self, message: str, saved: Path | None) -> None:
        self.saved = saved
        super().__init__(message)


class FileWatch:
    """Watches the file of one writing connection. It is ``short`` once it was found truncated or overwritten."""

    def __init__(self, path: Path, connection: RunConnection, run_id: str) -> None:
        self._path, self._connection, self._id = path, connection, run_id
        self._device, self.number, self._size = self._state() or (0, 0, 0)
        self._written, self._in_log = self._when(), 0
        self.short = False

    def committed(self, size: int) -> None:
        """Record that about ``size`` bytes were committed to SQLite's log, and merge it into the file if it is long.

        SQLite would do this by itself at an unknown time. This way, any other change of the file is known to come from
        another program.
        """
        self._in_log += size + PAGES_OF_A_COMMIT
        if self._in_log >= LONG_LOG and self._when() == self._written:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._written, self._in_log = self._when(), 0

    def cut_short(self) -> bool:
        """Return whether the same file has fewer bytes than at the last check."""
        device, number, size = self._state() or (self._device, self.number, self._size)
        return (device, number) == (self._device, self.number) and size < self._size

    def changed(self) -> str:
        """Describe how the file has changed, as words that follow its name in a sentence. Empty if it has not."""
        state = self._state()
        if state is None:
            return tr("no longer exists")
        device, number, size = state
        if (device, number) != (self._device, self.number) and not self._is_ours():
            return tr("has been replaced by another file")
        if size < self._size:
            self.short = True
            return tr("has been cut short by another program")
        self._device, self.number, self._size = state
        if (when := self._when()) != self._written:
            self._written = when
            if not self._is_whole():
                self.short = True
                return tr("has been overwritten by another program")
        return ""

    def lost(self, what: str, committed: int) -> LostFileError:
        """Save everything that the open handle can read, and return the error that describes the change.

        ``what`` is the description from :meth:`changed`.
        """
        name, saved = self._path.name, self._saved(committed)
        if saved is None:
            sentence = (
                tr(
                    "{name} {what}, and no update can be read from what is left of it. The run is paused; its "
                    "updates up to {committed:,} are lost."
                )
                if self.short
                else tr(
                    "{name} {what}, and its contents could not be saved elsewhere. The run is paused; check whether "
                    "its disk is still connected."
                )
            )
            return LostFileError(sentence.format(name=name, what=what, committed=committed), None)
        path, last = saved
        sentence = (
            tr(
                "{name} {what}. The run is paused. Everything up to update {last:,} is saved as {saved}; updates "
                "{first:,} to {committed:,} are lost. Open that file to continue from there."
            )
            if last < committed
            else tr(
                "{name} {what}. The run is paused, and everything up to update {committed:,} is saved as {saved}; "
                "open that file to continue."
            )
        )
        return LostFileError(
            sentence.format(name=name, what=what, last=last, saved=path, first=last + 1, committed=committed), path
        )

    def _saved(self, committed: int) -> tuple[Path, int] | None:
        """Return the path of the recovered file and its last update. None if nothing can be saved."""
        name = tr("{run} (saved)").format(run=self._path.stem) + self._path.suffix
        # the folder of the run, if it still exists, otherwise a new one that only the user can access
        for folder in (self._path.parent, None):
            with suppress(RunFileError, sqlite3.Error, OSError):
                target = free_name((folder or Path(tempfile.mkdtemp(prefix="grpo-lab-saved-"))) / name)
                with replacing(target) as temporary:
                    if self.short:
                        last, _ = salvage(self._connection, self._path.name, temporary)
                    else:
                        self._copy(temporary)
                        last = committed
                return target, last
        return None

    def _copy(self, temporary: Path) -> None:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
            self._connection.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("UPDATE meta SET value = 1 WHERE key = 'ended'")
        opened(temporary).close()  # raises if the file was damaged

    def _is_ours(self) -> bool:
        """Return whether the file at the path is the same run despite another inode number (some network drives)."""
        with suppress(GrpoError, sqlite3.Error):
            # Without its log, which SQLite would read into any file at the path.
            with closing(connected(self._path, "immutable=1")) as alone:
                if alone.execute("SELECT value FROM meta WHERE key = 'id'").fetchone() != (self._id,):
                    return False
            with closing(opened(self._path)) as other:
                query = "SELECT (SELECT value FROM meta WHERE key = 'id'), (SELECT max(step) FROM step)"
                return bool(other.execute(query).fetchone() == self._connection.execute(query).fetchone())
        return False

    def _is_whole(self) -> bool:
        """Return whether every row of the file matches its checksum when read again from the disk."""
        try:
            return not any(part.damaged for part in verified(self._path))
        except RunFileError:
            return False

    def _when(self) -> int:
        """Return the time of the last write to the file in nanoseconds, or 0 if there is no such file."""
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0

    def _state(self) -> tuple[int, int, int] | None:
        """Return (device, inode number, size) of the file at the path. None if there is no file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_size
