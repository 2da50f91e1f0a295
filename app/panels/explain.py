"""Explain: any number as its formula, the same with values, its inputs, and a recomputation that must agree."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.formula.formula_label import FormulaLabel
from app.panels.base import Panel
from app.plotting.numbers import full, shown
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.explain import Node, Quantity, explain

MOST_INPUTS = 60


class ExplainPanel(Panel):
    """The number that was asked for last, and the way back through those before it."""

    id = "explain"
    title = "Explain"

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._trail: list[Quantity] = []
        self._node: Node | None = None
        self.back = QToolButton()
        self.back.setText("‹ Back")
        self.back.setAccessibleName("Back to the number before")
        self.back.clicked.connect(self._on_back)
        self.heading = QLabel()
        self.heading.setObjectName("section")
        self.heading.setWordWrap(True)
        self.formula = FormulaLabel()
        self.values = FormulaLabel()
        self.result = QLabel()
        self.result.setObjectName("explained")
        self.check = QLabel()
        self.note = QLabel()
        self.source = QLabel()
        for label in (self.check, self.note, self.source):
            label.setWordWrap(True)
        self.check.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.source.setObjectName("muted")
        self.inputs_title = QLabel("Comes from")
        self.inputs_title.setObjectName("section")
        self.inputs = QWidget()
        self._grid = QGridLayout(self.inputs)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(0)
        self._grid.setColumnStretch(0, 1)
        self._build()

    def _build(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.heading, 1)
        top.addWidget(self.back, 0, Qt.AlignmentFlag.AlignTop)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(8)
        column.addLayout(top)
        for widget in (
            self.formula, self.values, self.result, self.check, self.note, self.inputs_title, self.inputs, self.source,
        ):  # fmt: skip
            column.addWidget(widget)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(inside)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        quantity, step = view.quantity, view.step.step
        if quantity is None or step is None:
            self._show_empty(step is None and quantity is not None)
            return
        if not self._trail or self._trail[-1] != quantity:
            self._trail.append(quantity)
        try:
            node = explain(step, quantity)
        except (GrpoError, IndexError, KeyError) as error:
            self._show_empty(False, f"This update has no such number: {error}")
            return
        self._show(node, view)

    def _show_empty(self, before_first: bool, sentence: str = "") -> None:
        self._node = None
        for widget in (self.formula, self.values, self.result, self.check, self.inputs, self.inputs_title, self.source):
            widget.hide()
        self.back.setVisible(len(self._trail) > 1)
        self.heading.setText("Explain a number")
        hint = (
            "Click any number, or move to it with Tab and press E: its formula, its values and its inputs appear here."
        )
        told = (
            "Update 0 has no numbers to explain yet. Press Step to compute the first update." if before_first else hint
        )
        self.note.setText(sentence or told)
        self.note.show()

    def _show(self, node: Node, view: View) -> None:
        same = self._node is not None and self._node.quantity == node.quantity
        self._node = node
        self.heading.setText(f"{node.title}, update {view.cursor.step}")
        for label, latex in ((self.formula, node.latex), (self.values, node.latex_values)):
            label.show_latex(latex, view.theme, view.scale)
            label.setVisible(bool(latex))
        unit = f" {node.unit}" if node.unit else ""
        self.result.setText(f"= {shown(node.value, 4)}{unit}")
        self.result.setToolTip(full(node.value))
        self.result.show()
        self.check.setText(_check(node))
        self.check.setVisible(node.engine is not None)
        self.check.setObjectName("agrees" if node.agrees else "disagrees")
        self.note.setText(node.note)
        self.note.setVisible(bool(node.note))
        self.source.setText(node.source)
        self.source.setVisible(bool(node.source))
        self.back.setVisible(len(self._trail) > 1)
        self._show_inputs(node, view, keep_focus=same)

    def _show_inputs(self, node: Node, view: View, *, keep_focus: bool) -> None:
        """One button an input; Tab walks them, Return follows one."""
        step = view.step.step
        assert step is not None
        focused = self._focused_input() if keep_focus else None
        while self._grid.count():
            item = self._grid.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.deleteLater()
        for n, quantity in enumerate(node.inputs[:MOST_INPUTS]):
            child = explain(step, quantity)
            door = QPushButton(child.title)
            door.setObjectName("door")
            door.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)  # cut rather than widen the panel
            door.setToolTip(child.title)
            door.setProperty("quantity", n)
            door.setAccessibleName(f"{child.title}: {shown(child.value, 4)}. Explain")
            door.clicked.connect(self._on_input)
            value = QLabel(shown(child.value, 4))
            value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            value.setToolTip(full(child.value))
            self._grid.addWidget(door, n, 0)
            self._grid.addWidget(value, n, 1)
            if n == focused:
                door.setFocus()
        left = len(node.inputs) - MOST_INPUTS
        if left > 0:
            self._grid.addWidget(QLabel(f"and {left} more"), MOST_INPUTS, 0)
        self.inputs.setVisible(bool(node.inputs))
        self.inputs_title.setVisible(bool(node.inputs))

    def _focused_input(self) -> int | None:
        focus: QWidget | None = self.focusWidget()
        number = focus.property("quantity") if focus else None
        return number if isinstance(number, int) else None

    def summary(self, view: View) -> str:
        if self._node is None:
            return "Nothing is being explained."
        return f"{self._node.title} is {shown(self._node.value, 4)}. {_check(self._node)}"

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_input(self) -> None:
        sender = self.sender()
        if self._node is not None and sender is not None:
            self.workspace.explain(self._node.inputs[sender.property("quantity")])

    @Slot()
    def _on_back(self) -> None:
        if len(self._trail) > 1:
            self._trail.pop()
            self.workspace.explain(self._trail[-1])


def _check(node: Node) -> str:
    if node.engine is None:
        return ""
    verdict = "agrees" if node.agrees else "does not agree"
    return (
        f"recomputed {full(node.value)}   engine {full(node.engine)}   difference {node.difference:.1e} "
        f"(allowed {node.tolerance:.0e}): {verdict}"
    )
