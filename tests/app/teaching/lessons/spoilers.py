"""While a question is open, nothing visible, in a table, or read by a screen reader gives the answer away.

`Pupil.predict` checks this at every question that any test answers, so every walk through a lesson verifies it.
"""

from __future__ import annotations

import math
import re

from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from app.plotting.bar_chart import BarChart
from app.plotting.line_chart import LineChart
from app.plotting.numbers import shown
from app.teaching.lessons.page import PARTLY_HIDDEN, LessonPage
from app.teaching.lessons.player import LessonPlayer
from app.workspace.view import View
from grpo_core.teaching.lessons import Prediction

NUMBER = re.compile(r"(?<![\d.,])(\d+(?:\.\d+)?)( ?%)?")
"""A number in a text, and whether it is a percentage."""


def texts_of(window: QWidget) -> set[str]:
    """Return every visible string of a widget, what a screen reader says about it, and the numbers in its table."""
    texts: set[str] = set()
    for widget in window.findChildren(QWidget):
        if widget.visibleRegion().isEmpty():
            continue
        texts |= {widget.accessibleName(), widget.accessibleDescription(), widget.toolTip()}
        if isinstance(widget, (QLabel, QAbstractButton)):
            texts.add(widget.text())
        if isinstance(widget, (BarChart, LineChart)):
            texts |= {shown(cell) for row in widget.table()[1] for cell in row if isinstance(cell, float)}
        if isinstance(widget, BarChart):
            texts |= {note for lane in widget.picture.lanes for note in lane.notes}
    return texts - {""}


def check_covered(player: LessonPlayer, page: LessonPage, view: View) -> None:
    """Assert that the open question's text, result and hidden parts are invisible, and the run has not reached its
    answer.
    """
    assert player.lesson is not None
    step = player.lesson.steps[player.place]
    assert step.predict is not None
    assert player.covered
    assert not page.text.isVisible()
    assert not page.prediction.result.isVisible()
    picture = page.interactive
    for part in player.hidden:
        assert picture is not None
        for widget in picture.parts.get(part, ()):
            assert not widget.isVisible(), f"{step.predict.ask} {part}"
        assert picture.accessibleDescription() == PARTLY_HIDDEN
    if step.predict.start is not None:
        assert view.cursor.step == step.predict.start
        assert view.head == step.predict.start or step.recorded, "the run has not come to the answer yet"


def check_untold(predict: Prediction, value: float, texts: set[str]) -> None:
    """Assert that no string visible while the question was open contains the number that answers it."""
    digits = shown(value).strip("0.−")
    asked = predict.kind in ("number", "ghost")
    if asked and not math.isnan(value) and len(digits) >= 3 and shown(value) not in predict.ask:
        assert not [text for text in texts if shown(value) in text], f"{predict.ask} {shown(value)}"
        told = [text for text in texts if any(_tells(predict, value, number) for number in NUMBER.findall(text))]
        assert not told, f"{predict.ask} {value}: {told}"


def _tells(predict: Prediction, value: float, number: tuple[str, str]) -> bool:
    """Return whether a number on the screen, such as a bound or a hint, gives the answer away. Numbers in the
    question itself do not count.
    """
    digits, percent = number
    seen, exact = float(digits), len(digits.replace(".", "").strip("0"))
    if percent:
        return exact >= 2 and abs(seen / 100 - value) <= 0.005
    said = any(abs(float(told) - seen) <= predict.within / 10 for told, _ in NUMBER.findall(predict.ask))
    return exact >= 3 and not said and abs(seen - value) <= predict.within / 20
