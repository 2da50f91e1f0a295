"""The settings of the next update: edits, refusals, undo, and changes that need a new run."""

from __future__ import annotations

from cProfile import Profile
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from app.workspace.editing import Editing
from grpo_core.config import PRESETS, BanditTask, Settings
from grpo_core.errors import SettingsError


@pytest.fixture
def editing(qapp: QApplication) -> Editing:
    return Editing(Settings())


def test_an_edit_acts_and_can_be_taken_back_and_made_again(editing: Editing) -> None:
    heard: list[float] = []
    editing.changed.connect(lambda: heard.append(editing.settings.objective.beta))
    editing.edit({"objective.beta": 0.5}, "Change beta")
    editing.undo.undo()
    editing.undo.redo()
    assert heard == [0.5, 0.04, 0.5]


def test_a_drag_is_one_step_of_undo_and_two_drags_are_two(editing: Editing) -> None:
    for gesture, beta in ((1, 0.1), (1, 0.2), (1, 0.3), (2, 0.4), (2, 0.5)):
        editing.edit({"objective.beta": beta}, "Drag", gesture)
    assert editing.undo.count() == 2
    editing.undo.undo()
    assert editing.settings.objective.beta == 0.3
    editing.undo.undo()
    assert editing.settings == Settings()


def test_a_step_of_a_drag_costs_little(editing: Editing) -> None:
    editing.edit({"objective.beta": 0.1}, "Drag", 1)
    with Profile() as calls:
        editing.edit({"objective.beta": 0.2}, "Drag", 1)
    assert sum(entry.callcount for entry in calls.getstats()) < 500, (
        "only the objective is compared, and it is validated once"
    )


def test_single_edits_never_merge(editing: Editing) -> None:
    for beta in (0.1, 0.2):
        editing.edit({"objective.beta": beta}, "Type")
    assert editing.undo.count() == 2


def test_an_edit_that_changes_nothing_is_none(editing: Editing) -> None:
    editing.edit({"objective.beta": 0.04}, "Type the same")
    assert not editing.undo.canUndo()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("objective.beta", None),
        ("objective.beta", float("nan")),
        ("objective.beta", float("inf")),
        ("objective.beta", -1.0),
        ("objective.beta", "abc"),
        ("learner.mu", 2.5),
        ("learner.mu", 0),
        ("objective.kl", "k9"),
        ("learner.group_size", True),
        ("task.actions", 1),
    ],
)
def test_a_bad_value_is_refused_with_what_is_allowed_and_nothing_changes(
    editing: Editing, path: str, value: object
) -> None:
    with pytest.raises(SettingsError) as refused:
        editing.edit({path: value}, "Change")
    assert refused.value.allowed
    assert (editing.settings, editing.pending, editing.undo.count()) == (Settings(), {}, 0)


def test_a_structural_change_waits_and_undo_forgets_it(editing: Editing) -> None:
    editing.edit({"seed": 8, "objective.beta": 0.1}, "Change both")
    assert editing.pending == {"seed": 8}
    assert (editing.settings.seed, editing.settings.objective.beta) == (7, 0.1)
    assert editing.wanted.seed == 8
    editing.undo.undo()
    assert (editing.pending, editing.wanted) == ({}, Settings())


def test_a_live_value_that_needs_a_structural_one_waits_with_it(qapp: QApplication) -> None:
    start = Settings(task=BanditTask(landscape="custom"))
    editing = Editing(start)
    both: dict[str, Any] = {"task.actions": 6, "task.custom": (0.0,) * 6}
    editing.edit(both, "Fewer actions")
    assert editing.settings == start
    assert editing.wanted.bandit.actions == 6


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_chosen_and_taken_back(editing: Editing, name: str) -> None:
    wanted = PRESETS[name].applied_to(editing.wanted)
    changes = {path: new for path, (_, new) in editing.wanted.differences(wanted).items()}
    editing.edit(changes, f"Choose {name}")
    assert editing.wanted == wanted
    editing.undo.undo() if changes else None
    assert editing.wanted == Settings()


def test_another_run_begins_without_a_history_of_edits(editing: Editing) -> None:
    editing.edit({"seed": 8}, "Change seed")
    editing.restart(Settings(seed=3))
    assert (editing.settings.seed, editing.pending, editing.undo.canUndo()) == (3, {}, False)
