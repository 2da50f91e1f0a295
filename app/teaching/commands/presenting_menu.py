"""Commands for presenting: keys of remote controls, and aids for the back row."""

from __future__ import annotations

from app.commands.command import Command
from app.commands.conditions import Conditions
from app.commands.menu_paths import PRESENTING
from app.commands.targets import CommandTargets
from app.messages.message import Severity
from app.teaching.controllers.lessons import LessonController
from app.teaching.controllers.presenter import Presenter
from grpo_core.text import tr


def presenting_commands(targets: CommandTargets, presenter: Presenter, lessons: LessonController) -> list[Command]:
    """Return the commands of the View > Presenting menu."""
    player = targets.player
    blank, ring, counter, speaker = presenter.blank, presenter.ring, presenter.counter, presenter.speaker
    when = Conditions(targets)

    def maximize() -> None:
        focus = targets.panels.in_focus()
        panel = targets.window.just_opened or (None if focus is None else focus.id)
        if panel is None and presenter.maximizer.panel is None:
            sentence = tr("No panel is in focus; click one, or reach it with Tab.")
            targets.window.messages.say(sentence, Severity.INFO)
        else:
            presenter.maximize(panel)

    def forward() -> None:
        if blank.lift():  # on a blank screen the first press only brings the picture back
            return
        if lessons.is_open:
            lessons.player.next()
        else:
            player.stage()

    def back() -> None:
        if blank.lift():
            return
        if lessons.is_open:
            lessons.player.back()
        else:
            player.stage_back()

    def can_leave() -> str:
        presenting = presenter.active or presenter.maximizer.panel is not None
        return "" if presenting else tr("Nobody is presenting.")

    return [
        Command(id="present", text=tr("Present", "verb"), menu=PRESENTING, run=presenter.toggle, shortcuts=("F5",),
                checked=lambda: presenter.active,
                tip=tr("Full screen for a projector; with two screens, the speaker gets a separate window.")),
        Command(id="maximize_panel", text=tr("Maximize panel"), menu=PRESENTING, run=maximize,
                shortcuts=("F12",), checked=lambda: presenter.maximizer.panel is not None,
                tip=tr("Show only the panel that was just opened or has the focus; the same key brings the others "
                    "back.")),
        Command(id="speaker", text=tr("Speaker window"), menu=PRESENTING, checked=speaker.isVisible,
                run=lambda: speaker.setVisible(not speaker.isVisible()), tip=tr("Notes, the next step and a clock.")),
        Command(id="present.next", text=tr("Next stage"), menu=PRESENTING, run=forward,
                shortcuts=("PgDown", "Right"), context="present", blocked=when.can_show_stage, divided=True,
                tip=tr("The forward button of a remote does this.")),
        Command(id="present.back", text=tr("Previous stage"), menu=PRESENTING, run=back,
                shortcuts=("PgUp", "Left"), context="present", blocked=when.not_at_start,
                tip=tr("The back button of a remote does this.")),
        Command(id="present.step", text=tr("Next update"), menu=PRESENTING, run=player.step,
                shortcuts=("Down",), context="present", blocked=when.can_step,
                tip=tr("Show the next update, complete.")),
        Command(id="present.step_back", text=tr("Previous update"), menu=PRESENTING, run=player.step_back,
                shortcuts=("Up",), context="present", blocked=when.not_at_start,
                tip=tr("Show the previous update, complete.")),
        Command(id="present.blank", text=tr("Blank screen"), menu=PRESENTING, run=presenter.toggle_blank,
                shortcuts=("B", "."), context="present", divided=True, checked=lambda: not blank.isHidden(),
                tip=tr("Make the screen black, as the blank button of a remote does; any key brings the picture "
                    "back.")),
        Command(id="present.ring", text=tr("Ring around the pointer"), menu=PRESENTING,
                run=lambda: ring.switch(not ring.on), shortcuts=("R",), context="present", checked=lambda: ring.on,
                tip=tr("Show the back row where the pointer is.")),
        Command(id="present.counter", text=tr("Step counter"), menu=PRESENTING,
                run=lambda: counter.switch(counter.isHidden()), shortcuts=("C",), context="present",
                checked=lambda: not counter.isHidden(),
                tip=tr("Show update and stage in large letters; drag them to where they cover nothing.")),
        Command(id="present.leave", text=tr("End presenting"), menu=PRESENTING, run=presenter.leave,
                shortcuts=("Esc",), context="present", divided=True, blocked=can_leave,
                tip=tr("Return from one panel to all of them, or from presenting to the window as it was.")),
    ]  # fmt: skip # table, one row per line
