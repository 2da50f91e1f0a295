"""The step-detail table contains what the engine computed, at addresses that ``explain`` knows."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain import explain
from grpo_core.learners import origin
from grpo_core.step_table import address, columns, groups, rows
from grpo_core.testing.updates import trained

BANDIT = Settings()
LENGTHS = Settings().replace({"task.landscape": "length", "task.levels": (0.0, 0.3), "objective.std": "population"})


@pytest.mark.parametrize("settings", [BANDIT, LENGTHS], ids=["one token", "several tokens"])
def test_every_cell_is_the_number_that_explain_explains(settings: Settings) -> None:
    step = trained(settings, 2)
    for passed in (0, step.passes - 1):
        for row in rows(EvaluatedStep(step), passed):
            for cell, column in zip(row.cells, columns(step), strict=True):
                where = address(row, column, passed)
                assert (where is not None) == column.explained
                if where is not None:
                    assert math.isclose(explain(step, where).engine, cell, rel_tol=1e-12, abs_tol=1e-15)


def test_a_bandits_table_has_a_row_a_sample_with_its_words() -> None:
    step, start = trained(BANDIT, 2), origin(BANDIT)
    table = rows(EvaluatedStep(step), 0, origin=start)
    assert [column.title for column in columns(step)][:3] == ["#", "Prompt", "Action"]
    assert [row.cells[0] for row in table] == list(range(1, 9))
    assert [row.cells[2] for row in table] == [str(action + 1) for action in step.tokens[:, 0]]
    assert {row.cells[1] for row in table} == set(start.prompts)


def test_padding_has_no_row_and_a_completion_is_spelled_out() -> None:
    step, start = trained(LENGTHS, 2), origin(LENGTHS)
    table = rows(EvaluatedStep(step), 0, origin=start)
    assert len(table) == step.mask.sum()
    assert [column.name for column in columns(step)][2:5] == ["completion", "place", "token"]
    first = [row for row in table if row.row == 0]
    assert [row.cells[3] for row in first] == list(range(1, len(first) + 1))
    assert first[0].cells[2] == " · ".join(row.cells[4] for row in first)


def test_another_objective_gives_another_table_of_the_same_samples() -> None:
    step = trained(BANDIT, 2)
    what_if = rows(EvaluatedStep(recompute.under(step, step.settings.replace({"objective.std": "none"}))), 3)
    for row, other in zip(rows(EvaluatedStep(step), 3), what_if, strict=True):
        assert row.cells[:4] == other.cells[:4]
        assert row.cells[4] != other.cells[4]


def test_without_a_reference_there_is_no_kl() -> None:
    settings = BANDIT.replace({"objective.beta": 0.0})
    step = dataclasses.replace(trained(settings, 2), ref_logp=None)
    at = [column.name for column in columns(step)].index("kl")
    assert {row.cells[at] for row in rows(EvaluatedStep(step), 0)} == {None}


def test_group_rows_hold_mean_and_std_as_the_objective_counts_them() -> None:
    for settings, freedom in ((BANDIT, 1), (LENGTHS, 0)):
        step = trained(settings, 2)
        table = recompute.grouped(step, step.rewards)
        for group, rewards in zip(groups(step), table, strict=True):
            assert math.isclose(group.mean, rewards.mean())
            assert math.isclose(group.std, rewards.std(ddof=freedom), abs_tol=1e-15)
            assert group.dead == bool(np.ptp(rewards) == 0)


def test_unscored_samples_leave_the_groups_mean() -> None:
    step = trained(BANDIT, 2)
    rewards = step.rewards.copy()
    rewards[1:] = np.nan
    (group,) = groups(dataclasses.replace(step, rewards=rewards))
    assert (group.size, group.mean) == (1, rewards[0])
    assert math.isnan(group.std)


@pytest.mark.parametrize(("baseline", "silent"), [("group_mean", True), ("leave_one_out", True), ("none", False)])
def test_a_group_is_silent_where_its_advantages_are_zero_and_not_where_its_rewards_are_equal(
    baseline: str, silent: bool
) -> None:
    ran = trained(BANDIT.replace({"objective.baseline": baseline, "objective.std": "none"}), 2)
    step = dataclasses.replace(ran, rewards=np.ones_like(ran.rewards))
    (group,) = groups(step)
    assert group.dead
    assert group.silent == silent == (not recompute.advantage(step).any())


def test_the_rows_of_one_completion_are_those_of_the_whole_table() -> None:
    step = trained(LENGTHS, 2)
    evaluated = EvaluatedStep(step)
    for only in range(len(step.mask)):
        assert rows(evaluated, 1, only=only) == [row for row in rows(EvaluatedStep(step), 1) if row.row == only]
