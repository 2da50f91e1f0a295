"""The palette finds every command by a few letters and runs it from the keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.commands.actions import Actions
from app.commands.fuzzy import score
from app.commands.palette import CommandPalette
from app.commands.sheet import ShortcutSheet
from app.teaching.lessons.catalogue import lesson_titles, lessons
from tests.app.conftest import Driver


@pytest.fixture
def palette(qtbot: QtBot, window: Any, actions: Actions) -> CommandPalette:
    made = CommandPalette(actions, window, lambda subject: "")
    made.open_fresh()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is made)
    return made


def listed(palette: CommandPalette) -> list[str]:
    rows = range(palette.model.rowCount())
    return [action.command.id for row in rows if (action := palette.model.action(row))]


def keys_shown(sheet: ShortcutSheet) -> tuple[str, ...]:
    headings = [sheet.tree.topLevelItem(n) for n in range(sheet.tree.topLevelItemCount())]
    rows = [heading.child(n) for heading in headings if heading is not None for n in range(heading.childCount())]
    return tuple(row.text(0) for row in rows if row is not None and not row.isHidden())


def test_every_listed_command_is_in_the_palette_and_every_one_is_found_by_its_title(
    palette: CommandPalette, actions: Actions
) -> None:
    assert listed(palette) == [action.command.id for action in actions if action.command.listed]
    for action in actions:
        palette.line.setText(action.command.text)
        assert listed(palette)[0] == action.command.id


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        ("lesson 11", "clipping"),
        ("teach nothing", "same_rewards"),
        ("checker alone", "why_rl"),
        ("five steps of ppo", "ppo_update"),
    ],
)
def test_a_lesson_is_found_by_its_number_and_its_question_and_opens(driver: Driver, typed: str, id: str) -> None:
    program = driver.program
    program.palette.open_fresh()
    QTest.keyClicks(program.palette.line, typed)
    assert listed(program.palette)[0] == f"lesson.open.{id}"
    QTest.keyClick(program.palette.line, Qt.Key.Key_Return)
    assert program.part("teaching").lessons.player.lesson is not None
    assert program.part("teaching").lessons.player.lesson.id == id
    driver.qtbot.waitUntil(lambda: not program.part("teaching").lessons.player.busy)


def test_every_lesson_has_the_title_under_which_it_is_listed() -> None:
    shipped = lessons()[0]
    assert [(one.id, one.number, one.title) for one in lesson_titles()] == [
        (lesson.id, lesson.number, lesson.title) for lesson in shipped
    ]


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        ("expl", "explain"),
        ("dark", "theme.dark"),
        ("br", "branch"),
        ("sb", "stage_back"),
        ("full", "full_screen"),
        ("BACK stage", "stage_back"),
        ("pause", "run"),
        ("theme proj", "theme.projector"),
    ],
)
def test_a_few_letters_find_the_command(palette: CommandPalette, typed: str, id: str) -> None:
    palette.line.clear()
    QTest.keyClicks(palette.line, typed)
    assert id in listed(palette)[:2]


def test_typing_choosing_and_enter_run_a_command_after_the_palette_has_gone(
    window: Any, actions: Actions, palette: CommandPalette
) -> None:
    seen: list[bool] = []
    actions.ran.connect(lambda id: seen.append(palette.isVisible()))
    QTest.keyClicks(palette.line, "normal size")
    QTest.keyClick(palette.line, Qt.Key.Key_Return)
    assert window.called == ["zoom_reset"]
    assert seen == [False]


def test_arrows_and_pages_move_and_stop_at_the_ends(palette: CommandPalette) -> None:
    def row() -> int:
        return palette.list.currentIndex().row()

    QTest.keyClick(palette.line, Qt.Key.Key_Up)
    assert row() == 0
    QTest.keyClick(palette.line, Qt.Key.Key_Down)
    assert row() == 1
    QTest.keyClick(palette.line, Qt.Key.Key_PageDown)
    assert row() > 2
    for _ in range(40):
        QTest.keyClick(palette.line, Qt.Key.Key_PageDown)
    assert row() == palette.model.rowCount() - 1


def test_a_command_that_cannot_run_is_listed_with_its_reason_and_enter_does_nothing(
    window: Any, actions: Actions, palette: CommandPalette
) -> None:
    window.stand.blocked["undo"] = "No setting has been changed."
    actions.refresh()
    palette.line.setText("undo")
    index = palette.model.index(0, 0)
    assert listed(palette)[0] == "undo"
    assert "not now: No setting has been changed." in index.data(Qt.ItemDataRole.AccessibleTextRole)
    QTest.keyClick(palette.line, Qt.Key.Key_Return)
    assert window.called == []
    assert palette.isVisible()


def test_nothing_found_is_harmless(window: Any, palette: CommandPalette) -> None:
    palette.line.setText("qqqqq")
    assert listed(palette) == []
    for key in (Qt.Key.Key_Down, Qt.Key.Key_PageDown, Qt.Key.Key_Return):
        QTest.keyClick(palette.line, key)
    assert window.called == []


def test_escape_closes_and_opening_again_starts_empty(palette: CommandPalette) -> None:
    QTest.keyClicks(palette.line, "dark")
    QTest.keyClick(palette.line, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    palette.open_fresh()
    assert palette.line.text() == ""
    assert palette.model.rowCount() > 20


def test_it_goes_away_when_another_window_becomes_active(qtbot: QtBot, window: Any, palette: CommandPalette) -> None:
    window.activateWindow()
    qtbot.waitUntil(lambda: not palette.isVisible())


def test_it_can_be_painted_with_and_without_blocked_commands(
    window: Any, actions: Actions, palette: CommandPalette
) -> None:
    window.stand.blocked["new_run"] = "Not now."
    actions.refresh()
    palette.line.setText("")
    picture = palette.grab().toImage()
    column = {picture.pixelColor(x, y).name() for x in range(20, 200) for y in range(60, 160, 3)}
    assert len(column) > 5


def test_letters_at_the_start_of_words_and_in_a_row_count_more() -> None:
    assert score("sb", "Stage back") > score("sb", "Absurd bases")  # type: ignore[operator]
    assert score("step", "One step") > score("step", "Show the panel")  # type: ignore[operator]
    assert score("x", "Step") is None
    assert score("ÉXPLAIN", "explain") is not None
    assert score("", "anything") is not None


def test_the_sheet_lists_every_command_that_has_a_key_and_follows_new_ones(
    qtbot: QtBot, window: Any, actions: Actions
) -> None:
    sheet = ShortcutSheet(actions, window)
    qtbot.addWidget(sheet)
    sheet.open_fresh()
    assert not sheet.isModal()
    assert len(keys_shown(sheet)) == sum(bool(command.shortcuts) for command in actions.commands)
    sheet.line.setText("f11")
    assert keys_shown(sheet) == ("Full screen",)
    sheet.line.setText("back")
    assert set(keys_shown(sheet)) == {"Step back", "Stage back"}
    sheet.line.setText("nothing like it")
    assert keys_shown(sheet) == ()
    sheet.line.clear()
    actions.set_commands([command for command in actions.commands if command.id in ("run", "step")])
    assert set(keys_shown(sheet)) == {"Run or pause", "Step"}


def test_the_palette_follows_new_commands(actions: Actions, palette: CommandPalette) -> None:
    palette.line.setText("step")
    actions.set_commands([command for command in actions.commands if command.id in ("run", "step")])
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert listed(palette) == ["step"]
    palette.list.doItemsLayout()
