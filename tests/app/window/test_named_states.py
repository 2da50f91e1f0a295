"""A dozen named states of the window: nothing is cut, overlaps, or is scrolled horizontally."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractScrollArea, QScrollArea, QWidget

from app.examples import example
from app.panel_registry import HOME
from app.teaching.presenting.screens import SPACE, fitting_scale
from app.widgets.panel import in_window
from app.window.layouts import size_class
from tests.app.conftest import Driver
from tests.app.geometry import losses
from tests.app.painted import painted_words
from tests.app.stories.hands import panel
from tests.app.teaching.lessons.held import lesson_of
from tests.app.teaching.presenting.hands import settle as settle_class
from tests.app.teaching.presenting.hands import start
from tests.app.window.conftest import arranged, rests

SIZES = [
    (1280, 680, 1.0, "light"),
    (1366, 768, 1.0, "dark"),
    (1366, 768, 1.1, "light"),
    (1366, 768, 1.25, "light"),
    (1366, 768, 1.5, "light"),
    (1920, 1080, 1.0, "projector"),
    (1366, 768, 1.0, "contrast"),
]
FEW = [SIZES[0], SIZES[3]]
LONG = [pytest.param(*size, marks=pytest.mark.long) for size in SIZES]
"""Sizes for the long tests. test_room.py tests the bandit's smallest sizes, large type and a projector's size
quickly.
"""
NARROW = [SIZES[0], SIZES[1]]
"""Sizes at which the two halves of a language model's layout are side by side with little width each."""
ROOT = Path(__file__).parents[3]
TRACE = ROOT / "tests" / "data" / "traces" / "grpo"
SPEAKING = """
import sys
from tools import pseudo
pseudo.choose("pseudo")  # before what says something is imported
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.fixture
def driver(shared: Driver) -> Driver:
    return shared  # every test here sets size, look and layout


def higher(widget: QWidget, height: int) -> bool:
    return widget.height() > height


@pytest.mark.parametrize(("width", "height", "scale", "theme"), LONG)
def test_a_bandit_loses_nothing(driver: Driver, width: int, height: int, scale: float, theme: str) -> None:
    driver.run(20)
    arranged(driver, width, height, scale, theme)
    assert losses(driver.program.window) == []


@pytest.mark.quick_cases("1366-768-1.25-home", "1366-768-2.0-my_run")
@pytest.mark.parametrize("place", ["home", "play", "learn", "my_run"])
@pytest.mark.parametrize("scale", [1.0, 1.25, 1.5, 2.0])
@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1920, 1080)])
def test_behind_each_door_nothing_is_lost(driver: Driver, width: int, height: int, scale: float, place: str) -> None:
    program = driver.program
    arranged(driver, width, height, scale)
    doors = {door.id: door for door in program.doors.all}
    if place == "home":
        program.doors.show_home()
        driver.qtbot.waitUntil(lambda: bool(program.window.panels.of(HOME).cards))
    else:
        program.doors.enter(doors[place])
    driver.qtbot.waitUntil(lambda: place != "play" or driver.head > 4)
    program.player.pause()
    driver.rest()
    driver.settle()
    lost = losses(program.window)
    if program.window.alone:
        program.runs.new_run()  # the panels are back for the next test
    assert lost == []


@pytest.mark.parametrize(("width", "height", "scale", "theme"), NARROW)
def test_a_what_if_of_a_language_model_loses_nothing_and_shows_both_sides(
    driver: Driver, width: int, height: int, scale: float, theme: str
) -> None:
    driver.program.run_manager.open(example())
    arranged(driver, width, height, scale, theme)
    shown = panel(driver, "what_if")
    driver.qtbot.waitUntil(lambda: shown.picture is not None)
    driver.settle()
    driver.settle()
    assert losses(driver.program.window) == []
    columns = [shown.table.columnViewportPosition(n) + shown.table.columnWidth(n) for n in range(3)]
    assert max(columns) <= shown.table.viewport().width()


def test_the_curves_of_a_race_keep_the_width_of_a_narrow_window(driver: Driver) -> None:
    """Names at the ends would leave the curves only 100 pixels. The standings next to them show a sample of each."""
    driver.run(3)
    arranged(driver, *SIZES[0])
    shown = panel(driver, "comparison")
    driver.qtbot.waitUntil(lambda: rests(shown))
    driver.settle()
    driver.settle()
    assert shown.plot.view_box.width() > 0.35 * shown.width()
    assert not any(line.label for line in shown.plot.picture.lines)
    assert shown.standing.table.columns[0].kind == "line"
    window = driver.program.window
    for chart in panel(driver, "training_history").charts:  # squeezed to its least height below the race
        words = painted_words(chart) if in_window(chart) else []
        bottom = chart.mapTo(window, QPoint()).y()
        assert all(bottom + word.box.bottom() <= window.height() for word in words)


@pytest.mark.quick_cases("1280-680-1.0-light")
@pytest.mark.parametrize(("width", "height", "scale", "theme"), FEW)
def test_each_comparison_loses_nothing_and_has_room(
    driver: Driver, width: int, height: int, scale: float, theme: str
) -> None:
    driver.run(3)
    arranged(driver, width, height, scale, theme)
    for id in ("comparison", "kl_over_beta", "what_if"):
        shown = panel(driver, id)
        driver.qtbot.waitUntil(partial(rests, shown))
        driver.settle()
        driver.settle()
        assert losses(driver.program.window) == [], id
        if id == "comparison":
            (frame,) = shown.findChildren(QScrollArea, options=Qt.FindChildOption.FindDirectChildrenOnly)
            assert frame.verticalScrollBar().maximum() == 0
        history, before = driver.program.window.docks["training_history"], shown.height()
        beside = size_class(driver.program.window.size(), scale) == 0
        assert shown.height() > (0.55 * driver.program.window.height() if beside else 2 * history.height()), id
        narrow, place = history.height(), history.geometry()
        policy = panel(driver, "policy_bars")
        if beside:
            driver.settle()
            assert history.geometry() == place and policy.height() == before, "another tab moves nothing"
        else:
            driver.qtbot.waitUntil(partial(higher, history, narrow + 20), timeout=5000)


@pytest.mark.parametrize("id", ["kl_over_beta", "what_if"])
def test_a_comparison_at_twice_the_size_loses_nothing_and_scrolls_nothing_sideways(driver: Driver, id: str) -> None:
    driver.run(3)
    arranged(driver, 1366, 768, 2.0)
    shown = panel(driver, id)
    driver.qtbot.waitUntil(lambda: rests(shown))
    driver.settle()
    window = driver.program.window
    assert losses(shown) == []
    for area in shown.findChildren(QAbstractScrollArea):
        assert not area.isVisible() or area.horizontalScrollBar().maximum() == 0, area.accessibleName()
    assert window.docks["metrics"].height() == window.docks["metrics"].row_height, "no more than the cards ask for"
    if id == "kl_over_beta":
        shown.choices.setup.setChecked(True)
        driver.settle()
        assert losses(shown) == []
        assert min(shown.views.kl.height(), shown.choices.second.height()) > 90
    else:
        assert shown.table.isVisible() and not shown.batch.isVisible()
        box = shown.header.shows
        box.setCurrentIndex(box.findData("policy"))
        box.activated.emit(box.currentIndex())
        driver.settle()
        assert shown.batch.isVisible() and not shown.table.isVisible()
        assert losses(shown) == []


def test_a_recorded_run_at_twice_the_size_loses_nothing(driver: Driver) -> None:
    driver.program.runs.open_path(TRACE)
    driver.qtbot.waitUntil(lambda: not driver.program.part("trainers").recorded_runs.busy)
    assert driver.program.workspace.view.run.is_recorded
    arranged(driver, 1366, 768, 2.0)
    assert panel(driver, "completions").keep.text() == "Keep beside"
    assert losses(driver.program.window) == []


@pytest.mark.parametrize(("width", "height", "scale", "theme"), FEW)
def test_a_lesson_loses_nothing(driver: Driver, width: int, height: int, scale: float, theme: str) -> None:
    arranged(driver, width, height, scale, theme)
    player = driver.program.part("teaching").lessons.player
    player.reveal.moves = False
    player.open(lesson_of("one_update"), 2)
    driver.qtbot.waitUntil(lambda: not player.busy, timeout=20_000)
    player.predict(1.1)
    driver.settle()
    assert losses(driver.program.window) == []


def before_a_class(driver: Driver, size: tuple[int, int]) -> None:
    """Begin a class in a window of this size, and assert that it loses nothing."""
    start(driver)
    window = driver.program.window
    window.setWindowState(Qt.WindowState.WindowNoState)
    window.resize(*size)
    driver.program.look.set("projector", fitting_scale(window.rect(), SPACE))
    driver.program.part("teaching").presenter.arrange_later()
    settle_class(driver)
    assert losses(window) == []


@pytest.mark.quick_cases("size0")
@pytest.mark.parametrize("size", [(1024, 768), (1920, 1080)])
def test_a_bandit_before_a_class_loses_nothing(driver: Driver, size: tuple[int, int]) -> None:
    driver.run(20)
    before_a_class(driver, size)
    values = [word for word in painted_words(panel(driver, "pipeline").strip) if word.text.replace(".", "").isdigit()]
    assert min(word.pixels for word in values) >= 0.02 * size[1]


@pytest.mark.quick_cases("size0")
@pytest.mark.parametrize("size", [(1024, 768), (1280, 720), (1920, 1080)])
def test_a_language_model_before_a_class_loses_nothing_and_shows_completions(
    driver: Driver, size: tuple[int, int]
) -> None:
    driver.program.run_manager.open(example())
    before_a_class(driver, size)
    inspector = panel(driver, "token_inspector")
    assert inspector.grid.viewport().height() > inspector.grid.box(0, 0).bottom()
    words = [*painted_words(inspector.grid), *painted_words(inspector.sentence)]
    assert min(word.pixels for word in words) >= 0.02 * size[1]


@pytest.mark.long
@pytest.mark.parametrize(
    "state",
    [
        "test_a_bandit_loses_nothing[1366-768-1.0-dark]",
        "test_a_lesson_loses_nothing[1280-680-1.0-light]",
        "test_a_lesson_loses_nothing[1366-768-1.25-light]",
    ],
)
def test_texts_longer_by_forty_percent_lose_nothing(state: str) -> None:
    """The same test in a process that uses the made-up language from its first import on."""
    command = [sys.executable, "-c", SPEAKING, "-q", "-p", "no:cacheprovider", f"{__file__}::{state}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
