"""Evolution: how the answers to fixed prompts change over training, scrubbed by the timeline."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.panels.base import Panel
from app.panels.evolution_rows import EvolutionRows
from app.theme.labels import Label, plain_tip
from app.theme.tokens import Theme
from app.workspace.answers import GLYPHS, watched
from app.workspace.evolution import Change, Evolution
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import tr


class EvolutionPanel(Panel):
    """Prompts that are never trained on, and what the policy most likely answers before each update.

    Signals:
        language_wanted: there is no language model to show; make one.
    """

    plans = False

    language_wanted = Signal()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.place = 0
        self._evolutions: dict[str, Evolution] = {}
        self._filled: tuple[object, ...] = ()
        self.rows = EvolutionRows()
        self.rows.jumped.connect(self._on_jumped)
        self.rows.chosen.connect(self._on_chosen)
        self.heading = Label()
        self.heading.setObjectName("section")
        self.answers = QListWidget()
        self.answers.setAccessibleName(tr("Answers to the chosen prompt, in the order in which they came"))
        self.answers.itemActivated.connect(self._on_answer)
        self.answers.itemClicked.connect(self._on_answer)
        self.note = Label()
        self.note.setWordWrap(True)
        self.note.setObjectName("muted")
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._build())
        self._stack.addWidget(self._build_empty())

    def _build(self) -> QWidget:
        left, right = QWidget(), QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 4, 0, 4)
        self.area = QScrollArea()
        self.area.setWidget(self.rows)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column.addWidget(self.area, 1)
        column.addWidget(self.note)
        self.note.setContentsMargins(12, 0, 12, 0)
        column = QVBoxLayout(right)
        column.setContentsMargins(8, 4, 8, 4)
        column.addWidget(self.heading)
        column.addWidget(self.answers, 1)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(right)
        split.setStretchFactor(0, 5)
        split.setStretchFactor(1, 3)
        split.setChildrenCollapsible(False)
        return split

    def _build_empty(self) -> QWidget:
        inside = QWidget()
        self.empty = Label()
        self.empty.setObjectName("muted")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.make = QPushButton(tr("New language model"))
        self.make.clicked.connect(self.language_wanted)
        column = QVBoxLayout(inside)
        column.addStretch(1)
        column.addWidget(self.empty)
        column.addWidget(self.make, 0, Qt.AlignmentFlag.AlignCenter)
        column.addStretch(1)
        return inside

    # -- drawing -----------------------------------------------------------------------------------------------------

    def on_frame(self) -> None:
        """Read on while somebody looks, then draw what has changed."""
        evolution = self._of_run() if self.seen else None
        if evolution is not None and not evolution.complete:
            evolution.take(self.workspace.view.step.step)
            self._drawn = None
            if not evolution.complete:
                self.workspace.request_frame()
        super().on_frame()

    def _of_run(self) -> Evolution | None:
        """What has been read of the active run; what was read of runs that are closed is let go."""
        run = self.workspace.run
        if run is None or not run.origin.watched:
            return None
        here = {run.id for run in self.workspace.runs}
        self._evolutions = {id: known for id, known in self._evolutions.items() if id in here}
        known = self._evolutions.get(run.id)
        if known is None or known.run is not run:
            known = self._evolutions[run.id] = Evolution(run)
        return known

    def draw(self, view: View) -> None:
        evolution = self._of_run()
        self._stack.setCurrentIndex(0 if evolution is not None and view.head else 1)
        self.make.setVisible(evolution is None)
        self.empty.setText(
            tr("A language model's answers to fixed prompts appear here, as they change from update to update.")
            if evolution is None
            else tr("What the model answers to prompts that it is never trained on appears here. Press Run (Space).")
        )
        if evolution is None or not view.head:
            return
        self.place = min(self.place, len(evolution.prompts) - 1)
        now = self._now(view, evolution)
        self.rows.show_rows(evolution, now, view.cursor.step, self.place, view.theme, view.scale)
        self._fill(evolution, now[self.place], view.theme, view.scale)
        sentences = [self._status_text(view, now)]
        if not evolution.complete:
            sentences.append(tr("Read {read:,} of {head:,} updates.").format(read=evolution.read, head=view.head))
        self.note.setText(" ".join(sentences))

    def _now(self, view: View, evolution: Evolution) -> list[Change | None]:
        """The answers at the cursor: of the step itself, however far the others have been read."""
        step, places = view.step.step, range(len(evolution.prompts))
        if step is None or step.watched_tokens is None:
            return [None for _ in places]
        return [Change(step.step, *watched(step, place, view.run.origin)) for place in places]

    def _status_text(self, view: View, now: list[Change | None]) -> str:
        """How many answers are right at the cursor."""
        if not view.cursor.step:
            return tr("Answers are recorded with every update; move to one.")
        right = sum(change is not None and change.verdict.right is True for change in now)
        return tr("{right} of {count} right before update {step}; ◆ above is right, ◇ below wrong.").format(
            right=right, count=len(now), step=view.cursor.step
        )

    def _fill(self, evolution: Evolution, now: Change | None, theme: Theme, scale: float) -> None:
        """Every answer that the chosen prompt was ever given, the present one marked."""
        answers = evolution.distinct(self.place)
        key = (evolution, self.place, len(answers), theme, scale)
        if key != self._filled:
            self._filled = key
            self.heading.setText(tr("Answers to {prompts}").format(prompts=evolution.prompts[self.place]))
            self.answers.setFont(theme.font("mono", scale))
            self.answers.clear()
            for text, change in answers.items():
                item = QListWidgetItem(
                    tr("update {step:<4} {glyph} {answer}").format(
                        step=change.step, glyph=GLYPHS[change.verdict.right], answer=text or tr("(nothing)")
                    )
                )
                item.setData(Qt.ItemDataRole.UserRole, change.step)
                item.setToolTip(
                    plain_tip(
                        tr("First given at update {step}: {words}").format(
                            step=change.step, words=change.verdict.words or tr("cannot be told")
                        )
                    )
                )
                if change.verdict.right is False:
                    item.setForeground(theme.ink("push_down"))
                self.answers.addItem(item)
        here = list(answers).index(now.text) if now is not None and now.text in answers else -1
        if self.answers.currentRow() != here:
            self.answers.setCurrentRow(here)

    def summary(self, view: View) -> str:
        evolution = self._of_run()
        if evolution is None or not view.head:
            return tr("No answers yet.")
        return self._status_text(view, self._now(view, evolution))

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_jumped(self, step: int) -> None:
        self.workspace.move_to(step)

    @Slot(int)
    def _on_chosen(self, place: int) -> None:
        self.place = max(place, 0)
        self.redraw()
        self.area.ensureVisible(0, round((self.place + 0.5) * self.rows.line), 0, round(self.rows.line))

    @Slot(QListWidgetItem)
    def _on_answer(self, item: QListWidgetItem) -> None:
        self.workspace.move_to(int(item.data(Qt.ItemDataRole.UserRole)))
