"""What the commands of lessons do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

CSV = tr("Tables (*.csv)")


class LessonDeeds:
    """The part of the window's deeds that belongs to lessons."""

    _p: Application

    def show_lessons(self) -> None:
        self._p.lessons.show()

    def lesson_next(self) -> None:
        if not self._p.presenter.blank.lift():
            self._p.lessons.player.next()

    def lesson_back(self) -> None:
        if not self._p.presenter.blank.lift():
            self._p.lessons.player.back()

    def lesson_skip(self) -> None:
        self._p.lessons.player.skip()

    def lesson_leave(self) -> None:
        self._p.lessons.player.leave()

    def lesson_keep(self) -> None:
        self._p.lessons.player.keep()

    def export_predictions(self) -> None:
        suggestion = str(Path.home() / "predictions.csv")
        name, _ = QFileDialog.getSaveFileName(self._p.window, tr("Export predictions"), suggestion, CSV)
        if name:
            target = Path(name) if Path(name).suffix else Path(name).with_suffix(".csv")
            refusal = self._p.lessons.progress.export(target)
            if refusal:
                self._p.say(refusal, "error")
            else:
                self._p.say(tr("The predictions are written to {target}.").format(target=target), "info")
