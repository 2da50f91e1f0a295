"""Predict, then reveal: one widget for every kind of prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QWidget

from app.boxes import across, down
from app.teaching.lessons.inputs import Options, Value
from app.teaching.lessons.readable import number_text, readable
from app.theme.labels import Label, allow
from app.theme.styled import Styled
from app.widgets.calm import push_button
from grpo_core.teaching.lessons import Prediction, as_told, spoken
from grpo_core.text import tr

COUNTER, LARGEST = 28, 176
"""Font sizes in pixels: the role "counter" at 100 % scale, and the number of an answer on a screen of 1080 lines."""


@dataclass(frozen=True)
class Placed:
    """A prediction that was placed or skipped in this session.

    Attributes:
        guess: a number, or a key of the question's ``options``; None if skipped.
        value: the value computed by the run; None while it is being computed.
        right: whether the two agree.
        close: whether a wrong number is close.
    """

    guess: float | None
    value: float | None = None
    right: bool = False
    close: bool = False


def result_text(prediction: Prediction, value: float) -> str:
    """Return the run's answer as text: the number with its name, and the option that it belongs to."""
    number = number_text(prediction, value)
    if prediction.number:
        number = tr("{name}: {value}").format(name=prediction.number, value=number)
    choice = next((choice.text for choice in prediction.choices if value in choice), "")
    if choice and prediction.number:
        return tr("{choice} ({number})").format(choice=choice, number=number)
    return choice or number  # a choice whose number has no name is shown without it, because the number is only a code


def verdict(prediction: Prediction, placed: Placed, *, for_class: bool = False) -> str:
    """Return a sentence about the result. ``for_class``, it does not mention that a question was skipped."""
    if placed.value is None:
        return tr("The run is being computed.")
    if placed.value != placed.value:
        return tr("This run has no such number, so nothing can be scored.")
    result = result_text(prediction, placed.value)
    if placed.guess is None and for_class:
        return tr("This run: {result}.").format(result=result)
    if placed.guess is None:
        return tr("Skipped. This run: {result}.").format(result=result)
    if placed.right:
        return tr("Right. This run: {result}.").format(result=result)
    if placed.close:
        return tr("Close. This run: {result}.").format(result=result)
    return tr("Not this time. This run: {result}.").format(result=result)


def guess_text(prediction: Prediction, placed: Placed) -> str:
    """Return a short text stating what a class predicted, or an empty string without a prediction."""
    if placed.guess is None:
        return ""
    if placed.right:
        return tr("as predicted")
    option = prediction.options.get(round(placed.guess))
    said = readable(placed.guess, prediction.shown) if option is None else option.text
    return tr("predicted: {guess}").format(guess=said)


def lesson_of(prediction: Prediction, placed: Placed) -> str:
    """Return the lesson's sentence about the answer, or a sentence saying that the run disagrees with it."""
    if placed.value is None or placed.value != placed.value or not prediction.reveal:
        return ""
    if as_told(prediction, placed.value):
        return spoken(prediction.reveal)
    return tr(
        "The usual explanation does not hold in this run, and the run is right: look at where its number comes from."
    )


class PredictionBox(Styled, QWidget):
    """The question, the input, and afterwards the result.

    Attributes:
        input: the input widget; None without a question.
        filmed: whether it is being filmed, without buttons.
        stage: when presenting, the page's scale relative to a screen 1080 pixels high; otherwise 0.
        number, name: when presenting, the number of the answer, and its name.

    Signals:
        placed: emitted with the guess (a number, a direction, or the index of a choice) when it is placed.
        moved: emitted when the guess has changed but is not placed yet.
    """

    placed = Signal(float)
    moved = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._prediction: Prediction | None = None
        self.stage = 0.0
        self.filmed = False
        self.name, self.number = Label(name="muted"), Label()
        self.input: Options | Value | None = None
        self.ask, self.result, self.sentence = Label(), Label(), Label()
        for label in (self.ask, self.name, self.result, self.sentence):
            label.setWordWrap(True)
        tip = tr("Place the prediction (Return); then the run answers.")
        self.place = push_button(tr("Place prediction"), tip, self._on_place, primary=True)
        self.skip = push_button(tr("Skip"), tr("Skip the question (S); it is shown as skipped."))
        for button in (self.place, self.skip):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        row = across(self.place, self.skip, None)
        self._column = down(
            self.ask, self.name, self.number, self.result, self.sentence, row, on=self, margins=0, spacing=8
        )
        self._apply_style()

    def show_prediction(self, prediction: Prediction | None, placed: Placed | None) -> None:
        """Show the question, or the result of a placed prediction. None hides the box."""
        self.setVisible(prediction is not None)
        if prediction is not self._prediction:
            self._rebuild(prediction)
        if prediction is None or self.input is None:
            return
        open_ = placed is None
        if isinstance(self.input, Value):
            self.input.hint = not self.filmed
        self.ask.setObjectName("" if open_ else "muted")
        self.ask.setVisible(not self.stage)
        self.input.setVisible(open_ or not self.stage)
        self._show_number(prediction, placed)
        self.ask.setFont(self.theme.font("strong" if open_ else "body", self.factor * (1.15 if open_ else 1.0)))
        told = ("strong", 1.45) if self.stage else ("body", 1.15)
        self.sentence.setFont(self.theme.font(told[0], self.factor * told[1]))
        for widget in (self.place, self.skip):
            widget.setVisible(open_ and not self.filmed)
        self._allow_place()
        for label in (self.result, self.sentence):
            label.setVisible(not open_)
        if placed is None:
            return
        self.input.close_with(placed.guess, placed.value)
        alone = bool(self.number.text())
        self.result.tell(
            guess_text(prediction, placed) if alone else verdict(prediction, placed, for_class=bool(self.stage))
        )
        self.sentence.tell(lesson_of(prediction, placed))

    def _show_number(self, prediction: Prediction, placed: Placed | None) -> None:
        """Show the number of the answer when presenting, as large as the column allows.

        A multiple-choice question shows none, because its answer is the text of an option.
        """
        value = None if placed is None else placed.value
        named = bool(self.stage and prediction.number and prediction.kind != "choice")
        alone = named and value is not None and not math.isnan(value)
        for label in (self.name, self.number):
            label.setVisible(alone)
        self.name.setText(prediction.number if alone else "")
        self.number.setText(number_text(prediction, value) if alone and value is not None else "")
        if alone:
            theme, space = self.theme, max(self.width() - 8, 40)
            wide = QFontMetrics(theme.font("counter", 100 / COUNTER)).horizontalAdvance(self.number.text())
            self.number.setFont(theme.font("counter", min(LARGEST * self.stage, 100 * space / max(wide, 1)) / COUNTER))

    def _rebuild(self, prediction: Prediction | None) -> None:
        self._prediction = prediction
        old, self.input = self.input, None
        if old is not None:
            self._column.removeWidget(old)
            old.hide()
            old.deleteLater()
        if prediction is None:
            return
        self.ask.setText(spoken(prediction.ask))
        kind = prediction.kind
        if options := prediction.options:
            self.input = Options(prediction.ask, options, down=len(options) - 1 if kind == "direction" else 0)
        else:
            low, high = prediction.low, prediction.high
            self.input = Value(prediction.ask, low, high, bar=kind == "ghost", form=prediction.shown)
        self.input.changed.connect(self._on_changed)
        self.input.placed.connect(self._on_place)
        self._column.insertWidget(1, self.input)
        self.input.set_look(self.theme, self.factor)

    @property
    def guess(self) -> float | None:
        """The current guess, or None before one is chosen."""
        return None if self.input is None else self.input.guess

    def put(self, guess: float) -> None:
        """Move the mark of an open prediction of a number to ``guess``."""
        if isinstance(self.input, Value) and self.input.open:
            self.input.put(guess)

    def take_focus(self) -> None:
        if self.input is not None and self.input.open:
            self.input.setFocus(Qt.FocusReason.OtherFocusReason)

    def _apply_style(self) -> None:
        super()._apply_style()
        for label, role in ((self.result, "strong"), (self.name, "body")):
            label.setFont(self.theme.font(role, self.factor * 1.15))
        if self.input is not None:
            self.input.set_look(self.theme, self.factor)

    def _allow_place(self) -> None:
        allow(self.place, "" if self.guess is not None else tr("Choose or drag a prediction first."))

    @Slot()
    def _on_changed(self) -> None:
        self._allow_place()
        self.moved.emit()

    @Slot()
    def _on_place(self) -> None:
        if self.guess is not None:
            self.placed.emit(self.guess)
