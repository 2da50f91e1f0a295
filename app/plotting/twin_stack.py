"""A plot and its table, switched by a button or the key T."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QToolButton, QWidget

from app.boxes import across, down
from app.plotting.bar_chart import BarChart
from app.plotting.legend import Entry, Legend
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label, plain_tip
from app.theme.painted_text import PaintedText
from app.theme.styled import Styled
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.plotting.plot import Plot

SENTENCE = 320
"""Minimum width in pixels, at 100 %, for a headline next to the legend. If there is less space, it is above the
legend."""


class TwinStack(Styled, QWidget):
    """A header with title, legend and button, and below it either the plot or its table.

    Attributes:
        headline: a sentence above the plot, or None.
        table: the same data as a table, created on first use and filled from ``plot.table()`` while it is shown.

    Signals:
        toggled: the user has switched to the table (True) or to the plot (False).
    """

    toggled = Signal(bool)

    def __init__(self, plot: Plot | BarChart, legend: Sequence[Entry] = (), *, headed: bool = True) -> None:
        """``headed``: whether it shows title, legend and button, which a row of plots shares otherwise."""
        super().__init__()
        self.plot = plot
        self._table: TableTwin | None = None
        self.title = Label(plot.title, name="section")
        self.title.setMinimumWidth(1)  # a narrow panel cuts off the title rather than grow
        self.legend = Legend(legend)
        self.headline: PaintedText | None = None
        self.button = QToolButton()
        self.button.setProperty("quiet", True)
        self.button.clicked.connect(self.toggle)
        self.stack = QStackedWidget()
        self.stack.addWidget(plot)
        self._row = across(self.title, (self.legend, 1), self.button)
        self._above = QHBoxLayout()
        down(self._above, self._row, (self.stack, 1), on=self, margins=0, spacing=0)
        self._choices: list[QWidget] = []
        self._alone: bool | None = None  # whether the headline has its own line; None before there is one
        self._style_header()
        self._name()
        self._headed = headed
        if not headed:
            for widget in (self.title, self.legend, self.button):
                widget.hide()
            self._row.setContentsMargins(0, 0, 0, 0)

    @property
    def table(self) -> TableTwin:
        """The table of the same data."""
        if self._table is None:
            self._table = TableTwin(title=tr("{title}, as a table").format(title=self.plot.title))
            self._table.set_look(self.theme, self.factor)
            self._table.set_summary(self.plot.accessibleDescription())
            self._table.activated_cell.connect(self.plot.explain_cell)
            self.stack.addWidget(self._table)
        return self._table

    @property
    def shows_table(self) -> bool:
        return self.stack.currentWidget() is not self.plot

    def _apply_style(self) -> None:
        for part in (self.plot, self._table, self.legend, self.headline):
            if part is not None:
                part.set_look(self.theme, self.factor)
        if self._headed:
            self._style_header()
            self._place_headline()

    def show_headline(self, text: str, shorter: str = "") -> None:
        """Show ``text`` in the header, or ``shorter`` if ``text`` does not fit.

        The headline is to the left of the legend, or above it in a narrow widget.
        """
        if self.headline is None:
            self.headline = PaintedText("digits")
            self._place_headline()
        self.headline.show_text(text, self.theme, self.factor, shorter)

    def _place_headline(self) -> None:
        """Place the headline next to the legend if there is enough space, otherwise above it.

        The decision depends only on widths and not on the text, so that a new text does not move anything.
        """
        if self.headline is None:
            return
        others = [widget for widget in (*self._choices, self.title, self.legend, self.button) if not widget.isHidden()]
        taken = sum(widget.sizeHint().width() + self._row.spacing() for widget in others)
        margins = self._row.contentsMargins()
        space = self.width() - taken - margins.left() - margins.right()
        alone = space < SENTENCE * self.factor
        if alone is self._alone:
            return
        self._alone = alone
        if alone:
            self._row.removeWidget(self.headline)
            self._above.addWidget(self.headline)
        else:
            self._above.removeWidget(self.headline)
            self._row.insertWidget(self._row.indexOf(self.legend), self.headline, 1)
        self._row.setStretchFactor(self.legend, int(alone))
        self._style_header()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_headline()

    def add_to_header(self, widget: QWidget, *, last: bool = False) -> None:
        """Add a widget, such as a combo box, at the left end of the header, or ``last``, before the button."""
        self._row.insertWidget(self._row.indexOf(self.button) if last else 0, widget)
        self._choices.append(widget)
        self._style_header()

    def refresh(self) -> None:
        """Draw the changes in the plot or in the table, whichever is shown."""
        if self.shows_table:
            columns, rows = self.plot.table()
            self.table.set_columns(columns)
            self.table.set_rows(rows)
        else:
            self.plot.refresh()

    def set_summary(self, sentence: str) -> None:
        """Set the accessible summary, one sentence that says what the plot or the table shows."""
        self.plot.set_summary(sentence)
        if self._table is not None:
            self._table.set_summary(sentence)

    @Slot()
    def toggle(self) -> None:
        hidden, shown = (self.table, self.plot) if self.shows_table else (self.plot, self.table)
        had_focus = hidden.hasFocus()
        self.stack.setCurrentWidget(shown)
        if had_focus:
            shown.setFocus(Qt.FocusReason.TabFocusReason)
        self._name()
        self.refresh()
        self.toggled.emit(self.shows_table)

    def _name(self) -> None:
        self.button.setText(tr("Plot") if self.shows_table else tr("Table"))
        self.button.setToolTip(
            plain_tip(tr("Show the plot (T)") if self.shows_table else tr("Show the same data as a table (T)"))
        )
        name = tr("{title}: show the plot") if self.shows_table else tr("{title}: show the table")
        self.button.setAccessibleName(name.format(title=self.plot.title))

    def _style_header(self) -> None:
        edge, top = round(12 * self.factor), round(4 * self.factor)
        self._row.setContentsMargins(edge, 0 if self._alone else top, edge, 0)
        self._above.setContentsMargins(edge, top + 1 if self._alone else 0, edge, 0)
        self._row.setSpacing(round(8 * self.factor))
        font = self.theme.font("digits", self.factor)
        for button in (self.button, *(one for one in self._choices if isinstance(one, QToolButton))):
            button.setFont(font)
        # Both texts fit, so that the header does not move when they alternate.
        both = self.button.fontMetrics().horizontalAdvance(tr("Table")) + round(18 * self.factor)
        # the headline shrinks instead of the button
        self.button.setMinimumWidth(max(both, self.button.sizeHint().width()))
