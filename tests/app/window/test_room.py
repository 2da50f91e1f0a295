"""Named states of the window: nothing is clipped, overlaps or is scrolled horizontally."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import pytest
from PySide6.QtWidgets import QCheckBox

from app.examples import example
from app.plotting.labels import Word
from app.plotting.table_model import Marked
from app.window.layouts import arrangement, size_class
from tests.app.conftest import Driver
from tests.app.geometry import box_of, losses
from tests.app.painted import painted_words
from tests.app.stories.hands import panel
from tests.app.window.conftest import arranged

STATES = [
    (1280, 680, 1.0, "light"),
    (1366, 768, 1.0, "dark"),
    (1366, 768, 1.1, "light"),
    (1366, 768, 1.25, "light"),
    (1920, 1080, 1.0, "projector"),
    (1920, 1080, 1.25, "contrast"),
]


@pytest.fixture
def driver(shared: Driver) -> Driver:
    return shared  # every test here sets size, look and layout


def seen(driver: Driver) -> dict[str, Any]:
    """Return the panels that are in front."""
    docks = driver.program.window.docks
    return {name: dock.panel for name, dock in docks.items() if dock.panel is not None and dock.panel.seen}


def apart_and_inside(driver: Driver) -> dict[str, Any]:
    """Return the panels in front, after asserting that none overlaps another or extends beyond the window."""
    shown = seen(driver)
    boxes = {name: box_of(panel) for name, panel in shown.items()}
    for (one, first), (other, second) in combinations(boxes.items(), 2):
        assert not first.intersects(second), (one, other)
    assert all(driver.program.window.rect().contains(place) for place in boxes.values()), boxes
    return shown


@pytest.mark.quick_cases("1280-680-1.0-light", "1366-768-1.25-light")
@pytest.mark.parametrize(("width", "height", "scale", "theme"), STATES)
def test_a_bandit_loses_nothing_and_shows_formula_cards_boxes_and_table_whole(
    driver: Driver, width: int, height: int, scale: float, theme: str
) -> None:
    driver.run(20)
    arranged(driver, width, height, scale, theme)
    assert losses(driver.program.window) == []
    apart_and_inside(driver)
    assert (driver.program.window.width(), driver.program.window.height()) == (width, height)
    shown = seen(driver)
    strip = shown["pipeline"].strip
    assert len({term.y() for term in strip.buttons}) == 1, "the formula stands on one line"
    assert strip.height() <= shown["pipeline"].area.viewport().height()
    assert max(term.geometry().right() for term in strip.buttons) < shown["pipeline"].area.viewport().width()
    for card in shown["metrics"].cards:
        words = painted_words(card)
        whole = all(word.box.right() <= card.width() and "…" not in word.text for word in words[:2])
        assert card.isVisible() and whole, card.accessibleName()
    history = shown["training_history"]
    for check in history.findChildren(QCheckBox):
        assert not check.isVisible() or box_of(history).contains(box_of(check)), check.text()
    left = {action.data() for action in history.choice.left_over.actions()}
    assert left | {name for name, check in history.choice.boxes.items() if check.isVisible()} == history.choice.offered
    table = panel(driver, "step_detail").table
    assert table.horizontalScrollBar().maximum() == 0, "nothing is scrolled sideways"
    last = [n for n in range(len(table.table.columns)) if not table.isColumnHidden(n)][-1]
    assert table.columnViewportPosition(last) + table.columnWidth(last) <= table.viewport().width()
    keys = {table.table.columns[n].key for n in range(last + 1) if not table.isColumnHidden(n)}
    assert keys >= {"sample", "action", "advantage", "gradient", "reward", "ratio"}


@pytest.mark.quick_cases("1366-768-1.25", "1920-1080-1.25")
@pytest.mark.parametrize(
    ("width", "height", "scale"), [(1366, 768, 1.25), (1366, 768, 1.5), (1920, 1080, 1.25), (1920, 1080, 1.5)]
)
def test_the_bars_and_the_rows_of_the_step_are_whole_in_large_type(
    driver: Driver, width: int, height: int, scale: float
) -> None:
    driver.run(5)
    arranged(driver, width, height, scale)
    for name in ("policy_bars", "step_detail"):
        front = panel(driver, name)
        driver.settle()
        assert front.seen and losses(front) == [], name
    table = panel(driver, "step_detail").table
    rows, row = table.viewport().height(), table.verticalHeader().defaultSectionSize()
    assert rows % row == 0 and rows // row >= 2, "no row is cut, and there are some"
    assert table.parentWidget().rect().contains(table.geometry())


@pytest.mark.quick_cases("1.0-340", "2.0-388")
@pytest.mark.parametrize("width", [340, 352, 388])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_narrow_step_table_has_its_pushes_whole(driver: Driver, width: int, scale: float) -> None:
    driver.run(1)
    arranged(driver, 1366, 768, scale)
    table = panel(driver, "step_detail").table
    shown: Any = driver.program.window.panels["step_detail"]
    shown.resize(round(width * scale), round(300 * scale))
    shown.redraw()
    places = [n for n in range(len(table.table.columns)) if not table.isColumnHidden(n)]
    ends = [table.columnViewportPosition(n) + table.columnWidth(n) for n in places]
    assert "gradient" in shown.sums.places()
    assert max(ends) <= table.width() - 2 * table.frameWidth() - table.verticalScrollBar().sizeHint().width()


def test_a_language_models_answers_and_completions_share_what_the_controls_leave(driver: Driver) -> None:
    driver.program.run_manager.open(example())
    arranged(driver, 1366, 768)
    shown = seen(driver)
    assert abs(shown["evolution"].width() - shown["token_inspector"].width()) <= 2
    assert shown["evolution"].width() + shown["token_inspector"].width() > 1080
    assert shown["evolution"].height() > 440, "all its rows and the curve below them"
    assert shown["evolution"].rows.geometry_now.curve > 0
    shown["token_inspector"].grid.explain_current()
    driver.settle()
    assert driver.program.window.explain_homes.is_open, "a sheet, so that nothing makes room"
    assert seen(driver).keys() >= {"evolution", "token_inspector"}


# the least space, the largest type in a small window, and the largest window
@pytest.mark.quick_cases("1280-680-1.0-light", "1366-768-1.25-light", "1920-1080-1.25-contrast")
@pytest.mark.parametrize(("width", "height", "scale", "theme"), STATES)
def test_a_language_model_loses_nothing_its_panels_do_not_overlap_and_its_chips_are_whole(
    driver: Driver, width: int, height: int, scale: float, theme: str
) -> None:
    driver.program.run_manager.open(example())
    arranged(driver, width, height, scale, theme)
    assert (driver.program.window.width(), driver.program.window.height()) == (width, height)
    pipeline = driver.program.window.docks["pipeline"]
    if arrangement("Language model", language=True, space=size_class(driver.program.window.size(), scale)).halved:
        driver.qtbot.waitUntil(lambda: pipeline.height() == pipeline.row_height)  # docks glide to where they belong
    shown = apart_and_inside(driver)
    assert losses(driver.program.window) == []
    evolution = shown["evolution"]
    for chip in evolution.chips.buttons:
        assert chip.width() >= chip.sizeHint().width() and box_of(evolution).contains(box_of(chip)), chip.text()
    assert evolution.area.verticalScrollBar().maximum() == 0, "every prompt is in sight"


@pytest.mark.quick_cases("1280-680")
@pytest.mark.parametrize(("width", "height"), [(1280, 680), (1366, 768)])
def test_a_race_takes_the_centre_and_names_every_line_beside_its_kind(driver: Driver, width: int, height: int) -> None:
    driver.run(1)
    arranged(driver, width, height)
    driver.program.actions["race"].trigger()
    race = panel(driver, "comparison")
    driver.qtbot.waitUntil(lambda: race.controller.results is not None and not race.busy, timeout=60_000)
    driver.settle()
    assert race.plot.height() > 110
    assert "policy_bars" not in seen(driver) and "training_history" in seen(driver)
    around, line = race.headline.contentsMargins(), race.headline.fontMetrics().lineSpacing()
    needed = 3 * line + around.top() + around.bottom()
    assert race.headline.text() and (width < 1366 or race.headline.height() <= needed + 2), (
        "two sentences on three lines"
    )
    names = list(race.controller.results.digests)
    rows = race.standing.table
    shown = [rows.value(place, 0) for place in range(rows.rowCount())]
    assert sorted(shown) == sorted(names)
    lines = {(name.meaning, name.line) for name in shown if isinstance(name, Marked)}
    assert len(lines) == len(names), "two lines of one colour differ by their dashes"
    assert race.standing.verticalScrollBar().maximum() == 0, "the standing names every line beside its kind"
    words: list[Word] = race.plot.words.words
    assert not words, "names at the ends too would cost the curves their width"
    assert race.plot.view_box.width() > 0.35 * race.width()
    race.resize(700, 900)
    driver.settle()
    driver.settle()
    words = race.plot.words.words
    assert len(words) == len(names)
    assert all(word.end is not None for word in words)
    assert {(word.meaning, word.style) for word in words} == lines
    heights = sorted(word.at.y() for word in words)
    assert min(b - a for a, b in pairwise(heights)) >= race.plot.words.line
