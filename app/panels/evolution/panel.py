"""The Evolution panel: the answers to fixed prompts over training, scrubbed with the timeline."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QPushButton, QSizePolicy, QToolTip, QWidget

from app.boxes import across, divided, down, plain_scroll_area, stacked
from app.panels.evolution.evolution_words import story, tally, tally_in_fewer_words, what_to_watch
from app.panels.evolution.head import RightDial, TaskChips
from app.panels.evolution.row_painter import CAPTION, LEAST, Geometry, RowPainter, RowsPicture, axis_end
from app.theme.labels import EmptyLabel, Label, plain_tip
from app.theme.painted_text import PaintedText
from app.theme.painting import painter_of
from app.theme.tokens import Theme
from app.widgets.panel import Panel
from app.workspace.answers import GLYPHS, watched
from app.workspace.evolution import GREEDY, SAMPLED, Change, Evolution, RightShare, Turn, answers_before_training
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.learners import folder_models
from grpo_core.text import tr


class EvolutionRows(QWidget):
    """The widget with one row per fixed prompt.

    A row has the prompt, its answer at the cursor, its strip, and the update at which the answer last changed from
    right to wrong or back. Up and Down select a prompt; Left and Right move to the nearest change of its answer.

    Signals:
        jumped: show this update.
        chosen: this prompt was selected (its index).
    """

    jumped = Signal(int)
    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture: RowsPicture | None = None
        self._theme: Theme | None = None
        self._scale = 1.0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Answers to fixed prompts"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        return QSize(420, self.minimumHeight())

    def show_rows(self, picture: RowsPicture, theme: Theme, scale: float) -> None:
        self._picture, self._theme, self._scale = picture, theme, scale
        self.setMinimumHeight(round((CAPTION + LEAST * len(picture.now)) * scale) + 4)
        self.setAccessibleDescription(
            "; ".join(
                f"{prompt} {change.text} {change.verdict.words}"
                for prompt, change in zip(picture.evolution.prompts, picture.now, strict=True)
                if change
            )
        )
        self.update()

    @property
    def geometry_now(self) -> Geometry:
        assert self._theme is not None and self._picture is not None
        prompts = self._picture.evolution.prompts
        mono = QFontMetricsF(self._theme.font("answer", self._scale * self._picture.enlarged))
        words = QFontMetricsF(self._theme.font("heading", self._scale)).horizontalAdvance(tr("right at once"))
        return Geometry(
            self.width(),
            self.height(),
            self._scale,
            len(prompts),
            glyph=mono.horizontalAdvance("0"),
            letters=mono.height(),
            longest=max(map(len, prompts), default=4),
            since=words + 4,
            end=axis_end(self._picture.evolution.run.head),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._picture is None or not self._picture.now:
            return
        painter = painter_of(self, smooth=False)
        RowPainter(painter, self._picture, self.geometry_now, self._theme, focused=self.hasFocus()).paint()

    # -- input -------------------------------------------------------------------------------------------------------

    def _under(self, point: QPointF) -> tuple[int, int]:
        """Return the prompt and the update under the mouse, −1 and 0 if there are none."""
        if self._picture is None or self._theme is None or not self._picture.begun:
            return -1, 0
        here = self.geometry_now
        return here.place_at(point.y()), here.update_at(point.x(), self._picture.evolution.run.head)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place, step = self._under(event.position())
        if place >= 0:
            self.chosen.emit(place)
            if step:
                self.jumped.emit(step)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Scrub while dragging along a strip. Otherwise show a tooltip with the answer at the pointer."""
        place, step = self._under(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton and step:
            self.jumped.emit(step)
        change = self._picture.evolution.at(place, step) if self._picture and place >= 0 else None
        tooltip = ""
        if change:
            text = tr("Update {step:,}: {text} {words}")
            tooltip = text.format(step=step, text=change.text, words=change.verdict.words).rstrip()
        QToolTip.showText(event.globalPosition().toPoint(), plain_tip(tooltip), self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        picture = self._picture
        if picture is None or not picture.evolution.prompts or not picture.begun:
            super().keyPressEvent(event)
            return
        evolution, cursor, selected = picture.evolution, picture.cursor, picture.selected
        steps, head = [change.step for change in evolution.changes[selected]], evolution.run.head
        match event.key():
            case Qt.Key.Key_Down:
                self.chosen.emit(min(selected + 1, len(evolution.prompts) - 1))
            case Qt.Key.Key_Up:
                self.chosen.emit(max(selected - 1, 0))
            case Qt.Key.Key_Right:
                self.jumped.emit(min((s for s in steps if s > cursor), default=head))
            case Qt.Key.Key_Left:
                self.jumped.emit(max((s for s in steps if s < cursor), default=min(1, head)))
            case _:
                super().keyPressEvent(event)


BOTH_WIDE = 860
"""Minimum panel width at 100 % at which the list of all answers to the selected prompt is shown next to the rows."""
LOW = 335
"""Panel height at 100 % below which the dial is hidden to save space for the rows. The cards show its number too."""
RECORDED = tr("Recorded with the shipped weights. As soon as the model is loaded, answers are computed here.")


class EvolutionPanel(Panel):
    """The policy's likeliest answers to prompts that it is never trained on, before each update.

    Args:
        heading: whether to show the header above the rows; it is left out next to a lesson.

    Attributes:
        story: the sentence on how one answer changed; before the first update, the reasons for the sentence above.
        make: the button that begins a language model's run if there is none to show.
        chips: they begin a run with another task.
    """

    sized = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None, *, heading: bool = True) -> None:
        super().__init__(workspace, parent)
        self.place = 0
        self._evolutions: dict[RunHandle, Evolution] = {}
        self._filled: tuple[object, ...] = ()
        self._known: tuple[object, ...] | None = None  # the model's answers before its first update
        self.dial, self.chips = RightDial(), TaskChips()
        self.dial.source_wanted.connect(self._on_dial)
        self.watch = PaintedText("reading_strong", grown=1.1)
        self.story = PaintedText("reading", "muted", lines=3)
        self.rows = EvolutionRows()
        self.rows.jumped.connect(workspace.move_to)
        self.rows.chosen.connect(self._on_chosen)
        self.heading = Label(name="section")
        self.answers = QListWidget()
        self.answers.setAccessibleName(tr("Answers to the chosen prompt, in order of appearance"))
        self.answers.itemActivated.connect(self._on_answer)
        self.answers.itemClicked.connect(self._on_answer)
        self.note = PaintedText("digits", "muted")
        text = tr("A language model's answers to fixed prompts appear here, as they change from update to update.")
        self.empty = EmptyLabel(text)
        self.make = QPushButton(tr("New language model"))
        empty = down(None, self.empty, across(None, self.make, None), None)
        self._stack = stacked(self._build(), empty, on=self)
        self._head.setVisible(heading)

    def _build(self) -> QWidget:
        self._head, self._beside = QWidget(), QWidget()
        words = down(self.watch, self.story, None, self.chips, margins=(0, 2, 0, 2), spacing=2)
        self._head_row = across(self.dial, (words, 1), on=self._head, spacing=8)
        self.area = plain_scroll_area(self.rows)
        below = across(self.note, margins=(12, 0, 12, 0))
        left = down(self._head, (self.area, 1), below, margins=(0, 6, 0, 4), spacing=4)
        down(self.heading, (self.answers, 1), on=self._beside, margins=(8, 4, 8, 4))
        return divided((left, 5), (self._beside, 2))

    # -- drawing -----------------------------------------------------------------------------------------------------

    def on_frame(self) -> None:
        """Read further answers while the panel is visible, then redraw what has changed."""
        run = self.workspace.run
        known = None if run is None else (run.first_answers, run.update_time, run.remembered_time)
        if known != self._known:
            self._known, self._drawn = known, None
        evolution = self.of_run() if self.seen else None
        if evolution is not None and not evolution.complete:
            evolution.take(self.workspace.view.step.step)
            self._drawn = None
            if not evolution.complete:
                self.workspace.request_frame()
        super().on_frame()

    @property
    def busy(self) -> bool:
        """Whether answers of the active run are still being read."""
        evolution = self.of_run()
        return evolution is not None and not evolution.complete

    def of_run(self) -> Evolution | None:
        """Return the answers of the active run read so far. Those of closed runs are discarded."""
        run = self.workspace.run
        if run is None or not run.origin.watched:
            return None
        self._evolutions = {one: known for one, known in self._evolutions.items() if one in self.workspace.runs}
        if run not in self._evolutions:
            self._evolutions[run] = Evolution(run)
        return self._evolutions[run]

    def draw(self, view: View) -> None:
        evolution = self.of_run()
        self._stack.setCurrentIndex(0 if evolution is not None else 1)
        if evolution is None:
            return
        self.place = min(self.place, len(evolution.prompts) - 1)
        picture = self._picture(view, evolution)
        self.rows.show_rows(picture, view.theme, view.scale)
        self._show_head(picture, view)
        # in presenting mode, the strips matter most
        wide = self.width() >= BOTH_WIDE * view.scale and not view.theme.legible
        self._beside.setVisible(view.head > 0 and wide)
        if view.head:
            self._fill(evolution, picture.now[self.place], view.theme, view.scale)
        note, shorter = self._note(view, picture)
        self.note.show_text(note, view.theme, view.scale, shorter)

    def _show_head(self, picture: RowsPicture, view: View) -> None:
        compact, settings = self.height() < LOW * view.scale, view.step.settings
        self._head_row.setContentsMargins(12 if compact else 4, 0, 4, 0)
        self.dial.setVisible(not compact and (picture.held_out is not None or picture.sampled is not None))
        self.story.setVisible(not compact)
        self.dial.show_share(picture.held_out, picture.sampled, view.theme, view.scale)
        watch, why = what_to_watch(settings, view.step.step)
        self.watch.show_text(watch, view.theme, view.scale)
        self.story.show_text(story(picture) if view.cursor.step else why, view.theme, view.scale)
        self.chips.show_task(view)

    def _picture(self, view: View, evolution: Evolution) -> RowsPicture:
        """Return the rows at the cursor, from the step itself: they do not wait for the rest to be read."""
        step, places, origin = view.step.step, evolution.places, view.run.origin
        turns: list[Turn | None] = [None for _ in places]
        if not view.head:
            before = answers_before_training(view.run)
            now = [before[place] for place in places]
        elif step is None or step.watched_tokens is None:
            now = [None for _ in places]
        else:
            now = [Change(step.step, *watched(step, place, origin)) for place in places]
            turns = [evolution.turn(row, step.step) for row in range(len(places))]
        sampled = None
        if origin.settings.model.folder:
            sampled = RightShare.sampled(view.run, view.cursor.step, 0 if step is None else len(step.group))
        return RowsPicture(
            evolution=evolution,
            now=now,
            turns=turns,
            cursor=view.cursor.step,
            selected=self.place,
            sampled=sampled,
            held_out=RightShare.held_out(view.run, view.cursor.step),
        )

    def _note(self, view: View, picture: RowsPicture) -> tuple[str, str]:
        """Describe the right answers at the cursor or, before the first update, where the answers come from. The
        second text is a shorter form, or empty.
        """
        run, settings = view.run, view.run.origin.settings
        if not view.head and settings.model.folder:
            models = folder_models()
            whole = models.summary(settings, run.update_time, run.remembered_time)
            return whole, models.brief(settings, run.update_time)
        if not view.head and run.first_answers is not None:
            return tr("This is what the model answers now, before any training."), ""
        if not view.head:
            known = any(change is not None for change in picture.now)
            return RECORDED if known else tr("The model's answers to these prompts appear with the first update."), ""
        if not view.cursor.step:
            return tr("Answers are recorded with every update; move to one."), ""
        sentences = [tally(picture)]
        if not picture.evolution.complete:
            read = tr("Read {read:,} of {head:,} updates.")
            sentences.append(read.format(read=picture.evolution.read, head=view.head))
        return " ".join(sentences), tally_in_fewer_words(picture)

    def _fill(self, evolution: Evolution, now: Change | None, theme: Theme, scale: float) -> None:
        """List every answer ever given to the selected prompt, and mark the current one."""
        answers = evolution.distinct(self.place)
        key = (evolution, self.place, len(answers), theme, scale)
        if key != self._filled:
            self._filled = key
            self.heading.setText(tr("Answers to {prompts}").format(prompts=evolution.prompts[self.place]))
            self.answers.setFont(theme.font("mono", scale))
            self.answers.clear()
            line, tip = tr("update {step:<4} {glyph} {answer}"), tr("First given at update {step:,}: {words}")
            for text, change in answers.items():
                glyph, words = GLYPHS[change.verdict.right], change.verdict.words or tr("unknown")
                item = QListWidgetItem(line.format(step=change.step, glyph=glyph, answer=text or tr("(nothing)")))
                item.setData(Qt.ItemDataRole.UserRole, change.step)
                item.setToolTip(plain_tip(tip.format(step=change.step, words=words)))
                if change.verdict.right is False:
                    item.setForeground(theme.ink("push_down"))
                self.answers.addItem(item)
        here = list(answers).index(now.text) if now is not None and now.text in answers else -1
        if self.answers.currentRow() != here:
            self.answers.setCurrentRow(here)

    def summary(self, view: View) -> str:
        evolution = self.of_run()
        if evolution is None:
            return tr("No answers yet.")
        picture = self._picture(view, evolution)
        sentences = [what_to_watch(view.step.settings, view.step.step)[0], self._note(view, picture)[0]]
        return " ".join([*sentences, self.dial.words] if view.head else sentences)

    def focus_picture(self) -> None:
        """Move the keyboard focus to the rows. Before the first update clear it, so that Space starts the run."""
        target = self.rows if self.workspace.view.head else self.window()
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_chosen(self, place: int) -> None:
        self.place = max(place, 0)
        self.redraw()
        row = self.rows.geometry_now.row(self.place)
        self.area.ensureVisible(0, round(row.center().y()), 0, round(row.height()))

    @Slot()
    def _on_dial(self) -> None:
        """Explain the number on the dial, a held-out share at the update that measured it."""
        view = self.workspace.view
        if view.run.origin.settings.model.folder:
            self.workspace.explain(Quantity(SAMPLED))
            return
        held_out = RightShare.held_out(view.run, view.cursor.step)
        step = held_out.measured_at if held_out is not None else 0
        if step and step != view.cursor.step:
            self.workspace.move_to(step)
        self.workspace.explain(Quantity(GREEDY))

    @Slot(QListWidgetItem)
    def _on_answer(self, item: QListWidgetItem) -> None:
        self.workspace.move_to(int(item.data(Qt.ItemDataRole.UserRole)))
