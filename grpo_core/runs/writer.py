"""Writer of a run file. Each update is on disk within 50 ms, and a killed process loses no committed update."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core import __version__
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.record import Origin, Step
from grpo_core.runs import series
from grpo_core.runs.checks import note_checks
from grpo_core.runs.creation import build
from grpo_core.runs.database import RunConnection, explained, opened, transaction
from grpo_core.runs.files import files_of, folded, lock, release, replacing, size_of
from grpo_core.runs.layout import encoded, layout_id
from grpo_core.runs.limits import why_full
from grpo_core.runs.meta import RunMeta, all_rows, raise_needs
from grpo_core.runs.reader import RunReader
from grpo_core.runs.watch import FileWatch, LostFileError
from grpo_core.text import tr

if TYPE_CHECKING:
    from filelock import BaseFileLock

COMMIT_EVERY = 0.05
"""Minimum number of seconds between two commits. The first update appended after that commits all pending ones."""
LIMIT = 2_000_000_000
"""Size in bytes at which a run is paused."""


class PendingUpdates:
    """Rows that are created when an update is appended and stored together in the next commit.

    Several updates with the same layout or settings share one row, which is stored with the first of them.

    Attributes:
        last: number of the last update that was added, whether or not it has been stored.
    """

    def __init__(self, *, last: int, settings_id: int, settings: Settings, changes: int) -> None:
        self.last = last
        self.changes = changes
        self._settings_id, self._settings = settings_id, settings
        self._steps: list[tuple[int, str, int, int, bytes]] = []
        self._scalars: list[tuple[int, bytes]] = []
        self._new_settings: list[tuple[int, str]] = []
        self._needs = set[str]()

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def bytes(self) -> int:
        """Size in bytes of the pending records and values."""
        return sum(len(row[-1]) for row in self._steps) + sum(len(data) for _, data in self._scalars)

    def add(self, step: Step, scalars: Mapping[str, float] | None) -> None:
        """Encode the next update. ``scalars`` are its metrics, if already computed.

        Raises:
            ValueError: it does not follow the last update.
        """
        if step.step != self.last + 1:
            raise ValueError(f"update {step.step} cannot follow update {self.last}")
        layout, record = encoded(step)
        row = series.scalars(step, scalars)
        crc = zlib.crc32(record)
        self._steps.append((step.step, layout, self._settings_of(step), crc, record))
        self._scalars.append((step.step, row))
        self.last = step.step

    def store(self, sql: RunConnection) -> None:
        """Write all pending rows, within the caller's transaction."""
        layouts = {layout: layout_id(sql, layout) for layout in dict.fromkeys(row[1] for row in self._steps)}
        sql.executemany("INSERT OR REPLACE INTO settings(id, json) VALUES (?, ?)", self._new_settings)
        if self._needs:
            raise_needs(sql, *self._needs)
        if self._new_settings or any(new for _, new in layouts.values()):
            note_checks(sql, "layout", "settings")
        rows = [(step, layouts[layout][0], *others) for step, layout, *others in self._steps]
        sql.executemany("INSERT INTO step(step, layout, settings, crc, record) VALUES (?, ?, ?, ?, ?)", rows)
        series.append(sql, self._scalars)

    def clear(self) -> None:
        """Discard the rows after the transaction that stored them has succeeded."""
        for waiting in (self._new_settings, self._steps, self._scalars, self._needs):
            waiting.clear()

    def _settings_of(self, step: Step) -> int:
        if step.settings is not self._settings and step.settings != self._settings:
            self._settings_id = step.step
            self.changes += 1
            self._new_settings.append((step.step, step.settings.stored()))
            self._needs.add(step.settings.needs)
        self._settings = step.settings
        return self._settings_id


class RunWriter(AbstractContextManager["RunWriter"]):
    """The only writing connection of a run file. Created, used and closed in one thread.

    If writing fails (for example because the disk is full), the call raises :class:`RunFileError`, committed updates
    remain readable, and pending ones are kept: the next :meth:`commit` writes them when there is space.

    Attributes:
        committed: number of the last committed update.
        limit: size in bytes at which :attr:`full` is set; can be raised.
        full: why no further update should be computed, as a sentence, or None; updated at each commit.
    """

    def __init__(self, path: Path, file_lock: BaseFileLock, connection: RunConnection, limit: int) -> None:
        self.path = path
        self.limit = limit
        self._lock = file_lock
        self._connection = connection
        reader = RunReader(path, connection)
        self.meta: RunMeta = reader.meta
        if any(stretch.last > reader.last for stretch in reader.thinned):
            raise RunFileError(tr("The run claims that more was thinned out than it contained; the file is damaged."))
        self.committed = reader.last
        changes = reader.settings_changes()
        settings_id, settings = changes[-1]
        self._pending = PendingUpdates(
            last=reader.last, settings_id=settings_id, settings=settings, changes=len(changes)
        )
        self._committed_at = time.monotonic()
        self.watch = FileWatch(path, connection, self.meta.id)
        self._lost: LostFileError | None = None
        self.full: str | None = None

    @classmethod
    def create(
        cls,
        path: str | Path,
        settings: Settings,
        *,
        title: str = "",
        parent: tuple[RunReader, int] | None = None,
        resumed: Step | None = None,
        origin: Origin | None = None,
        limit: int = LIMIT,
    ) -> RunWriter:
        """Create a run file.

        Args:
            parent: (reader of the parent, update) from which to branch off; that update is stored in the file, so that
                the branch can be resumed from this file alone.
            resumed: that update with the weights from which to continue, if these differ from the parent's.
            origin: the state of the run before its first update; by default the learner's, or the parent's.
            limit: size in bytes at which the run should be paused.

        Raises:
            RunFileError: the file already exists, the folder cannot be written, or the parent lacks that update.
        """
        path = Path(path)
        reader, point = parent or (None, 0)
        meta = RunMeta(
            id=uuid.uuid4().hex,
            title=title,
            created=time.time(),
            settings=settings,
            parent=None if reader is None else (reader.meta.id, point),
            parent_path="" if reader is None else str(reader.path.absolute()),
            version=__version__,
        )
        if origin is None:
            origin = reader.origin if reader is not None and point else _origin(settings)
        file_lock = lock(path)
        try:
            if path.exists():
                raise RunFileError(tr("{name} already exists; choose another name.").format(name=path.name))
            with replacing(path) as temporary:
                build(temporary, meta, origin, parent, resumed)
            return cls._opened(path, file_lock, limit)
        except BaseException:
            release(file_lock)
            raise

    @classmethod
    def open(cls, path: str | Path, *, limit: int = LIMIT) -> RunWriter:
        """Continue an existing run file.

        Raises:
            RunFileError: it is being written elsewhere, read-only, from a newer version, damaged or not a run file.
        """
        path = Path(path)
        opened(path).close()  # report a missing or foreign file before a lock file appears next to it
        file_lock = lock(path)
        try:
            return cls._opened(path, file_lock, limit)
        except BaseException:
            release(file_lock)
            raise

    @classmethod
    def _opened(cls, path: Path, file_lock: BaseFileLock, limit: int) -> RunWriter:
        connection = opened(path, writable=True)
        try:
            if connection.newer:
                raise RunFileError(
                    tr(
                        "{name} was written by a newer version of GRPO Lab; it can be read here, but not continued."
                    ).format(name=path.name)
                )
            with explained(path, "written"):
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA wal_autocheckpoint=0")  # done by FileWatch.committed
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute("PRAGMA journal_size_limit=16000000")
                connection.execute("PRAGMA secure_delete=OFF")
                connection.execute("UPDATE meta SET value = 0 WHERE key = 'ended'")
            writer = cls(path, file_lock, connection, limit)
            with explained(path):
                rows = all_rows(connection)
            connection.allow_writing()
            if rows.get("series") != series.NAMES_JSON:  # another version wrote other series
                writer.rebuild_series()
            return writer
        except BaseException:
            connection.close()
            raise

    def append(self, step: Step, scalars: Mapping[str, float] | None = None) -> None:
        """Append the next update. Commits if 50 ms have passed since the last commit. ``scalars`` are its metrics, if
        already computed.

        Raises:
            RunFileError: writing failed; ``step`` is kept for the next successful commit.
            ValueError: it does not follow the last update.
        """
        self.extend([(step, scalars)])

    def extend(self, updates: Iterable[tuple[Step, Mapping[str, float] | None]]) -> None:
        """Append the next updates, each with its metrics or None.

        If 50 ms have passed since the last commit, all or none of them are committed.

        Raises:
            RunFileError: writing failed; the updates are kept for the next successful commit.
            ValueError: one of them does not follow the last update.
        """
        for step, scalars in updates:
            self._pending.add(step, scalars)
        if time.monotonic() - self._committed_at >= COMMIT_EVERY:
            self.commit()

    def commit(self) -> None:
        """Write all pending updates to disk. Call this before waiting for anything.

        Raises:
            LostFileError: the file is no longer at its path; its content and these updates are saved elsewhere.
            RunFileError: writing failed; the updates are kept for the next attempt.
        """
        self._committed_at = time.monotonic()
        if self._lost is not None:
            raise self._lost
        if not self._pending:
            return
        if self.watch.cut_short():  # further writing would fill the gap with zeros
            self._look_after_the_file()
        try:
            with explained(self.path, "written"), transaction(self._connection):
                self._pending.store(self._connection)
                series.fold(self._connection, self._pending.last)
            with explained(self.path, "written"):
                self.watch.committed(self._pending.bytes)
        except RunFileError:
            self._look_after_the_file()  # which may be the reason
            raise
        self._pending.clear()
        self.committed = self._pending.last
        self._look_after_the_file()
        self.full = why_full(
            self.path,
            updates=self.committed,
            changes=self._pending.changes,
            limit=self.limit,
            below_limit=size_of(self.path) < self.limit,
        )

    def _look_after_the_file(self) -> None:
        """Check, after each commit, that the file is still reachable by its path."""
        changed = self.watch.changed()
        if changed:
            self._lost = self.watch.lost(changed, self._pending.last if self.watch.short else self.committed)
            raise self._lost

    def keep_answer(self, question: AnyQuestion, answer: AnyAnswer) -> None:
        """Write the model's answer to a question to disk.

        Raises:
            RunFileError: writing failed.
        """
        with explained(self.path, "written"), transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO answer(step, question, answer) VALUES (?, ?, ?)",
                (question.step, question.to_json(), answer.to_json()),
            )
            note_checks(self._connection, "answer")

    def rebuild_series(self) -> None:
        """Recompute every series from this file's updates.

        Raises:
            RunFileError: an update is damaged, or writing failed.
        """
        self.commit()
        values = RunReader(self.path, self._connection).rebuilt_series()
        self._connection.allow_writing()
        with explained(self.path, "written"), transaction(self._connection):
            series.store(self._connection, values)
            self._connection.execute("UPDATE meta SET value = ? WHERE key = 'series'", (series.NAMES_JSON,))
            note_checks(self._connection, "series")

    def close(self) -> None:
        """Commit, mark the run as properly ended, and leave a single file unless a reader still has it open.

        Raises:
            RunFileError: the last updates could not be written, or the file is no longer at its path; the writer is
                closed in any case.
        """
        try:
            self.commit()
            self._look_after_the_file()
            with explained(self.path, "written"):
                self._connection.execute("UPDATE meta SET value = 1 WHERE key = 'ended'")
        finally:
            self._connection.close()
            if self._lost is None:
                with suppress(RunFileError):
                    folded(self.path)
            elif self._lost.saved is not None:
                with suppress(OSError):  # its log would be applied to the file that has replaced it
                    for beside in files_of(self.path):
                        if beside != self.path:
                            beside.unlink()
            release(self._lock)

    def __exit__(self, *_: object) -> None:
        self.close()


def _origin(settings: Settings) -> Origin:
    from grpo_core.learners import origin  # the learners are not needed to read a run

    return origin(settings)
