"""Commands of the menu Help, of lessons and of presenting."""

from __future__ import annotations

from functools import partial

from app.commands.command import Command, State
from app.commands.places import HELP, LESSON, PRESENTING
from app.commands.when import can_step, not_at_start
from app.commands.window import Window
from grpo_core.text import tr


def help_commands(window: Window) -> list[Command]:
    """The commands of the menu Help."""
    return [
        Command(id="shortcut_sheet", text=tr("Keyboard shortcuts"), menu=HELP, run=window.show_sheet, shortcuts=("F1",),
                tip=tr("Every key, searchable.")),
        Command(id="palette", text=tr("Find a command"), menu=HELP, run=window.show_palette,
                shortcuts=("Ctrl+Shift+P",), tip=tr("Type a few letters of what you want to do.")),
        Command(id="glossary", text=tr("Glossary"), menu=HELP, run=window.show_glossary, shortcuts=("Shift+F1",),
                divided=True, tip=tr("Every term in one sentence, with its formula.")),
        Command(id="references", text=tr("References"), menu=HELP, run=window.show_references,
                tip=tr("The papers behind what is shown.")),
        Command(id="about", text=tr("About GRPO Lab"), menu=HELP, run=window.show_about, divided=True,
                tip=tr("Which build this is, and under which licences.")),
    ]  # fmt: skip


def lesson_commands(window: Window) -> list[Command]:
    """Walking a lesson. Its keys act while one is given, and go before all others."""
    menu = LESSON
    return [
        Command(id="lessons", text=tr("Lessons"), menu=HELP, run=window.show_lessons, shortcuts=("Ctrl+L",),
                divided=True,
                tip=tr("Questions to predict, try and see answered on live numbers.")),
        Command(id="lesson.next", text=tr("Next step of the lesson"), menu=menu, run=window.lesson_next,
                shortcuts=("Right", "Space", "PgDown"), context="lesson", blocked=_needs_lesson,
                tip=tr("One step further; a question that stands open is asked for once, and then skipped.")),
        Command(id="lesson.back", text=tr("Step of the lesson before"), menu=menu, run=window.lesson_back,
                shortcuts=("Left", "PgUp"), context="lesson", blocked=_needs_lesson, tip=tr("One step back.")),
        Command(id="lesson.skip", text=tr("Skip the question"), menu=menu, run=window.lesson_skip, shortcuts=("S",),
                context="lesson", blocked=_needs_lesson, tip=tr("See the answer without a prediction.")),
        Command(id="lesson.keep", text=tr("Open the lesson in the full app"), menu=menu, run=window.lesson_keep,
                shortcuts=("O",), context="lesson", blocked=_needs_lesson, divided=True,
                tip=tr("Go on with the lesson's run, with all panels and all settings.")),
        Command(id="lesson.leave", text=tr("Leave the lesson"), menu=menu, run=window.lesson_leave, shortcuts=("Esc",),
                context="lesson", blocked=_needs_lesson, tip=tr("Back to your own run, as you left it.")),
        Command(id="export_predictions", text=tr("Export predictions…"), menu=HELP, run=window.export_predictions,
                tip=tr("Write every prediction made on this machine to a CSV file.")),
    ]  # fmt: skip


def _needs_lesson(state: State) -> str:
    return "" if state.lesson else tr("No lesson is open; choose one under Lessons.")


def present_commands(window: Window) -> list[Command]:
    """For a class: what remote controls send, and what the back row has to see."""
    menu = PRESENTING
    return [
        Command(id="present", text=tr("Present"), menu=menu, run=window.present, shortcuts=("F5",),
                checked=lambda state: state.presenting,
                tip=tr("Full screen for a projector; with two screens the speaker has a window of their own.")),
        Command(id="maximize_panel", text=tr("Maximize panel"), menu=menu, run=window.maximize_panel,
                shortcuts=("F12",), checked=lambda state: state.maximized,
                tip=tr("The panel in focus in the place of all panels; the same key puts them back.")),
        Command(id="speaker", text=tr("Speaker window"), menu=menu, run=window.toggle_speaker,
                checked=partial(_has_aid, "speaker"), tip=tr("Notes, the next step and a clock.")),
        Command(id="present.next", text=tr("Next stage"), menu=menu, run=window.forward,
                shortcuts=("PgDown", "Right"), context="present", blocked=can_step, divided=True,
                tip=tr("What the forward button of a remote sends.")),
        Command(id="present.back", text=tr("Previous stage"), menu=menu, run=window.back,
                shortcuts=("PgUp", "Left"), context="present", blocked=not_at_start,
                tip=tr("What the back button of a remote sends.")),
        Command(id="present.step", text=tr("Next update"), menu=menu, run=window.step,
                shortcuts=("Down",), context="present", blocked=can_step, tip=tr("The whole of the next update.")),
        Command(id="present.step_back", text=tr("Previous update"), menu=menu, run=window.step_back,
                shortcuts=("Up",), context="present", blocked=not_at_start, tip=tr("The update before, as a whole.")),
        Command(id="present.blank", text=tr("Blank screen"), menu=menu, run=window.blank_screen,
                shortcuts=("B", "."), context="present", divided=True, checked=partial(_has_aid, "blank"),
                tip=tr("All black, as the dark button of a remote asks for; any key brings the picture back.")),
        Command(id="present.ring", text=tr("Ring around the pointer"), menu=menu, run=window.toggle_ring,
                shortcuts=("R",), context="present", checked=partial(_has_aid, "ring"),
                tip=tr("The back row sees where the pointer is.")),
        Command(id="present.counter", text=tr("Step counter"), menu=menu, run=window.toggle_counter,
                shortcuts=("C",), context="present", checked=partial(_has_aid, "counter"),
                tip=tr("Update and stage in large letters; drag it wherever it covers nothing.")),
        Command(id="present.leave", text=tr("End presenting"), menu=menu, run=window.leave_presenting,
                shortcuts=("Esc",), context="present", divided=True,
                blocked=lambda state: "" if state.presenting or state.maximized else tr("Nobody is presenting."),
                tip=tr("From one panel to all of them, and from presenting to the window as it was.")),
    ]  # fmt: skip


def _has_aid(name: str, state: State) -> bool:
    return name in state.aids
