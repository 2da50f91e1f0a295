"""Every row of every table of switches is known to the settings, and means the same algorithm wherever it is read.

A new row is tested here and in the tests of objective, explain and script without changing any of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import latex2mathml.converter
import pytest

from app.formula.objective_terms import objective_terms
from grpo_core import kl, recompute
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective, Settings, about, described
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain import Quantity, explain
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES
from grpo_core.testing import surrogates as checks
from grpo_core.testing.scripts import compare, executed
from grpo_core.testing.surrogates import trained_under
from grpo_core.testing.updates import trained_with

FIELDS = dict(described(Objective))


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


@pytest.mark.parametrize("field", ["surrogate", "level", "reduction", "baseline", "std", "kl"])
def test_an_unknown_value_is_an_error_and_never_the_last_one(field: str) -> None:
    objective = Objective(beta=0.3)
    object.__setattr__(objective, field, "unheard of")
    step = dataclasses.replace(
        trained_with(2), settings=dataclasses.replace(Settings(), objective=objective), advantage=None
    )
    with pytest.raises(KeyError):
        recompute.terms(step, 1)
    with pytest.raises(KeyError):
        step_script(step, origin(Settings()))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_knob_acts_under_the_surrogates_that_name_it_and_under_no_other(surrogate: str) -> None:
    checks.only_its_knobs_act(surrogate)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_level_acts_where_the_surrogate_reads_its_ratio(surrogate: str) -> None:
    checks.level_acts_as_declared(surrogate)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_clip_stops_the_push_or_cuts_its_weight_and_never_acts_inside_its_band(surrogate: str) -> None:
    checks.clip_acts_outside_its_band(surrogate)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_every_number_of_a_run_under_it_is_explained_and_agrees(surrogate: str, level: str) -> None:
    checks.every_number_is_explained(surrogate, level)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_its_script_prints_its_numbers(surrogate: str) -> None:
    checks.script_prints_its_numbers(surrogate)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_its_terms_in_the_strip_are_its_own_and_lead_to_numbers(surrogate: str) -> None:
    checks.terms_lead_to_numbers(surrogate)
    strips = {name: objective_terms(Objective(surrogate=name)) for name in SURROGATES}
    own = strips.pop(surrogate)
    assert all(own != other for other in strips.values())
    for term in own:
        assert bool(term.key) == bool(term.name)
        assert not term.key or (term.help and latex2mathml.converter.convert(term.latex))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_what_if_under_it_is_its_own_update(surrogate: str) -> None:
    checks.what_if_is_its_own_update(surrogate)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_reasons_know_whether_it_clips_and_what_its_clip_does(surrogate: str) -> None:
    checks.reasons_know_its_clip(surrogate)


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
