"""The Explain panel: any number with its formula, its values, its inputs, and an independent recomputation."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
    QWidget,
)

from app.boxes import down, plain_scroll_area
from app.formula.formula_label import FormulaLabel
from app.plotting.numbers import full, shown
from app.theme.labels import Label, plain_tip, wrapped_tip
from app.widgets.calm import tool_button
from app.widgets.panel import Panel
from app.workspace.cursor import same_kind
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.explain import Node, Quantity, explain_from
from grpo_core.text import tr

MOST_INPUTS = 60
HINT = tr(
    "Double-click any number, or select it and press E or Return: its formula, its values and its "
    "inputs appear here, and follow the selected sample."
)
BEFORE_FIRST = tr("Update 0 has no numbers to explain yet. Press Step to compute the first update.")


class Door(QPushButton):
    """A button whose text is elided if it does not fit."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, option = QStylePainter(self), QStyleOptionButton()
        self.initStyleOption(option)
        space = self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self).width()
        option.text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, space)
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)


class ExplainPanel(Panel):
    """The explanation of the last requested number, with a button that goes back to earlier ones."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._trail: list[Quantity] = []
        self._node: Node | None = None
        self.back = tool_button(tr("‹ Back"), name=tr("Back to the previous number"), quiet=False)
        self.back.clicked.connect(self._on_back)
        self.heading = Label(name="section", wraps=True)
        self.formula = FormulaLabel()
        self.values = FormulaLabel()
        self.result = Label(name="explained")
        self.result.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.check, self.note = Label(wraps=True, selectable=True), Label(wraps=True)
        self.source = Label(name="muted", wraps=True)
        self.inputs_title = Label(tr("Comes from"), name="section")
        self.inputs = QWidget()
        self._grid = QGridLayout(self.inputs)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(0)
        self._grid.setColumnStretch(0, 1)
        self._doors: list[tuple[QPushButton, Label]] = []
        self.more = Label()
        self._grid.addWidget(self.more, MOST_INPUTS, 0)
        self._build()

    def _build(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.heading, 1)
        top.addWidget(self.back, 0, Qt.AlignmentFlag.AlignTop)
        self._inside = down(
            top,
            self.formula,
            self.values,
            self.result,
            self.check,
            self.note,
            self.inputs_title,
            self.inputs,
            self.source,
            None,
            margins=12,
            spacing=8,
        )
        scroll = plain_scroll_area(self._inside)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        down(scroll, on=self, margins=0)

    @property
    def content_height(self) -> int:
        """Height in pixels of the explanation at the panel's width."""
        inside, width = self._inside, max(self.width(), 100)
        return inside.totalHeightForWidth(width) if inside.hasHeightForWidth() else inside.sizeHint().height()

    def focus_inputs(self) -> None:
        """Move the keyboard focus to the first input, or to the scroll area if there is none."""
        shown = [door for door, _ in self._doors if not door.isHidden()]
        target = shown[0] if shown else self.back if not self.back.isHidden() else self
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        quantity, numbers = view.quantity, view.step.numbers
        if quantity is None or numbers is None:
            self._show_empty(HINT if quantity is None else BEFORE_FIRST)
            return
        if self._trail and same_kind(self._trail[-1], quantity):
            self._trail[-1] = quantity  # the number has changed with the selection: Back leads to another one
        else:
            self._trail.append(quantity)
        try:
            node = explain_from(numbers, quantity)
        except (GrpoError, IndexError, KeyError) as error:
            self._show_empty(tr("This update has no such number: {error}").format(error=error))
            return
        self._show(node, view)

    def _show_empty(self, sentence: str) -> None:
        self._node = None
        for widget in (self.formula, self.values, self.result, self.check, self.inputs, self.inputs_title, self.source):
            widget.hide()
        self.back.setVisible(len(self._trail) > 1)
        self.heading.setText(tr("Explain a number"))
        self.note.tell(sentence)

    def _show(self, node: Node, view: View) -> None:
        self._node = node
        number = view.run.label(view.cursor.step)
        self.heading.setText(tr("{title}, update {step:,}").format(title=node.title, step=number))
        for label, latex in ((self.formula, node.latex), (self.values, node.latex_values)):
            label.show_latex(latex, view.theme, view.scale)
            label.setVisible(bool(latex))
        unit = f" {node.unit}" if node.unit else ""
        self.result.setText(f"= {shown(node.value, 4)}{unit}")
        self.result.setToolTip(plain_tip(full(node.value)))
        self.result.show()
        self.check.setText(marked_verdict(node))
        self.check.setToolTip(wrapped_tip(node.comparison))
        self.check.setAccessibleDescription(node.comparison)
        self.check.setVisible(bool(node.latex))  # recorded and measured numbers have no second computation
        self.check.setObjectName("agrees" if node.agrees else "disagrees")
        self.note.tell(node.note)
        self.source.tell(node.source)
        self.back.setVisible(len(self._trail) > 1)
        self._show_inputs(node, view)

    def _show_inputs(self, node: Node, view: View) -> None:
        numbers, wanted = view.step.numbers, node.inputs[:MOST_INPUTS]
        assert numbers is not None
        while len(self._doors) < len(wanted):
            self._add_door()
        for (door, value), quantity in zip(self._doors, wanted, strict=False):
            child = explain_from(numbers, quantity)
            door.setText(child.title)
            door.setToolTip(plain_tip(child.title))
            door.setAccessibleName(
                tr("{title}: {value}. Explain").format(title=child.title, value=shown(child.value, 4))
            )
            value.setText(shown(child.value, 4))
            value.setToolTip(plain_tip(full(child.value)))
        for n, pair in enumerate(self._doors):
            for widget in pair:
                widget.setVisible(n < len(wanted))
        left = len(node.inputs) - len(wanted)
        self.more.setText(tr("and {left} more").format(left=left))
        self.more.setVisible(left > 0)
        self.inputs.setVisible(bool(wanted))
        self.inputs_title.setVisible(bool(wanted))

    def _add_door(self) -> None:
        n, door, value = len(self._doors), Door(), Label()
        value.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        door.setObjectName("door")
        # Elide the text rather than widen the panel.
        door.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        door.clicked.connect(partial(self._on_input, n))
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._grid.addWidget(door, n, 0)
        self._grid.addWidget(value, n, 1)
        self._doors.append((door, value))

    def summary(self, view: View) -> str:
        if self._node is None:
            return tr("No number is being explained.")
        node = self._node
        if not node.latex:
            return tr("{title} is {value}.").format(title=node.title, value=shown(node.value, 4))
        return tr("{title} is {value}. A second computation: {verdict}.").format(
            title=node.title, value=shown(node.value, 4), verdict=node.verdict
        )

    # -- input -------------------------------------------------------------------------------------------------------

    def _on_input(self, place: int) -> None:
        if self._node is not None:
            self.workspace.explain(self._node.inputs[place])

    @Slot()
    def _on_back(self) -> None:
        if len(self._trail) > 1:
            self._trail.pop()
            self.workspace.explain(self._trail[-1])


def marked_verdict(node: Node) -> str:
    return f"{'✓' if node.agrees else '✗'} {node.verdict}"
