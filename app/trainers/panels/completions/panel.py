"""The Completions panel: a list to search, sort and filter, with up to two completions as text side by side."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QModelIndex, QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QLayout, QSplitter, QWidget

from app.boxes import across, divided, down, stacked, turn
from app.plotting.numbers import MINUS, shown
from app.plotting.table_twin import TableTwin
from app.theme.labels import EmptyLabel, Label
from app.trainers.panels.completions.conversation import CompletionText, Passage, by_mask, tree_passages
from app.trainers.panels.completions.rows import (
    COLUMNS,
    FILTERED,
    KEYS,
    PROMPTS,
    PROMPTS_KEPT,
    Batch,
    Filter,
    Prompts,
    batch_of,
    filled,
    prompts_of,
)
from app.trainers.recorded_run import RecordedRun
from app.widgets.calm import CalmBox, text_field, toggle
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import RunFileError
from grpo_core.explain import Quantity
from grpo_core.text import plural, tr

NONE_YET = tr("The completions of an update appear here as texts. Press Step to compute one.")
SEARCH = 120
"""Minimum width of the search field in pixels at 100 %."""
NONE_RECORDED = tr(
    "No completions are recorded at this step. TRL keeps them with log_completions=True; GRPO Lab's recorder "
    "(grpo_core/traces/recorders/trl.py, two lines in the training script) keeps every token of them."
)
KEPT = (
    "reward", "advantage", "turns", "tools", "errors", "age", "length", "importance", "kl", "push", "group",
    "truncated", "text",
)  # fmt: skip # short names, side by side
"""Columns by priority, for panels too narrow to show them all."""


class CompletionsPanel(Panel):
    """A table of completions. The selected one is shown as text below, and another can be kept next to it."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._key: tuple[object, ...] = ()
        self._batch: Batch | None = None
        self._unreadable = ""
        self._listed: list[int] = []
        self._prompts: Prompts | None = None
        self._prompts_listed: list[int] = []
        self._group: int | None = None
        self._kept: dict[str, Any] | None = None
        self.search = text_field(tr("Search prompts and completions"), placeholder=tr("Search"))
        self.search.setClearButtonEnabled(True)
        self.by = CalmBox(tr("Filter by"), ((one.title, one.key) for one in COLUMNS if one.key in FILTERED))
        self.low = text_field(tr("Lowest value to list"), placeholder=tr("from"))
        self.high = text_field(tr("Highest value to list"), placeholder=tr("to"))
        self.count = Label(name="muted")
        self.keep = toggle(tr("Keep beside"), tr("Keep the chosen completion on the right and compare others with it."))
        self.by_prompt = toggle(
            tr("By prompt"), tr("One row per prompt, with the rewards of its completions. Click a row to list them.")
        )
        self.by_prompt.toggled.connect(self._on_by_prompt)
        self.tree = toggle(
            tr("Tree"), tr("The rollouts of the prompt as a tree: turns that several rollouts share appear once.")
        )
        self.tree.toggled.connect(self.redraw)
        for field in (self.search, self.low, self.high):
            field.textChanged.connect(self._on_filter)
        self.by.activated.connect(self._on_filter)
        self.keep.toggled.connect(self._on_keep)
        self.table = TableTwin(COLUMNS, tr("Completions"), stretched=True)
        self.table.selected.connect(self._on_selected)
        self.table.activated_cell.connect(self._on_cell)
        self.prompts = TableTwin(PROMPTS, tr("Prompts; Return lists the completions of one"), stretched=True)
        self.prompts.selected.connect(self._on_prompt_selected)
        self.prompts.activated_cell.connect(self._on_prompt)
        self.prompts.clicked.connect(self._on_prompt_clicked)
        self.prompts.hide()
        self.here, self.beside = CompletionText(tr("Completion chosen")), CompletionText(tr("Completion kept beside"))
        self.beside.hide()
        self.empty = EmptyLabel(NONE_YET, margin=16)
        self._stack = stacked(self._build(), self.empty, on=self)

    def _build(self) -> QLayout:
        filters = across((self.search, 1), self.by, self.low, self.high, spacing=6)
        others = across(self.count, None, self.by_prompt, self.tree, self.keep, spacing=6)
        self._top = across((filters, 1), others, margins=(12, 6, 12, 4), spacing=6)
        texts = QSplitter(Qt.Orientation.Horizontal)
        texts.addWidget(self.here)
        texts.addWidget(self.beside)
        self.split = divided(down(self.table, self.prompts, margins=0), texts)
        self.split.setSizes([600, 400])
        self.split.splitterMoved.connect(self._fit_columns)
        return down(self._top, (self.split, 1), margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def focus_picture(self) -> None:
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def draw(self, view: View) -> None:
        again = view.run.read_again if isinstance(view.run, RecordedRun) else 0
        key = (view.run.id, view.cursor.step, view.step.record, view.step.passed, again)
        if key != self._key:
            try:
                self._batch = batch_of(view)
                self._prompts = None
                self._group = None if key[:2] != self._key[:2] else self._group
                self._unreadable = ""
            except RunFileError as error:  # the workspace, which reads the same file, has reported it already
                self._batch, self._unreadable = None, str(error)
            self._key = key
            self._list()
        self._stack.setCurrentIndex(0 if self._batch is not None else 1)
        self.empty.setText(self._unreadable or (NONE_RECORDED if view.run.is_recorded else NONE_YET))
        if self._batch is None:
            return
        for table in (self.table, self.prompts):
            table.set_look(view.theme, view.scale)
        for field in (self.low, self.high):
            field.setFixedWidth(round(64 * view.scale))
        widest = self.count.fontMetrics().horizontalAdvance(_count(len(self._batch.cells), len(self._batch.cells)))
        self.count.setFixedWidth(widest + 4)
        self._fit_top(view.scale)
        self._fit_columns()
        row = self._chosen(view)
        self.table.select_row(self._listed.index(row) if row in self._listed else None)
        self.tree.setVisible(any(one is not None for one in self._batch.trajectories))
        if self.by_prompt.isChecked():
            self.prompts.select_row(self._prompt_of(row))
            self.prompts.set_summary(self.summary(view))
        self.here.show_text(view.theme, view.scale, **self._read(view, row), wanted=self.search.text())
        if self._kept is not None:
            self.beside.show_text(view.theme, view.scale, **self._kept, wanted=self.search.text())
        self.table.set_summary(self.summary(view))

    def _fit_top(self, scale: float) -> None:
        filters = round(SEARCH * scale) + sum(w.sizeHint().width() for w in (self.by, self.low, self.high))
        needed = (
            filters + self.count.width() + sum(w.sizeHint().width() for w in (self.by_prompt, self.tree, self.keep))
        )
        needed += 24 + 7 * 6
        turn(self._top, stacked=needed > self.width())

    @Slot()
    def _fit_columns(self) -> None:
        """Show as many columns as fit without horizontal scrolling, giving priority to the one used by the filter."""
        with_values = {*KEYS} if self._batch is None else {"truncated"} | filled(COLUMNS, self._batch.cells)
        first = (KEYS[0], str(self.by.currentData()), *(key for key in KEPT if key in with_values))
        self.table.fit_columns([KEYS.index(key) for key in dict.fromkeys(first)])
        keys = [column.key for column in PROMPTS]
        with_values = {*keys} if self._prompts is None else {"prompt"} | filled(PROMPTS, self._prompts.cells)
        self.prompts.fit_columns(
            [keys.index(key) for key in ("prompt", *PROMPTS_KEPT) if key in {"prompt", *with_values}]
        )

    def fit(self) -> None:
        self._fit_top(self.workspace.scale)
        self._fit_columns()

    def _list(self) -> None:
        if self._batch is None:
            return
        by_prompt = self.by_prompt.isChecked()
        self.table.setVisible(not by_prompt)
        self.prompts.setVisible(by_prompt)
        self._listed = self._batch.listed(self.filter)
        if by_prompt:
            self._prompts = self._prompts or prompts_of(self._batch)
            self._prompts_listed = self._prompts.listed(self._batch, self.filter)
            self.prompts.set_rows([self._prompts.cells[place] for place in self._prompts_listed])
            self.count.setText(_count(len(self._prompts_listed), len(self._prompts.cells)))
            return
        self.table.set_rows([self._batch.cells[row] for row in self._listed])
        self.count.setText(_count(len(self._listed), len(self._batch.cells)))

    @property
    def filter(self) -> Filter:
        """The filter that the fields describe. A limit that is not a number is ignored."""
        return Filter(
            text=self.search.text(),
            column=str(self.by.currentData()),
            low=_number(self.low.text(), -math.inf),
            high=_number(self.high.text(), math.inf),
            group=self._group,
        )

    def _chosen(self, view: View) -> int | None:
        """Return the completion selected in all panels, or the first listed if none is, or it lacks the search text."""
        assert self._batch is not None
        row = view.selection.row
        if row is not None and row < len(self._batch.cells) and (row in self._listed or not self.search.text()):
            return row
        return next(iter(self._listed), None)

    def texts(self, row: int) -> tuple[str | None, str | None]:
        """Return the prompt and the completion in a row of the batch, each None if it was not recorded."""
        assert self._batch is not None
        return self._batch.prompts[row], self._batch.completions[row]

    def _read(self, view: View, row: int | None) -> dict[str, Any]:
        """Return the arguments of ``CompletionText.show_text`` for a row of the batch, empty ones for no row."""
        if row is None or self._batch is None:
            return {"heading": "", "prompt": None, "completion": None}
        prompt, completion = self.texts(row)
        step = view.step.step
        told = self._batch.trajectories[row]
        masked = told is not None and told.masked  # its turns show what the loss counts
        tokens = [] if step is None or masked or row >= len(step.mask) else by_mask(step, row, view.run.origin)
        return {
            "heading": self._heading(view, row),
            "prompt": prompt,
            "completion": completion,
            "trajectory": told,
            "tokens": tokens,
            "tree": self._tree(row) if self.tree.isChecked() else (),
        }

    def _tree(self, row: int) -> list[Passage]:
        """Return the rollouts of the prompt of completion ``row`` as a tree, or an empty list if none has turns."""
        assert self._batch is not None
        groups, rewards = self._batch.values("group"), self._batch.values("reward")
        rollouts = enumerate(self._batch.trajectories)
        told = {n: one for n, one in rollouts if one is not None and groups[n] == groups[row]}
        return tree_passages(told, {n: float(str(rewards[n])) for n in told}) if told else []

    def _prompt_of(self, row: int | None) -> int | None:
        assert self._prompts is not None
        listed = enumerate(self._prompts_listed)
        return next((place for place, n in listed if row is not None and row in self._prompts.rows[n]), None)

    def _heading(self, view: View, row: int) -> str:
        assert self._batch is not None
        cells = dict(zip(KEYS, self._batch.cells[row], strict=True))
        return tr("Step {step:,}, #{row}: R {reward}, A {advantage}, length {length}").format(
            step=view.run.label(view.cursor.step),
            row=row + 1,
            reward=shown(cells["reward"]),
            advantage=shown(cells["advantage"]),
            length=shown(cells["length"], 0),
        )

    def summary(self, view: View) -> str:
        if self._batch is None:
            return self.empty.text()
        if self.by_prompt.isChecked() and self._prompts is not None:
            return plural(
                "Step {step:,}: {listed} of {count} prompt listed.",
                "Step {step:,}: {listed} of {count} prompts listed.",
                len(self._prompts.cells),
            ).format(
                step=view.run.label(view.cursor.step), listed=len(self._prompts_listed), count=len(self._prompts.cells)
            )
        return plural(
            "Step {step:,}: {listed} of {count} completion listed.",
            "Step {step:,}: {listed} of {count} completions listed.",
            len(self._batch.cells),
        ).format(step=view.run.label(view.cursor.step), listed=len(self._listed), count=len(self._batch.cells))

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_filter(self) -> None:
        self._list()
        self.redraw()

    @Slot(bool)
    def _on_by_prompt(self, wanted: bool) -> None:
        self._group = None
        self._on_filter()

    @Slot(int)
    def _on_prompt_selected(self, place: int) -> None:
        if self._prompts is not None and 0 <= place < len(self._prompts_listed):
            self.workspace.select(row=self._prompts.rows[self._prompts_listed[place]][0])

    @Slot(QModelIndex)
    def _on_prompt_clicked(self, index: QModelIndex) -> None:
        self._on_prompt(self.prompts.table.row_at(index.row()))

    @Slot(int, str)
    def _on_prompt(self, place: int, key: str = "") -> None:
        if self._prompts is None or not 0 <= place < len(self._prompts_listed):
            return
        chosen = self._prompts_listed[place]
        with QSignalBlocker(self.by_prompt):
            self.by_prompt.setChecked(False)
        self._group = self._prompts.groups[chosen]
        self.workspace.select(row=self._prompts.rows[chosen][0])
        self._on_filter()

    @Slot(int)
    def _on_selected(self, place: int) -> None:
        if 0 <= place < len(self._listed):
            self.workspace.select(row=self._listed[place])

    @Slot(int, str)
    def _on_cell(self, place: int, key: str) -> None:
        """Explain the number that was clicked. A cell without its own explanation explains the reward."""
        view = self.workspace.view
        if view.step.step is not None and 0 <= place < len(self._listed):
            row = self._listed[place]
            name = "advantage" if key in ("advantage", "push") else "reward"
            self.workspace.explain(Quantity(name, passed=view.step.passed, row=row, token=0))

    @Slot(bool)
    def _on_keep(self, wanted: bool) -> None:
        view = self.workspace.view
        row = self._chosen(view) if self._batch is not None else None
        if wanted and row is None:
            with QSignalBlocker(self.keep):
                self.keep.setChecked(False)
            return
        self._kept = self._read(view, row) if wanted and row is not None else None
        self.beside.setVisible(wanted)
        self.split.setOrientation(Qt.Orientation.Vertical if wanted else Qt.Orientation.Horizontal)
        self.split.setSizes([300, 500] if wanted else [600, 400])
        self.redraw()


def _count(listed: int, count: int) -> str:
    return tr("{listed} of {count}").format(listed=listed, count=count)


def _number(text: str, otherwise: float) -> float:
    try:
        value = float(text.replace(",", ".").replace(MINUS, "-"))
    except ValueError:
        return otherwise
    return value if math.isfinite(value) else otherwise
