"""The rows of the panel registry for teaching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.widgets.panel_spec import Area, PanelSpec, later
from app.workspace.workspace import Workspace
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


def _lesson(workspace: Workspace) -> LessonPanel:
    from app.panel_registry import lesson_panels
    from app.teaching.lessons.panel import LessonPanel

    return LessonPanel(workspace, lesson_panels())


LESSON = PanelSpec(
    id="lesson",
    after="homework",
    title=tr("Lessons"),
    factory=_lesson,
    area=Area.CENTRE,
    help=tr("Questions about GRPO, each with a prediction to make and an experiment that answers it."),
)
