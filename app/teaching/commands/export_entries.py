"""Entries of the Export menu for lessons."""

from __future__ import annotations

from collections.abc import Callable

from app.commands.command import Command
from app.commands.conditions import Conditions
from app.commands.menu_paths import EXPORT
from app.commands.targets import CommandTargets
from app.teaching.controllers.lessons import LessonController
from grpo_core.text import tr


def export_entries(
    targets: CommandTargets,
    lessons: LessonController,
    ask_handout: Callable[[], None],
    ask_page: Callable[[], None],
    ask_simulator: Callable[[], None],
) -> list[Command]:
    """Return the commands that export a handout, a page or the simulator."""
    when = Conditions(targets)

    def can_export_page() -> str:
        """Check that a lesson is open, or that the update shown can be explained and was trained by this program."""
        return "" if lessons.is_open else when.needs_own_update() or when.not_at_start()

    return [
        Command(id="export_handout", subject="lessons", text=tr("Export handout…"), after="export_film", menu=EXPORT,
                run=ask_handout, blocked=lessons.needs_lesson,
                tip=tr("Write the questions of the lesson that is open as pages to print, without their answers.")),
        Command(id="export_page", subject="lessons", text=tr("Export page…"), after="export_handout", menu=EXPORT,
                run=ask_page, blocked=can_export_page,
                tip=tr("Write the lesson that is open, or the update shown, as one HTML file that explains its "
                    "numbers.")),
        Command(id="export_simulator", subject="lessons", text=tr("Export simulator…"), after="export_page",
                menu=EXPORT, run=ask_simulator,
                tip=tr("Write the bandit as one HTML file that computes in a browser, also on a phone.")),
    ]  # fmt: skip # table, one row per line
