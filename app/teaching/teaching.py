"""Additions of the part for teaching to a window: lessons, presenting, homework, rehearsals, handouts and pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Slot

from app.commands.command import Command
from app.controllers.export import file_name
from app.part import WindowPart
from app.settings.files import exists
from app.teaching.commands import teaching_commands
from app.teaching.controllers.homework import HomeworkController
from app.teaching.controllers.lessons import LessonController
from app.teaching.controllers.presenter import Presenter
from app.teaching.lessons.own import is_lesson_file
from app.teaching.lessons.recovery import LessonRecovery
from app.teaching.lessons.runs import SavedState
from app.teaching.panel_rows import LESSON
from app.widgets.door import Door
from app.widgets.panel import Panel
from app.workspace.run_handle import RunHandle
from app.workspace.window_mode import Takeover
from grpo_core.runs.session import Manifest
from grpo_core.teaching.lessons import nearest
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application
    from app.teaching.export.rehearsal_window import RehearsalWindow

LONGEST_NOTES = 1_000_000
SUFFIXES = (".grpo", ".grposession")
"""Suffixes of arguments that denote files rather than lessons."""
HANDOUTS, PAGES = tr("PDF (*.pdf)"), tr("Web page (*.html)")


class Teaching(WindowPart, Takeover):
    """The controllers of lessons, presenting and homework in one window.

    Attributes:
        rehearsal: the window of the latest rehearsal; None before the first.
    """

    name = "teaching"

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._program = program
        window, workspace = program.window, program.workspace
        self.presenter = Presenter(window, workspace, program.look, program.paths.config / "notes.txt", self)
        self.lessons = LessonController(program, self.presenter.speaker, self)
        self.lesson_recovery = LessonRecovery(program, self.lessons, self)
        self.homework = HomeworkController(program, self.lessons, self)
        self.rehearsal: RehearsalWindow | None = None
        program.exports.subject = self._film_subject
        workspace.mode.takeover = self
        workspace.mode.size_changed.connect(self.presenter.arrange_later)
        program.preferences.changed.connect(self._on_preferences)
        self.lessons.player.changed.connect(self._on_lesson)
        self.presenter.active_changed.connect(self._on_presenting)
        self._on_preferences()

    # -- the rows ------------------------------------------------------------------------------------------------------

    def commands(self) -> list[Command]:
        runs = {
            "lesson.rehearse": self.rehearse,
            "export_handout": self.ask_handout,
            "export_page": self.ask_page,
            "export_simulator": self.ask_simulator,
        }
        return teaching_commands(self._program, self.presenter, self.lessons, self.homework, runs)

    def commands_made(self, by_id: Any) -> None:
        self.presenter.speaker.use_commands(by_id)

    def connect_panel(self, panel: Panel) -> None:
        self.lessons.connect_panel(panel)
        self.homework.connect_panel(panel)

    def doors(self) -> tuple[Door, ...]:
        learn = Door(
            id="learn",
            title=tr("Learn"),
            sentence=tr(
                "Short lessons: predict, then see the answer in live numbers. Also for a class on a projector."
            ),
            icon="door-learn",
            panel=LESSON.id,
            subjects=frozenset({"lessons", "films", "sessions"}),
            begin=self.lessons.show,
        )
        return (learn,)

    def present(self, name: str) -> None:
        """Open a lesson, a session or a run, and start presenting.

        Args:
            name: the path of a session, a run or a lesson, or the number or id of a lesson; if a file with that
                name exists, it is opened.
        """
        path, there = Path(name), exists(name)
        lesson = None if there else self.lessons.find(name)
        if is_lesson_file(name):
            self.lessons.own.open_file(path)
        elif lesson is not None:
            self.lessons.player.open(lesson)
        elif there or path.suffix in SUFFIXES:
            self._program.runs.open_path(path)
        else:
            numbers = ", ".join(str(lesson.number) for lesson in self.lessons.all)
            sentence = tr("Unknown lesson or file “{name}”. Give the number of a lesson: {numbers}{nearest}.")
            close = nearest(name.strip(), [lesson.id for lesson in self.lessons.all])
            self._program.messages.say(sentence.format(name=name, numbers=numbers, nearest=close))
        self.presenter.start()

    def offer(self) -> None:
        self.lesson_recovery.offer()

    def leave(self) -> None:
        self.lessons.player.leave()

    def closers(self) -> tuple[Callable[[], object], ...]:
        return self.homework.close, self._end_rehearsal, self.presenter.close

    def rehearse(self) -> None:
        """Rehearse the open lesson, replacing any earlier rehearsal."""
        from app.teaching.export.rehearsal_window import RehearsalWindow

        lesson = self.lessons.player.lesson
        if lesson is not None:
            self._end_rehearsal()
            self.rehearsal = RehearsalWindow(lesson, self._program.window)
            self.rehearsal.start(self.lessons.called)
            self.rehearsal.show()

    def _end_rehearsal(self) -> None:
        if self.rehearsal is not None:
            self.rehearsal.close()
            self.rehearsal.deleteLater()
            self.rehearsal = None

    # -- sessions ------------------------------------------------------------------------------------------------------

    def owns(self, run: RunHandle) -> bool:
        return run in self.lessons.player.runs

    def described(self, manifest: Manifest) -> Manifest:
        """Add the speaker's notes, and the id and step of the lesson that is open."""
        player = self.lessons.player
        return dataclasses.replace(
            manifest,
            notes=self.presenter.speaker.notes.toPlainText()[:LONGEST_NOTES].replace("\0", ""),
            lesson="" if player.lesson is None else player.lesson.id,
            lesson_step=0 if player.lesson is None else player.place,
        )

    def saved(self, manifest: Manifest) -> str:
        lesson = self.lessons.find(manifest.lesson) if manifest.lesson else None
        if lesson is None:
            return ""
        step = tr("lesson {number} at step {step}")
        return step.format(number=lesson.number, step=manifest.lesson_step + 1)

    def restore(self, manifest: Manifest) -> bool:
        """Restore the speaker's notes, and open the lesson that was open when the session was saved."""
        if manifest.notes:
            self.presenter.speaker.notes.set_text(manifest.notes)
            self.presenter.notes.save()
        lesson = self.lessons.find(manifest.lesson) if manifest.lesson else None
        if lesson is not None:
            self.lessons.hand_out(lesson, manifest.lesson_step, manifest.course)
        return lesson is not None

    # -- exports -------------------------------------------------------------------------------------------------------

    def ask_handout(self) -> None:
        """Ask for a file, and write the students' handout of the open lesson."""
        lesson = self.lessons.player.lesson
        if lesson is not None:
            name, written = file_name(lesson.title) + ".pdf", tr("{target} holds the handout.")
            self._export(tr("Export handout"), name, HANDOUTS, written, "handout", self.lessons.called)

    def ask_page(self) -> None:
        """Ask for a file, and write the open lesson, or the current update, as a self-contained web page."""
        lesson, exports, written = self.lessons.player.lesson, self._program.exports, tr("{target} holds the page.")
        if lesson is not None:
            name = file_name(lesson.title) + ".html"
            self._export(tr("Export page"), name, PAGES, written, "page", "--lesson", self.lessons.called)
            return
        target = exports.ask_file(tr("Export page"), exports.suggestion(tr("Page"), ".html"), PAGES)
        if target is not None:
            view, written = self._program.workspace.view, written.format(target=target)
            asked = ["--updates", str(view.cursor.step)]
            asked += [] if view.step.step is None else ["--pass", str(view.step.passed + 1)]
            self._program.exporter.start(target, written, *asked, "--force", command="page")

    def ask_simulator(self) -> None:
        """Ask for a file, and write the simulator as a self-contained web page."""
        written = tr("{target} holds the simulator.")
        self._export(tr("Export simulator"), "simulator.html", PAGES, written, "page", "--simulator")

    def _export(self, title: str, name: str, kind: str, written: str, *arguments: str) -> None:
        """Ask for a file, and have a process write it with these arguments."""
        target = self._program.exports.ask_file(title, str(Path.home() / name), kind)
        if target is not None:
            self._program.exporter.begin(target, written.format(target=target), *arguments, "--force")

    def _film_subject(self) -> tuple[str, str] | None:
        lesson = self.lessons.player.lesson
        return None if lesson is None else (self.lessons.called, lesson.title)

    # -- connections ---------------------------------------------------------------------------------------------------

    @Slot()
    def _on_lesson(self) -> None:
        self.presenter.set_lesson(self.lessons.is_open)
        self._program.workspace.mode.lesson_changed.emit()

    @Slot()
    def _on_presenting(self) -> None:
        self._program.workspace.mode.presenting_changed.emit()
        self.lessons.set_stage(self.presenter.active)

    @Slot()
    def _on_preferences(self) -> None:
        self.lessons.player.reveal.moves = not self._program.preferences.current.reduced_motion

    # -- what takes over the window ------------------------------------------------------------------------------------

    @property
    def lesson(self) -> bool:
        return self.lessons.is_open

    @property
    def hides_run(self) -> bool:
        return self.lessons.is_open and not self.lessons.player.shows_run

    @property
    def presenting(self) -> bool:
        return self.presenter.active

    @property
    def own(self) -> SavedState | None:
        return self.lessons.player.runs.saved

    def leave_lesson(self) -> None:
        self.lessons.player.leave()
