"""Commands of the Lessons menu and of presenting, and the entries of the Export menu for lessons.

The keys for moving through a lesson work while one is open, with priority over all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from app.commands.command import EXPORT, LESSON, LESSONS, PRESENTING, Command
from app.commands.targets import CommandTargets
from app.teaching.controllers.homework import HOLDS, HomeworkController
from app.teaching.controllers.lessons import LessonController
from app.teaching.controllers.presenter import Presenter
from app.teaching.lessons.catalogue import lesson_titles
from grpo_core.text import tr


def teaching_commands(
    targets: CommandTargets,
    presenter: Presenter,
    lessons: LessonController,
    homework: HomeworkController,
    runs: Mapping[str, Callable[[], None]],
) -> list[Command]:
    """Return the commands of the part. ``runs`` are the functions of the part itself, by the id of their command."""
    player = targets.player
    blank, ring, speaker, needs_lesson = presenter.blank, presenter.ring, presenter.speaker, lessons.needs_lesson

    def forward() -> None:
        if not blank.lift():  # on a blank screen the first press only brings the picture back
            (lessons.player.next if lessons.is_open else player.stage)()

    def back() -> None:
        if not blank.lift():
            (lessons.player.back if lessons.is_open else player.stage_back)()

    def can_export_page() -> str:
        """Check that a lesson is open, or that the update shown can be explained and was trained by this program."""
        return "" if lessons.is_open else targets.when.needs_own_update() or targets.when.not_at_start()

    row = partial(Command, subject="lessons")
    presenting = partial(row, menu=PRESENTING, context="present", listed=False)
    step = partial(row, menu=LESSON, context="lesson", blocked=needs_lesson)
    return [
        row(id="export_handout", text=tr("Export handout…"), after="export_film", menu=EXPORT,
            run=runs["export_handout"], blocked=needs_lesson,
            tip=tr("Write the questions of the lesson that is open as pages to print, without their answers.")),
        row(id="export_page", text=tr("Export page…"), after="export_handout", menu=EXPORT,
            run=runs["export_page"], blocked=can_export_page,
            tip=tr("Write the lesson that is open, or the update shown, as one HTML file that explains its "
                "numbers.")),
        row(id="export_simulator", text=tr("Export simulator…"), after="export_page", menu=EXPORT,
            run=runs["export_simulator"],
            tip=tr("Write the bandit as one HTML file that computes in a browser, also on a phone.")),
        row(id="present", text=tr("Present", "verb"), menu=PRESENTING, run=presenter.toggle, shortcuts=("F5",),
            checked=lambda: presenter.active,
            tip=tr("Full screen for a projector; with two screens, the speaker gets a separate window.")),
        row(id="speaker", text=tr("Speaker window"), menu=PRESENTING, checked=speaker.isVisible,
            run=lambda: speaker.setVisible(not speaker.isVisible()), tip=tr("Notes, the next step and a clock.")),
        presenting(id="present.next", text=tr("Next stage"), run=forward, shortcuts=("PgDown", "Right"),
            blocked=lambda: "" if lessons.is_open else targets.when.can_show_stage(),
            divided=True, tip=tr("The forward button of a remote does this.")),
        presenting(id="present.back", text=tr("Previous stage"), run=back, shortcuts=("PgUp", "Left"),
            blocked=lambda: "" if lessons.is_open else targets.when.not_at_start(),
            tip=tr("The back button of a remote does this.")),
        presenting(id="present.step", text=tr("Next update"), run=player.step, shortcuts=("Down",),
            blocked=targets.when.can_step, tip=tr("Show the next update, complete.")),
        presenting(id="present.step_back", text=tr("Previous update"), run=player.step_back, shortcuts=("Up",),
            blocked=targets.when.not_at_start, tip=tr("Show the previous update, complete.")),
        presenting(id="present.blank", text=tr("Blank screen"), run=presenter.toggle_blank, shortcuts=("B", "."),
            divided=True, checked=lambda: not blank.isHidden(),
            tip=tr("Make the screen black, as the blank button of a remote does; any key brings the picture "
                "back.")),
        presenting(id="present.ring", text=tr("Ring around the pointer"), run=lambda: ring.switch(not ring.on),
            shortcuts=("R",), checked=lambda: ring.on, tip=tr("Show the back row where the pointer is.")),
        presenting(id="present.leave", text=tr("End presenting"), run=presenter.leave, shortcuts=("Esc",),
            divided=True, blocked=lambda: "" if presenter.active else tr("Nobody is presenting."),
            tip=tr("Return to the window as it was.")),
        row(id="lessons", text=tr("All lessons"), menu=LESSONS, run=lessons.show, shortcuts=("Ctrl+L",),
            tip=tr("Answer questions with a prediction, try things out, and see the answers in live numbers.")),
        *_opening(lessons),
        step(id="lesson.next", text=tr("Next step of the lesson"), run=forward, shortcuts=("Right", "Space", "PgDown"),
            listed=False,
            tip=tr("Go one step further; an open question asks for a prediction once, and is then skipped.")),
        step(id="lesson.back", text=tr("Step of the lesson before"), run=back, shortcuts=("Left", "PgUp"),
            listed=False, tip=tr("Go one step back.")),
        step(id="lesson.skip", text=tr("Skip the question"), run=lessons.player.skip, shortcuts=("S",),
            listed=False, tip=tr("See the answer without a prediction.")),
        step(id="lesson.keep", text=tr("Open the lesson in the full app"), run=lessons.player.keep, shortcuts=("O",),
            divided=True, tip=tr("Continue the lesson's run with all panels and all settings.")),
        step(id="lesson.leave", text=tr("Leave the lesson"), run=lessons.player.leave, shortcuts=("Esc",),
            context="app",  # while presenting, Esc ends presenting
            tip=tr("Back to your own run, as you left it.")),
        row(id="lessons.folder", text=tr("Open my folder"), menu=LESSONS, run=lessons.own.open_folder, divided=True,
            tip=tr("Your own lessons: text files, which are read again whenever you save them.")),
        row(id="lessons.course", text=tr("Course of 45 minutes"), menu=LESSONS, run=lessons.open_course,
            tip=tr("Four lessons one after the other: rewards in a group, silent groups, clipping, a fooled "
                   "checker.")),
        row(id="lesson.rehearse", text=tr("Rehearse the lesson"), menu=LESSONS, run=runs["lesson.rehearse"],
            blocked=needs_lesson,
            tip=tr("Run the open lesson under six seeds, to check answers, reveals and times before class.")),
        row(id="homework.save", text=tr("Save my homework…"), menu=LESSONS, run=homework.ask_save,
            blocked=lambda: homework.blocked, divided=True, tip=HOLDS),
        row(id="homework.collect", text=tr("Collect homework…"), menu=LESSONS, run=homework.ask_collect,
            tip=tr("Show a folder of homework as a table: one row per student, with the numbers recomputed.")),
        row(id="export_predictions", text=tr("Export predictions…"), menu=LESSONS, run=lessons.ask_export,
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
