"""The Breakpoints panel: the conditions at which a run stops, and the first update at which each became true."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.boxes import across, down, plain_scroll_area
from app.theme.labels import Label, allow, plain_tip
from app.widgets.calm import CalmBox, parsed, push_button, text_field, tool_button
from app.widgets.panel import Panel
from app.workspace.onsets import Onsets
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.breakpoints import RELATIONS, Breakpoint
from grpo_core.errors import SettingsError
from grpo_core.metrics import METRICS
from grpo_core.text import as_sentence, tr

OFFERED = tuple(name for name in METRICS if name != "best_action")
"""Series offered for conditions. An action's number is left out because comparing it with a threshold makes no
sense.
"""
ALWAYS = tr("A number that is not finite stops every run.")


class BreakpointRow(QWidget):
    """The row of one condition: a box that switches it, its first update, which a click shows, and its removal."""

    def __init__(self, one: Breakpoint, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.one = one
        self.box = QCheckBox(one.title)
        self.box.setToolTip(
            plain_tip(tr("Stop when {words}. {help}").format(words=one.words, help=METRICS[one.series].help))
        )
        self.box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.place = QPushButton(flat=True)
        self.remove = tool_button("×", name=tr("Remove: {words}").format(words=one.words), tip=tr("Remove"))
        across((self.box, 1), self.place, self.remove, on=self, margins=0, spacing=4)

    def show_place(self, first: int | None) -> None:
        """Show the update at which the condition first became true."""
        text = tr("at {update:,}").format(update=first) if first is not None else "—"
        if text != self.place.text():
            self.place.setText(text)
            self.place.setToolTip(tr("Show the first update of this run at which it became true."))
            allow(self.place, tr("It has not become true in this run.") if first is None else "")
            self.place.setAccessibleName(
                self.one.words + ": " + (tr("update {update}").format(update=first) if first else tr("not yet"))
            )


class BreakpointsPanel(Panel):
    """A list of the conditions that stop a run, above a form for adding another."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.rows: list[BreakpointRow] = []
        self._searches: dict[str, Onsets] = {}
        self._run: RunHandle | None = None
        self.refusal = Label(name="refusal", wraps=True)
        self.refusal.hide()
        self.always = Label(ALWAYS, name="muted", wraps=True)
        self._list = down(spacing=2)
        area = plain_scroll_area(down(self._list, self.always, None, margins=0, spacing=8))
        down(self._build_form(), self.refusal, (area, 1), on=self, margins=(12, 8, 12, 8), spacing=8)
        workspace.breakpoints.changed.connect(self.redraw)

    def _build_form(self) -> QVBoxLayout:
        self.series = CalmBox(tr("Series"), ((METRICS[name].title, name, METRICS[name].help) for name in OFFERED))
        self.series.setCurrentIndex(OFFERED.index("max_prob"))
        self.relation = CalmBox(tr("Relation"), ((words, name) for name, words in RELATIONS.items()))
        self.relation.currentIndexChanged.connect(self._on_relation)
        for box in (self.series, self.relation):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)
        self.value = text_field(tr("Value"), "0.9")
        self.value.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.value.returnPressed.connect(self.add)
        self.value.textEdited.connect(self.refusal.hide)
        self.button = push_button(tr("Add"), pressed=self.add)
        stop = Label(tr("Stop when"))
        stop.setBuddy(self.series)
        second = across((self.relation, 1), self.value, self.button, spacing=8)
        return down(across(stop, (self.series, 1), spacing=8), second, spacing=8)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self.value.setFixedWidth(QFontMetrics(view.theme.font("body", view.scale)).horizontalAdvance("0") * 10)
        listed = self.workspace.breakpoints.all
        if [one.text for one in listed] != [row.one.text for row in self.rows]:
            self._build_rows()
        for row, one in zip(self.rows, listed, strict=True):
            with QSignalBlocker(row.box):
                row.box.setChecked(one.on)
        if view.run is not self._run:
            self._run = view.run
            self._searches.clear()
        for row in self.rows:
            search = self._searches.get(row.one.text)
            if search is None:
                search = self._searches[row.one.text] = Onsets(view.run.series[row.one.series], row.one.became, False)
            row.show_place(search.after(0))

    def _build_rows(self) -> None:
        """Build a row for each breakpoint, keeping the focus at the same index."""
        focused = next((place for place, row in enumerate(self.rows) if row.isAncestorOf(self.focusWidget())), None)
        for row in self.rows:
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = [BreakpointRow(one) for one in self.workspace.breakpoints.all]
        for place, row in enumerate(self.rows):
            row.box.toggled.connect(partial(self.workspace.breakpoints.switch, place))
            row.place.clicked.connect(partial(self._on_visited, place))
            row.remove.clicked.connect(partial(self.workspace.breakpoints.remove, place))
            self._list.addWidget(row)
        if focused is not None and self.rows:
            self.rows[min(focused, len(self.rows) - 1)].box.setFocus()

    def summary(self, view: View) -> str:
        on = [one.words for one in self.workspace.breakpoints.all if one.on]
        return (
            tr("A run stops when {on}.").format(on=tr("; or when ").join(on))
            if on
            else tr("No breakpoint is on. {always}").format(always=ALWAYS)
        )

    def focus_form(self) -> None:
        self.series.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def add(self) -> None:
        """Add the breakpoint in the form, or show what is wrong with it."""
        relation = str(self.relation.currentData())
        try:
            value: Any = 0.0 if relation == "first" else parsed(self.value.text(), whole=False)
            one = Breakpoint(series=str(self.series.currentData()), relation=relation, value=value)
        except SettingsError as error:
            self.refusal.tell(as_sentence(error.allowed[:1].upper() + error.allowed[1:]))
            return
        self.refusal.hide()
        self.workspace.breakpoints.add(one)

    @Slot(int)
    def _on_relation(self, index: int) -> None:
        any_value = self.relation.itemData(index) == "first"
        allow(self.value, tr("The run stops at the first value of this series, whatever it is.") if any_value else "")
        self.refusal.hide()

    def _on_visited(self, place: int) -> None:
        first = self._searches[self.rows[place].one.text].after(0)
        if first is not None:
            self.workspace.move_to(first)
