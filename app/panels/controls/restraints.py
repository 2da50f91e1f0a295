"""Controls that a session locks or hides, and a notice with a button that restores them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFrame, QMenu, QPushButton, QWidget

from app.boxes import down
from app.theme.labels import Label, allow
from app.workspace.editing import Editing
from app.workspace.view import View
from grpo_core.text import plural, tr


@dataclass(frozen=True, kw_only=True)
class Restrainable:
    """A control that can be locked and hidden, with the dotted paths of its settings and the labels of its menu."""

    paths: tuple[str, ...]
    lock: str
    hide: str

    def show_menu(self, parent: QWidget, editing: Editing, place: QPoint) -> None:
        """Show the menu that locks and hides the control, at ``place`` on the screen."""
        menu = QMenu(parent)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        locked, hidden = is_restrained(self.paths, editing.locked), is_restrained(self.paths, editing.hidden)
        lock = menu.addAction(self.lock)
        lock.setCheckable(True)
        lock.setChecked(locked)
        lock.triggered.connect(lambda on: editing.restrict(_with(editing.locked, self.paths, bool(on)), editing.hidden))
        hide = menu.addAction(self.hide)
        hide.triggered.connect(lambda: editing.restrict(editing.locked, _with(editing.hidden, self.paths, not hidden)))
        if editing.locked or editing.hidden:
            menu.addSeparator()
            menu.addAction(tr("Show and unlock all")).triggered.connect(lambda: editing.restrict((), ()))
        menu.popup(place)


class Restraints(QFrame):
    """The notice that says how many controls are locked or hidden, visible only if any are."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("strip")
        self.text = Label(wraps=True)
        self.button = QPushButton(tr("Show and unlock all"))
        down(self.text, self.button, on=self, margins=8)
        self.hide()

    def hold(self, controls: Mapping[QWidget, Restrainable], view: View) -> None:
        """Lock those of ``controls`` that the session locks, and say how many are locked and hidden."""
        locked = hidden = 0
        for widget, control in controls.items():
            is_locked, is_hidden = (is_restrained(control.paths, names) for names in (view.locked, view.hidden))
            locked, hidden = locked + is_locked, hidden + is_hidden
            allow(widget, tr("This control is locked for this session.") if is_locked else "")
        self.text.setText(_restraints_text(locked, hidden) if locked or hidden else "")
        self.setVisible(bool(locked or hidden))


def _restraints_text(locked: int, hidden: int) -> str:
    if locked and hidden:
        locked_controls = plural("{count} control is locked", "{count} controls are locked", locked)
        hidden_controls = plural("{count} control is hidden", "{count} controls are hidden", hidden)
        return tr("{locked_controls} and {hidden_controls} for this session.").format(
            locked_controls=locked_controls.format(count=locked), hidden_controls=hidden_controls.format(count=hidden)
        )
    if locked:
        text = plural(
            "{count} control is locked for this session.", "{count} controls are locked for this session.", locked
        )
    else:
        text = plural(
            "{count} control is hidden for this session.", "{count} controls are hidden for this session.", hidden
        )
    return text.format(count=locked or hidden)


def is_restrained(paths: Sequence[str], names: frozenset[str]) -> bool:
    return not names.isdisjoint(paths)


def _with(names: frozenset[str], paths: Sequence[str], on: bool) -> frozenset[str]:
    return names | set(paths) if on else names - set(paths)
