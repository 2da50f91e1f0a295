"""Every row of every table of switches is known to the settings, and means the same algorithm wherever it is read.

A new row is tested here and in the tests of objective, explain and script without changing any of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from typing import Any

import latex2mathml.converter
import numpy as np
import pytest

from app.formula.objective_terms import objective_terms
from grpo_core import kl, recompute
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective, Settings, about, described
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain import KINDS, Numbers, Quantity, explain, explain_from
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.levels import LEVELS
from grpo_core.objective import evaluate, gradient
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES, Ratio
from grpo_core.what_if import compared, notes, unchanged, what_if
from tests.core import cases
from tests.core.explain_cases import every_quantity, trained_with
from tests.core.runs.test_export_script import compare, executed

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


TASK: dict[str, Any] = {
    "task__landscape": "length",
    "task__max_length": 3,
    "task__levels": (0.3, 0.6),
    "optimizer__learning_rate": 2.0,
    "learner__group_size": 4,
    "seed": 11,
}


def settings_of(surrogate: str, **changes: Any) -> dict[str, Any]:
    knobs = {f"objective__{name}": value for name, value in cases.other_knobs(surrogate).items()}
    return {"objective__surrogate": surrogate, **knobs, **changes}


def trained_under(surrogate: str, **changes: Any) -> Step:
    """Return the second update of a run with several tokens and passes: advantages differ, ratios leave 1, some are
    clipped.
    """
    return trained_with(2, **(settings_of(surrogate) | TASK | changes))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_knob_acts_under_the_surrogates_that_name_it_and_under_no_other(surrogate: str) -> None:
    arrays = cases.batch(3, rows=40)
    base = Objective(surrogate=surrogate, clip_low=0.1, clip_high=0.1, beta=0.0)
    for name in sorted({knob for each in SURROGATES.values() for knob in each.knobs}):
        if name == "dual_clip" and name not in SURROGATES[surrogate].knobs:
            continue  # the settings refuse it
        other = base.replace(**{name: 1.05 if name == "dual_clip" else getattr(base, name) + 0.2})
        differs = any(
            not np.array_equal(of(base), of(other), equal_nan=True)
            for of in (lambda o: evaluate(o, **arrays).surrogate, lambda o: gradient(o, **arrays))
        )
        assert differs == (name in SURROGATES[surrogate].knobs), name


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_level_acts_where_the_surrogate_reads_its_ratio(surrogate: str) -> None:
    arrays = cases.batch(3, rows=40)
    wide = Objective(surrogate=surrogate, clip_low=0.9, clip_high=4.0, beta=0.0)
    pushes = [gradient(wide.replace(level=level), **arrays) for level in LEVELS]
    differs = any(not np.allclose(one, other) for one, other in itertools.pairwise(pushes))
    assert differs == (SURROGATES[surrogate].ratio is Ratio.LEVEL)
    limited = gradient(wide.replace(log_ratio_limit=0.05), **arrays)
    assert np.allclose(limited, pushes[0]) == (SURROGATES[surrogate].ratio is Ratio.NONE)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_clip_stops_the_push_or_cuts_its_weight_and_never_acts_inside_its_band(surrogate: str) -> None:
    clip, o = SURROGATES[surrogate].clip, Objective(surrogate=surrogate, clip_low=0.2, clip_high=0.2, beta=0.0)
    if clip is None:
        assert not evaluate(o, **cases.batch(3, rows=40)).clipped.any()
        assert "no clip" in SURROGATES[surrogate].unclipped
        return
    low, high = clip.band(o)
    ratio = np.geomspace(0.02, 8, 400)
    for advantage in (1.0, -1.0):
        arrays = {
            "logp": np.log(ratio)[:, None] - 5,
            "old_logp": np.full((400, 1), -5.0),
            "advantage": np.full(400, advantage),
            "mask": np.ones((400, 1), bool),
        }
        stopped, push = evaluate(o, **arrays).clipped[:, 0], gradient(o, **arrays)[:, 0]
        inside = (ratio > low) & (ratio < high)
        assert not stopped[inside].any()
        assert (push[stopped] != 0).all() if clip.cuts_weight else (push[stopped] == 0).all()
        assert (push[~stopped] != 0).all()
    assert evaluate(o, **cases.batch(3, rows=40)).clipped.any()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_every_number_of_a_run_under_it_is_explained_and_agrees(surrogate: str, level: str) -> None:
    step = trained_under(surrogate, objective__level=level)
    assert np.any(np.abs(recompute.terms(step, step.passes - 1).ratio - 1) > 0.05)
    assert np.unique(recompute.advantage(step)).size > 1
    numbers = Numbers(step)
    nodes = [explain_from(numbers, quantity) for quantity in every_quantity(step)]
    assert [node.title for node in nodes if not node.agrees] == []
    for name in ("surrogate", "push", "clipped"):
        node = explain_from(numbers, Quantity(name, passed=1, row=0, token=0))
        assert node.latex or name == "clipped"
        assert latex2mathml.converter.convert(node.latex_values)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_its_script_prints_its_numbers(surrogate: str) -> None:
    for level, limit in itertools.product(LEVELS, (None, 0.3)):
        step = trained_under(surrogate, objective__level=level, objective__log_ratio_limit=limit)
        text = step_script(step, origin(step.settings))
        assert [name for name, count in Counter(re.findall(r"^([A-Z_]{2,}) =", text, re.M)).items() if count > 1] == []
        compare(step, executed(text), 1e-9)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_its_terms_in_the_strip_are_its_own_and_lead_to_numbers(surrogate: str) -> None:
    strips = {name: objective_terms(Objective(surrogate=name)) for name in SURROGATES}
    own = strips.pop(surrogate)
    assert all(own != other for other in strips.values())
    algorithm = SURROGATES[surrogate].terms(Objective(surrogate=surrogate))
    assert {term.key for term in algorithm} - {""} <= KINDS.keys()
    assert "advantage" in {term.key for term in algorithm}
    for term in own:
        assert bool(term.key) == bool(term.name)
        assert not term.key or (term.help and latex2mathml.converter.convert(term.latex))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_what_if_under_it_is_its_own_update(surrogate: str) -> None:
    other = "sapo" if surrogate == "clip" else "clip"
    ran, wanted = trained_under(other), trained_under(surrogate).settings
    result = what_if(ran, wanted, before=trained_with(1, **(settings_of(other) | TASK)))
    push, pull = recompute.token_gradient(result.other.step, 1)
    np.testing.assert_array_equal(result.other.gradient(1), push if pull is None else push + pull)
    assert result.other.step.settings.objective.surrogate == surrogate
    assert not np.allclose(result.ran.gradient(1)[:, :1], result.other.gradient(1)[:, :1])
    assert compared(result, 1)
    assert unchanged(result, 1) is not None
    assert notes(result) is not None


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_reasons_know_whether_it_clips_and_what_its_clip_does(surrogate: str) -> None:
    step, algorithm = trained_under(surrogate), SURROGATES[surrogate]
    for passed in range(step.passes):
        given = reasons(step, passed)
        share = recompute.terms(step, passed).clipped.any()
        if algorithm.clip is None:
            assert given["clipped"].sentence == algorithm.unclipped
        elif not share:
            assert given["clipped"].kind == "zero"


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
