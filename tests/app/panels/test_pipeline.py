"""The pipeline: choosing another algorithm shows at once what changes in the formula."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.formula.objective_terms import objective_terms
from app.panel_registry import CONTROLS, PIPELINE
from app.panels.pipeline import PipelinePanel
from grpo_core.config import PRESETS, Settings
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


@pytest.fixture
def panel(driver: Driver) -> PipelinePanel:
    """The pipeline of a run of two updates."""
    driver.run(2)
    return driver.program.window.panels.of(PIPELINE)


def choose(driver: Driver, name: str) -> None:
    """Choose an algorithm as a user does."""
    box = driver.program.window.panels.of(CONTROLS).preset
    box.setCurrentIndex(box.findData(name))
    box.activated.emit(box.currentIndex())
    driver.settle()


def changes(panel: PipelinePanel) -> set[str]:
    return {button.term.change for button in panel.strip.buttons} - {""}


def test_choosing_an_algorithm_shows_what_goes_and_what_comes_until_the_time_is_over(
    driver: Driver, panel: PipelinePanel
) -> None:
    high = panel.height()
    choose(driver, "Dr. GRPO")
    assert changes(panel) == {"old", "new"} and panel.change_timer.isActive()
    assert panel.height() == high and panel.which.text() == "from update 3 on"
    panel.change_timer.timeout.emit()
    driver.settle()
    shown = [button.term for button in panel.strip.buttons]
    assert shown == list(objective_terms(driver.program.workspace.view.step.objective)), "that of the update shown"


def test_the_terms_of_the_formula_have_their_names_below_them_where_the_window_is_tall(
    driver: Driver, panel: PipelinePanel
) -> None:
    words = dict(panel.strip.words())
    assert [*words] == ["loss", "weight", "ratio", "advantage", "clipped ratio", "β", "KL estimate k3"]
    ends = [(area.left(), area.right()) for area in words.values()]
    assert all(one[1] <= other[0] for one, other in pairwise(ends)) and ends[-1][1] <= panel.strip.width()
    driver.program.window.resize(1366, 680)
    panel.redraw()
    driver.settle()
    assert not panel.strip.words()


def test_the_next_change_takes_the_place_of_the_one_before(driver: Driver, panel: PipelinePanel) -> None:
    choose(driver, "Dr. GRPO")
    first = panel.strip.accessibleName()
    choose(driver, "CISPO")
    assert panel.strip.accessibleName() != first and changes(panel)
    driver.program.workspace.editing.edit({"learner.group_size": 5}, "G")
    driver.settle()
    assert changes(panel), "what is no part of the objective ends nothing"
    driver.program.workspace.editing.edit({"objective.clip_high": 4.0}, "clip")
    driver.settle()
    assert not changes(panel)


def test_another_run_with_another_objective_is_no_change(driver: Driver, panel: PipelinePanel) -> None:
    settings = PRESETS["CISPO"].applied_to(driver.program.workspace.view.next_settings)
    driver.program.run_manager.new_run(settings)
    driver.settle()
    assert not changes(panel)
    choose(driver, "Dr. GRPO")
    assert changes(panel), "nor is the first change of a run missed"


@pytest.mark.parametrize("changes", [{}, {"learner.staleness": 2, "objective.importance_cap": 1.5}])
def test_the_values_of_one_sample_add_up_to_its_part_of_the_sum_and_all_parts_to_the_loss(
    changes: dict[str, float], driver: Driver, panel: PipelinePanel
) -> None:
    driver.program.workspace.editing.edit({"objective.beta": 0.5, **changes}, "beta")
    panel.change_timer.timeout.emit()  # what has come into the formula was shown long enough
    driver.run(3)
    view = driver.program.workspace.view.step
    assert view.terms is not None and view.terms.kl is not None and view.terms.kl.any()
    parts = []
    for row in range(len(view.terms.kl)):
        driver.program.workspace.select_token(row, 0)
        driver.settle()
        shown = {button.term.key: button.value.replace("−", "-") for button in panel.strip.buttons if button.value}
        value = {key: float(text) for key, text in shown.items()}
        surrogate = min(value["ratio"] * value["advantage"], value["clipped"] * value["advantage"])
        assert ("gate" in value) is bool(changes)
        parts.append(value["weight"] * (-value.get("gate", 1.0) * surrogate + 0.5 * value["kl"]))
        assert parts[-1] == pytest.approx(float((view.terms.weight * view.terms.token_loss)[row, 0]), abs=1e-3)
        assert panel.which.text() == f"sample {row + 1}; L sums all"
    assert sum(parts) == pytest.approx(value["loss"], abs=5e-3)
    latex = "".join(button.term.latex for button in panel.strip.buttons)
    assert latex.index(r"\sum") < latex.index(r"\mathrm{KL}") < latex.index(r"\bigr]"), "the KL stands inside the sum"


def test_a_tiny_learning_rate_leaves_the_formula_on_its_lines(driver: Driver) -> None:
    """Its numbers used to be so long that the formula broke into two lines and the picture below moved."""
    program = driver.program
    program.window.resize(1280, 680)
    program.layouts.reset()
    heights = []
    for changes in ({}, {"optimizer.learning_rate": 1e-5, "learner.group_size": 32}):
        program.run_manager.new_run(Settings().replace(changes))
        driver.run(3)
        heights.append((program.window.docks["pipeline"].height(), program.window.docks["policy_bars"].height()))
    assert heights[0] == heights[1]
