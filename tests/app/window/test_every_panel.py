"""Every panel, brought to the front: nothing in it is cut or scrolled horizontally, and the rows above it stay."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from PySide6.QtWidgets import QTabBar, QToolButton

from app.examples import example
from app.panel_registry import PANELS
from app.widgets.panel import Panel, in_window
from app.widgets.panel_spec import Area, PanelSpec
from tests.app.conftest import Driver
from tests.app.geometry import losses
from tests.app.painted import painted_words
from tests.app.stories.hands import panel
from tests.app.window.conftest import arranged, rests

SICK = Path(__file__).parents[2] / "data" / "diseased" / "kl_explodes"
ELSEWHERE = ("comparison", "kl_over_beta", "lesson")
"""Panels that compute for seconds, or are shown alone; they have separate tests."""
SIZES = [(1366, 768, 2.0), (1280, 720, 1.0)]


@pytest.fixture
def driver(shared: Driver) -> Driver:
    return shared  # every test here sets size, look and layout


def shown_with(kind: str) -> list[PanelSpec[Panel]]:
    """Return the panels that show something for a run of this kind."""
    docked = [spec for spec in PANELS if spec.area is not Area.TOP and spec.id not in ELSEWHERE]
    if kind == "recorded":
        return [spec for spec in docked if spec.shows_recorded or spec.kind == "recorded" or spec.id == "what_if"]
    return [spec for spec in docked if spec.kind in ("", kind)]


def open_run(driver: Driver, kind: str) -> None:
    program = driver.program
    if kind == "bandit":
        driver.run(20)
    elif kind == "language":
        program.run_manager.open(example())
    else:
        program.runs.open_path(SICK)
        driver.qtbot.waitUntil(lambda: not program.part("trainers").recorded_runs.busy)
        driver.qtbot.waitUntil(
            lambda: program.part("trainers").examination.of(program.workspace.view.run.id) is not None
        )


@pytest.mark.quick_cases("bandit-1280-720-1.0", "recorded-1366-768-2.0", "language-1366-768-2.0")
@pytest.mark.parametrize(("width", "height", "scale"), SIZES)
@pytest.mark.parametrize("kind", ["bandit", "language", "recorded"])
def test_each_panel_in_front_loses_nothing_and_moves_no_row(
    driver: Driver, kind: str, width: int, height: int, scale: float
) -> None:
    open_run(driver, kind)
    arranged(driver, width, height, scale)
    docks, lost = driver.program.window.docks, {}
    cards = docks["metrics"]
    assert cards.height() == cards.row_height
    for spec in shown_with(kind):
        shown = panel(driver, spec.id)
        driver.qtbot.waitUntil(partial(in_window, shown))
        driver.qtbot.waitUntil(partial(rests, shown))
        driver.settle()
        found = losses(shown)
        if cards.height() != cards.row_height:
            found.append(f"the cards are {cards.height()} pixels high, and ask for {cards.row_height}")
        if found:
            lost[spec.id] = found
    assert lost == {}


def test_the_historys_labels_have_room_where_another_kind_of_run_was_opened_behind_it(driver: Driver) -> None:
    open_run(driver, "bandit")
    arranged(driver, 1366, 768, 2.0)
    for name in ("training_history", "step_detail"):
        panel(driver, name)
        driver.settle()
    open_run(driver, "language")
    arranged(driver, 1366, 768, 2.0)
    assert losses(panel(driver, "training_history")) == []


def test_a_chip_that_has_no_room_says_less_and_is_whole(driver: Driver) -> None:
    open_run(driver, "language")
    arranged(driver, 1366, 768, 2.0)
    cards = panel(driver, "metrics").cards
    words = [word.text for card in cards if card.isVisible() for word in painted_words(card)]
    assert "held out 93%" in words
    assert not [word for word in words if "…" in word]


def test_arrows_of_tabs_without_room_are_whole(driver: Driver) -> None:
    open_run(driver, "bandit")
    arranged(driver, 1366, 768, 2.0)
    bars = [bar for bar in driver.program.window.findChildren(QTabBar) if bar.isVisible()]
    arrows = [(bar, arrow) for bar in bars for arrow in bar.findChildren(QToolButton) if arrow.isVisible()]
    assert arrows
    assert [arrow.geometry() for bar, arrow in arrows if not bar.rect().contains(arrow.geometry())] == []


def test_of_a_recorded_run_the_strip_names_its_sample_and_advantages_sum_to_zero(driver: Driver) -> None:
    open_run(driver, "recorded")
    arranged(driver, 1366, 768, 1.0)
    which = panel(driver, "pipeline").which
    assert which.isVisible() and which.text() == "sample 1, token 1"
    assert losses(panel(driver, "pipeline")) == []
    assert panel(driver, "step_detail").sums.texts["advantage"] == "0.000"


def test_the_values_of_a_queue_can_be_read_at_twice_the_size(driver: Driver) -> None:
    open_run(driver, "bandit")
    arranged(driver, 1366, 768, 2.0)
    form = panel(driver, "queue").form
    for field in form.values:
        assert field.width() > field.fontMetrics().horizontalAdvance("0, 0.04, 0.2")
    assert losses(form) == []


def test_tab_bars_are_seen_in_a_layout_that_is_chosen_again(driver: Driver) -> None:
    for _ in range(2):
        driver.program.layouts.choose("Bandit")
        bars = [bar for bar in driver.program.window.findChildren(QTabBar) if bar.count() > 1]
        assert bars and [bar for bar in bars if not bar.isVisible()] == []
