"""The controller of runs trained by other programs, which are opened in a thread and followed as they grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QInputDialog

from app.clock import Timer
from app.messages.message import BarAction, Severity
from app.sessions.file_task import PATIENCE_MS, FileTasks
from app.trainers.controllers.recorded_follower import RecordedFollower
from app.trainers.recorded_run import RecordedRun, prepare
from app.workspace.cursor import Cursor
from grpo_core.errors import Cancelled, GrpoError, RunFileError
from grpo_core.foreign.readers import Readers
from grpo_core.foreign.recording import Source
from grpo_core.foreign.source import RemoteSource
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application
    from grpo_core.trainers.columns import Column
    from grpo_core.trainers.importers.series_cache import SeriesCache

TRIED = 20
"""Number of updates at the end of a run, at least one of which must be readable."""
READING, PREPARING, SERIES, NOTES = "recorded", "recorded update", "recorded series", "recorded notes"
"""Ids of the messages shown while a run, an update or series are being read, and of that about defects of a run."""
COLUMNS = "columns of"
"""Beginning of the id of the message about a table whose columns are not recognised; its path follows."""
Refusal: TypeAlias = "tuple[str, list[Column]]"
"""The reason why a table was not opened, and its columns, of which the user can say what they mean."""


class RecordedRuns(QObject):
    """Opens recorded runs and keeps them up to date.

    Signals:
        computed: emitted when the computation for one of them has ended.
    """

    computed = Signal()

    def __init__(self, program: Application, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._program, self._workspace, self._run_manager = program, program.workspace, program.run_manager
        self._messages, self._preferences = program.messages, program.preferences
        self._tasks = FileTasks(self._messages, READING, self, abandon=True)
        self.followers: dict[str, RecordedFollower] = {}
        self._approach = self._workspace.approach
        self._approach.waits = True
        self._approach.changed.connect(self._on_approach)
        self._patience = Timer(self, self._say_preparing, PATIENCE_MS)
        self._run_manager.runs_changed.connect(self._on_runs)

    @cached_property
    def cache(self) -> SeriesCache:
        from grpo_core.trainers.importers.series_cache import SeriesCache  # with all importers, 20 ms of the start

        return SeriesCache(self._program.paths.cache / "recorded")

    @property
    def busy(self) -> bool:
        return self._tasks.busy or self._approach.busy or any(follower.busy for follower in self.followers.values())

    def open(self, path: Path, otherwise: Callable[[Path], object], columns: str = "", table: str = "") -> None:
        """Show the recorded run at ``path``. A file that is not a recorded run is passed to ``otherwise``.

        ``columns`` are the chosen meanings of the columns of a kind of ``table``, which are remembered if they fit.
        """
        known, place = [run for run in self._workspace.runs if isinstance(run, RecordedRun)], path.resolve()
        already = next((x for x in known if place in (x.path.resolve(), (x.path / "trace.json").resolve())), None)
        if already is not None:
            self._run_manager.show(already)
            self._program.window.leave_alone()
        elif self._tasks.busy:
            self._tasks.when_idle(partial(self.open, path, otherwise, columns, table))
        else:
            title = tr("Reading {name}").format(name=path.name)
            remembered = self._preferences.current.columns_of
            self._tasks.start(
                title,
                partial(_read, self._workspace.readers, path, self.cache, columns, remembered),
                partial(self._show, path, otherwise, table),
            )

    def close(self) -> None:
        """Cancel reading, and stop following runs that are still being recorded."""
        self._tasks.close()
        for follower in self.followers.values():
            follower.close()
        self.followers.clear()

    def _show(
        self, path: Path, otherwise: Callable[[Path], object], table: str, run: RecordedRun | Refusal | None
    ) -> None:
        if run is None:
            otherwise(path)
            return
        if isinstance(run, tuple):
            ask = partial(self._ask_columns, path, otherwise, run[1])
            say = BarAction(text=tr("Say what its columns mean…"), run=ask, closes=False)
            self._messages.say(run[0], Severity.ERROR, say, id=f"{COLUMNS} {path}")
            return
        self._messages.remove(f"{COLUMNS} {path}")
        if table:
            self._preferences.put(self._preferences.current.with_columns(table, run.source.columns))
        self._put(run)
        self._program.preferences.remember(path)
        self._program.layouts.reset()

    def _put(self, run: RecordedRun) -> None:
        self._run_manager.add(run)
        follower = RecordedFollower(run, self._workspace.readers, self.cache, self._workspace.request_frame, self)
        follower.grown.connect(self._on_grown)
        follower.replaced.connect(self._on_replaced)
        follower.progressed.connect(self._on_progressed)
        follower.quiet.connect(self.computed)
        self.followers[run.id] = follower
        follower.start()
        self._say_notes(run)

    @Slot()
    def _on_approach(self) -> None:
        if self._approach.goal is None:
            self._patience.stop()
            self._messages.remove(PREPARING)
        else:
            self._patience.start_if_idle()

    @Slot()
    def _say_preparing(self) -> None:
        run, goal = self._approach.run, self._approach.goal
        if run is not None and goal is not None:
            text = tr("Reading step {step} …").format(step=run.label(goal.step))
            self._messages.say(text, Severity.INFO, id=PREPARING)

    def _say_notes(self, run: RecordedRun) -> None:
        if run.note:
            text = tr("{title}: {notes}").format(title=run.title, notes=run.note)
            another = BarAction(text=tr("Open another run of it"), run=partial(self._ask_sibling, run), closes=False)
            columns = run.source.columns
            forget = BarAction(text=tr("Forget what its columns mean"), run=partial(self._forget, columns))
            actions = [another] * bool(run.source.siblings) + [forget] * bool(columns)
            self._messages.say(text, Severity.INFO, *actions, id=NOTES)
        else:
            self._messages.remove(NOTES)

    def _ask_sibling(self, run: RecordedRun) -> None:
        siblings = {path.name: path for path in run.source.siblings}
        name, accepted = QInputDialog.getItem(
            self._messages.window(), tr("Open another run"), tr("Runs, the newest first"), list(siblings), 0, False
        )
        if accepted:
            self.open(siblings[name], lambda _: None)

    def _ask_columns(self, path: Path, otherwise: Callable[[Path], object], columns: Sequence[Column]) -> None:
        from app.trainers.columns_dialog import ColumnsDialog
        from grpo_core.trainers.columns import key_of

        dialog = ColumnsDialog(path.name, columns, self._messages.window())
        dialog.chosen.connect(lambda chosen: self.open(path, otherwise, chosen, key_of(columns)))
        dialog.open()

    def _forget(self, columns: str) -> None:
        """Ask again about such tables when they are opened."""
        kept = (entry for entry in self._preferences.current.tables if entry.partition(" ")[2] != columns)
        self._preferences.change(tables=tuple(kept))

    @Slot(object)
    def _on_grown(self, follower: RecordedFollower) -> None:
        self._say_notes(follower.run)
        if follower.run is self._workspace.run:
            self._workspace.head_moved()

    @Slot(object, int, int)
    def _on_progressed(self, follower: RecordedFollower, done: int, count: int) -> None:
        if done >= count:
            self._messages.remove(SERIES)
            return
        text = tr("{title}: reading its series, {done:,} of {count:,} steps …").format(
            title=follower.run.title, done=done, count=count
        )
        cancel = BarAction(text=tr("Cancel"), run=follower.stop_computing, closes=True)
        self._messages.say(text, Severity.INFO, cancel, id=SERIES)

    @Slot(object, object)
    def _on_replaced(self, follower: RecordedFollower, source: Source) -> None:
        """Replace a run with its new version, because its trainer restarted it from an earlier step."""
        old, fresh = follower.run, RecordedRun(source)
        fresh.large = old.large
        place = self._place_in(old, fresh) if self._workspace.run is old else None
        del self.followers[old.id]
        follower.close()
        follower.deleteLater()
        self._workspace.runs = [run for run in self._workspace.runs if run is not old]
        self._put(fresh)
        if place is not None:
            self._workspace.move_to(place)

    def _place_in(self, old: RecordedRun, fresh: RecordedRun) -> int | None:
        """Return the place of the current update in the run that replaces ``old``. None: the last, or it is gone."""
        if self._workspace.following or not old.source.partial:
            return None
        label = old.trainer_step(self._workspace.cursor.step)
        return None if label is None else fresh.position(label)

    @Slot()
    def _on_runs(self) -> None:
        open_here = {run.id for run in self._workspace.runs}
        for gone in self.followers.keys() - open_here:
            follower = self.followers.pop(gone)
            follower.close()
            if isinstance(follower.run.source, RemoteSource):
                follower.run.source.close()
            follower.deleteLater()


def _read(
    readers: Readers,
    path: Path,
    cache: SeriesCache,
    columns: str,
    remembered: Callable[[str], str],
    poll: Callable[[], None],
) -> RecordedRun | Refusal | None:
    """Return the run at ``path``, with its last update decoded and cached results loaded.

    Return None for a file that no importer knows, unless its name shows that another program wrote it. A table that
    cannot be opened is tried once more with what is ``remembered`` of its columns.
    """
    from grpo_core.trainers.columns import is_table, key_of

    try:
        return _opened(readers, path, cache, columns, poll)
    except Cancelled:
        raise
    except GrpoError as error:
        (found,) = readers.results("columns", path, poll=poll) if is_table(path) else ([],)
        if not found:
            raise
        if not columns and (known := remembered(key_of(found))):
            return _read(readers, path, cache, known, remembered, poll)
        return str(error), found


def _opened(
    readers: Readers, path: Path, cache: SeriesCache, columns: str, poll: Callable[[], None]
) -> RecordedRun | None:
    if columns:
        source: Source | None = readers.open(path, index=cache.folder, poll=poll, columns=columns)
    else:
        source = readers.open_known(path, index=cache.folder, poll=poll)
    if source is None:
        return None
    if not len(source):
        raise RunFileError(tr("{name} has no updates yet.").format(name=source.title))
    run = RecordedRun(source)
    run.add_numbers(cache.rows(source))
    try:
        run.adopt(prepare(source, Cursor(step=run.head)))
    except RunFileError:
        if not any(_is_readable(source, number) for number in range(run.head - 1, max(run.head - TRIED, 0), -1)):
            raise
    return run


def _is_readable(source: Source, number: int) -> bool:
    try:
        prepare(source, Cursor(step=number))
    except RunFileError:
        return False
    return True
