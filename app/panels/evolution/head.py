"""The header above the rows: the dial of right answers, what to watch, how one answer changed, and the tasks."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.boxes import across, down
from app.panels.evolution.dial import RightDial
from app.panels.evolution.evolution_words import story, what_to_watch, why
from app.panels.evolution.row_painter import RowsPicture
from app.panels.evolution.task_chips import TaskChips
from app.theme.painted_text import PaintedText
from app.workspace.view import View

LOW = 335
"""Panel height at 100 % below which the dial is hidden to save space for the rows. The cards show its number too."""


class EvolutionHead(QWidget):
    """The header of the Evolution panel.

    Attributes:
        dial: the share of right answers.
        watch: the sentence on what to watch.
        story: the sentence on how one answer changed; before the first update, the reasons for the sentence above.
        chips: the tasks.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.dial = RightDial()
        self.watch = PaintedText("reading_strong", grown=1.1)
        self.story = PaintedText("reading", "muted", lines=3)
        self.chips = TaskChips()
        words = down(self.watch, self.story, None, self.chips, margins=(0, 2, 0, 2), spacing=2)
        self._row = across(self.dial, (words, 1), on=self, spacing=8)

    def show_story(self, picture: RowsPicture, view: View, height: float) -> None:
        """Show the sentences on ``picture``, in a panel of ``height`` pixels."""
        compact = height < LOW * view.scale
        settings = view.step.settings
        self._row.setContentsMargins(12 if compact else 4, 0, 4, 0)
        self.dial.setVisible(not compact and (picture.held_out is not None or picture.sampled is not None))
        self.story.setVisible(not compact)
        self.dial.show_share(picture.held_out, picture.sampled, view.theme, view.scale)
        self.watch.show_text(what_to_watch(settings, view.step.step), view.theme, view.scale)
        self.story.show_text(why(settings) if view.cursor.step == 0 else story(picture), view.theme, view.scale)
        self.chips.show_task(view)
