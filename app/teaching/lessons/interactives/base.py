"""Base class of the interactive pictures: a widget that draws the lesson's run and supplies the numbers for answers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLayout,
    QLineEdit,
    QPushButton,
    QScrollBar,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from app.boxes import down
from app.plotting.bar_chart import BarChart
from app.plotting.legend import Entry
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label, allow
from app.theme.painting import frame, painter_of, write
from app.theme.styled import Styled
from app.theme.tokens import RADIUS, Theme
from app.widgets.calm import CalmSlider
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.teaching.lessons import LessonStep, Offer
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.plotting.line_chart import LineChart
    from app.plotting.plot import Plot

CONTROLS = (QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit)
"""Widgets that change a picture. Scroll bars, which Qt counts as sliders, do not."""


class Interactive(QWidget):
    """A picture with one main element to drag. All numbers are computed by the functions used in training.

    Attributes:
        offer: the names that a lesson file can use for this picture.
        block: number of the block of seeds that many runs have; 0 in class, others when the lesson is checked.
        shows_run: whether the picture shows the lesson's run; otherwise there are no commands to train it.
        hidden: names of the parts in ``offer.parts`` that are currently covered.
        guess: predicted height that :meth:`draw` shows as a ghost, or None for no ghost.
        asks: whether the open question is about a height, so that the ghost can be dragged.
        note: the sentence that says what the picture shows.
        state: the state of the step, by the names in ``offer.state``.
        parts: the widgets that belong to each name in ``offer.parts``. A part that is only data has none.
        ghosts: the charts on which a prediction can be dragged.
        invitations: the widgets that invite the user to operate the mouse or keyboard. They are hidden in films.
        said: descriptions of charts, set by :meth:`_draw`. Other charts and tables are described by the summary.
        problem: message that says why the run cannot be drawn, or an empty string. There are then no answers.
        of_bandit: whether only the run of a bandit can be drawn.
        note_font: role of the note's font.

    Signals:
        touched: emitted when something was dragged, which changes the answers.
        guessed: emitted with the height to which a prediction was dragged in the picture.
    """

    touched = Signal()
    guessed = Signal(float)
    offer = Offer()
    shows_run = True
    of_bandit = False
    note_font = "strong"

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self.workspace = workspace
        self.step, self.block = LessonStep(text=""), 0
        self.hidden: frozenset[str] = frozenset()
        self.guess: float | None = None
        self.asks = False
        self.note = Label(wraps=True)
        self.state: dict[str, Any] = {**self.offer.state}
        self.parts: dict[str, Sequence[QWidget]] = {"words": (self.note,)}
        self.ghosts: Sequence[QWidget] = ()
        self.invitations: Sequence[QWidget] = ()
        self.said: dict[QWidget, str] = {}
        self.problem = ""
        self._known: dict[str, list[np.ndarray]] = {}
        self._charts: list[TwinStack | LineChart | BarChart] = []
        self._tables: list[TableTwin] = []
        self._covers: dict[QWidget, Cover] = {}
        self._held: dict[QWidget, str] = {}
        self._build()

    @abstractmethod
    def _build(self) -> None:
        """Create the widgets and lay them out."""

    def show_step(self, step: LessonStep) -> None:
        """Apply the state defined by a lesson step. Later changes by dragging are kept until the next step."""
        if step is not self.step:
            self.step = step
            self.take(step.state)

    def take(self, state: Mapping[str, Any]) -> None:
        """Apply the state of a lesson step. A missing value is replaced by its default."""
        self.state = {**self.offer.state, **state}
        self._take()

    def _take(self) -> None:
        """Use the new ``state``, and forget what was dragged."""

    @property
    def shows(self) -> str:
        """The picture that the step requests: one of ``offer.shows``, by default the first."""
        return self.step.show or (self.offer.shows[0] if self.offer.shows else "")

    # -- while a question is open --------------------------------------------------------------------------------------

    def hide_parts(self, names: frozenset[str], later: Collection[str], theme: Theme, scale: float) -> None:
        """Cover exactly these parts after each :meth:`draw`. Those in ``later`` wait for a later question."""
        wanted = {part: LATER if name in later else NOW for name in names for part in self.parts.get(name, ())}
        for widget in wanted.keys() - self._covers.keys():
            self._covers[widget] = Cover(widget)
        for widget, cover in self._covers.items():
            if widget in wanted:
                cover.put(theme, scale, wanted[widget])
            else:
                cover.lift()

    def hold(self, on: bool) -> None:
        """Lock or unlock all controls. They are locked while experimenting would answer the open question."""
        if not on:
            for widget, drag in self._held.items():
                if isinstance(widget, BarChart):
                    widget.set_drag(drag)
                else:
                    allow(widget)
            self._held = {}
            return
        for widget in self.findChildren(QWidget):
            if widget in self._held or widget in self.ghosts:
                continue
            if isinstance(widget, BarChart) and widget.drag:
                self._held[widget] = widget.drag
                widget.set_drag("")
            elif self._turns(widget) and widget.isEnabled():
                self._held[widget] = ""
                allow(widget, tr("Answer the question first: it can be tried out after that."))

    def _turns(self, widget: QWidget) -> bool:
        checks = isinstance(widget, QAbstractButton) and widget.isCheckable()
        return checks or (isinstance(widget, CONTROLS) and not isinstance(widget, QScrollBar))

    def of_many_runs(self) -> Sequence[TwinStack]:
        """Return the visible charts in which every point is the result of real runs with a different setting."""
        return ()

    def show_on_paper(self) -> None:
        """Hide buttons and invitations, for output that cannot be operated."""
        for button in self.findChildren(QAbstractButton):
            if isinstance(button, QPushButton | QToolButton):
                button.hide()
        for words in self.invitations:
            words.hide()
        for chart in self.findChildren(BarChart):
            chart.on_paper = True

    def seeds(self, count: int) -> tuple[int, ...]:
        """Return ``count`` seeds that no other :attr:`block` has: 0 to ``count`` − 1 in class."""
        return tuple(range(self.block * count, (self.block + 1) * count))

    # -- building ------------------------------------------------------------------------------------------------------

    def lay_out(self, *parts: QWidget | QLayout | tuple[QWidget | QLayout, int], spacing: int = 4) -> None:
        """Stack the parts without margins. A number paired with a part is its stretch factor."""
        down(*parts, on=self, margins=0, spacing=spacing)

    def make_twin(self, plot: Plot | BarChart, legend: Sequence[Entry] = (), *, headed: bool = True) -> TwinStack:
        """Return ``plot`` with its table. :meth:`draw` sets its look and its description."""
        twin = TwinStack(plot, legend, headed=headed)
        self._charts.append(twin)
        return twin

    def make_table(self, columns: Sequence[Column], title: str) -> TableTwin:
        """Return a table that :meth:`summary` describes. Its look is the picture's own."""
        table = TableTwin(columns, title=title)
        self._tables.append(table)
        return table

    def make_slider(self, name: str, last: int, spoken: Callable[[int], str], *, first: int = 0) -> CalmSlider:
        """Return a slider called ``name``, whose positions ``first`` to ``last`` are passed to :meth:`_on_slid`."""
        slider = CalmSlider()
        slider.setRange(first, last)
        slider.setAccessibleName(name)
        slider.spoken = spoken
        slider.valueChanged.connect(self._on_slid)
        return slider

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        """Show the picture for a position to which the user has dragged the slider."""

    @Slot(int, float)
    def guess_bar(self, place: int, height: float) -> None:
        """Predict the height to which a bar was dragged."""
        self.guessed.emit(round(height, 3))

    def policies_so_far(self, view: View) -> list[np.ndarray]:
        """Return the policy (C, A) before training and after every update up to the current one. Empty if unknown."""
        origin, update = view.run.origin, view.cursor.step
        if origin.dist_logp is None:
            return []
        known = self._known.setdefault(view.run.id, [np.exp(origin.dist_logp)])
        while len(known) <= update:
            step = view.run.step(len(known))
            if step is None or step.dist_logp is None:
                break
            known.append(np.exp(step.dist_logp[-1]))
        return known[: update + 1]

    # -- what the lesson asks ------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        """Draw the lesson's run, or say why it cannot be drawn. Called once per frame in the GUI thread."""
        for chart in self._charts:
            chart.set_look(view.theme, view.scale)
        self.note.setFont(view.theme.font(self.note_font, view.scale))
        self.problem, self.said = "", {}
        try:
            if self.of_bandit and (view.wanted.is_language or view.run.origin.settings.is_language):
                raise SettingsError("task", "language", tr("this picture draws from a bandit"))
            self.note.setText(self._draw(view))
        except GrpoError as error:
            self.problem = str(error)
            self.note.setText(self.problem)
        said = "" if "words" in self.hidden else self.summary(view)
        for part in (*self._charts, *self._tables):
            part.set_summary(self.said.get(part, said))
        for chart in self._charts:
            chart.refresh()

    @abstractmethod
    def _draw(self, view: View) -> str:
        """Draw the lesson's run, and return what the note says about it.

        Raises:
            GrpoError: the settings do not allow that; the message says why.
        """

    @property
    def ready(self) -> bool:
        """Whether the answers are available. They can depend on work that takes longer than a frame."""
        return True

    @property
    def progress_text(self) -> str:
        """Message about the progress of longer work, or an empty string if there is none."""
        return ""

    def answer(self, check: str) -> float:
        """Return the number called ``check``, one of ``offer.checks``. NaN if it is unknown."""
        return math.nan if self.problem else self._answers().get(check, lambda: math.nan)()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def summary(self, view: View) -> str:
        """Return a one-sentence description of the picture for screen readers, by default the note."""
        return self.problem or self._summary(view)

    def _summary(self, view: View) -> str:
        return self.note.text()

    def dispose(self) -> None:
        """Cancel all computations when the lesson ends."""

    def minimumSizeHint(self) -> QSize:
        return QSize(round(240 * self.workspace.scale), round(120 * self.workspace.scale))


def pages(*widgets: QWidget) -> QStackedWidget:
    """Return a widget that shows one of ``widgets`` at a time."""
    stack = QStackedWidget()
    for widget in widgets:
        stack.addWidget(widget)
    return stack


NOW, LATER = tr("Hidden until the question is answered"), tr("Hidden until a later question is answered")
"""Words on a cover, by the question that lifts it."""
LAID_OUT = (QEvent.Type.Resize, QEvent.Type.LayoutRequest)


class Cover(Styled, QWidget):
    """A cover that hides a widget, both visually and from screen readers."""

    def __init__(self, target: QWidget) -> None:
        super().__init__(target.parentWidget())
        self.target = target
        self._shown_before = False
        self.hide()
        self._parent = target.parentWidget()
        if self._parent is not None:  # a hidden widget is laid out, but gets no event about it
            self._parent.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the target whenever its parent lays it out.

        Qt has applied the layout before it calls event filters.
        """
        if watched is self._parent and event.type() in LAID_OUT and not self.isHidden():
            self.setGeometry(self.target.geometry())
        return super().eventFilter(watched, event)

    def put(self, theme: Theme, scale: float, words: str = NOW) -> None:
        """Cover the target with ``words``, or update the cover if it is already there."""
        self.set_look(theme, scale)
        self.setAccessibleName(words)
        if not self.target.isHidden():
            self._retain(True)
            self._shown_before = True
            self.target.hide()
        self.setGeometry(self.target.geometry())
        self.setVisible(self._shown_before)
        self.raise_()
        self.update()

    def lift(self) -> None:
        if self._shown_before:
            self._shown_before = False
            self._retain(False)
            self.target.show()
        self.hide()

    def _retain(self, on: bool) -> None:
        policy = self.target.sizePolicy()
        policy.setRetainSizeWhenHidden(on)
        self.target.setSizePolicy(policy)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme = painter_of(self), self.theme
        pen = QPen(theme.colour("border"), max(self.factor, 1.0), Qt.PenStyle.DashLine)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        frame(painter, box, pen, theme.colour("surface"), RADIUS * self.factor)
        font, words, space = theme.font("body", self.factor), self.accessibleName(), self.rect().adjusted(6, 0, -6, 0)
        wrapped = int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap)
        if space.contains(QFontMetrics(font).boundingRect(space, wrapped, words)):
            write(painter, QRectF(space), words, font, theme.ink("muted"), wrapped)
