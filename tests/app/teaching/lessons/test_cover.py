"""The cover of a part of a picture while a question is open."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.teaching.lessons.interactives.base import Cover
from app.theme.tokens import LIGHT


@pytest.mark.parametrize("width", [300, 500])
def test_a_cover_stays_where_its_part_would_be_when_something_else_takes_room(qtbot: QtBot, width: int) -> None:
    page, part, hint = QWidget(), QWidget(), QLabel("Predict first")
    hint.setFixedHeight(60)
    column = QVBoxLayout(page)
    column.addWidget(part, 1)
    column.addWidget(hint)
    hint.hide()
    qtbot.addWidget(page)
    page.resize(400, 300)
    page.show()
    cover = Cover(part)
    cover.put(LIGHT, 1.0)
    before = cover.geometry()
    hint.show()
    page.resize(width, 300)
    qtbot.waitUntil(lambda: part.geometry() != before and cover.geometry() == part.geometry())
    assert cover.geometry().bottom() < hint.y()
