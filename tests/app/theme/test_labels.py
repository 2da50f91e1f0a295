"""Text on screen: text from a file is shown literally, by no label and no tooltip as HTML, and painted words are
shortened if there is too little space."""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF, QPixmap, QTextDocument, QTextFormat
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.theme.labels import Label, RichLabel, plain_tip, rich_tip, wrapped_tip
from app.theme.painted_text import PaintedText
from app.theme.tokens import LIGHT
from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver
from tests.app.painted import painted_words

APP = Path(__file__).parents[3] / "app"
CASES = sorted(path for path in APP.rglob("*.py") if path.name != "labels.py")
TIPS = {"plain_tip", "wrapped_tip", "rich_tip"}
HTML_VIEWS = {"panels/help.py", "teaching/lessons/interactives/reported.py"}
"""Views with the program's own pages, which escape everything that they put into their HTML."""
IMAGE = '<img src="file:///etc/hostname">'


def is_ours(text: ast.expr) -> bool:
    """Return whether a tooltip's text is a literal in the source, or specifies its own text format."""
    if isinstance(text, ast.IfExp):
        return is_ours(text.body) and is_ours(text.orelse)
    if isinstance(text, ast.Call) and isinstance(text.func, ast.Name):
        return text.func.id in TIPS or (text.func.id == "tr" and isinstance(text.args[0], ast.Constant))
    return isinstance(text, ast.Constant)


def guessing(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, description) of each place where Qt would guess a text format."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "QLabel":
            yield node.lineno, "a QLabel: use Label, or RichLabel for HTML of our own"
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        called, given = node.func.attr, node.args
        tooltip = (
            given[-1]
            if called == "setToolTip"
            else given[1]
            if called == "showText"
            else given[1]
            if called == "setItemData" and "ToolTipRole" in ast.unparse(given[-1])
            else None
        )
        if tooltip is not None and not is_ours(tooltip):
            yield node.lineno, "a tooltip: use plain_tip or wrapped_tip, or rich_tip for HTML of our own"
        if called == "setTextFormat" and "PlainText" not in ast.unparse(node):
            yield node.lineno, "a text format: use RichLabel"
        if called in ("setHtml", "toHtml", "insertHtml", "setMarkdown", "appendHtml"):
            yield node.lineno, "HTML"


def test_no_text_is_left_to_qt_to_guess() -> None:
    assert len(CASES) > 200
    found = {path: list(guessing(ast.parse(path.read_text(encoding="utf-8")))) for path in CASES}
    for name in HTML_VIEWS:
        pages = [place for place in found[APP / name] if place[1] == "HTML"]
        assert pages, f"{name} has no page of its own any more"
        found[APP / name] = [place for place in found[APP / name] if place not in pages]
    assert not any(found.values()), {str(path): places for path, places in found.items() if places}


@pytest.mark.parametrize(
    "source",
    [
        "QLabel('x')",
        "box.setToolTip(name)",
        "box.setToolTip(tr(name))",
        "box.setToolTip(f'{name}')",
        "QToolTip.showText(place, text, self)",
        "box.setItemData(0, text, Qt.ItemDataRole.ToolTipRole)",
        "box.setToolTip('' if name else name)",
        "label.setTextFormat(Qt.TextFormat.AutoText)",
        "page.setHtml(text)",
    ],
)
def test_what_is_left_to_qt_is_found(source: str) -> None:
    assert len(list(guessing(ast.parse(source)))) == 1


@pytest.mark.parametrize("text", [IMAGE, "a <b> c", "x & y", "<two>\nlines", "<", ""])
def test_a_label_and_a_tooltip_show_every_letter(qtbot: QtBot, text: str) -> None:
    label = Label(text)
    qtbot.addWidget(label)
    assert label.textFormat() is Qt.TextFormat.PlainText
    for made, lines in ((plain_tip(text), text), (wrapped_tip(text), text.replace("\n", " "))):
        laid_out = QTextDocument()
        laid_out.setHtml(made)
        assert (laid_out.toPlainText() if "<" in made else made) == lines  # what has no tag is shown as it is
        assert laid_out.allFormats()[0].objectType() == QTextFormat.ObjectTypes.NoObject.value
    assert rich_tip("<b>x</b>") == "<b>x</b>"


def test_a_picture_named_in_a_label_is_not_opened(qtbot: QtBot, tmp_path: Path) -> None:
    picture = tmp_path / "wide.png"
    assert QPixmap(400, 300).save(str(picture))
    label, trusting = Label(f'<img src="{picture}">'), RichLabel(f'<img src="{picture}">')
    for widget in (label, trusting):
        qtbot.addWidget(widget)
    assert trusting.sizeHint().height() >= 300, "or this test would say nothing"
    assert label.sizeHint().height() < 100


def test_a_run_full_of_markup_is_shown_letter_by_letter(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    training = learner(Settings())
    with RunWriter.create(path, Settings(), title=IMAGE) as writer:
        for _ in range(3):
            writer.append(next(training))
    with closing(sqlite3.connect(path)) as connection:
        text = connection.execute("SELECT value FROM meta WHERE key = 'origin'").fetchone()[0]
        marked = text.replace('"vocabulary": ["1"', '"vocabulary": ["<img src=x>"').replace(
            '["prompt 1"', '["<img src=y>"'
        )
        assert marked.count("<img") == 3
        connection.execute("UPDATE meta SET value = ? WHERE key = 'origin'", (marked,))
        connection.commit()
    driver.open(path)
    for dock in driver.program.window.docks.values():
        dock.show()
        dock.raise_()
        driver.settle()
    labels = [label for widget in driver.program.window.findChildren(QWidget) for label in widget.findChildren(QLabel)]
    assert len(labels) > 50
    for label in labels:
        assert isinstance(label, RichLabel) or label.textFormat() is Qt.TextFormat.PlainText, label.text()
        assert not (isinstance(label, RichLabel) and "<img" in label.text())
    for widget in driver.program.window.findChildren(QWidget):
        assert "<img" not in widget.toolTip(), type(widget)


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
