"""Series of recorded runs over the trainer's steps: its numbers next to ours, and two runs side by side."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from app.trainers.panel_rows import RUN_COMPARISON
from app.trainers.panels.run_comparison import RunComparisonPanel, choices, parting, picture, settings_that_differ
from app.trainers.recorded_run import RecordedRun
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_series import numbers
from tests.app.trainers.panels.conftest import Drawn
from tests.core.trainers.trace_files import DATA, HEALTHY, VERL, copied, redescribed


def computed(path: Path) -> RecordedRun:
    """Return a recorded run with all its series."""
    run = RecordedRun(open_source(path))
    run.add_numbers([numbers(run.source, position) for position in range(1, run.head + 1)])
    return run


@pytest.fixture
def panel(drawn: Drawn) -> RunComparisonPanel:
    return drawn(RUN_COMPARISON, computed(DATA / "fault_clip"), computed(DATA / "grpo"))


@pytest.mark.parametrize("name", [*HEALTHY, VERL])
def test_ours_and_the_trainers_stand_at_the_trainers_steps(name: str) -> None:
    run = computed(DATA / name)
    loss = next(names for names in choices(run).values() if names[0] == "loss_mean")
    ours, theirs, *_ = picture(run, None, loss).lines
    assert ours.x.tolist() == theirs.x.tolist() == list(run.source.labels)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-3, atol=1e-5)


def test_every_number_that_the_trainer_reported_can_be_chosen() -> None:
    run = computed(DATA / "grpo")
    offered = {name for names in choices(run).values() for name in names}
    assert {name for name, series in run.series.items() if np.isfinite(series.values).any()} - offered == set()


def test_a_run_and_itself_never_part(tmp_path: Path) -> None:
    folder = redescribed(copied("grpo", tmp_path), {"output_dir": "somewhere/else"})
    run, copy = computed(DATA / "grpo"), computed(folder)
    assert "are the same" in parting(run, copy)
    assert settings_that_differ(run, copy) == []


def test_two_runs_part_at_the_first_step_that_differs() -> None:
    run, other = computed(DATA / "grpo"), computed(DATA / "fault_clip")
    assert run.series["reward_mean"].values[0] == other.series["reward_mean"].values[0]  # the same seed
    assert "part at step 4" in parting(run, other)
    differing = {str(row[0]): row[1:] for row in settings_that_differ(run, other)}
    for name, (here, there) in differing.items():
        assert here != there, name


def test_other_settings_are_listed_with_both_values() -> None:
    run, other = computed(DATA / "grpo"), computed(DATA / "grpo")
    changed = run.origin.settings.replace({"objective.beta": 0.5})
    other.origin = dataclasses.replace(other.origin, settings=changed)
    assert ["objective.beta", "0.04", "0.5"] in settings_that_differ(run, other)


def test_a_setting_that_only_one_trainer_has_is_not_said_to_be_off_in_the_other() -> None:
    listed = {str(row[0]) for row in settings_that_differ(computed(DATA / "grpo"), computed(DATA / VERL))}
    assert "objective.beta" in listed
    assert all(name.startswith(("objective.", "learner.")) for name in listed)


def test_a_second_run_is_laid_beside_the_first(panel: RunComparisonPanel) -> None:
    alone = len(panel.chart.lines)
    panel.beside.activated.emit(1)
    panel.draw(panel.workspace.view)
    assert len(panel.chart.lines) == 2 * alone and not panel.settings.isHidden()
    assert "part at step" in panel.summary(panel.workspace.view)


def test_a_click_shows_the_step_that_the_trainer_numbers_so(panel: RunComparisonPanel) -> None:
    panel.chart.cursor_moved.emit(2.3)
    assert panel.workspace.run is not None
    assert panel.workspace.run.label(panel.workspace.cursor.step) == 2
