"""The table of commands: everything the user can do, in the order of the menus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from app.commands.command import Command, State

THEMES = (("system", "System"), ("light", "Light"), ("dark", "Dark"), ("projector", "Projector"))
LAYOUTS = ("Bandit", "Language model", "Compare", "Present")
"""The layouts that are always there."""


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
        Command(id="new_run", text="New run", menu="File", run=window.new_run, shortcuts=("Ctrl+N",), icon="new",
                tip="Start again at update 0 with the settings shown; the run you leave stays in the list."),
        Command(id="new_bandit_run", text="New bandit", menu="File", run=window.new_bandit_run,
                tip="Start a bandit with ten actions, in the layout for it."),
        Command(id="new_language_run", text="New language model", menu="File", run=window.new_language_run,
                tip="Start a small transformer that learns arithmetic, in the layout for it."),
        Command(id="open_run", text="Open run…", menu="File", run=window.open_run, shortcuts=("Ctrl+O",), icon="open",
                tip="Open a run file; training goes on."),
        *_recent(window),
        Command(id="save_as", text="Save run as…", menu="File", run=window.save_as, divided=True,
                shortcuts=("Ctrl+S", "Ctrl+Shift+S"), icon="save", blocked=_needs_update,
                tip="Copy the run to a file of your own."),
        Command(id="open_session", text="Open session…", menu="File", run=window.open_session, divided=True,
                shortcuts=("Ctrl+Shift+O",),
                tip="Open what somebody prepared: runs, settings, layout and notes; you work on copies."),
        Command(id="save_session", text="Save session as…", menu="File", run=window.save_session,
                tip="Put all open runs, settings, layout, notes and locked controls into one file to hand out."),
        *_export(window),
        Command(id="close_run", text="Close run", menu="File", run=window.close_run, shortcuts=("Ctrl+W",),
                tip="Take the run off the list; its file stays."),
        Command(id="quit", text="Quit", menu="File", run=window.quit, shortcuts=("Ctrl+Q",), divided=True,
                tip="Close the window; the run is on disk already."),
    ]  # fmt: skip


def _recent(window: Window) -> list[Command]:
    """Files opened or saved lately, the last one first."""
    return [
        Command(id=f"recent.{place}", text=f"Open {Path(path).name}"[:80], menu="File/Open recent",
                run=partial(window.open_recent, path), tip=f"Open {path}.")
        for place, path in enumerate(window.recent_files(), start=1)
    ]  # fmt: skip


def _export(window: Window) -> list[Command]:
    menu = "File/Export"
    return [
        Command(id="export_picture", text="Export picture…", menu=menu, run=window.export_picture,
                shortcuts=("Ctrl+E",),
                tip="Write a panel as PNG, SVG or PDF, in any size and theme, with a caption."),
        Command(id="export_table", text="Export table…", menu=menu, run=window.export_table,
                tip="Write the numbers of the panel in focus as CSV, in full."),
        Command(id="export_sequence", text="Export image sequence…", menu=menu, run=window.export_sequence,
                blocked=_needs_update, tip="Write a panel at each of several updates as a picture."),
        Command(id="export_run", text="Export run as CSV…", menu=menu, run=window.export_run, divided=True,
                blocked=_needs_update, tip="Write every series, sample and setting of the run into a folder."),
        Command(id="export_script", text="Export update as script…", menu=menu, run=window.export_script,
                blocked=_not_at_start, tip="Write the update shown as a short program that needs NumPy alone."),
    ]  # fmt: skip


def _edit(window: Window) -> list[Command]:
    return [
        Command(id="undo", text="Undo", menu="Edit", run=window.undo, shortcuts=("Ctrl+Z",), icon="undo",
                blocked=lambda state: "" if state.can_undo else "No setting has been changed.", repeats=True,
                tip="Take back the last change of a setting; updates are never removed."),
        Command(id="redo", text="Redo", menu="Edit", run=window.redo, shortcuts=("Ctrl+Shift+Z", "Ctrl+Y"),
                icon="redo", blocked=lambda state: "" if state.can_redo else "Nothing has been undone.", repeats=True,
                tip="Make the change again."),
        Command(id="explain", text="Explain the selected number", menu="Edit", run=window.explain,
                shortcuts=("E",), icon="explain", divided=True, blocked=_needs_number,
                tip="Show its formula, the values in it, and where they came from."),
        Command(id="what_if", text="What if…", menu="Edit", run=window.show_what_if, shortcuts=("W",),
                tip="Show what another algorithm or other settings would have made of the update shown."),
        Command(id="table_twin", text="Show as table", menu="Edit", run=window.toggle_table_twin, shortcuts=("T",),
                icon="table", blocked=_needs_plot, checked=lambda state: state.table_twin,
                tip="Show the numbers of the picture in focus, and back."),
        Command(id="copy_picture", text="Copy picture", menu="Edit", run=window.copy_picture,
                shortcuts=("Ctrl+Shift+C",), icon="copy", blocked=_needs_plot,
                tip="Put the picture in focus on the clipboard."),
    ]  # fmt: skip


def _run(window: Window) -> list[Command]:
    return [
        Command(id="run", text="Run or pause", menu="Run", run=window.run_pause, icon="run",
                shortcuts=("Space", "Ctrl+Space"), blocked=_can_train,
                text_now=lambda state: "Pause" if state.running else "Run",
                tip="Compute updates at the chosen speed; the same key pauses."),
        Command(id="step", text="Step", menu="Run", run=window.step, shortcuts=(".",), icon="step",
                blocked=_can_step, repeats=True,
                tip="Go to the next update; at the head it is computed."),
        Command(id="step_back", text="Step back", menu="Run", run=window.step_back, shortcuts=(",",),
                icon="step_back", blocked=_not_at_start, repeats=True,
                tip="Look at the update before; nothing is lost."),
        Command(id="stage", text="Stage", menu="Run", run=window.next_stage, shortcuts=("Shift+.",),
                icon="stage", blocked=_can_step, repeats=True, divided=True,
                tip="Reveal the next stage of the update: sample, score, normalize, update."),
        Command(id="stage_back", text="Stage back", menu="Run", run=window.previous_stage,
                shortcuts=("Shift+,",), icon="stage_back", blocked=_not_at_start, repeats=True,
                tip="Hide the last stage again."),
        Command(id="run_n", text="Run 50", menu="Run", run=window.run_n, shortcuts=("Ctrl+.",),
                icon="run_n", blocked=_can_train, divided=True,
                tip="Fifty more updates, then pause."),
        Command(id="faster", text="Faster", menu="Run", run=window.faster, shortcuts=("Ctrl+Up",), repeats=True,
                tip="More updates per second."),
        Command(id="slower", text="Slower", menu="Run", run=window.slower, shortcuts=("Ctrl+Down",), repeats=True,
                tip="Fewer updates per second."),
        Command(id="breakpoints", text="Stop when…", menu="Run", run=window.show_breakpoints,
                shortcuts=("Ctrl+Shift+B",), divided=True,
                tip="Breakpoints: stop the run at the update where a condition on a series becomes true."),
        Command(id="branch", text="Branch here", menu="Run", run=window.branch, shortcuts=("Ctrl+B",),
                icon="branch", blocked=_needs_update, divided=True,
                tip="Begin a new run at the update shown, with the settings shown."),
        Command(id="race", text="Race", menu="Run", run=window.race, shortcuts=("Ctrl+R",), divided=True,
                tip="Let algorithms race over the same seeds, on the landscape of the run shown."),
        Command(id="sweep", text="Sweep", menu="Run", run=window.sweep, shortcuts=("Ctrl+Shift+R",),
                tip="Train many seeds at every β of a grid, or over any other setting."),
        Command(id="queue", text="Runs in the background", menu="Run", run=window.show_queue,
                tip="Sweep the language model over a setting: real runs, one after the other, beside the window."),
    ]  # fmt: skip


def _go(window: Window) -> list[Command]:
    return [
        Command(id="go_start", text="Go to update 0", menu="Go", run=window.go_start, shortcuts=("Home",),
                icon="to_start", blocked=_not_at_start, tip="Show the run before its first update."),
        Command(id="go_end", text="Go to the newest update", menu="Go", run=window.go_end, shortcuts=("End",),
                icon="to_end", tip="Show the newest update and follow it."),
        Command(id="next_event", text="Next event", menu="Go", run=window.next_event, shortcuts=("N",),
                icon="next_event", divided=True, repeats=True,
                blocked=lambda state: "" if state.next_event else "Nothing remarkable comes after this update.",
                tip="Jump to the next clip, dead group, new best action or changed setting."),
        Command(id="previous_event", text="Previous event", menu="Go", run=window.previous_event,
                shortcuts=("P",), icon="previous_event", repeats=True,
                blocked=lambda state: "" if state.previous_event else "Nothing remarkable comes before this update.",
                tip="Jump back to the one before."),
    ]  # fmt: skip


def _view(window: Window) -> list[Command]:
    return [
        Command(id="full_screen", text="Full screen", menu="View", run=window.toggle_full_screen,
                shortcuts=("F11",), checked=lambda state: state.full_screen, tip="Fill the screen, and back."),
        Command(id="zoom_in", text="Larger", menu="View", run=partial(window.zoom, 1), divided=True,
                shortcuts=("Ctrl++", "Ctrl+="), repeats=True, tip="Make everything larger."),
        Command(id="zoom_out", text="Smaller", menu="View", run=partial(window.zoom, -1), shortcuts=("Ctrl+-",),
                repeats=True, tip="Make everything smaller."),
        Command(id="zoom_reset", text="Normal size", menu="View", run=partial(window.zoom, 0), shortcuts=("Ctrl+0",),
                tip="Back to 100 %."),
        Command(id="reduced_motion", text="Reduced motion", menu="View", divided=True,
                run=lambda: window.set_reduced_motion(not window.state().reduced_motion),
                checked=lambda state: state.reduced_motion, tip="Nothing moves to show where it went."),
    ]  # fmt: skip


def _themes(window: Window) -> list[Command]:
    return [
        Command(id=f"theme.{name}", text=f"{title} theme", menu="View/Theme", run=partial(window.set_theme, name),
                checked=partial(_has_theme, name), tip="Change the colours; they keep their meaning.")
        for name, title in THEMES
    ]  # fmt: skip


def _layouts(window: Window) -> list[Command]:
    own = [name for name in window.saved_layouts() if name not in LAYOUTS]
    named = [
        Command(id=f"layout.{name}", text=f"Layout “{name}”", menu="View/Layout",
                run=partial(window.set_layout, name), checked=partial(_has_layout, name),
                shortcuts=(f"Ctrl+{place}",) if place <= 9 else (), tip="Arrange the panels this way.")
        for place, name in enumerate((*LAYOUTS, *own), start=1)
    ]  # fmt: skip
    return [
        *named,
        Command(id="save_layout", text="Save layout as…", menu="View/Layout", run=window.save_layout, divided=True,
                tip="Keep the arrangement of the panels under a name."),
        Command(id="reset_layout", text="Reset layout", menu="View/Layout", run=window.reset_layout,
                tip="Put every panel where it stood at first."),
    ]  # fmt: skip


def _panels(window: Window) -> list[Command]:
    return [
        Command(id=f"panel.{id}", text=f"Panel “{title}”", menu="View/Panels", run=partial(window.toggle_panel, id),
                checked=partial(_shows_panel, id), tip="Show the panel, or hide it.")
        for id, title in window.panels()
    ]  # fmt: skip


def _help(window: Window) -> list[Command]:
    return [
        Command(id="shortcut_sheet", text="Keyboard shortcuts", menu="Help", run=window.show_sheet, shortcuts=("F1",),
                tip="Every key, searchable."),
        Command(id="palette", text="Find a command", menu="Help", run=window.show_palette,
                shortcuts=("Ctrl+Shift+P",), tip="Type a few letters of what you want to do."),
        Command(id="glossary", text="Glossary", menu="Help", run=window.show_glossary, shortcuts=("Shift+F1",),
                divided=True, tip="Every term in one sentence, with its formula."),
        Command(id="references", text="References", menu="Help", run=window.show_references,
                tip="The papers behind what is shown."),
        Command(id="about", text="About GRPO Lab", menu="Help", run=window.show_about, divided=True,
                tip="Which build this is, and under which licences."),
    ]  # fmt: skip


def _lesson(window: Window) -> list[Command]:
    """Walking a lesson. Its keys act while one is given, and go before all others."""
    menu = "Help/Lesson"
    return [
        Command(id="lessons", text="Lessons", menu="Help", run=window.show_lessons, shortcuts=("Ctrl+L",), divided=True,
                tip="Questions to predict, try and see answered on live numbers."),
        Command(id="lesson.next", text="Next step of the lesson", menu=menu, run=window.lesson_next,
                shortcuts=("Right", "Space", "PgDown"), context="lesson", blocked=_needs_lesson,
                tip="One step further; a question that stands open is asked for once, and then skipped."),
        Command(id="lesson.back", text="Step of the lesson before", menu=menu, run=window.lesson_back,
                shortcuts=("Left", "PgUp"), context="lesson", blocked=_needs_lesson, tip="One step back."),
        Command(id="lesson.skip", text="Skip the question", menu=menu, run=window.lesson_skip, shortcuts=("S",),
                context="lesson", blocked=_needs_lesson, tip="See the answer without a prediction."),
        Command(id="lesson.keep", text="Open the lesson in the full app", menu=menu, run=window.lesson_keep,
                shortcuts=("O",), context="lesson", blocked=_needs_lesson, divided=True,
                tip="Go on with the lesson's run, with all panels and all settings."),
        Command(id="lesson.leave", text="Leave the lesson", menu=menu, run=window.lesson_leave, shortcuts=("Esc",),
                context="lesson", blocked=_needs_lesson, tip="Back to your own run, as you left it."),
        Command(id="export_predictions", text="Export predictions…", menu="Help", run=window.export_predictions,
                tip="Write every prediction made on this machine to a CSV file."),
    ]  # fmt: skip


def _needs_lesson(state: State) -> str:
    return "" if state.lesson else "No lesson is open; choose one under Lessons."


def _present(window: Window) -> list[Command]:
    """For a class: what remote controls send, and what the back row has to see."""
    menu = "View/Presenting"
    return [
        Command(id="present", text="Present", menu=menu, run=window.present, shortcuts=("F5",),
                checked=lambda state: state.presenting,
                tip="Full screen for a projector; with two screens the speaker has a window of their own."),
        Command(id="maximize_panel", text="Maximize panel", menu=menu, run=window.maximize_panel,
                shortcuts=("F12",), checked=lambda state: state.maximized,
                tip="The panel in focus in the place of all panels; the same key puts them back."),
        Command(id="speaker", text="Speaker window", menu=menu, run=window.toggle_speaker,
                checked=partial(_has_aid, "speaker"), tip="Notes, the next step and a clock."),
        Command(id="present.next", text="Next stage", menu=menu, run=window.forward,
                shortcuts=("PgDown", "Right"), context="present", blocked=_can_step, divided=True,
                tip="What the forward button of a remote sends."),
        Command(id="present.back", text="Previous stage", menu=menu, run=window.back,
                shortcuts=("PgUp", "Left"), context="present", blocked=_not_at_start,
                tip="What the back button of a remote sends."),
        Command(id="present.step", text="Next update", menu=menu, run=window.step,
                shortcuts=("Down",), context="present", blocked=_can_step, tip="The whole of the next update."),
        Command(id="present.step_back", text="Previous update", menu=menu, run=window.step_back,
                shortcuts=("Up",), context="present", blocked=_not_at_start, tip="The update before, as a whole."),
        Command(id="present.blank", text="Blank screen", menu=menu, run=window.blank_screen,
                shortcuts=("B", "."), context="present", divided=True, checked=partial(_has_aid, "blank"),
                tip="All black, as the dark button of a remote asks for; any key brings the picture back."),
        Command(id="present.ring", text="Ring around the pointer", menu=menu, run=window.toggle_ring,
                shortcuts=("R",), context="present", checked=partial(_has_aid, "ring"),
                tip="The back row sees where the pointer is."),
        Command(id="present.counter", text="Step counter", menu=menu, run=window.toggle_counter,
                shortcuts=("C",), context="present", checked=partial(_has_aid, "counter"),
                tip="Update and stage in large letters; drag it wherever it covers nothing."),
        Command(id="present.leave", text="End presenting", menu=menu, run=window.leave_presenting,
                shortcuts=("Esc",), context="present", divided=True,
                blocked=lambda state: "" if state.presenting or state.maximized else "Nobody is presenting.",
                tip="From one panel to all of them, and from presenting to the window as it was."),
    ]  # fmt: skip


def _has_aid(name: str, state: State) -> bool:
    return name in state.aids


def _can_train(state: State) -> str:
    return state.read_only


def _can_step(state: State) -> str:
    return "" if state.step < state.head else state.read_only


def _not_at_start(state: State) -> str:
    return "" if state.step > 0 else "This is the run before its first update."


def _needs_update(state: State) -> str:
    return "" if state.head > 0 else "The run has no update yet; press Run first."


def _needs_number(state: State) -> str:
    return "" if state.explainable else "No number is selected; click one, or move to it with the arrow keys."


def _needs_plot(state: State) -> str:
    return "" if state.has_plot else "No picture is in focus; click one, or reach it with Tab."


def _has_theme(name: str, state: State) -> bool:
    return state.theme == name


def _has_layout(name: str, state: State) -> bool:
    return state.layout == name


def _shows_panel(id: str, state: State) -> bool:
    return id in state.panels
