"""Commands of the menus Edit, Run and Go: what the user does with a run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication, QInputDialog, QWidget

from app.commands.command import EDIT, GO, REST, RUN, Command
from app.commands.targets import CommandTargets
from app.experiments.repeats import COUNT
from app.messages.message import Severity
from app.panel_registry import COMPARISON, KL_OVER_BETA, TIMELINE, TRAINING_HISTORY, WHAT_IF
from app.panels.timeline import next_event
from app.plotting.twin_stack import TwinStack
from app.settings.preferences import SPEEDS
from app.theme.file_dialogs import file_to_open
from app.widgets.panel import Panel, around
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.text import tr


def edit_commands(targets: CommandTargets) -> list[Command]:
    window, when = targets.window, targets.when
    undo = targets.workspace.editing.undo

    def explain() -> None:
        if _widget_in_focus_explains():
            window.explain_homes.show()  # with nothing to explain, the panel shows how to request an explanation
        else:
            targets.workspace.explain(_selected_quantity(targets.workspace))

    def toggle_table() -> None:
        plot = around(QApplication.focusWidget(), TwinStack)
        if plot is not None:
            plot.toggle()

    def shows_table() -> bool:
        plot = around(QApplication.focusWidget(), TwinStack)
        return plot is not None and plot.shows_table

    def copy_picture() -> None:
        panel = around(QApplication.focusWidget(), Panel)
        if panel is not None:
            QApplication.clipboard().setPixmap(panel.grab())
            sentence = tr("The picture of “{title}” is on the clipboard.").format(title=panel.title)
            window.messages.say(sentence, Severity.INFO)

    return [
        Command(id="undo", text=tr("Undo"), menu=EDIT, run=undo.undo, shortcuts=("Ctrl+Z",), icon="undo",
                blocked=lambda: "" if undo.canUndo() else tr("No setting has been changed."), repeats=True,
                tip=tr("Undo the last change of a setting; updates are never removed.")),
        Command(id="redo", text=tr("Redo"), menu=EDIT, run=undo.redo, shortcuts=("Ctrl+Shift+Z", "Ctrl+Y"),
                icon="redo", blocked=lambda: "" if undo.canRedo() else tr("Nothing has been undone."), repeats=True,
                tip=tr("Make the change again.")),
        Command(id="explain", text=tr("Explain the selected number"), menu=EDIT, run=explain,
                shortcuts=("E",), icon="explain", divided=True, blocked=when.needs_number,
                tip=tr("Show its formula, the values in it, and where they came from.")),
        Command(id="pin_explain", subject=REST, text=tr("Keep Explain as a panel"), menu=EDIT,
                run=window.explain_homes.pin, shortcuts=("Shift+E",), checked=lambda: window.explain_homes.is_pinned,
                tip=tr("Show explanations in a panel next to the others, or in a sheet at the number.")),
        Command(id="what_if", subject="what if", text=tr("What if…"), menu=EDIT, shortcuts=("W",),
                run=lambda: window.show_panel(WHAT_IF).focus_choice(),
                tip=tr("Show what another algorithm or other settings would have made of the update shown.")),
        Command(id="table_twin", subject="what if", text=tr("Show as table"), menu=EDIT, run=toggle_table,
                shortcuts=("T",), icon="table", blocked=when.needs_plot, checked=shows_table,
                tip=tr("Switch the picture in focus between plot and table.")),
        Command(id="copy_picture", subject=REST, text=tr("Copy picture"), menu=EDIT, run=copy_picture,
                shortcuts=("Ctrl+Shift+C",), icon="copy", blocked=when.needs_plot,
                tip=tr("Copy the picture in focus to the clipboard.")),
    ]  # fmt: skip # table, one row per line


def _widget_in_focus_explains() -> bool:
    """Let the focused widget, or one that contains it, explain its current number. Return whether one did."""
    widget: QWidget | None = QApplication.focusWidget()
    while widget is not None:
        explain = getattr(widget, "explain_current", None)
        if explain is not None:
            explain()
            return True
        widget = widget.parentWidget()
    return False


def _selected_quantity(workspace: Workspace) -> Quantity:
    """Return the number that the selection represents, or the loss if nothing is selected."""
    view = workspace.view
    if view.step.step is None:
        return Quantity("loss")
    if view.selection.row is not None:
        return Quantity("advantage", row=view.selection.row, token=view.selection.token)
    return Quantity("loss", passed=view.step.passed)


USUAL_SPEED = 2
"""Index in ``SPEEDS`` that serves as the starting point if the current speed is not one of them."""


def run_commands(targets: CommandTargets) -> list[Command]:
    player, window, when = targets.player, targets.window, targets.when

    def change_speed(by: int) -> None:
        here = SPEEDS.index(player.speed) if player.speed in SPEEDS else USUAL_SPEED
        player.set_speed(SPEEDS[min(max(here + by, 0), len(SPEEDS) - 1)])

    def choose_python() -> None:
        kinds = "Python (python*)"
        if name := file_to_open(window, tr("Python with torch"), str(Path.home()), kinds, link=True):
            targets.pythons.chosen = name
            targets.preferences.change(python=name)
            text = tr("From the next run on, language models on a GPU and models from folders are trained in {path}.")
            window.messages.say(text.format(path=name), Severity.INFO)

    return [
        Command(id="run", text=tr("Run or pause"), menu=RUN, run=player.toggle, icon="run",
                shortcuts=("Space", "Ctrl+Space"), blocked=when.can_run,
                face=lambda: (tr("Pause"), "pause") if player.busy else (tr("Run", "verb"), "run"),
                tip=tr("Compute updates at the chosen speed, or replay those of a finished run; the same key pauses.")),
        Command(id="step", text=tr("Step", "verb"), menu=RUN, run=player.step, shortcuts=(".",), icon="step",
                blocked=when.can_step, repeats=True,
                tip=tr("Go to the next update, or compute it if this is the newest.")),
        Command(id="step_back", subject="playback", text=tr("Step back"), menu=RUN, run=player.step_back,
                shortcuts=(",",), icon="step_back", blocked=when.not_at_start, repeats=True,
                tip=tr("Go back to the previous update; nothing is lost.")),
        Command(id="stage", subject="playback", text=tr("Stage"), menu=RUN, run=player.stage, shortcuts=("Shift+.",),
                icon="stage", blocked=when.can_show_stage, repeats=True, divided=True,
                tip=tr("Reveal the next stage of the update: sample, score, normalize, update.")),
        Command(id="stage_back", subject="playback", text=tr("Stage back"), menu=RUN, run=player.stage_back,
                shortcuts=("Shift+,",), icon="stage_back", blocked=when.not_at_start, repeats=True,
                tip=tr("Hide the last stage again.")),
        Command(id="run_n", subject="training", text=tr("Run 50"), menu=RUN, shortcuts=("Ctrl+.",), icon="run_n",
                run=lambda: player.run_n(50, at_once=True), blocked=when.can_train, divided=True,
                tip=tr("Fifty more updates, as fast as they can be computed, then pause.")),
        Command(id="faster", subject="training", text=tr("Faster"), menu=RUN, run=lambda: change_speed(1),
                shortcuts=("Ctrl+Up",), repeats=True, tip=tr("More updates per second.")),
        Command(id="slower", subject="training", text=tr("Slower"), menu=RUN, run=lambda: change_speed(-1),
                shortcuts=("Ctrl+Down",), repeats=True, tip=tr("Fewer updates per second.")),
        Command(id="breakpoints", subject="training", text=tr("Stop when…"), menu=RUN, run=targets.breakpoints.show,
                shortcuts=("Ctrl+Shift+B",), divided=True,
                tip=tr("Breakpoints: stop the run at the update where a condition on a series becomes true.")),
        Command(id="reset", subject="training", text=tr("Reset"), menu=RUN, run=targets.runs.reset,
                shortcuts=("Ctrl+Home",), icon="to_start", blocked=when.may_reset, divided=True,
                tip=tr("Start this run again with its original settings and seed; the old run stays as thin lines.")),
        Command(id="branch", subject="training", text=tr("Branch here"), menu=RUN, run=targets.runs.branch,
                shortcuts=("Ctrl+B",), icon="branch", blocked=when.can_branch,
                tip=tr("Begin a new run at the update shown, with the settings shown.")),
        Command(id="new_seed", subject="training", text=tr("New seed"), menu=RUN, run=targets.runs.new_seed,
                icon="new_seed", blocked=when.may_seed,
                tip=tr("Begin a new run with the next seed and the settings shown; this one stays in the list.")),
        Command(id="repeat", subject="training", text=tr("Repeat × {count}").format(count=COUNT), menu=RUN,
                run=lambda: window.show_panel(TRAINING_HISTORY).repeat(), blocked=when.can_repeat, divided=True,
                tip=tr("Run the same settings with other seeds, side by side, to see how much of this run is "
                    "chance.")),
        Command(id="race", subject="experiments", text=tr("Race", "verb"), menu=RUN, shortcuts=("Ctrl+R",),
                run=lambda: window.show_panel(COMPARISON).race(),
                tip=tr("Race algorithms over the same seeds, on the rewards of the run shown.")),
        Command(id="sweep", subject="experiments", text=tr("Sweep"), menu=RUN, shortcuts=("Ctrl+Shift+R",),
                run=lambda: window.show_panel(KL_OVER_BETA).sweep(),
                tip=tr("Train many seeds at each β of a grid, or at each value of another setting.")),
        Command(id="queue", subject=REST, text=tr("Runs in the background"), menu=RUN, run=targets.background_runs.show,
                tip=tr("Sweep the language model over a setting: real runs, one after the other, in the "
                    "background.")),
        Command(id="torch_python", subject=REST, text=tr("Python with torch…"), menu=RUN,
                run=choose_python, divided=True,
                tip=tr("Choose the Python in which language models on a GPU and models from folders are trained.")),
    ]  # fmt: skip # table, one row per line


def go_commands(targets: CommandTargets) -> list[Command]:
    player, workspace, when = targets.player, targets.workspace, targets.when
    overlay = targets.window.overlay
    timeline = targets.window.panels.of(TIMELINE)

    def go_to_start() -> None:
        player.rest()
        workspace.move_to(0)

    def go_to_end() -> None:
        player.rest()
        workspace.follow()

    def ask_update() -> None:
        run, text = when.run, tr("Update, 0 to {head}").format(head=when.run.head)
        here, title = workspace.cursor.step, tr("Go to update")
        update, accepted = QInputDialog.getInt(targets.window, title, text, here, 0, run.head)
        if accepted:
            player.rest()
            workspace.move_to(update)

    def has_event(*, forwards: bool) -> bool:
        run = workspace.run
        assert run is not None
        return not player.busy and next_event(run, workspace.cursor.step, forwards=forwards) is not None

    return [
        Command(id="go_start", subject="playback", text=tr("Go to update 0"), menu=GO, run=go_to_start,
                shortcuts=("Home",),
                icon="to_start", blocked=when.not_at_start, tip=tr("Show the run before its first update.")),
        Command(id="go_end", subject="playback", text=tr("Go to the newest update"), menu=GO, run=go_to_end,
                shortcuts=("End",), icon="to_end", tip=tr("Show the newest update and follow it.")),
        Command(id="go_update", subject="playback", text=tr("Go to update…"), menu=GO, run=ask_update,
                shortcuts=("Ctrl+G",), blocked=when.needs_update, tip=tr("Type the number of the update to show.")),
        Command(id="next_event", subject="playback", text=tr("Next event"), menu=GO, icon="next_event",
                run=partial(timeline.go, forwards=True), shortcuts=("N",), divided=True, repeats=True,
                blocked=lambda: "" if has_event(forwards=True) else tr("There is no event after this update."),
                tip=tr("Jump to the next clip, dead group, new best action or changed setting.")),
        Command(id="previous_event", subject="playback", text=tr("Previous event"), menu=GO,
                run=partial(timeline.go, forwards=False), shortcuts=("P",), icon="previous_event", repeats=True,
                blocked=lambda: "" if has_event(forwards=False) else tr("There is no event before this update."),
                tip=tr("Jump back to the previous event.")),
        Command(id="home", text=tr("First screen"), menu=GO, run=targets.doors.show_home, shortcuts=("Alt+Home",),
                divided=True, tip=tr("Choose another way in: play, or what the parts of the program offer.")),
        Command(id="messages", text=tr("Messages"), menu=GO, run=overlay.focus, shortcuts=("F6",), divided=True,
                blocked=lambda: "" if overlay.waiting else tr("There are no messages."),
                tip=tr("Move the keyboard focus to the newest message; Esc moves it back.")),
    ]  # fmt: skip # table, one row per line
