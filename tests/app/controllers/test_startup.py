"""After a crash, the runs' folder is scanned in the background, whatever it contains."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.window.layouts import LAYOUTS
from tests.app.conftest import Driver, make, take_down
from tests.app.runs import a_run
from tests.core.runs.hostile import changed, endless_view, statements


def test_the_run_that_was_interrupted_is_offered_and_a_hostile_one_is_left_aside(driver: Driver) -> None:
    folder = driver.program.paths.runs
    a_run(folder / "good.grpo", title="Interrupted")
    a_run(folder / "hostile.grpo", title="Hostile")
    changed(folder / "good.grpo", statements("UPDATE meta SET value = 0 WHERE key = 'ended'"))
    changed(folder / "hostile.grpo", endless_view("tail", "i"))
    driver.program.startup.offer_unfinished()
    driver.qtbot.waitUntil(lambda: any("Interrupted" in text for text in driver.messages))
    assert any("was skipped: hostile.grpo contains something that no run file has" in text for text in driver.messages)
    driver.run(1)
    assert driver.head == 1


def test_a_search_that_is_going_on_when_the_window_closes_is_given_up(driver: Driver) -> None:
    for number in range(20):
        a_run(driver.program.paths.runs / f"{number}.grpo")
    driver.program.startup.offer_unfinished()
    driver.program.shutdown.close()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close)


@pytest.mark.quick_cases("Recorded run")
@pytest.mark.parametrize("layout", ["Language model", "Recorded run"])
def test_a_start_with_a_new_run_after_another_kind_of_run_shows_it_in_its_own_layout(
    qtbot: QtBot, tmp_path: Path, layout: str
) -> None:
    """After the window of a recorded run was closed, ``--new`` used to show the bandit in that run's layout."""
    assert layout in LAYOUTS
    before = make(qtbot, tmp_path / "home")
    before.program.layouts.choose(layout)
    before.settle()
    take_down(before)
    after = make(qtbot, tmp_path / "home", layout=layout)
    assert after.program.layout_files.restore(after.program.window) is None
    after.program.startup.open([], None, last_run=False)
    after.settle()
    assert after.program.window.docks["policy_bars"].isVisible()
    assert after.program.preferences.current.layout == "Bandit"
    take_down(after)
