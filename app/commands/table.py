"""The table of commands: everything the user can do, in the order of the menus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from app.commands.command import Command, State
from app.commands.places import (
    EDIT,
    EXPORT,
    FILE,
    GO,
    HELP,
    LAYOUT,
    LESSON,
    PANELS,
    PRESENTING,
    RECENT,
    RUN,
    THEME,
    VIEW,
)  # fmt: skip
from app.docks import LAYOUTS
from grpo_core.text import tr

THEMES = (
    ("system", tr("System")), ("light", tr("Light")), ("dark", tr("Dark")), ("projector", tr("Projector")),
    ("contrast", tr("High contrast")),
)  # fmt: skip


class Window(Protocol):
    """What the commands call. Each method returns at once."""

    def run_pause(self) -> None: ...
    def step(self) -> None: ...
    def step_back(self) -> None: ...
    def next_stage(self) -> None: ...
    def previous_stage(self) -> None: ...
    def run_n(self) -> None: ...
    def faster(self) -> None: ...
    def slower(self) -> None: ...
    def branch(self) -> None: ...
    def race(self) -> None: ...
    def sweep(self) -> None: ...
    def show_breakpoints(self) -> None: ...
    def show_queue(self) -> None: ...
    def new_run(self) -> None: ...
    def new_bandit_run(self) -> None: ...
    def new_language_run(self) -> None: ...
    def open_run(self) -> None: ...
    def open_example(self) -> None: ...
    def save_as(self) -> None: ...
    def open_session(self) -> None: ...
    def save_session(self) -> None: ...
    def recent_files(self) -> Sequence[str]: ...
    def open_recent(self, path: str) -> None: ...
    def close_run(self) -> None: ...
    def export_picture(self) -> None: ...
    def export_table(self) -> None: ...
    def export_sequence(self) -> None: ...
    def export_run(self) -> None: ...
    def export_script(self) -> None: ...
    def go_start(self) -> None: ...
    def go_end(self) -> None: ...
    def next_event(self) -> None: ...
    def previous_event(self) -> None: ...
    def undo(self) -> None: ...
    def redo(self) -> None: ...
    def explain(self) -> None: ...
    def show_what_if(self) -> None: ...
    def toggle_table_twin(self) -> None: ...
    def copy_picture(self) -> None: ...
    def toggle_full_screen(self) -> None: ...
    def zoom(self, steps: int) -> None: ...
    def set_theme(self, name: str) -> None: ...
    def set_reduced_motion(self, on: bool) -> None: ...
    def set_thinning(self, on: bool) -> None: ...
    def toggle_panel(self, id: str) -> None: ...
    def panels(self) -> Sequence[tuple[str, str]]: ...
    def set_layout(self, name: str) -> None: ...
    def saved_layouts(self) -> Sequence[str]: ...
    def save_layout(self) -> None: ...
    def reset_layout(self) -> None: ...
    def show_palette(self) -> None: ...
    def show_sheet(self) -> None: ...
    def show_glossary(self) -> None: ...
    def show_references(self) -> None: ...
    def show_about(self) -> None: ...
    def present(self) -> None: ...
    def leave_presenting(self) -> None: ...
    def maximize_panel(self) -> None: ...
    def blank_screen(self) -> None: ...
    def toggle_ring(self) -> None: ...
    def toggle_counter(self) -> None: ...
    def toggle_speaker(self) -> None: ...
    def forward(self) -> None: ...
    def back(self) -> None: ...
    def show_lessons(self) -> None: ...
    def lesson_next(self) -> None: ...
    def lesson_back(self) -> None: ...
    def lesson_skip(self) -> None: ...
    def lesson_leave(self) -> None: ...
    def lesson_keep(self) -> None: ...
    def export_predictions(self) -> None: ...
    def state(self) -> State: ...
    def quit(self) -> None: ...


def commands(window: Window) -> list[Command]:
    """Every command of ``window``, in the order of its menus."""
    return [
        *_file(window), *_edit(window), *_run(window), *_go(window), *_view(window), *_themes(window),
        *_layouts(window), *_panels(window), *_help(window), *_lesson(window), *_present(window),
    ]  # fmt: skip


def _file(window: Window) -> list[Command]:
    return [
        Command(id="new_run", text=tr("New run"), menu=FILE, run=window.new_run, shortcuts=("Ctrl+N",), icon="new",
                tip=tr("Start again at update 0 with the settings shown; the run you leave stays in the list.")),
        Command(id="new_bandit_run", text=tr("New bandit"), menu=FILE, run=window.new_bandit_run,
                tip=tr("Start a bandit with ten actions, in the layout for it.")),
        Command(id="new_language_run", text=tr("New language model"), menu=FILE, run=window.new_language_run,
                tip=tr("Start a small transformer that learns arithmetic, in the layout for it.")),
        Command(id="open_run", text=tr("Open run…"), menu=FILE, run=window.open_run, shortcuts=("Ctrl+O",), icon="open",
                tip=tr("Open a run file; training goes on.")),
        Command(id="open_example", text=tr("Open the recorded example"), menu=tr("File"), run=window.open_example,
                tip=tr("Look at a language model's finished run, recorded on another machine; nothing is computed.")),
        *_recent(window),
        Command(id="save_as", text=tr("Save run as…"), menu=FILE, run=window.save_as, divided=True,
                shortcuts=("Ctrl+S", "Ctrl+Shift+S"), icon="save", blocked=_needs_update,
                tip=tr("Copy the run to a file of your own.")),
        Command(id="open_session", text=tr("Open session…"), menu=FILE, run=window.open_session, divided=True,
                shortcuts=("Ctrl+Shift+O",),
                tip=tr("Open what somebody prepared: runs, settings, layout and notes; you work on copies.")),
        Command(id="save_session", text=tr("Save session as…"), menu=FILE, run=window.save_session,
                tip=tr("Put all open runs, settings, layout, notes and locked controls into one file to hand out.")),
        *_export(window),
        Command(id="close_run", text=tr("Close run"), menu=FILE, run=window.close_run, shortcuts=("Ctrl+W",),
                tip=tr("Take the run off the list; its file stays.")),
        Command(id="quit", text=tr("Quit"), menu=FILE, run=window.quit, shortcuts=("Ctrl+Q",), divided=True,
                tip=tr("Close the window; the run is on disk already.")),
    ]  # fmt: skip


def _recent(window: Window) -> list[Command]:
    """Files opened or saved lately, the last one first."""
    return [
        Command(id=f"recent.{place}", text=tr("Open {name}").format(name=Path(path).name)[:80], menu=RECENT,
                run=partial(window.open_recent, path), tip=tr("Open {path}.").format(path=path))
        for place, path in enumerate(window.recent_files(), start=1)
    ]  # fmt: skip


def _export(window: Window) -> list[Command]:
    menu = EXPORT
    return [
        Command(id="export_picture", text=tr("Export picture…"), menu=menu, run=window.export_picture,
                shortcuts=("Ctrl+E",),
                tip=tr("Write a panel as PNG, SVG or PDF, in any size and theme, with a caption.")),
        Command(id="export_table", text=tr("Export table…"), menu=menu, run=window.export_table,
                tip=tr("Write the numbers of the panel in focus as CSV, in full.")),
        Command(id="export_sequence", text=tr("Export image sequence…"), menu=menu, run=window.export_sequence,
                blocked=_needs_update, tip=tr("Write a panel at each of several updates as a picture.")),
        Command(id="export_run", text=tr("Export run as CSV…"), menu=menu, run=window.export_run, divided=True,
                blocked=_needs_update, tip=tr("Write every series, sample and setting of the run into a folder.")),
        Command(id="export_script", text=tr("Export update as script…"), menu=menu, run=window.export_script,
                blocked=_not_at_start, tip=tr("Write the update shown as a short program that needs NumPy alone.")),
    ]  # fmt: skip


def _edit(window: Window) -> list[Command]:
    return [
        Command(id="undo", text=tr("Undo"), menu=EDIT, run=window.undo, shortcuts=("Ctrl+Z",), icon="undo",
                blocked=lambda state: "" if state.can_undo else tr("No setting has been changed."), repeats=True,
                tip=tr("Take back the last change of a setting; updates are never removed.")),
        Command(id="redo", text=tr("Redo"), menu=EDIT, run=window.redo, shortcuts=("Ctrl+Shift+Z", "Ctrl+Y"),
                icon="redo", blocked=lambda state: "" if state.can_redo else tr("Nothing has been undone."),
                repeats=True,
                tip=tr("Make the change again.")),
        Command(id="explain", text=tr("Explain the selected number"), menu=EDIT, run=window.explain,
                shortcuts=("E",), icon="explain", divided=True, blocked=_needs_number,
                tip=tr("Show its formula, the values in it, and where they came from.")),
        Command(id="what_if", text=tr("What if…"), menu=EDIT, run=window.show_what_if, shortcuts=("W",),
                tip=tr("Show what another algorithm or other settings would have made of the update shown.")),
        Command(id="table_twin", text=tr("Show as table"), menu=EDIT, run=window.toggle_table_twin, shortcuts=("T",),
                icon="table", blocked=_needs_plot, checked=lambda state: state.table_twin,
                tip=tr("Show the numbers of the picture in focus, and back.")),
        Command(id="copy_picture", text=tr("Copy picture"), menu=EDIT, run=window.copy_picture,
                shortcuts=("Ctrl+Shift+C",), icon="copy", blocked=_needs_plot,
                tip=tr("Put the picture in focus on the clipboard.")),
    ]  # fmt: skip


def _run(window: Window) -> list[Command]:
    return [
        Command(id="run", text=tr("Run or pause"), menu=RUN, run=window.run_pause, icon="run",
                shortcuts=("Space", "Ctrl+Space"), blocked=_can_train,
                text_now=lambda state: tr("Pause") if state.running else tr("Run"),
                tip=tr("Compute updates at the chosen speed; the same key pauses.")),
        Command(id="step", text=tr("Step"), menu=RUN, run=window.step, shortcuts=(".",), icon="step",
                blocked=_can_step, repeats=True,
                tip=tr("Go to the next update; at the head it is computed.")),
        Command(id="step_back", text=tr("Step back"), menu=RUN, run=window.step_back, shortcuts=(",",),
                icon="step_back", blocked=_not_at_start, repeats=True,
                tip=tr("Look at the update before; nothing is lost.")),
        Command(id="stage", text=tr("Stage"), menu=RUN, run=window.next_stage, shortcuts=("Shift+.",),
                icon="stage", blocked=_can_step, repeats=True, divided=True,
                tip=tr("Reveal the next stage of the update: sample, score, normalize, update.")),
        Command(id="stage_back", text=tr("Stage back"), menu=RUN, run=window.previous_stage,
                shortcuts=("Shift+,",), icon="stage_back", blocked=_not_at_start, repeats=True,
                tip=tr("Hide the last stage again.")),
        Command(id="run_n", text=tr("Run 50"), menu=RUN, run=window.run_n, shortcuts=("Ctrl+.",),
                icon="run_n", blocked=_can_train, divided=True,
                tip=tr("Fifty more updates, then pause.")),
        Command(id="faster", text=tr("Faster"), menu=RUN, run=window.faster, shortcuts=("Ctrl+Up",), repeats=True,
                tip=tr("More updates per second.")),
        Command(id="slower", text=tr("Slower"), menu=RUN, run=window.slower, shortcuts=("Ctrl+Down",), repeats=True,
                tip=tr("Fewer updates per second.")),
        Command(id="breakpoints", text=tr("Stop when…"), menu=RUN, run=window.show_breakpoints,
                shortcuts=("Ctrl+Shift+B",), divided=True,
                tip=tr("Breakpoints: stop the run at the update where a condition on a series becomes true.")),
        Command(id="thinning", text=tr("Thin out at the size limit"), menu=RUN,
                run=lambda: window.set_thinning(not window.state().thinning), checked=lambda state: state.thinning,
                tip=tr("Rather than pause a long run, drop some of its older updates; its curves stay whole.")),
        Command(id="branch", text=tr("Branch here"), menu=RUN, run=window.branch, shortcuts=("Ctrl+B",),
                icon="branch", blocked=_needs_update, divided=True,
                tip=tr("Begin a new run at the update shown, with the settings shown.")),
        Command(id="race", text=tr("Race"), menu=RUN, run=window.race, shortcuts=("Ctrl+R",), divided=True,
                tip=tr("Let algorithms race over the same seeds, on the landscape of the run shown.")),
        Command(id="sweep", text=tr("Sweep"), menu=RUN, run=window.sweep, shortcuts=("Ctrl+Shift+R",),
                tip=tr("Train many seeds at every β of a grid, or over any other setting.")),
        Command(id="queue", text=tr("Runs in the background"), menu=RUN, run=window.show_queue,
                tip=tr("Sweep the language model over a setting: real runs, one after the other, beside the window.")),
    ]  # fmt: skip


def _go(window: Window) -> list[Command]:
    return [
        Command(id="go_start", text=tr("Go to update 0"), menu=GO, run=window.go_start, shortcuts=("Home",),
                icon="to_start", blocked=_not_at_start, tip=tr("Show the run before its first update.")),
        Command(id="go_end", text=tr("Go to the newest update"), menu=GO, run=window.go_end, shortcuts=("End",),
                icon="to_end", tip=tr("Show the newest update and follow it.")),
        Command(id="next_event", text=tr("Next event"), menu=GO, run=window.next_event, shortcuts=("N",),
                icon="next_event", divided=True, repeats=True,
                blocked=lambda state: "" if state.next_event else tr("Nothing remarkable comes after this update."),
                tip=tr("Jump to the next clip, dead group, new best action or changed setting.")),
        Command(id="previous_event", text=tr("Previous event"), menu=GO, run=window.previous_event,
                shortcuts=("P",), icon="previous_event", repeats=True,
                blocked=lambda state: (
                    "" if state.previous_event else tr("Nothing remarkable comes before this update.")
                ),
                tip=tr("Jump back to the one before.")),
    ]  # fmt: skip


def _view(window: Window) -> list[Command]:
    return [
        Command(id="full_screen", text=tr("Full screen"), menu=VIEW, run=window.toggle_full_screen,
                shortcuts=("F11",), checked=lambda state: state.full_screen, tip=tr("Fill the screen, and back.")),
        Command(id="zoom_in", text=tr("Larger"), menu=VIEW, run=partial(window.zoom, 1), divided=True,
                shortcuts=("Ctrl++", "Ctrl+="), repeats=True, tip=tr("Make everything larger.")),
        Command(id="zoom_out", text=tr("Smaller"), menu=VIEW, run=partial(window.zoom, -1), shortcuts=("Ctrl+-",),
                repeats=True, tip=tr("Make everything smaller.")),
        Command(id="zoom_reset", text=tr("Normal size"), menu=VIEW, run=partial(window.zoom, 0), shortcuts=("Ctrl+0",),
                tip=tr("Back to 100 %.")),
        Command(id="reduced_motion", text=tr("Reduced motion"), menu=VIEW, divided=True,
                run=lambda: window.set_reduced_motion(not window.state().reduced_motion),
                checked=lambda state: state.reduced_motion, tip=tr("Nothing moves to show where it went.")),
    ]  # fmt: skip


def _themes(window: Window) -> list[Command]:
    return [
        Command(id=f"theme.{name}", text=tr("{title} theme").format(title=title), menu=THEME,
                run=partial(window.set_theme, name),
                checked=partial(_has_theme, name), tip=tr("Change the colours; they keep their meaning."))
        for name, title in THEMES
    ]  # fmt: skip


def _layouts(window: Window) -> list[Command]:
    own = [name for name in window.saved_layouts() if name not in LAYOUTS]
    named = [
        Command(id=f"layout.{name}", text=tr("Layout “{name}”").format(name=LAYOUTS.get(name, name)), menu=LAYOUT,
                run=partial(window.set_layout, name), checked=partial(_has_layout, name),
                shortcuts=(f"Ctrl+{place}",) if place <= 9 else (), tip=tr("Arrange the panels this way."))
        for place, name in enumerate((*LAYOUTS, *own), start=1)
    ]  # fmt: skip
    return [
        *named,
        Command(id="save_layout", text=tr("Save layout as…"), menu=LAYOUT, run=window.save_layout, divided=True,
                tip=tr("Keep the arrangement of the panels under a name.")),
        Command(id="reset_layout", text=tr("Reset layout"), menu=LAYOUT, run=window.reset_layout,
                tip=tr("Put every panel where it stood at first.")),
    ]  # fmt: skip


def _panels(window: Window) -> list[Command]:
    return [
        Command(id=f"panel.{id}", text=tr("Panel “{title}”").format(title=title), menu=PANELS,
                run=partial(window.toggle_panel, id),
                checked=partial(_shows_panel, id), tip=tr("Show the panel, or hide it."))
        for id, title in window.panels()
    ]  # fmt: skip


def _help(window: Window) -> list[Command]:
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


def _lesson(window: Window) -> list[Command]:
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


def _present(window: Window) -> list[Command]:
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
                shortcuts=("PgDown", "Right"), context="present", blocked=_can_step, divided=True,
                tip=tr("What the forward button of a remote sends.")),
        Command(id="present.back", text=tr("Previous stage"), menu=menu, run=window.back,
                shortcuts=("PgUp", "Left"), context="present", blocked=_not_at_start,
                tip=tr("What the back button of a remote sends.")),
        Command(id="present.step", text=tr("Next update"), menu=menu, run=window.step,
                shortcuts=("Down",), context="present", blocked=_can_step, tip=tr("The whole of the next update.")),
        Command(id="present.step_back", text=tr("Previous update"), menu=menu, run=window.step_back,
                shortcuts=("Up",), context="present", blocked=_not_at_start, tip=tr("The update before, as a whole.")),
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


def _can_train(state: State) -> str:
    return state.read_only


def _can_step(state: State) -> str:
    return "" if state.step < state.head else state.read_only


def _not_at_start(state: State) -> str:
    return "" if state.step > 0 else tr("This is the run before its first update.")


def _needs_update(state: State) -> str:
    return "" if state.head > 0 else tr("The run has no update yet; press Run first.")


def _needs_number(state: State) -> str:
    return "" if state.explainable else tr("No number is selected; click one, or move to it with the arrow keys.")


def _needs_plot(state: State) -> str:
    return "" if state.has_plot else tr("No picture is in focus; click one, or reach it with Tab.")


def _has_theme(name: str, state: State) -> bool:
    return state.theme == name


def _has_layout(name: str, state: State) -> bool:
    return state.layout == name


def _shows_panel(id: str, state: State) -> bool:
    return id in state.panels
