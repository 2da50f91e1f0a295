"""The controller of homework: students save theirs, and teachers collect that of a class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot

from app.export.process import ExportProcess
from app.messages.message import Severity
from app.settings.files import write_or_say
from app.teaching.controllers.lessons import CSV, LessonController
from app.teaching.lessons.homework import HomeworkDialog, file_name, homework_of
from app.teaching.panel_rows import HOMEWORK, LESSON
from app.theme.file_dialogs import file_to_save, folder_to_use
from app.window.main_window import MainWindow
from grpo_core.regular_file import write_whole
from grpo_core.teaching.homework import Homework, HomeworkError
from grpo_core.teaching.homework.file import ENDING
from grpo_core.text import tr

if TYPE_CHECKING:  # panels are imported only when they are created
    from app.teaching.homework_panel import HomeworkPanel

FILES = tr("Homework (*.json)")


class HomeworkController(QObject):
    """Saves the predictions of this session to a file, and starts reading a folder of such files."""

    def __init__(self, window: MainWindow, lessons: LessonController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._window, self._lessons = window, lessons
        self._name = ""
        self._process: ExportProcess | None = None

    def connect_panel(self, panel: Any) -> None:
        """Connect a panel that has just been created: that of the lessons, or that of a class's homework."""
        if panel.id == LESSON.id:
            panel.page.handed_in.connect(self.ask_save)
        elif panel.id == HOMEWORK.id:
            panel.folder_wanted.connect(self.ask_collect)
            panel.table_wanted.connect(self._ask_table)

    @property
    def blocked(self) -> str:
        """Message explaining why there is no homework to save, or an empty string if there is some."""
        if self._lessons.is_open and not self._lessons.player.placed:
            return tr("No question of this lesson has been answered yet.")
        return self._lessons.needs_lesson()

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
            name, _ = file_to_save(self._window, tr("Save my homework"), str(Path.home() / file_name(homework)), FILES)
            if name:
                self.save(homework, Path(name if name.lower().endswith(".json") else name + ENDING))
        dialog.deleteLater()

    def save(self, homework: Homework, target: Path) -> None:
        """Write ``homework`` to ``target``, and report success or the reason for a failure."""
        try:
            refusal = write_or_say(target, homework.to_bytes(), tr("The homework"), write_whole)
        except HomeworkError as error:
            refusal = str(error)
        sentence = tr("The homework is saved as {target}.").format(target=target)
        self._window.messages.say(refusal or sentence, Severity.ERROR if refusal else Severity.INFO)

    def ask_collect(self) -> None:
        """Ask for a folder, and show the homework in it."""
        name = folder_to_use(self._window, tr("Collect homework"), str(Path.home()))
        if name:
            self.collect(Path(name))

    def collect(self, folder: Path) -> HomeworkPanel:
        """Show the homework in ``folder`` in its panel."""
        panel = self._window.show_panel(HOMEWORK)
        self._read(panel, folder)
        return panel

    def close(self) -> None:
        """Stop reading, because the program closes or another folder is read."""
        process, self._process = self._process, None
        if process is not None:
            process.close()
            process.deleteLater()

    def _read(self, panel: HomeworkPanel, folder: Path, out: Path | None = None) -> None:
        """Read ``folder`` in a separate process, which also writes the table to ``out`` if given."""
        self.close()
        if out is None:
            panel.begin(folder)
        process = self._process = ExportProcess("homework", [str(folder), "" if out is None else str(out)], self)
        process.gave.connect(self._on_given)
        process.failed.connect(self._on_failed)
        process.start()

    @Slot()
    def _ask_table(self) -> None:
        panel = self._window.panels.of(HOMEWORK)
        if panel.folder is None:
            return
        suggestion = str(panel.folder / "homework.csv")
        name, _ = file_to_save(self._window, tr("Save table"), suggestion, CSV)
        if name:
            self._read(panel, panel.folder, Path(name) if Path(name).suffix else Path(name).with_suffix(".csv"))

    @Slot(object)
    def _on_given(self, result: dict[str, Any]) -> None:
        self._window.panels.of(HOMEWORK).show_result(result["table"], result["tallies"], result["wrong"])

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        if sentence:
            self._window.panels.of(HOMEWORK).show_failure(sentence)
