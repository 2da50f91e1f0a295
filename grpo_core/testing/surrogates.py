"""Checks of a surrogate: value, pull, clip, explanation, script, terms and settings agree with each other.

Each check is a function of the surrogate's name that raises AssertionError. :data:`CHECKS` lists all of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.acting import acting_fields
from grpo_core.arrays import to_numpy
from grpo_core.config import Objective, Settings, about, settings_from_json
from grpo_core.errors import SettingsError
from grpo_core.explain import KINDS, Numbers, Quantity, explain_from
from grpo_core.export.script import step_script
from grpo_core.learners import origin
from grpo_core.objective import Terms, evaluate, gradient
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES, Path, Ratio
from grpo_core.testing import cases
from grpo_core.testing.scripts import compare, executed
from grpo_core.testing.updates import every_quantity, random_objective, trained_with
from grpo_core.what_if import compared, notes, unchanged, what_if

H = 1e-6
"""Step of the finite differences."""
TASK: dict[str, Any] = {
    "task__landscape": "length",
    "task__max_length": 3,
    "task__levels": (0.3, 0.6),
    "optimizer__learning_rate": 2.0,
    "learner__group_size": 4,
    "seed": 11,
}
"""A task with several tokens and a large learning rate, under which ratios leave 1 soon."""

# -- value and pull --------------------------------------------------------------------------------------------------


def closed(objective: Objective, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the gradient of the loss in closed form."""
    return np.asarray(gradient(objective, **arrays))


def autograd(objective: Objective, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the gradient of the loss by torch's autograd."""
    here = cases.on("torch", arrays)
    here["logp"].requires_grad_()
    evaluate(objective, **here).loss.sum().backward()
    return np.asarray(here["logp"].grad)


def held_weight(objective: Objective, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the constant factor of a surrogate sg(w) A log π, (B, T): its value divided by that of A log π."""
    bare = {**arrays, "gate": np.ones_like(arrays["gate"])}
    value, plain = (evaluate(o, **bare).surrogate for o in (objective, objective.replace(surrogate="log_prob")))
    return np.where(plain == 0, 1.0, value / np.where(plain == 0, 1.0, plain))


def finite_differences(objective: Objective, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return central differences of the loss, with every perturbed copy as one run of a single call."""
    if SURROGATES[objective.surrogate].path is Path.LOG_PROB:  # the factor stays at its base value: a gate of log_prob
        arrays = arrays | {"gate": arrays["gate"] * held_weight(objective, arrays)}
        objective = objective.replace(surrogate="log_prob")
    shape = arrays["logp"].shape
    steps = H * np.eye(arrays["logp"].size).reshape(-1, *shape)
    moved = np.concatenate([arrays["logp"] + steps, arrays["logp"] - steps])
    copies = {name: np.broadcast_to(x, (len(moved), *x.shape)) for name, x in arrays.items()} | {"logp": moved}
    up, down = np.split(evaluate(objective, **copies).loss, 2)
    return np.asarray((up - down) / (2 * H)).reshape(shape)


def pull_equals_autograd(surrogate: str, level: str) -> None:
    """Check the pull against torch's autograd."""
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, per_token=number % 2 == 1, runs=(2,) * (number % 3))
        for objective in cases.objectives(level=level, **fixed):
            np.testing.assert_allclose(closed(objective, arrays), autograd(objective, arrays), rtol=1e-12, atol=1e-12)


def pull_equals_finite_differences(surrogate: str, level: str) -> None:
    """Check the pull against finite differences of the value."""
    arrays = cases.differentiable_batch()
    for fixed in cases.switches(surrogate):
        for objective in cases.objectives(level=level, **fixed):
            expected = finite_differences(objective, arrays)
            np.testing.assert_allclose(
                closed(objective, arrays), expected, rtol=1e-6, atol=1e-8, err_msg=str(objective)
            )


# -- array libraries and padding -------------------------------------------------------------------------------------


def numbers(objective: Objective, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return everything that is computed of a batch, and the gradient, as NumPy arrays."""
    terms = evaluate(objective, **arrays)
    values = {f.name: getattr(terms, f.name) for f in dataclasses.fields(Terms)}
    values["gradient"] = gradient(objective, **arrays)
    return {name: to_numpy(x) for name, x in values.items() if x is not None}


def assert_same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    """Assert that two results of :func:`numbers` are equal up to rounding."""
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-12, atol=1e-13, err_msg=name)


def torch_equals_numpy(surrogate: str, level: str) -> None:
    """Check that torch computes the same numbers as NumPy, and that all of them are finite."""
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, per_token=number % 2 == 1)
        there = cases.on("torch", arrays)
        for objective in cases.objectives(level=level, **fixed):
            expected = numbers(objective, arrays)
            assert all(np.isfinite(x).all() for x in expected.values())
            assert_same(numbers(objective, there), expected)


def array_api_strict_equals_numpy(surrogate: str, level: str) -> None:
    """Check that only functions of the array API standard are used."""
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, runs=(2,))
        there = cases.on("array_api_strict", arrays)
        for objective in list(cases.objectives(level=level, **fixed))[number::3]:
            assert_same(numbers(objective, there), numbers(objective, arrays))


def padding_changes_no_bit(surrogate: str) -> None:
    """Check that no number depends on what the padding contains."""
    arrays = cases.batch(3)
    rng = np.random.default_rng(0)
    other = {
        name: x
        if name == "mask" or x.shape != arrays["mask"].shape
        else np.where(arrays["mask"], x, rng.normal(size=x.shape))
        for name, x in arrays.items()
    }
    other["advantage"] = np.where(arrays["mask"].any(-1), arrays["advantage"], 17.0)
    for level in cases.LEVELS:
        for objective in cases.objectives(level=level, surrogate=surrogate, entropy_bonus=0.1):
            clean, dirty = numbers(objective, other), numbers(objective, arrays)
            for name in clean:
                np.testing.assert_array_equal(clean[name], dirty[name], err_msg=name)


def no_mask_is_a_mask_without_padding(surrogate: str, level: str, backend: str) -> None:
    """Check that a batch without a mask gives the same bits as one whose mask leaves nothing out."""
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, runs=(2,), per_token=number % 2 == 1)
        whole = {name: np.nan_to_num(x, nan=0.3, posinf=0.1, neginf=-0.2) for name, x in arrays.items()}
        whole = {name: np.where(np.abs(x) > 50, 0.4, x) for name, x in whole.items()}
        there = cases.on(backend, whole | {"mask": np.ones_like(arrays["mask"])})
        for objective in list(cases.objectives(level=level, **fixed))[number::5]:
            expected, unmasked = numbers(objective, there), numbers(objective, there | {"mask": None})
            assert expected.keys() == unmasked.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(unmasked[name], value, err_msg=name)


def padding_holds_zeros(surrogate: str) -> None:
    """Check that padding has ratio 1 and otherwise zeros."""
    arrays = cases.batch(1)
    padding = ~arrays["mask"]
    for level in cases.LEVELS:
        found = numbers(Objective(surrogate=surrogate, level=level, clip_high=0.3, entropy_bonus=0.1), arrays)
        assert (found["ratio"][padding] == 1).all()
        assert not found["clipped"][padding].any()
        for name in ("surrogate", "kl", "weight", "token_loss", "gradient"):
            assert (found[name][padding] == 0).all(), (level, name)


def nothing_but_padding_is_zero(surrogate: str) -> None:
    """Check that a batch without tokens has loss and gradient 0."""
    arrays = cases.batch(1)
    arrays["mask"] = np.zeros_like(arrays["mask"])
    for objective in cases.objectives(surrogate=surrogate):
        found = numbers(objective, arrays)
        assert found["loss"] == 0
        assert (found["gradient"] == 0).all()


def leading_axes_are_runs(surrogate: str, backend: str) -> None:
    """Check that runs computed together have the numbers of runs computed alone."""
    together = cases.batch(5, runs=(2, 3))
    objective = Objective(surrogate=surrogate, level="sequence", reduction="token", clip_high=0.3)
    whole = numbers(objective, cases.on(backend, together))
    for run in np.ndindex(2, 3):
        alone = numbers(objective, cases.on(backend, {name: x[run] for name, x in together.items()}))
        assert_same({name: x[run] for name, x in whole.items()}, alone)


# -- settings and clip -----------------------------------------------------------------------------------------------


def only_its_knobs_act(surrogate: str) -> None:
    """Check that the settings in ``knobs`` have an effect, and those of other surrogates none."""
    arrays = cases.batch(3, rows=40)
    base = Objective(surrogate=surrogate, clip_low=0.1, clip_high=0.1, beta=0.0)
    for name in sorted({knob for each in SURROGATES.values() for knob in each.knobs}):
        if name == "dual_clip" and name not in SURROGATES[surrogate].knobs:
            continue  # the settings refuse it
        other = base.replace(**{name: 1.05 if name == "dual_clip" else getattr(base, name) + 0.2})
        one, two = numbers(base, arrays), numbers(other, arrays)
        differs = any(not np.array_equal(one[of], two[of], equal_nan=True) for of in ("surrogate", "gradient"))
        assert differs == (name in SURROGATES[surrogate].knobs), name


def shown_settings_act(surrogate: str) -> None:
    """Check that every setting of the objective that a form shows under this surrogate has an effect."""
    wanted = {field.name for field in dataclasses.fields(Objective)} - {"credit", "entropy_bonus"}
    ran = trained_with(2, **TASK, learner__critic=True, learner__mu=2)
    noise = np.random.default_rng(2).normal(size=(3, *ran.mask.shape))
    old_logp = ran.old_logp - 2 * noise[0]
    step = dataclasses.replace(ran, values=noise[1], old_logp=old_logp, sampling_logp=old_logp - noise[2])
    shown, acted = set[str](), set[str]()
    for seed in range(20):
        objective = random_objective(np.random.default_rng(seed)).replace(dual_clip=None, surrogate=surrogate)
        before = second_pass(step, objective)
        shown |= acting_fields(objective) & wanted
        for name in sorted(shown - acted):
            for other in others(objective, name):
                if not all(map(np.array_equal, before, second_pass(step, other))):
                    acted.add(name)
    assert not shown - acted, f"no effect: {sorted(shown - acted)}"


def second_pass(step: Step, objective: Objective) -> list[np.ndarray]:
    """Return the advantage, loss and gradient of the second pass."""
    step = recompute.under(step, step.settings.replace({"objective": objective}))
    push, pull = recompute.token_gradient(step, 1)
    return [
        recompute.advantage(step),
        np.asarray(recompute.terms(step, 1).loss),
        push if pull is None else push + pull,
    ]


def others(objective: Objective, name: str) -> list[Objective]:
    """Return the objective with every other allowed value of one field, or with some if it is a number."""
    rule, value = about(Objective, name), getattr(objective, name)
    values: list[Any] = [choice for choice in rule.choices if choice != value]
    if isinstance(value, bool):
        values = [not value]
    elif not rule.choices:
        low, high = rule.usual or (0.1, 2.0)
        values = [low + (high - low) * share for share in (0.02, 0.3, 0.6)]
        values = [round(v) for v in values] if name == "max_tokens" else values
    allowed = []
    for other in values:
        try:
            allowed.append(objective.replace(**{name: other}))
        except SettingsError:
            continue
    return allowed


def level_acts_as_declared(surrogate: str) -> None:
    """Check that the level and the limit of log-ratios have an effect if ``ratio`` says so, and only then."""
    arrays = cases.batch(3, rows=40)
    wide = Objective(surrogate=surrogate, clip_low=0.9, clip_high=4.0, beta=0.0)
    pushes = [gradient(wide.replace(level=level), **arrays) for level in cases.LEVELS]
    differs = any(not np.allclose(one, other) for one, other in itertools.pairwise(pushes))
    assert differs == (SURROGATES[surrogate].ratio is Ratio.LEVEL)
    limited = gradient(wide.replace(log_ratio_limit=0.05), **arrays)
    assert np.allclose(limited, pushes[0]) == (SURROGATES[surrogate].ratio is Ratio.NONE)


def clip_acts_outside_its_band(surrogate: str) -> None:
    """Check that the clip stops the push or cuts its weight, never inside its band, or that there is none."""
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


# -- explanation, script, formula ------------------------------------------------------------------------------------


def settings_of(surrogate: str, **changes: Any) -> dict[str, Any]:
    """Return settings with this surrogate and its knobs away from their defaults."""
    knobs = {f"objective__{name}": value for name, value in cases.other_knobs(surrogate).items()}
    return {"objective__surrogate": surrogate, **knobs, **changes}


def trained_under(surrogate: str, **changes: Any) -> Step:
    """Return the second update of a run whose advantages differ, whose ratios leave 1, some of them clipped."""
    return trained_with(2, **(settings_of(surrogate) | TASK | changes))


def is_latex(text: str) -> bool:
    """Return whether text can be typeset. Without latex2mathml (extra “app”), any text counts as LaTeX."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return True
    return bool(convert(text))


def every_number_is_explained(surrogate: str, level: str) -> None:
    """Check that the explanation of every number of a run, evaluated in plain Python, agrees with the number."""
    step = trained_under(surrogate, objective__level=level)
    assert np.any(np.abs(recompute.terms(step, step.passes - 1).ratio - 1) > 0.05)
    assert np.unique(recompute.advantage(step)).size > 1
    explained = Numbers(step)
    nodes = [explain_from(explained, quantity) for quantity in every_quantity(step)]
    assert [node.title for node in nodes if not node.agrees] == []
    for name in ("surrogate", "push", "clipped"):
        node = explain_from(explained, Quantity(name, passed=1, row=0, token=0))
        assert node.latex or name == "clipped"
        assert is_latex(node.latex_values)


def script_prints_its_numbers(surrogate: str) -> None:
    """Check that the exported script, which uses only NumPy, prints the numbers that trained."""
    for level, limit in itertools.product(cases.LEVELS, (None, 0.3)):
        step = trained_under(surrogate, objective__level=level, objective__log_ratio_limit=limit)
        text = step_script(step, origin(step.settings))
        assert [name for name, count in Counter(re.findall(r"^([A-Z_]{2,}) =", text, re.M)).items() if count > 1] == []
        compare(step, executed(text), 1e-9)


def terms_lead_to_numbers(surrogate: str) -> None:
    """Check that the terms of the formula are its own, are LaTeX, and name a number and an explanation of it."""
    strips = {name: row.terms(Objective(surrogate=name)) for name, row in SURROGATES.items()}
    own = strips.pop(surrogate)
    assert all(own != other for other in strips.values())
    assert {term.key for term in own} - {""} <= KINDS.keys()
    assert "advantage" in {term.key for term in own}
    for term in own:
        assert bool(term.key) == bool(term.name)
        assert not term.key or (term.help and is_latex(term.latex))


def what_if_is_its_own_update(surrogate: str) -> None:
    """Check the step that a run of another surrogate would have taken under this one."""
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


def reasons_know_its_clip(surrogate: str) -> None:
    """Check that the reason for a share of 0 clipped tokens is the surrogate's own."""
    step, algorithm = trained_under(surrogate), SURROGATES[surrogate]
    for passed in range(step.passes):
        given = reasons(step, passed)
        share = recompute.terms(step, passed).clipped.any()
        if algorithm.clip is None:
            assert given["clipped"].sentence == algorithm.unclipped
        elif not share:
            assert given["clipped"].kind == "zero"


def settings_are_stored(surrogate: str) -> None:
    """Check that settings with this surrogate are the same after they have been written and read."""
    settings = Settings().replace({"objective.surrogate": surrogate})
    assert settings_from_json(settings.stored()) == settings


PLAIN: tuple[Callable[[str], None], ...] = (
    padding_changes_no_bit,
    padding_holds_zeros,
    nothing_but_padding_is_zero,
    only_its_knobs_act,
    shown_settings_act,
    level_acts_as_declared,
    clip_acts_outside_its_band,
    script_prints_its_numbers,
    terms_lead_to_numbers,
    what_if_is_its_own_update,
    reasons_know_its_clip,
    settings_are_stored,
)
OF_LEVEL: dict[str, tuple[Callable[..., None], ...]] = {
    "numpy": (pull_equals_finite_differences, every_number_is_explained),
    "torch": (pull_equals_autograd, torch_equals_numpy),
    "array_api_strict": (array_api_strict_equals_numpy,),
}
"""Array library -> functions of a surrogate and a level that need it."""
CHECKS: dict[str, Callable[[str], None]] = {
    **{check.__name__: check for check in PLAIN},
    **{
        f"{check.__name__}-{level}": partial(check, level=level)
        for library in cases.BACKENDS
        for check in OF_LEVEL[library]
        for level in cases.LEVELS
    },
    **{
        f"leading_axes_are_runs-{library}": partial(leading_axes_are_runs, backend=library)
        for library in cases.BACKENDS
    },
    **{
        f"{no_mask_is_a_mask_without_padding.__name__}-{level}-{library}": partial(
            no_mask_is_a_mask_without_padding, level=level, backend=library
        )
        for level, library in itertools.product(cases.LEVELS, cases.BACKENDS)
    },
}
"""All checks by name, as far as the array libraries that they need are installed."""
