"""Homework in a window: a student saves one, a teacher collects those of a class."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.controllers.lessons import CSV, LessonController
from app.export.homework_window import HomeworkWindow
from app.lessons.homework import HomeworkDialog, homework_of, suggested
from app.messages.message import Severity
from app.settings.files import write_or_say
from app.theme.file_dialogs import file_to_save, folder_to_use
from app.window.main_window import MainWindow
from grpo_core.homework import Homework, HomeworkError
from grpo_core.homework.file import ENDING
from grpo_core.text import tr

FILES = tr("Homework (*.json)")


class HomeworkController(QObject):
    """Saves the predictions of this sitting as a file, and shows a folder of such files as a table.

    Attributes:
        windows: those that are open.
    """

    def __init__(self, window: MainWindow, lessons: LessonController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._lessons = window, lessons
        self._name = ""
        self.windows: list[HomeworkWindow] = []
        if lessons.panel.page is not None:
            lessons.panel.page.ending.handed_in.connect(self.ask_save)

    @property
    def blocked(self) -> str:
        """The reason why there is no homework to save, or nothing."""
        player = self._lessons.player
        if player.lesson is None:
            return tr("No lesson is open; choose one under Lessons.")
        return "" if player.placed else tr("No question of this lesson has been answered yet.")

    @Slot()
    def ask_save(self) -> None:
        """Ask for name, conclusion and file, and write the homework."""
        lesson = self._lessons.player.lesson
        if lesson is None:
            return
        dialog = HomeworkDialog(lesson, self._name, self._window)
        if dialog.exec():
            self._name = dialog.name.text()
            homework = homework_of(
                lesson, self._lessons.player.placed, self._name, dialog.conclusion.toPlainText().strip()
            )
            name, _ = file_to_save(self._window, tr("Save my homework"), suggested(homework), FILES)
            if name:
                self.save(homework, Path(name if name.lower().endswith(".json") else name + ENDING))
        dialog.deleteLater()

    def save(self, homework: Homework, target: Path) -> None:
        """Write ``homework`` to ``target``, and say so, or why not."""
        try:
            refusal = write_or_say(target, homework.to_bytes(), tr("The homework"))
        except HomeworkError as error:
            refusal = str(error)
        sentence = tr("The homework is saved as {target}.").format(target=target)
        self._window.messages.say(refusal or sentence, Severity.ERROR if refusal else Severity.INFO)

    def ask_collect(self) -> None:
        """Ask for a folder, and show the homework in it."""
        name = folder_to_use(self._window, tr("Collect homework"), str(Path.home()))
        if name:
            self.collect(Path(name))

    def collect(self, folder: Path) -> HomeworkWindow:
        """Show the homework of ``folder`` in a window of its own."""
        shown = HomeworkWindow(folder, self._window)
        self.windows.append(shown)
        shown.save.clicked.connect(partial(self._ask_table, shown))
        shown.finished.connect(partial(self._on_finished, shown))
        shown.read()
        shown.show()
        return shown

    def close(self) -> None:
        """The program closes."""
        for shown in list(self.windows):
            shown.close()

    def _ask_table(self, shown: HomeworkWindow) -> None:
        name, _ = file_to_save(shown, tr("Save table"), str(shown.folder / "homework.csv"), CSV)
        if name:
            shown.read(Path(name) if Path(name).suffix else Path(name).with_suffix(".csv"))

    def _on_finished(self, shown: HomeworkWindow, result: int) -> None:
        self.windows.remove(shown)
