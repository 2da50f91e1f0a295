"""A number's name, with its formula in general and with values."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.formula.formula_label import FormulaLabel
from app.theme.labels import Label
from app.theme.tokens import Theme
from grpo_core.explain import Node


class Explained(QWidget):
    """The name and the formula of an explained number.

    Attributes:
        general, values: its formula in symbols, and with numbers.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name, self.general, self.values = Label(name="section"), FormulaLabel(), FormulaLabel()
        down(self.name, self.general, self.values, on=self, margins=0, spacing=8)

    def show_node(self, node: Node | None, theme: Theme, scale: float) -> None:
        """Show the number of ``node``, or nothing if it is None."""
        for label in (self.general, self.values):
            label.setVisible(node is not None and bool(node.latex))
        self.name.setText("" if node is None else f"{node.title[:1].upper()}{node.title[1:]}")
        if node is not None and node.latex:
            self.general.show_latex(node.latex, theme, scale)
            self.values.show_latex(node.latex_values, theme, scale)
