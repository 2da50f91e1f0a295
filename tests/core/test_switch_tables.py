"""Every row of every table of switches is known to the settings, and means the same algorithm wherever it is read.

A new row is tested here and in the tests of objective, explain and script without changing any of them. Rows of the
surrogates are checked in ``test_surrogates.py``, and unknown values in ``test_closed_sets.py``.
"""

from __future__ import annotations

import itertools
from typing import Any

import latex2mathml.converter
import pytest

from app.formula.objective_terms import objective_terms
from grpo_core import kl
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective, about
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain import Quantity, explain
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES
from grpo_core.testing.scripts import compare, executed
from grpo_core.testing.surrogates import trained_under


@pytest.mark.parametrize(
    ("field", "table"),
    [
        ("surrogate", SURROGATES),
        ("level", LEVELS),
        ("reduction", REDUCTIONS),
        ("baseline", BASELINES),
        ("std", DEVIATIONS),
        ("kl", {**kl.ESTIMATORS, kl.EXACT: None}),
    ],
)
def test_a_table_holds_what_the_setting_allows_and_nothing_else(field: str, table: dict[str, Any]) -> None:
    assert tuple(table) == about(Objective, field).choices


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_terms_of_a_surrogate_in_the_strip_are_its_own(surrogate: str) -> None:
    strips = {name: objective_terms(Objective(surrogate=name)) for name in SURROGATES}
    own = strips.pop(surrogate)
    assert all(own != other for other in strips.values())
    for term in own:
        assert bool(term.key) == bool(term.name)
        assert not term.key or (term.help and latex2mathml.converter.convert(term.latex))


@pytest.mark.parametrize("estimator", [*kl.ESTIMATORS, kl.EXACT])
def test_every_estimator_is_explained_and_exported(estimator: str) -> None:
    for importance in (False, True):
        step = trained_under("clip", objective__kl=estimator, objective__kl_importance=importance, objective__beta=0.3)
        compare(step, executed(step_script(step, origin(step.settings))), 1e-9)
        for name in ("kl", "pull"):
            assert explain(step, Quantity(name, passed=2, row=1, token=0)).agrees


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_every_reduction_is_explained_and_exported(reduction: str) -> None:
    step = trained_under("clip", objective__reduction=reduction, objective__max_tokens=5)
    compare(step, executed(step_script(step, origin(step.settings))), 1e-9)
    node = explain(step, Quantity("weight", passed=1, row=1, token=0))
    assert node.agrees
    assert node.note == REDUCTIONS[reduction].note


@pytest.mark.parametrize(("baseline", "std"), list(itertools.product(BASELINES, DEVIATIONS)))
def test_every_comparison_is_explained_and_exported(baseline: str, std: str) -> None:
    step = trained_under("clip", objective__baseline=baseline, objective__std=std, learner__critic=True)
    compare(step, executed(step_script(step, origin(step.settings))), 1e-9)
    for name in ("baseline", "advantage", "group_std"):
        assert explain(step, Quantity(name, row=1, token=0, group=0)).agrees
