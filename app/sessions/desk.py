"""Saving and opening sessions: the window's state on one side, the session file on the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Slot

from app.messages.message_bar import BarAction, Message, Severity
from app.plotting.numbers import in_bytes
from app.sessions.errand import Errand, Work
from app.sessions.place import LessonPlace, found
from app.window.layouts import LAYOUTS, layout_for
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.lm.kept_prompts import read_ahead
from grpo_core.runs.session import Manifest, SessionRun, open_session, save_session
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

PATIENCE_MS = 300
"""Nothing is said of a wait that is shorter."""
BUSY = "session"


class SessionDesk(QObject):
    """Sends errands for session files and puts what they bring into the window, one at a time.

    Attributes:
        place: keeps on disk where a lesson stands.
    """

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._p = program
        self._errand: Errand | None = None
        self._then: Callable[[Any], None] = _nothing
        self._doing = ""
        self._opening = False
        self._waiting: list[Path] = []
        self.place = LessonPlace(program)
        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.setInterval(PATIENCE_MS)
        self._late.timeout.connect(self._on_late)

    @property
    def busy(self) -> bool:
        """Whether a session is being written or read."""
        return self._errand is not None

    # -- saving ------------------------------------------------------------------------------------------------------

    def save(self, target: Path) -> None:
        """Write what the window shows, and the runs that have updates, to ``target``."""
        if self._p.workspace.training is not None:
            self._p.controller.commit()
        lesson_player = self._p.lessons.player
        runs = [run for run in self._p.workspace.runs if run.path.exists() and not lesson_player.owns(run)]
        manifest, paths = self._manifest(runs), [run.path for run in runs]
        work: Work = partial(save_session, target, manifest, paths)
        self._send(work, partial(self._saved, target), tr("Saving {name}").format(name=target.name))
        run = self._p.workspace.run if lesson_player.former is None else lesson_player.former.run
        if run is not None and run.branched_at is not None and run not in runs:
            self._p.say(
                tr("{title} has no update of its own yet, so the session begins at update 0.").format(title=run.title),
                "warning",
            )

    def _manifest(self, runs: list[RunHandle]) -> Manifest:
        """The window as a session describes it; of a lesson, which one and where, and the place that it gives back."""
        workspace, editing, lesson_player = self._p.workspace, self._p.workspace.editing, self._p.lessons.player
        former, lesson = lesson_player.former, lesson_player.lesson
        run = workspace.run if former is None else former.run
        shown = self._p.preferences.layout
        docks = self._p.window.docks
        return Manifest(
            runs=tuple(SessionRun(title=run.title) for run in runs),
            shown=runs.index(run) if run in runs else None,
            step=workspace.cursor.step if former is None else former.cursor.step,
            settings=editing.wanted if former is None else former.wanted,
            layout=shown if shown in LAYOUTS else "",
            panels=tuple(name for name, dock in docks.items() if not dock.isHidden()) if lesson is None else (),
            locked=tuple(sorted(editing.locked)),
            hidden=tuple(sorted(editing.hidden)),
            notes=self._p.presenter.speaker.text[:1_000_000].replace("\0", ""),
            lesson=lesson.id if lesson is not None else "",
            lesson_step=lesson_player.place if lesson is not None else 0,
            created=time.time(),
        )

    def _saved(self, target: Path, manifest: Manifest) -> None:
        count = sum(run.listed for run in manifest.runs)
        runs = tr("no run") if not count else tr("1 run") if count == 1 else tr("{count} runs").format(count=count)
        parts = [runs, in_bytes(target.stat().st_size if target.exists() else 0)]
        lesson = found(self._p, manifest.lesson) if manifest.lesson else None
        if lesson is not None:
            step = tr("lesson {number} at step {step}").format(number=lesson.number, step=manifest.lesson_step + 1)
            parts.insert(0, step)
        said = tr("The session is saved as {target}: {parts}.").format(target=target, parts=", ".join(parts))
        self._p.say(said, "info")
        self._p.deeds.remember(target)

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Copy the runs of a session to the user's own, and show them as it says; after one that is being opened."""
        if self._opening:
            self._waiting.append(path)
            return
        self._opening = self._errand is None
        folder = self._p.run_manager.folder
        work: Work = partial(_opened_with_prompts, path, folder)
        self._send(work, partial(self._opened, path), tr("Opening {name}").format(name=path.name))

    def _opened(self, path: Path, found: tuple[Manifest, tuple[Path, ...]]) -> None:
        manifest, copies = found
        blank = self._p.workspace.run
        handles = self._open_runs(manifest, copies)
        if manifest.shown is None and manifest.settings is not None:
            handles.append(self._new_run(manifest.settings))
        elif manifest.shown is not None and (front := handles[manifest.shown]) is not None:
            self._p.run_manager.show(front)
        if blank is not None and any(handles) and blank not in handles and not blank.head and not blank.path.exists():
            self._p.run_manager.close_run(blank)
        self._put(manifest)
        self._give(manifest)
        self._p.say(
            tr("{name} is open. You work on copies; the session file stays as it is.").format(name=path.name), "info"
        )
        self._p.deeds.remember(path)

    def _open_runs(self, manifest: Manifest, copies: tuple[Path, ...]) -> list[RunHandle | None]:
        """The runs of the session, opened; None for those that only hold the first updates of a branch."""
        handles: list[RunHandle | None] = []
        for run, copy in zip(manifest.runs, copies, strict=True):
            try:
                handles.append(self._p.run_manager.open(copy) if run.listed else None)
            except GrpoError as error:
                self._p.say(str(error), "error")
                handles.append(None)
        return handles

    def _new_run(self, settings: Settings) -> RunHandle | None:
        """A new run under the session's settings; None where its prompts cannot be used, which is told."""
        try:
            return self._p.run_manager.new_run(settings)
        except GrpoError as error:
            self._p.say(str(error), "error")
            return None

    def _put(self, manifest: Manifest) -> None:
        """Settings, controls, layout, notes and the place in the run."""
        workspace, window = self._p.workspace, self._p.window
        wanted, run = manifest.settings, workspace.run
        if wanted is not None and run is not None and wanted.is_language == run.origin.settings.is_language:
            workspace.editing.put(wanted)  # those of the other kind belong to a run that could not be opened
        workspace.editing.restrict(manifest.locked, manifest.hidden)
        if manifest.shown is not None:
            workspace.move_to(manifest.step)
        if manifest.notes:
            self._p.presenter.speaker.set_text(manifest.notes)
            self._p.presenter.notes.save()
        if self._p.presenter.active:  # then the class sees the layout Present
            return
        language = workspace.run is not None and workspace.run.origin.settings.is_language
        self._p.deeds.set_layout(manifest.layout if manifest.layout in LAYOUTS else layout_for(language))
        for name, dock in window.docks.items():
            if manifest.panels and dock.isHidden() == (name in manifest.panels):
                dock.setVisible(name in manifest.panels)

    def _give(self, manifest: Manifest) -> None:
        """The lesson in which the session was saved."""
        lesson = found(self._p, manifest.lesson) if manifest.lesson else None
        if lesson is not None:
            self._p.lessons.player.open(lesson, manifest.lesson_step)
        elif manifest.lesson:
            self._p.say(
                tr("The session was saved in the lesson “{lesson}”, which this version does not have.").format(
                    lesson=manifest.lesson
                )
            )

    # -- errands -----------------------------------------------------------------------------------------------------

    def _send(self, work: Work, then: Callable[[Any], None], doing: str) -> None:
        if self._errand is not None:
            self._p.say(tr("{doing} is not finished yet; try again then.").format(doing=self._doing), "warning")
            return
        self._then, self._doing = then, doing
        self._errand = Errand(work, self)
        self._errand.done.connect(self._on_done)
        self._errand.failed.connect(self._on_failed)
        self._late.start()
        self._errand.start()

    @Slot()
    def _on_late(self) -> None:
        cancel = BarAction(text=tr("Cancel"), run=self.cancel, closes=False)
        self._p.window.messages.post(
            Message(text=f"{self._doing} …", severity=Severity.INFO, actions=(cancel,), id=BUSY)
        )

    def cancel(self) -> None:
        """Give up what is being written or read; nothing of it is left."""
        if self._errand is not None:
            self._errand.cancel()

    @Slot(object)
    def _on_done(self, result: object) -> None:
        self._end()
        self._then(result)
        self._next()

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._end()
        self._p.say(sentence or tr("{doing} was cancelled.").format(doing=self._doing), "error" if sentence else "info")
        self._next()

    def _next(self) -> None:
        """The next of several sessions that were asked for together."""
        if self._waiting and self._errand is None:
            self.open(self._waiting.pop(0))

    def _end(self) -> None:
        self._late.stop()
        self._opening = False
        self._p.window.messages.remove(BUSY)
        if self._errand is not None:
            self._errand.wait()
            self._errand.deleteLater()
            self._errand = None

    def close(self) -> None:
        """The program closes: a half-written session is given up, and leaves nothing."""
        self._waiting.clear()
        if self._errand is not None:
            self._errand.done.disconnect(self._on_done)
            self._errand.failed.disconnect(self._on_failed)
            self._errand.cancel()
            self._end()


def _nothing(result: object) -> None:
    return None


def _opened_with_prompts(path: Path, folder: Path, cancelled: Callable[[], bool]) -> tuple[Manifest, tuple[Path, ...]]:
    """As :func:`open_session`; the prompts of the new run that it shows are at hand then."""
    manifest, copies = open_session(path, folder, cancelled)
    if manifest.shown is None and manifest.settings is not None:
        read_ahead(manifest.settings, cancelled)
    return manifest, copies
