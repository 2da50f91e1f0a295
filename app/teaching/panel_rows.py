"""The rows of the panel registry for teaching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.widgets.panel_spec import Area, PanelSpec, later
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.teaching.homework_panel import HomeworkPanel
    from app.teaching.lessons.panel import LessonPanel

HOMEWORK: PanelSpec[HomeworkPanel] = PanelSpec(
    id="homework",
    after="home",
    title=tr("Homework of a class"),
    factory=later("teaching.homework_panel", "HomeworkPanel"),
    size=(900, 360),
    help=tr("A folder of homework: one row per student, and the predictions of the class, one question at a time."),
)


LESSON: PanelSpec[LessonPanel] = PanelSpec(
    id="lesson",
    after="homework",
    title=tr("Lessons"),
    factory=later("teaching.lessons.panel", "LessonPanel"),
    area=Area.CENTRE,
    help=tr("Questions about GRPO, each with a prediction to make and an experiment that answers it."),
)
