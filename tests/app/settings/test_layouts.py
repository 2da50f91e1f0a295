"""Layouts are restored as they were, and a damaged one never reaches Qt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow
from pytestqt.qtbot import QtBot

from app.settings.layouts import LAST, Layouts, clamped
from app.start import fills, first_size

SIDES = (Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea)


def window(qtbot: QtBot) -> QMainWindow:
    made = QMainWindow()
    for place, name in enumerate(("controls", "explain")):
        dock = QDockWidget(name, made)
        dock.setObjectName(name)
        made.addDockWidget(SIDES[place], dock)
    qtbot.addWidget(made)
    made.setGeometry(40, 40, 500, 300)
    made.show()
    return made


def restored(qtbot: QtBot, folder: Path, change: Callable[[bytes], bytes]) -> str | None:
    """Save a layout and change its file. Return what is said when it is restored."""
    layouts, made = Layouts(folder), window(qtbot)
    layouts.save(made, "Mine")
    (file,) = folder.glob("*.json")
    file.write_bytes(change(file.read_bytes()))
    return layouts.restore(made, "Mine")


def dock(of: QMainWindow, name: str) -> QDockWidget:
    found = of.findChild(QDockWidget, name)
    assert isinstance(found, QDockWidget)
    return found


def test_a_saved_layout_comes_back_in_another_window(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, first = Layouts(tmp_path), window(qtbot)
    first.addDockWidget(SIDES[1], dock(first, "controls"))
    dock(first, "explain").hide()
    assert layouts.save(first, "Mine") is None
    second = window(qtbot)
    assert layouts.restore(second, "Mine") is None
    assert second.dockWidgetArea(dock(second, "controls")) == SIDES[1]
    assert not dock(second, "explain").isVisible()
    assert second.geometry() == first.geometry()


def test_what_is_arranged_after_a_maximized_window_was_restored_stays_when_it_is_resized(
    qtbot: QtBot, tmp_path: Path
) -> None:
    layouts, first, second = Layouts(tmp_path), window(qtbot), window(qtbot)
    docks = ("controls", "explain")
    first.setGeometry(0, 0, 1600, 400)  # wider than the screen on which it is restored
    first.resizeDocks([dock(first, name) for name in docks], [700, 700], Qt.Orientation.Horizontal)
    first.hide()
    first.setWindowState(Qt.WindowState.WindowMaximized)
    assert layouts.save(first, LAST) is None
    second.hide()
    assert layouts.restore(second) is None
    second.show()
    second.resizeDocks([dock(second, name) for name in docks], [200, 580], Qt.Orientation.Horizontal)
    QApplication.processEvents()
    arranged = dock(second, "controls").width()
    second.resize(second.width() + 20, second.height())
    QApplication.processEvents()
    assert arranged < 300 and abs(dock(second, "controls").width() - arranged) <= 20


def test_names_are_any_text_and_the_last_used_is_not_among_them(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, made = Layouts(tmp_path / "new"), window(qtbot)
    for name in ("b/../é ü", "A: 1", LAST):
        assert layouts.save(made, name) is None
    assert layouts.names() == ("A: 1", "b/../é ü")
    assert {path.parent for path in (tmp_path / "new").rglob("*.json")} == {tmp_path / "new"}


@pytest.mark.parametrize("name", ["", "  ", "x" * 61])
def test_a_name_that_is_none_is_refused_with_a_sentence(qtbot: QtBot, tmp_path: Path, name: str) -> None:
    said = Layouts(tmp_path).save(window(qtbot), name)
    assert said is not None and "1 to 60 characters" in said


def test_floating_docks_are_put_back_before_saving(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, made = Layouts(tmp_path), window(qtbot)
    dock(made, "explain").setFloating(True)
    layouts.save(made)
    assert not dock(made, "explain").isFloating()
    second = window(qtbot)
    layouts.restore(second)
    assert not dock(second, "explain").isFloating()


def test_nothing_is_said_when_there_is_no_last_layout(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, made = Layouts(tmp_path), window(qtbot)
    assert layouts.restore(made) is None
    assert layouts.restore(made, "Mine") == "There is no layout “Mine”."


def test_one_flipped_byte_anywhere_is_noticed_or_harmless(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, made = Layouts(tmp_path), window(qtbot)
    layouts.save(made, "Mine")
    file = next(tmp_path.glob("*.json"))
    good = file.read_bytes()
    for place in range(0, len(good), 7):
        file.write_bytes(good[:place] + bytes([good[place] ^ 0x11]) + good[place + 1 :])
        said = layouts.restore(made, "Mine")
        assert said is not None and "not used" in said, good[place : place + 1]
    file.write_bytes(good)
    assert layouts.restore(made, "Mine") is None


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("layout", 99, "another version of the program"), ("qt", "5.15.2", "Qt 5.15.2"), ("sha256", "0", "checksum")],
)
def test_another_version_is_left_alone_and_said(
    qtbot: QtBot, tmp_path: Path, key: str, value: object, words: str
) -> None:
    said = restored(qtbot, tmp_path, lambda content: json.dumps(json.loads(content) | {key: value}).encode())
    assert said is not None and words in said


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 50, b"[]", b'{"layout": 1}', b"[" * 50_000])
def test_any_bytes_give_a_sentence(qtbot: QtBot, tmp_path: Path, content: bytes) -> None:
    said = restored(qtbot, tmp_path, lambda _: content)
    assert said is not None and "damaged" in said


def test_a_folder_that_cannot_be_written_gives_a_sentence(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "layouts").write_text("")
    said = Layouts(tmp_path / "layouts").save(window(qtbot), "Mine")
    assert said is not None and "could not be saved" in said


def test_a_window_beyond_all_screens_comes_back_onto_one(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, made = Layouts(tmp_path), window(qtbot)
    made.setGeometry(90_000, -4000, 300, 200)
    layouts.save(made)
    second = window(qtbot)
    layouts.restore(second)
    assert QApplication.primaryScreen().availableGeometry().contains(second.geometry())


def test_a_maximized_window_is_maximized_again_and_keeps_its_size_for_later(qtbot: QtBot, tmp_path: Path) -> None:
    layouts, made = Layouts(tmp_path), window(qtbot)
    made.showMaximized()
    layouts.save(made)
    second = window(qtbot)
    layouts.restore(second)
    assert second.isMaximized()


def test_clamping_prefers_the_screen_that_shows_most_of_the_window() -> None:
    left, right = QRect(0, 0, 1000, 800), QRect(1000, 0, 500, 400)
    assert clamped(QRect(900, 100, 300, 200), [left, right]) == QRect(1000, 100, 300, 200)
    assert clamped(QRect(-50, -50, 300, 200), [left, right]) == QRect(0, 0, 300, 200)
    assert clamped(QRect(0, 0, 5000, 5000), [left, right]) == left
    assert clamped(QRect(9000, 9000, 300, 200), [left, right]) == QRect(700, 600, 300, 200)


def test_a_window_that_would_reach_beyond_a_small_screen_fills_it() -> None:
    usual = QSize(1366, 768)
    assert all(fills(usual, QSize(*room)) for room in ((1366, 768), (1366, 730), (1280, 1024)))
    assert not fills(usual, QSize(1920, 1040))


@pytest.mark.parametrize(
    ("room", "wanted"),
    [((1366, 728), (1366, 768)), ((1920, 1050), (1689, 924)), ((2560, 1400), (2252, 1232))],
)
def test_the_first_window_takes_most_of_a_large_screen(room: tuple[int, int], wanted: tuple[int, int]) -> None:
    size = first_size(QSize(*room))
    assert abs(size.width() - wanted[0]) <= 1 and abs(size.height() - wanted[1]) <= 1
