"""After a new run, a branch, an undo or an opened file, nothing on screen belongs to the previous run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.panel_registry import HOME, PANELS
from app.widgets.panel import Panel, in_window
from app.widgets.panel_spec import Area
from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.runs.run_file import RunWriter
from tests.app.conftest import Driver, make, take_down
from tests.app.painted import painted_words
from tests.app.stories.hands import panel

ELSEWHERE = {"comparison", "kl_over_beta", "lesson", "glossary", "references", "queue", "homework", "my_run"}
"""Panels of experiments, which say what they were computed for, and panels of text."""


def at_rest(one: Panel) -> bool:
    return not getattr(one, "busy", False)


def shown(driver: Driver) -> dict[str, list[str]]:
    """Return every word that each panel paints, including axis ticks, marks and readouts."""
    driver.program.workspace.trials.show(False)  # earlier runs are named as such
    driver.settle()
    found = {}
    for spec in PANELS:
        if spec.id in ELSEWHERE or (spec.kind not in (None, "", "bandit") and spec.id != "token_inspector"):
            continue
        one = driver.program.window.panels[spec.id] if spec.area is Area.TOP else panel(driver, spec.id)
        driver.qtbot.waitUntil(partial(at_rest, one))
        driver.settle()
        assert in_window(one), spec.id
        found[spec.id] = sorted(word.text for word in painted_words(one))
    return found


def changed(after: dict[str, list[str]], wanted: dict[str, list[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """Return, by panel, the words that should not be there and those that are missing."""
    both = {id: (Counter(after[id]), Counter(wanted[id])) for id in wanted if id != HOME.id}  # it lists every run
    return {id: (sorted(a - b), sorted(b - a)) for id, (a, b) in both.items() if a != b}


def another_before(driver: Driver) -> None:
    """Show a run with other rewards, other sizes and more updates, in which a number is explained and a completion
    selected.
    """
    changes = {"task.landscape": "custom", "task.custom": (9.0, *[0.0] * 8, 4.0), "learner.group_size": 32}
    driver.program.run_manager.new_run(Settings().replace(changes))
    driver.run(60)
    driver.program.workspace.editing.edit({"objective.beta": 0.5, "optimizer.learning_rate": 3.0}, "other")
    driver.run(10)
    driver.program.workspace.select(row=20, action=9)
    shown(driver)


def a_new_run(driver: Driver, path: Path) -> None:
    driver.program.run_manager.new_run(Settings())


def an_opened_file(driver: Driver, path: Path) -> None:
    driver.program.run_manager.open(path)


def written(path: Path) -> None:
    training = learner(Settings())
    with RunWriter.create(path, Settings(), title="Opened") as writer:
        for _ in range(12):
            step = next(training)
            writer.append(step, metrics(step))
        writer.commit()


@pytest.mark.parametrize("begin", [a_new_run, an_opened_file])
def test_another_run_is_shown_as_in_a_window_that_had_none_before(
    qtbot: QtBot, tmp_path: Path, begin: Callable[[Driver, Path], None]
) -> None:
    path = tmp_path / "opened.grpo"
    written(path)
    pictures = []
    for before in (True, False):
        driver = make(qtbot, tmp_path / f"home {before}")
        if before:
            another_before(driver)
        begin(driver, path)
        pictures.append(shown(driver))
        take_down(driver)
    after, fresh = pictures
    assert changed(after, fresh) == {}


def test_a_branch_is_shown_as_in_a_window_that_opens_it(qtbot: QtBot, tmp_path: Path) -> None:
    driver = make(qtbot, tmp_path / "home")
    another_before(driver)
    driver.program.workspace.move_to(5)
    driver.program.actions["branch"].trigger()
    driver.run(1)
    after, run = shown(driver), driver.program.workspace.run
    assert run is not None and run.branched_at == 5
    take_down(driver)
    driver = make(qtbot, tmp_path / "home")
    driver.program.run_manager.open(run.path)
    fresh = shown(driver)
    take_down(driver)
    assert changed(after, fresh) == {}


def test_an_undone_new_run_leaves_nothing_of_it(qtbot: QtBot, tmp_path: Path) -> None:
    driver = make(qtbot, tmp_path / "home")
    workspace = driver.program.workspace
    driver.run(8)
    first = workspace.run
    assert first is not None
    driver.program.run_manager.new_run(Settings())  # an axis says that it has just widened until the run is left
    driver.settle()
    driver.program.run_manager.show(first)
    before = shown(driver)
    workspace.editing.edit({"task.actions": 6, "learner.group_size": 64}, "another run")
    qtbot.waitUntil(lambda: not workspace.editing.pending)
    driver.run(30)
    workspace.select(row=20, action=5)
    shown(driver)
    driver.program.actions["undo"].trigger()
    qtbot.waitUntil(lambda: workspace.run is first)
    after = shown(driver)
    take_down(driver)
    assert changed(after, before) == {}
