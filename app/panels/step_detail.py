"""The Step detail panel: one row per sample of the update shown, with all its numbers in the pass shown."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.boxes import across, down, stacked
from app.panels.step_columns import (
    LOOKS,
    columns_shown,
    place_of,
    summed,
    sums,
    table_column,
    values_shown,
    widest_sums,
)
from app.plotting.numbers import shown
from app.plotting.table_twin import TableTwin
from app.theme.labels import EmptyLabel, Label, plain_tip
from app.theme.painted_text import Sourced, SourcedText
from app.theme.painting import RIGHT, painter_of, write
from app.theme.tokens import LIGHT, Theme
from app.widgets.calm import CalmBox
from app.widgets.panel import Panel
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core import step_table
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.text import listed, plural, tr


class SumRow(Sourced, QWidget):
    """Sums aligned with the columns of a table. The first visible column has the label.

    Left and Right move between the sums.

    Attributes:
        texts: the displayed sums, by the column's key.
        chosen: key of the sum that E explains; empty if there is none.
    """

    def __init__(self, table: TableTwin, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table = table
        self.texts: dict[str, str] = {}
        self.chosen = ""
        self._asked = QSize()
        """The size hint last returned to the layout."""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        table.horizontalHeader().sectionResized.connect(self._on_resized)
        table.horizontalScrollBar().valueChanged.connect(self._on_resized)

    def sizeHint(self) -> QSize:
        return QSize(0, round(self._table.cells.metrics.height() + 7 * self._table.factor))

    def show_sums(self, sums: Mapping[str, float]) -> None:
        """Show ``sums``, a mapping from column key to sum. Other columns stay blank."""
        columns = {column.key: column for column in self._table.table.columns}
        self.texts = {key: shown(value, columns[key].decimals) for key, value in sums.items() if key in columns}
        self.setAccessibleName(tr("Sums"))
        self.setAccessibleDescription(
            "; ".join(
                tr("sum of {column}: {value}").format(column=columns[key].title, value=text)
                for key, text in self.texts.items()
            )
        )
        self.setToolTip(plain_tip(self.accessibleDescription()))
        if self.sizeHint() != self._asked:  # updating the geometry would lay out the entire window again
            self._asked = self.sizeHint()
            self.updateGeometry()
        self.update()

    def places(self) -> dict[str, QRectF]:
        """Rectangle of each visible column's sum, by the column's key."""
        table, origin = self._table, self._table.viewport().x()
        return {
            column.key: QRectF(origin + table.columnViewportPosition(n), 0, table.columnWidth(n), self.height())
            for n, column in enumerate(table.table.columns)
            if not table.isColumnHidden(n)
        }

    def _visible(self) -> dict[str, QRectF]:
        """Return the places of the sums, by the column's key, from left to right. The chosen one is among them."""
        places = {key: place for key, place in self.places().items() if key in self.texts}
        self.chosen = self.chosen if self.chosen in places else next(iter(places), "")
        return places

    def explained_box(self) -> QRect:
        return self._visible().get(self.chosen, QRectF()).toRect()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys, way = [*self._visible()], {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if way is None or not keys:
            super().keyPressEvent(event)
            return
        self.chosen = keys[min(max(keys.index(self.chosen) + way, 0), len(keys) - 1)]
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        for key, place in self._visible().items():
            if place.contains(event.position()):
                self.chosen = key
                super().mouseDoubleClickEvent(event)

    def _on_resized(self, *_: object) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        table = self._table
        painter = painter_of(self, smooth=False)
        painter.setPen(QPen(table.theme.colour("border"), 1))
        painter.drawLine(self.rect().topLeft(), self.rect().topRight())
        pad = 8 * table.factor
        for number, (key, place) in enumerate(self.places().items()):
            inner = place.adjusted(pad, 0, -pad, 0)
            if key in self.texts:
                write(painter, inner, self.texts[key], table.cells.font, table.theme.colour("text"), RIGHT)
            elif number == 0:
                write(painter, inner, "Σ", table.cells.font, table.theme.colour("muted"))
        if self.hasFocus():
            table.cells.paint_focus(painter, QRectF(self.explained_box()))


FOOT = 0.25
"""Maximum share of the panel's height for the sentences on the groups."""
SHORT = 200
"""Panel height at 100 % below which these sentences are next to the pass, to save space for the rows."""
MOST_ROWS = 4_000
"""Maximum number of an update's tokens that are listed together. More rows would block the window."""
NONE_YET = tr("One row per sample appears here, with every number of the update. Press Step to compute an update.")


class StepDetailPanel(Panel):
    """A table that follows the cursor. Return, E or a double click explains a cell."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._columns: tuple[step_table.Column, ...] = ()
        self.rows: list[step_table.Row] = []
        self._only: int | None = None
        self.feet = "", ""
        self._look: tuple[Theme, float] = (LIGHT, 1.0)
        self._foot_lines: dict[tuple[Theme, float, int, int], int] = {}
        self._filled: tuple[object, ...] = ()
        self.passes = CalmBox(tr("Pass"))
        self.passes.activated.connect(partial(workspace.show_stage, Stage.UPDATE))
        self.table = TableTwin(title=tr("Step detail"))
        self.table.selected.connect(self._on_selected)
        self.table.activated_cell.connect(self._on_cell)
        self.sums = SumRow(self.table)
        self.sums.source_wanted.connect(self._on_sum)
        self.wider = Label(name="muted")
        self.foot = SourcedText(colour="muted")
        self.foot.source_wanted.connect(self._on_foot)
        self.empty = EmptyLabel(NONE_YET, margin=16)
        label = Label(tr("Pass"), name="muted")
        label.setBuddy(self.passes)  # hidden together with the box in pictures without controls
        self._top = across(label, self.passes, None, self.wider, margins=(12, 4, 12, 4), spacing=6)
        self._below = across(self.foot)
        self._column = down(self._top, (self.table, 1), self.sums, self._below, margins=0, spacing=0)
        self._column.addStretch(0)
        self._stack = stacked(self._column, self.empty, on=self)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def begin_run(self) -> None:
        self.table.scrollToTop()

    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        if step is None:
            self.empty.setText(view.run.why_no_step or NONE_YET)
            return
        passes = [tr("{number} of {count}").format(number=n + 1, count=step.passes) for n in range(step.passes)]
        self.passes.fill(passes, view.step.passed)
        only = _only(view, step)
        key = (view.step.key, only, view.cursor.stage, view.theme, view.scale)
        if key != self._filled:  # another token of the same completions needs no new table
            self._filled, self._only = key, only
            self._fill(view, step)
        self.table.select_row(place_of(view.selection, self.rows))
        foot = _foot(view)
        if self._only is not None:
            foot = tr(
                "Only the tokens of completion {row}; choose another one in the panel “Completions”. {foot}"
            ).format(row=self._only + 1, foot=foot)
        one = _foot(view, int(step.group[view.selection.row or 0]))
        self.feet = (
            "\n".join(filter(None, (view.step.assumption, foot))),
            "\n".join(filter(None, (view.step.assumption, one))),
        )
        self._look = view.theme, view.scale
        self._fit_foot()
        self.table.set_summary(self.summary(view))

    def _fill(self, view: View, step: Step) -> None:
        """List the tokens of the update, or of the selected completion, with blanks for what is not revealed yet."""
        columns = columns_shown(step, view.run.origin)
        places = [step_table.columns(step).index(c) for c in columns]
        self._columns = tuple(columns)
        numbers = view.step.numbers
        assert numbers is not None
        self.rows = step_table.rows(numbers, view.step.passed, origin=view.run.origin, only=self._only)
        self.table.set_look(view.theme, view.scale)
        self.table.set_columns([table_column(c, step, view.run.origin) for c in columns])
        cells = zip(*(row.cells for row in self.rows), strict=True)
        values = list(cells) or [()] * len(step_table.columns(step))
        shown = [values_shown(c, values[i], view.cursor.stage) for i, c in zip(places, columns, strict=True)]
        self.table.set_rows(list(zip(*shown, strict=True)))
        self.sums.show_sums(sums(numbers, view.step.passed, view.cursor.stage, self._only))
        self.table.set_least_texts(widest_sums(self.sums.texts, len(step.mask)))
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Show as many columns as fit without horizontal scrolling, in the order of their ranks (:data:`LOOKS`)."""
        order = sorted(range(len(self._columns)), key=lambda n: LOOKS[self._columns[n].name].rank)
        hidden = self.table.fit_columns(order)
        names = [self._columns[n].title for n in hidden]
        self.wider.setText(
            plural("+ {count} column", "+ {count} columns", len(names)).format(count=len(names)) if names else ""
        )
        self.wider.setToolTip(plain_tip(tr("In a wider panel: {names}.").format(names=listed(names)) if names else ""))
        self.sums.update()

    def _fit_foot(self) -> None:
        """Show the sentences on all groups below the table or, in a short panel, only the one on the selected
        completion's group.

        Their height grows with the text and is remembered for each style and size, so that no update moves the table.
        """
        short = self.height() < SHORT * self._look[1]
        if not short:  # its width below the table, which the layout sets later than the panel's height
            self.foot.resize(self.width() - 24, self.foot.height())
        look = *self._look, self.foot.width(), self.height()
        self.foot.set_look(*self._look)
        whole, one = self.feet
        high = self.foot.fontMetrics().lineSpacing()
        text = whole if not short and self.foot.lines_needed(whole) * high <= FOOT * self.height() else one
        lines = self._foot_lines[look] = max(self._foot_lines.get(look, 1), self.foot.lines_needed(text))
        self.foot.set_lines(1 if short else lines)
        self.foot.show_text(text, *self._look)
        self.table.set_compact(short)
        there = self._top if short else self._below
        if there.indexOf(self.foot) < 0:
            there.insertWidget(self._top.count() - 1 if short else 0, self.foot, 1)
        self._below.setContentsMargins(*((0, 0, 0, 0) if short else (12, 4, 12, 8)))
        around = [self._top.sizeHint(), self.sums.sizeHint(), self._below.sizeHint()]
        self.table.end_with_rows(self.height() - sum(size.height() for size in around))
        self._column.activate()
        self.foot.setToolTip(plain_tip(whole if text != whole else ""))

    def fit(self) -> None:
        self._fit_columns()
        self._fit_foot()

    @Slot()
    def _on_foot(self) -> None:
        """Explain the mean of the selected completion's group."""
        step, row = self.workspace.view.step.step, self.workspace.view.selection.row or 0
        if step is not None:
            self.workspace.explain(Quantity("group_mean", group=int(step.group[row])))

    def summary(self, view: View) -> str:
        if view.step.step is None:
            return view.run.why_no_step or tr("No update yet.")
        place = [column.name for column in step_table.columns(view.step.step)].index("clipped")
        clipped = sum(1 for row in self.rows if row.cells[place])
        return plural(
            "Update {step:,}, pass {passed}: {count} token, {clipped} clipped.",
            "Update {step:,}, pass {passed}: {count} tokens, {clipped} clipped.",
            len(self.rows),
        ).format(
            step=view.run.label(view.cursor.step), passed=view.step.passed + 1, count=len(self.rows), clipped=clipped
        )

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_selected(self, place: int) -> None:
        step = self.workspace.view.step.step
        if step is not None and 0 <= place < len(self.rows):
            row = self.rows[place]
            self.workspace.select(row=row.row, token=row.token, action=int(step.tokens[row.row, row.token]))

    @Slot(int, str)
    def _on_cell(self, place: int, key: str) -> None:
        column = next((c for c in self._columns if c.name == key), None)
        if column is None or not 0 <= place < len(self.rows):
            return
        row, passed = self.rows[place], self.workspace.view.step.passed
        quantity = step_table.address(row, column, passed)
        self.workspace.explain(quantity or Quantity("gradient", passed=passed, row=row.row, token=row.token))

    @Slot()
    def _on_sum(self) -> None:
        if self.sums.chosen:
            self.workspace.explain(summed(self.sums.chosen, self.workspace.view.step.passed, self._only))


def _only(view: View, step: Step) -> int | None:
    """Return the completion to list alone, the selected or the first, if all have too many tokens for one table."""
    if int(step.mask.sum()) <= MOST_ROWS:
        return None
    row = view.selection.row
    return row if row is not None and row < len(step.mask) else 0


def _groups(view: StepView) -> list[step_table.GroupRow]:
    assert view.step is not None
    return step_table.groups(view.step, origin=view.origin)


def _foot(view: View, only: int | None = None) -> str:
    """Return mean and standard deviation of the rewards of each group, or of group ``only``, once they are known."""
    if view.cursor.stage < Stage.SCORE:
        return tr("Rewards appear with the next stage.")
    parts = []
    groups = view.step.derived(_groups)
    for group in groups[:4] if only is None else groups[only : only + 1]:
        if len(groups) > 1:
            pattern = (
                tr("{prompt}: mean R {mean} · std R {std} · no signal")
                if group.silent
                else tr("{prompt}: mean R {mean} · std R {std}")
            )
        else:
            pattern = (
                tr("mean R {mean} · std R {std} · no signal") if group.silent else tr("mean R {mean} · std R {std}")
            )
        parts.append(pattern.format(prompt=group.prompt, mean=shown(group.mean), std=shown(group.std)))
    if len(groups) > 4 and only is None:
        parts.append(
            plural("and {count} more group", "and {count} more groups", len(groups) - 4).format(count=len(groups) - 4)
        )
    return "   ".join(parts)
