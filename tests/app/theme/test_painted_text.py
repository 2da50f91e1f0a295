"""Painted words: a fixed number of lines, shortened if there is too little space, with the full text on request."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QFontMetricsF
from pytestqt.qtbot import QtBot

from app.theme.painted_text import PaintedText
from app.theme.tokens import LIGHT
from tests.app.painted import painted_words

LONG, SHORT = "8 of 8 right before update 21: 5 turned right, 3 were right from the start.", "8 of 8 right."


@pytest.mark.parametrize(("room", "shown"), [(1.02, LONG), (0.9, SHORT)])
def test_a_line_without_room_says_less_and_keeps_the_whole(qtbot: QtBot, room: float, shown: str) -> None:
    text = PaintedText("digits")
    qtbot.addWidget(text)
    text.show_text(LONG, LIGHT, 1.0, SHORT)
    text.resize(round(QFontMetricsF(text.font()).horizontalAdvance(LONG) * room), text.sizeHint().height())
    assert [word.text for word in painted_words(text)] == [shown]
    assert (text.text(), text.accessibleName()) == (LONG, LONG)
    assert "were right from the start" in text.toolTip()


def test_without_fewer_words_it_is_cut(qtbot: QtBot) -> None:
    text = PaintedText("digits")
    qtbot.addWidget(text)
    text.show_text(LONG, LIGHT, 1.0)
    text.resize(200, text.sizeHint().height())
    (word,) = painted_words(text)
    assert word.text.endswith("…") and LONG.startswith(word.text.removesuffix("…").rstrip())
