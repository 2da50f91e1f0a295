"""Commands for presenting: keys of remote controls, and aids for the back row."""

from __future__ import annotations

from app.commands.command import Command
from app.commands.conditions import Conditions
from app.commands.menu_paths import PRESENTING
from app.commands.targets import CommandTargets
from app.teaching.controllers.lessons import LessonController
from app.teaching.controllers.presenter import Presenter
from grpo_core.text import tr


def presenting_commands(targets: CommandTargets, presenter: Presenter, lessons: LessonController) -> list[Command]:
    """Return the commands of the View > Presenting menu."""
    player = targets.player
    blank, ring, speaker = presenter.blank, presenter.ring, presenter.speaker
    when = Conditions(targets)

    def forward() -> None:
        if not blank.lift():  # on a blank screen the first press only brings the picture back
            (lessons.player.next if lessons.is_open else player.stage)()

    def back() -> None:
        if not blank.lift():
            (lessons.player.back if lessons.is_open else player.stage_back)()

    def can_go_on() -> str:
        return "" if lessons.is_open else when.can_show_stage()

    def can_go_back() -> str:
        return "" if lessons.is_open else when.not_at_start()

    def can_leave() -> str:
        return "" if presenter.active else tr("Nobody is presenting.")

    return [
        Command(id="present", subject="lessons", text=tr("Present", "verb"), menu=PRESENTING, run=presenter.toggle,
                shortcuts=("F5",), checked=lambda: presenter.active,
                tip=tr("Full screen for a projector; with two screens, the speaker gets a separate window.")),
        Command(id="speaker", subject="lessons", text=tr("Speaker window"), menu=PRESENTING, checked=speaker.isVisible,
                run=lambda: speaker.setVisible(not speaker.isVisible()), tip=tr("Notes, the next step and a clock.")),
        Command(id="present.next", subject="lessons", listed=False, text=tr("Next stage"), menu=PRESENTING, run=forward,
                shortcuts=("PgDown", "Right"), context="present", blocked=can_go_on, divided=True,
                tip=tr("The forward button of a remote does this.")),
        Command(id="present.back", subject="lessons", listed=False, text=tr("Previous stage"), menu=PRESENTING,
                run=back, shortcuts=("PgUp", "Left"), context="present", blocked=can_go_back,
                tip=tr("The back button of a remote does this.")),
        Command(id="present.step", subject="lessons", listed=False, text=tr("Next update"), menu=PRESENTING,
                run=player.step, shortcuts=("Down",), context="present", blocked=when.can_step,
                tip=tr("Show the next update, complete.")),
        Command(id="present.step_back", subject="lessons", listed=False, text=tr("Previous update"), menu=PRESENTING,
                run=player.step_back, shortcuts=("Up",), context="present", blocked=when.not_at_start,
                tip=tr("Show the previous update, complete.")),
        Command(id="present.blank", subject="lessons", listed=False, text=tr("Blank screen"), menu=PRESENTING,
                run=presenter.toggle_blank,
                shortcuts=("B", "."), context="present", divided=True, checked=lambda: not blank.isHidden(),
                tip=tr("Make the screen black, as the blank button of a remote does; any key brings the picture "
                    "back.")),
        Command(id="present.ring", subject="lessons", listed=False, text=tr("Ring around the pointer"), menu=PRESENTING,
                run=lambda: ring.switch(not ring.on), shortcuts=("R",), context="present", checked=lambda: ring.on,
                tip=tr("Show the back row where the pointer is.")),
        Command(id="present.leave", subject="lessons", listed=False, text=tr("End presenting"), menu=PRESENTING,
                run=presenter.leave, shortcuts=("Esc",), context="present", divided=True, blocked=can_leave,
                tip=tr("Return to the window as it was.")),
    ]  # fmt: skip # table, one row per line
