"""Exporting from the window: the screen content in another theme and size, and longer exports in the background."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QImage, QImageReader
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QMenu,
    QScrollBar,
    QToolButton,
    QWidget,
)

from app.export.dialog import OWN, PictureChoice, PictureDialog
from app.export.exporter import BUSY
from app.export.stage import settle, staged, without_controls
from app.theme.tokens import DARK, LIGHT
from app.widgets.panel import Panel
from grpo_core import recompute
from tests.app.conftest import Driver
from tests.app.stories.hands import panel as brought
from tests.core.runs.conftest import permissions_count  # noqa: F401

pytestmark = pytest.mark.one_window

SVG = "{http://www.w3.org/2000/svg}"


def panel(driver: Driver, name: str) -> Panel:
    return driver.program.window.panels[name]


def shot(driver: Driver) -> np.ndarray:
    """Return the window's pixels."""
    driver.settle()
    image = driver.program.window.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(image.constBits(), np.uint8).copy()


def picture(driver: Driver, name: str, path: Path, **choice: Any) -> Path:
    """Export a panel's picture, which may take a while, and return its path."""
    driver.program.exporter.picture(panel(driver, name), path, PictureChoice(panel=name, **choice))
    return path


def dialog(driver: Driver) -> PictureDialog:
    (found,) = driver.program.window.findChildren(PictureDialog)
    return found


def answer(monkeypatch: pytest.MonkeyPatch, path: Path | str, kind: str = "") -> None:
    """Answer the system's file dialog with ``path``."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), kind))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(path))


def texts(svg: Path) -> str:
    return " ".join(" ".join("".join(each.itertext()) for each in ET.parse(svg).iter(f"{SVG}text")).split())


def finished(driver: Driver) -> None:
    driver.qtbot.waitUntil(lambda: not driver.program.exporter.busy, timeout=30_000)


def test_a_picture_in_another_size(driver: Driver, tmp_path: Path) -> None:
    driver.run(3)
    image = QImage(str(picture(driver, "step_detail", tmp_path / "a.png", size=(1000, 500))))
    assert (image.width(), image.height()) == (1000, 500)
    assert "is written to" in driver.messages[-1]


def test_a_panel_in_another_size_leaves_no_trace_in_the_window(driver: Driver) -> None:
    driver.run(6)
    before = shot(driver)
    for name in ("policy_bars", "training_history", "step_detail", "metrics", "controls"):
        with staged(panel(driver, name), QSize(1000, 500)):
            assert panel(driver, name).size() == QSize(1000, 500)
    changed = (shot(driver) != before).reshape(driver.program.window.height(), -1)
    rows = np.flatnonzero(changed.any(axis=1))
    assert changed.mean() < 5e-4, f"more than the name of an axis that pyqtgraph has moved by a pixel, in rows {rows}"


@pytest.mark.long
def test_a_picture_in_another_look_is_drawn_beside_the_window(driver: Driver, tmp_path: Path) -> None:
    driver.run(6)
    driver.program.workspace.move_to(4)
    picture(driver, "policy_bars", tmp_path / "bars.png", size=(1000, 500), theme="dark", scale=1.5)
    finished(driver)
    assert driver.messages[-1] == f"{tmp_path / 'bars.png'} holds the picture of “Policy π(a)”."
    image = QImage(str(tmp_path / "bars.png"))
    assert (image.width(), image.height()) == (1000, 500)
    assert image.pixelColor(2, 2).name().upper() == DARK.hex("ground")
    seen = {image.pixelColor(x, y).name().upper() for x in range(0, 1000, 4) for y in range(0, 500, 4)}
    assert DARK.hex("policy") in seen and LIGHT.hex("policy") not in seen


@pytest.mark.parametrize("name", ["metrics", "pipeline", "policy_bars", "training_history", "step_detail", "controls"])
def test_a_panel_as_it_is_shown_is_what_the_screen_shows(driver: Driver, tmp_path: Path, name: str) -> None:
    driver.run(6)
    shown = panel(driver, name)
    with without_controls(shown):
        screen = shown.grab().toImage()
    image = QImage(str(picture(driver, name, tmp_path / "a.png", caption=False)))
    assert image.size() == screen.size() * 2, "sharp on paper"
    smooth = Qt.TransformationMode.SmoothTransformation
    small = image.scaled(screen.size(), Qt.AspectRatioMode.IgnoreAspectRatio, smooth)
    gaps = [
        abs(small.pixelColor(x, y).lightness() - screen.pixelColor(x, y).lightness())
        for x in range(0, screen.width(), 3)
        for y in range(0, screen.height(), 3)
    ]
    assert sum(gap > 60 for gap in gaps) < 0.03 * len(gaps)


@pytest.mark.quick_cases("training_history", "step_detail", "policy_bars", "explain")
@pytest.mark.parametrize(
    "name",
    ["training_history", "step_detail", "comparison", "kl_over_beta", "policy_bars", "token_inspector", "explain"],
)
def test_a_picture_holds_nothing_to_operate_and_the_window_keeps_it(driver: Driver, name: str) -> None:
    driver.run(3)
    shown = brought(driver, name)
    driver.qtbot.waitUntil(lambda: not getattr(shown, "busy", False), timeout=60_000)
    settle(shown)  # a scroll bar can wait for the next layout
    before = shot(driver)

    def operated() -> list[QWidget]:
        kinds = (QCheckBox, QComboBox, QScrollBar, QToolButton)
        return [widget for widget in shown.findChildren(QWidget) if isinstance(widget, kinds) and widget.isVisible()]

    there = operated()
    with without_controls(shown):
        assert operated() == []
        shown.grab()
    assert operated() == there
    assert np.mean(shot(driver) != before) < 5e-4


def test_a_picture_of_the_controls_is_one_of_controls(driver: Driver) -> None:
    shown = panel(driver, "controls")
    with without_controls(shown):
        assert any(box.isVisible() for box in shown.findChildren(QComboBox))


def test_every_panel_offers_to_be_exported_by_the_right_mouse_button(driver: Driver) -> None:
    driver.run(2)
    for name in ("policy_bars", "step_detail", "controls", "pipeline", "explain"):
        shown = panel(driver, name)
        place = QPoint(shown.width() - 3, shown.height() - 3)
        asked = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, shown.mapToGlobal(place))
        QApplication.sendEvent(shown, asked)
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu), name
        said = [action.text() for action in menu.actions()]
        assert said == ["Export picture…", "Export table…", "Export image sequence…", "Export film…"]
        menu.close()


def test_from_the_menu_over_a_panel_to_a_file(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.run(6)
    next(action for action in panel(driver, "step_detail").actions() if "picture" in action.text()).trigger()
    asked = dialog(driver)
    assert asked.panel.currentData() == "step_detail"
    assert not asked.own.isEnabled()
    asked.size_choice.setCurrentIndex(asked.size_choice.findData(OWN))
    assert asked.own.isEnabled()
    asked.width_box.setValue(900)
    asked.height_box.setValue(420)
    assert asked.hint.text() == ""
    asked.theme.setCurrentIndex(asked.theme.findData("projector"))
    assert "drawn again" in asked.hint.text().casefold()
    answer(monkeypatch, tmp_path / "detail", "SVG picture (*.svg)")
    asked.save.click()
    finished(driver)
    root = ET.parse(tmp_path / "detail.svg").getroot()
    assert root.get("viewBox") == "0 0 900 420"
    step = driver.program.workspace.view.step
    assert step.advantage is not None
    assert f"{abs(step.advantage[0]):.3f}" in texts(tmp_path / "detail.svg")
    assert "update 6 of 6" in texts(tmp_path / "detail.svg")


@pytest.mark.own_window
def test_the_command_takes_the_panel_in_focus(driver: Driver) -> None:
    driver.run(2)
    shown = panel(driver, "step_detail")
    next(child for child in shown.findChildren(QWidget) if child.focusPolicy() & Qt.FocusPolicy.TabFocus).setFocus()
    driver.program.actions["export_picture"].trigger()
    assert dialog(driver).panel.currentData() == "step_detail"
    dialog(driver).reject()


def test_a_table_is_its_twin(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.run(6)
    answer(monkeypatch, tmp_path / "bars")
    driver.program.exports.ask_table("policy_bars")
    twin = panel(driver, "policy_bars").twin  # type: ignore[attr-defined]
    twin.toggle()
    driver.settle()
    with (tmp_path / "bars.csv").open(newline="", encoding="utf-8") as file:
        told = list(csv.reader(file))
    model = twin.table.table
    copied = [line.split("\t") for line in model.tsv(range(model.rowCount())).splitlines()]
    assert told == copied
    assert len(told) == 11
    driver.program.exports.ask_table("metrics")
    assert driver.messages[-1] == "“Metric cards” has no table; export it as a picture."


def test_the_update_shown_becomes_a_script(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.run(5)
    driver.program.workspace.move_to(3)
    driver.settle()
    answer(monkeypatch, tmp_path / "step.py")
    driver.program.actions["export_script"].trigger()
    exec(compile((tmp_path / "step.py").read_text("utf-8"), "step.py", "exec"), {})
    step = driver.program.workspace.view.step.step
    assert step is not None and step.step == 3
    loss = float(capsys.readouterr().out.split()[3])
    assert loss == pytest.approx(float(recompute.terms(step, 0).loss), abs=1e-9)


@pytest.mark.usefixtures("permissions_count")
def test_a_folder_that_takes_nothing_is_a_sentence(driver: Driver, tmp_path: Path) -> None:
    driver.run(2)
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    picture(driver, "metrics", locked / "a.png")
    assert driver.messages[-1] == f"{locked / 'a.png'} cannot be written: the program is not allowed to use the folder."
    driver.program.exporter.table(panel(driver, "step_detail"), locked / "a.csv")
    assert "cannot be written" in driver.messages[-1]
    assert list(locked.iterdir()) == []


def test_a_wrong_ending_and_no_room_are_sentences(driver: Driver, tmp_path: Path) -> None:
    picture(driver, "metrics", tmp_path / "a.gif")
    assert "end the name in .png, .svg or .pdf" in driver.messages[-1]
    picture(driver, "metrics", tmp_path / "a.png", size=(200, 30), scale=2.5)
    assert "leaves no space for the picture" in driver.messages[-1]
    assert not (tmp_path / "a.png").exists()


@pytest.mark.own_window
def test_a_sequence_and_the_run_are_written_beside_the_window(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.run(5)
    answer(monkeypatch, tmp_path)
    driver.program.actions["export_sequence"].trigger()
    asked = dialog(driver)
    asked.panel.setCurrentIndex(asked.panel.findData("policy_bars"))
    asked.first.setValue(3)
    asked.save.click()
    folder = tmp_path / f"{panel(driver, 'policy_bars').title} pictures"
    assert any(line.message.id == BUSY for line in driver.program.window.messages.lines)
    driver.program.exports.ask_run()
    assert "Another export is being written" in driver.messages[-1]
    finished(driver)
    assert sorted(path.name for path in folder.iterdir()) == [f"policy-bars-000{n}.png" for n in (3, 4, 5)]
    assert driver.messages[-1] == f"{folder} holds 3 pictures."
    driver.program.exports.ask_run()
    finished(driver)
    assert (tmp_path / f"{driver.program.workspace.view.run.title} tables" / "samples.csv").exists()


@pytest.mark.long
@pytest.mark.own_window
def test_a_film_of_the_update_shown_is_written_beside_the_window(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.run(3)
    driver.program.workspace.move_to(2)
    answer(monkeypatch, tmp_path / "update.2")
    driver.program.actions["export_film"].trigger()
    asked = dialog(driver)
    assert (asked.windowTitle(), asked.first.value(), asked.last.value()) == ("Export film", 2, 2)
    asked.panel.setCurrentIndex(asked.panel.findData("policy_bars"))
    asked.save.click()
    assert any(line.message.id == BUSY for line in driver.program.window.messages.lines)
    finished(driver)
    film = tmp_path / "update.2.webp"
    assert driver.messages[-1] == f"{film} holds the film."
    assert QImageReader(str(film)).imageCount() > 10


def test_without_the_focus_a_film_shows_the_policy(driver: Driver) -> None:
    driver.run(2)
    driver.program.window.setFocus()
    driver.program.actions["export_film"].trigger()
    assert dialog(driver).panel.currentData() == "policy_bars"


def test_a_sequence_can_be_cancelled_and_the_window_closed_meanwhile(driver: Driver, tmp_path: Path) -> None:
    driver.run(4)
    choice = PictureChoice(panel="policy_bars", steps=range(1, 5))
    driver.program.exporter.sequence(tmp_path / "one", choice)
    driver.program.exporter.cancel()
    driver.qtbot.waitUntil(lambda: not driver.program.exporter.busy)
    assert "cancelled" in driver.messages[-1]
    driver.program.exporter.sequence(tmp_path / "two", choice)
    assert driver.program.exporter.busy  # the fixture closes the window


def test_a_picture_of_the_policy_asks_nobody_to_drag(driver: Driver, tmp_path: Path) -> None:
    driver.run(2)
    said = texts(picture(driver, "policy_bars", tmp_path / "a.svg"))
    assert "Reward" in said and "drag" not in said


@pytest.mark.long
@pytest.mark.own_window
def test_while_a_lesson_is_open_it_is_what_a_film_shows(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = driver.program
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    lesson = program.part("teaching").lessons.find("build_group")
    assert lesson is not None
    assert not program.actions["export_film"].isEnabled()
    program.part("teaching").lessons.player.open(lesson)
    driver.settle()
    answer(monkeypatch, tmp_path / "lesson.webp")
    program.actions["export_film"].trigger()
    asked = dialog(driver)
    assert asked.panel.currentText() == f"The lesson “{lesson.title}”"
    assert not asked.first.isEnabled()
    assert "played again" in asked.hint.text()
    asked.save.click()
    driver.qtbot.waitUntil(lambda: any("written" in text for text in driver.messages))
    assert list(temporary.iterdir()), "the lesson's runs lie there"
    program.exporter.cancel()
    driver.qtbot.waitUntil(lambda: not program.exporter.busy)
    assert "cancelled" in driver.messages[-1]
    assert list(tmp_path.glob("*.webp")) == []
    driver.qtbot.waitUntil(lambda: not list(temporary.iterdir()))
