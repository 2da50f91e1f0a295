"""Commands of the Lessons menu.

The keys for moving through a lesson work while one is open, with priority over all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.commands.command import Command
from app.commands.menu_paths import LESSON, LESSONS
from app.teaching.controllers.homework import HomeworkController
from app.teaching.controllers.lessons import LessonController
from app.teaching.controllers.presenter import Presenter
from app.teaching.lessons.catalogue import lesson_titles
from app.teaching.lessons.homework import HOLDS
from grpo_core.text import tr


def lesson_commands(
    presenter: Presenter, lessons: LessonController, homework: HomeworkController, rehearse: Callable[[], None]
) -> list[Command]:
    """Return the commands of the Lessons menu."""
    blank, needs_lesson = presenter.blank, lessons.needs_lesson

    def next_step() -> None:
        if not blank.lift():  # on a blank screen the first press only brings the picture back
            lessons.player.next()

    def previous_step() -> None:
        if not blank.lift():
            lessons.player.back()

    return [
        Command(id="lessons", subject="lessons", text=tr("All lessons"), menu=LESSONS, run=lessons.show,
                shortcuts=("Ctrl+L",),
                tip=tr("Answer questions with a prediction, try things out, and see the answers in live numbers.")),
        *_opening(lessons),
        Command(id="lesson.next", subject="lessons", listed=False, text=tr("Next step of the lesson"), menu=LESSON,
                run=next_step, shortcuts=("Right", "Space", "PgDown"), context="lesson", blocked=needs_lesson,
                tip=tr("Go one step further; an open question asks for a prediction once, and is then skipped.")),
        Command(id="lesson.back", subject="lessons", listed=False, text=tr("Step of the lesson before"), menu=LESSON,
                run=previous_step,
                shortcuts=("Left", "PgUp"), context="lesson", blocked=needs_lesson, tip=tr("Go one step back.")),
        Command(id="lesson.skip", subject="lessons", listed=False, text=tr("Skip the question"), menu=LESSON,
                run=lessons.player.skip, shortcuts=("S",),
                context="lesson", blocked=needs_lesson, tip=tr("See the answer without a prediction.")),
        Command(id="lesson.keep", subject="lessons", text=tr("Open the lesson in the full app"), menu=LESSON,
                run=lessons.player.keep, shortcuts=("O",), context="lesson", blocked=needs_lesson, divided=True,
                tip=tr("Continue the lesson's run with all panels and all settings.")),
        Command(id="lesson.leave", subject="lessons", text=tr("Leave the lesson"), menu=LESSON,
                run=lessons.player.leave,
                shortcuts=("Esc",), blocked=needs_lesson,  # in the context "app": while presenting, Esc ends presenting
                tip=tr("Back to your own run, as you left it.")),
        Command(id="lessons.folder", subject="lessons", text=tr("Open my folder"), menu=LESSONS,
                run=lessons.own.open_folder, divided=True,
                tip=tr("Your own lessons: text files, which are read again whenever you save them.")),
        Command(id="lessons.course", subject="lessons", text=tr("Course of 45 minutes"), menu=LESSONS,
                run=lessons.open_course,
                tip=tr("Four lessons one after the other: rewards in a group, silent groups, clipping, a fooled "
                       "checker.")),
        Command(id="lesson.rehearse", subject="lessons", text=tr("Rehearse the lesson"), menu=LESSONS,
                run=rehearse, blocked=needs_lesson,
                tip=tr("Run the open lesson under six seeds, to check answers, reveals and times before class.")),
        Command(id="homework.save", subject="lessons", text=tr("Save my homework…"), menu=LESSONS,
                run=homework.ask_save, blocked=lambda: homework.blocked, divided=True, tip=HOLDS),
        Command(id="homework.collect", subject="lessons", text=tr("Collect homework…"), menu=LESSONS,
                run=homework.ask_collect,
                tip=tr("Show a folder of homework as a table: one row per student, with the numbers recomputed.")),
        Command(id="export_predictions", subject="lessons", text=tr("Export predictions…"), menu=LESSONS,
                run=lessons.ask_export,
                tip=tr("Write every prediction made on this machine to a CSV file.")),
    ]  # fmt: skip # table, one row per line


def _opening(lessons: LessonController) -> list[Command]:
    """Return, for each lesson, a command that opens it."""
    return [
        Command(
            id=f"lesson.open.{lesson.id}",
            text=tr("Lesson {number}: {title}").format(number=lesson.number, title=lesson.title),
            menu=LESSONS,
            run=partial(lessons.open, lesson.id),
            tip=lesson.gist,
            subject="lessons",
            listed=False,
        )
        for lesson in lesson_titles()
    ]
