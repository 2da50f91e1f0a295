"""Commands of the Edit menu: undo, explanations of numbers, pictures and their tables."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QWidget

from app.commands.command import EDIT, REST, Command
from app.commands.targets import CommandTargets
from app.messages.message import Severity
from app.panel_registry import WHAT_IF
from app.plotting.twin_stack import TwinStack
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
