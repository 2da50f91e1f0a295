"""Additions of the part for teaching to a window: lessons, their recovery, presenting, homework, handouts and pages."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot

from app.commands.command import Command
from app.controllers.export import file_name
from app.messages.message import BarAction, Severity
from app.part import WindowPart
from app.settings.files import exists, write_or_say
from app.teaching.commands import teaching_commands
from app.teaching.controllers.homework import HomeworkController
from app.teaching.controllers.lessons import LessonController
from app.teaching.controllers.presenter import Presenter
from app.teaching.lessons.catalogue import is_lesson_file
from app.teaching.panel_rows import LESSON
from app.widgets.panel import Panel
from app.widgets.panel_spec import Door
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.window_mode import Takeover
from grpo_core.errors import GrpoError
from grpo_core.parsing import is_whole
from grpo_core.runs import library
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
            known = self.lessons.panel.all
            numbers = ", ".join(str(lesson.number) for lesson in known)
            sentence = tr("Unknown lesson or file “{name}”. Give the number of a lesson: {numbers}{nearest}.")
            close = nearest(name.strip(), [lesson.id for lesson in known])
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
            self._program.exporter.export(target, written, *asked, "--force", command="page")

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
    def own(self) -> View | None:
        return self.lessons.player.runs.saved


FILE, OFFER = "lesson-open.json", "lesson open"
LARGEST = 100_000
"""Maximum size in bytes of a file that is read."""


class LessonRecovery(QObject):
    """Writes the current step to a file, which is removed when the lesson ends.

    The file has the lesson's id, the index of the step, and the names of the files of the lesson's runs, which are
    deleted with it.
    """

    def __init__(self, program: Application, lessons: LessonController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._program, self._messages = program, program.messages
        self._player, self._find = lessons.player, lessons.find
        self._file = program.paths.data / FILE
        self._written: dict[str, Any] | None = None
        self._refused = False
        self.interrupted = _read(self._file)  # now, because the first lesson of this session replaces the file
        self._player.changed.connect(self._on_changed)

    @Slot()
    def _on_changed(self) -> None:
        player = self._player
        if player.lesson is None:
            if self._written is not None:
                self._written = None
                with suppress(OSError):
                    self._file.unlink(missing_ok=True)
            return
        own = [run.path.name for run in self._program.workspace.runs if run in player.runs]
        here = {"lesson": player.lesson.id, "step": player.place, "runs": own}
        if here == self._written:
            return
        self._messages.remove(OFFER)
        self._written = here
        refusal = write_or_say(self._file, json.dumps(here).encode("ascii"), tr("The place in the lesson"))
        if refusal is not None and not self._refused:  # once is enough
            self._messages.say(refusal)
        self._refused = refusal is not None

    def offer(self) -> None:
        """Offer to continue a lesson interrupted by a crash. Its runs are computed again, with the same results."""
        interrupted, self.interrupted = self.interrupted, None
        if interrupted is None:
            return
        for name in interrupted["runs"]:
            with suppress(GrpoError):  # another window writes it
                if exists(path := self._program.run_manager.folder / name):
                    library.remove(path)
        if self._player.lesson is not None:  # it was opened on the command line
            return
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        lesson = self._find(interrupted["lesson"])
        if lesson is None:
            return
        text = tr("The program ended unexpectedly in lesson {number}, at step {step} of {count}: {title}").format(
            number=lesson.number,
            step=min(interrupted["step"] + 1, len(lesson.steps)),
            count=len(lesson.steps),
            title=lesson.title,
        )
        action = BarAction(text=tr("Go on"), run=partial(self._player.open, lesson, interrupted["step"]))
        self._messages.say(text, Severity.INFO, action, id=OFFER)


def _read(file: Path) -> dict[str, Any] | None:
    """Return the state left by an earlier session, or None if there is none that can be read."""
    try:
        with file.open("rb") as opened:
            stored = json.loads(opened.read(LARGEST))
        lesson, step, runs = stored["lesson"], stored["step"], stored["runs"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    names = isinstance(runs, list) and all(isinstance(name, str) and _plain(name) for name in runs)
    if not (isinstance(lesson, str) and is_whole(step, 0) and names):
        return None
    return {"lesson": lesson, "step": step, "runs": runs}


def _plain(name: str) -> bool:
    """Return whether ``name`` is a run's file name without a path."""
    return Path(name).name == name and name.endswith(library.SUFFIX) and "\0" not in name
