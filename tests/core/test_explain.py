"""Every number explains itself: the second computation agrees with the first, down to the recorded inputs."""

from __future__ import annotations

import dataclasses
import math
import re
import time
import warnings
from typing import Any

import latex2mathml.converter
import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.config import PRESETS, Objective, Settings
from grpo_core.explain import KINDS, Node, Numbers, Quantity, explain, explain_from, quantity_title
from grpo_core.metrics import METRICS
from grpo_core.objective import Terms
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.testing.updates import every_quantity, random_objective, trained, trained_with
from grpo_core.typeset import number, signed, squared, total
from grpo_core.what_if import replayed
from tests.core.explain_cases import in_single_precision, made_up, random_settings
from tests.core.steps import asked, random_step

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # ziamath 0.13 opens its font the old way
    import ziamath

NOT_FROM_TRAINING = ("new_probability", "grad_norm")
"""Quantities that a synthetic step cannot get right, because its later policies were sampled, not trained."""


SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 12))]
"""Seeds of the random cases. The first five cover every choice."""


def disagreements(step: Step, leave_out: tuple[str, ...] = ()) -> list[Node]:
    numbers = Numbers(step)
    nodes = (explain_from(numbers, q) for q in every_quantity(step) if q.name not in leave_out)
    return [node for node in nodes if not node.agrees]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_of_a_real_run_agrees_with_the_engine(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for update in (1, 2, 3):
        assert disagreements(trained(random_settings(rng), update)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_of_a_made_up_step_agrees_with_the_engine(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    for case in range(10):
        assert disagreements(made_up(rng, case), NOT_FROM_TRAINING) == []


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_explained(name: str) -> None:
    settings = PRESETS[name].applied_to(Settings().replace({"task.landscape": "length", "task.max_length": 3}))
    assert disagreements(trained(settings.replace({"learner.mu": 2, "learner.group_size": 4}), 2)) == []


def test_the_cases_cover_every_choice() -> None:
    drawn = [random_objective(np.random.default_rng(seed)) for seed in range(100)]
    for name in ("baseline", "std", "level", "surrogate", "kl", "kl_in", "reduction"):
        assert len({getattr(o, name) for o in drawn}) >= 2, name


def test_inputs_lead_down_to_what_was_recorded() -> None:
    step = trained_with(3, task__landscape="length", task__max_length=3, objective__kl_importance=True)
    numbers, seen, leaves = Numbers(step), set(), set()
    waiting = [Quantity(name) for name, metric in METRICS.items() if not metric.language] + [
        Quantity("logit_gradient", passed=1, context=0, action=1)
    ]
    while waiting:
        quantity = waiting.pop()
        if quantity in seen:
            continue
        seen.add(quantity)
        node = explain_from(numbers, quantity)
        assert node.quantity == quantity, "inputs carry the address that the node itself has"
        assert node.agrees
        waiting += node.inputs
        if not node.inputs:
            leaves.add((quantity.name, node.latex))
    assert {name for name, latex in leaves if not latex} == {
        "reward",
        "tokens",
        "written",
        "denominator",
        "logp",
        "old_logp",
        "ref_logp",
        "log_probability",
        "ref_log_probability",
    }


def test_a_wrong_engine_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    step = trained_with(2)
    right = recompute.evaluate  # type: ignore[attr-defined]

    def wrong(*args: Any, **kwargs: Any) -> Terms:
        terms = right(*args, **kwargs)
        return dataclasses.replace(terms, surrogate=terms.surrogate * (1 + 1e-6))

    monkeypatch.setattr(recompute, "evaluate", wrong)
    node = explain(step, Quantity("surrogate", passed=1, row=0))
    assert not node.agrees
    assert abs(node.difference) > node.tolerance


def test_a_wrong_measurement_is_found_out() -> None:
    step = trained_with(2)
    node = explain(dataclasses.replace(step, measurements={"grad_norm": 0.5}), Quantity("grad_norm"))
    assert not node.agrees
    assert node.engine == 0.5
    assert node.value == pytest.approx(step.measurements["grad_norm"], rel=1e-12)


def test_the_advantage_of_the_readme_by_hand() -> None:
    rewards = np.array([0.0, 1.0, 0.2, 0.8, 0.6, 1.0, 1.0, 1.0])
    step = dataclasses.replace(trained_with(1), rewards=rewards)
    node = explain(step, Quantity("advantage", row=2))
    assert node.title == "advantage of sample 3"
    assert node.latex == r"A_{i} = \frac{R_{i} - \bar{R}}{\sigma + \delta}"
    assert node.latex_values == r"A_{3} = \frac{0.2 - 0.7}{0.4 + 0.0001} = -1.25"
    assert node.value == pytest.approx(-0.5 / 0.4001)
    assert node.inputs == (Quantity("reward", row=2), Quantity("group_mean", group=0), Quantity("group_std", group=0))


@pytest.mark.parametrize(
    ("ratio", "advantage", "says", "value"),
    [
        (1.5, 1.0, "clipped branch was taken", 1.2),
        (0.5, 1.0, "side from which the push leads back", 0.5),
        (0.5, -1.0, "clipped branch was taken", -0.8),
        (1.5, -1.0, "side from which the push leads back", -1.5),
        (1.1, 1.0, "inside the band", 1.1),
        (1.1, 0.0, "advantage is 0", 0.0),
    ],
)
def test_the_branch_of_the_minimum_is_said_in_words(ratio: float, advantage: float, says: str, value: float) -> None:
    step = with_ratio(ratio, advantage)
    node = explain(step, Quantity("surrogate", row=0))
    assert says in node.note
    assert node.value == pytest.approx(value)
    assert node.agrees


def test_the_dual_clip_is_said_in_words() -> None:
    step = asked(with_ratio(5.0, -1.0), Objective(dual_clip=3.0, baseline="none", std="none"))
    node = explain(step, Quantity("surrogate", row=0))
    assert "dual clip 3" in node.note
    assert node.value == pytest.approx(-3.0)


def with_ratio(ratio: float, advantage: float) -> Step:
    """Return a completion with one token that has moved by ``ratio``."""
    step = random_step(group_size=1, passes=1, settings=Settings(objective=Objective(baseline="none", std="none")))
    moved = step.old_logp + math.log(ratio)
    return dataclasses.replace(step, logp=np.stack([moved, moved]), rewards=np.array([advantage]))


def test_equal_rewards_are_explained_as_a_rule() -> None:
    step = dataclasses.replace(trained_with(1), rewards=np.full(8, 0.7))
    node = explain(step, Quantity("advantage", row=0))
    assert (node.value, node.engine, node.agrees) == (0.0, 0.0, True)
    assert "no signal" in node.note
    assert len(node.inputs) == 8


def test_what_was_recorded_is_a_leaf() -> None:
    node = explain(trained_with(1), Quantity("reward", row=4))
    assert (node.latex, node.note, node.inputs) == ("", "recorded", ())
    assert node.symbol == "R_{5}"


def test_what_the_model_alone_produces_is_measured() -> None:
    step = dataclasses.replace(random_step(bare=True), measurements={"grad_norm": 1.5, "heldout": 0.25})
    for name, value in step.measurements.items():
        node = explain(step, Quantity(name))
        assert node.note.startswith("measured")
        assert node.value == value


def test_the_new_probability_follows_from_the_old_one() -> None:
    step = trained_with(3, learner__temperature=0.5)
    node = explain(step, Quantity("new_probability", passed=2, context=0, action=6))
    assert step.dist_logp is not None
    assert node.engine == pytest.approx(np.exp(step.dist_logp[3, 0, 6]), rel=1e-12)
    assert node.agrees
    assert len(node.inputs) == 20
    adam = explain(trained_with(1, optimizer__kind="adam"), Quantity("new_probability", context=0, action=6))
    assert adam.note.startswith("measured")


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if not preset.critic])
def test_another_objective_is_explained_like_the_own_one(name: str) -> None:
    before, ran = (trained_with(number, learner__group_size=4, learner__mu=2) for number in (2, 3))
    step = replayed(ran, ran.settings.replace({"objective": PRESETS[name].objective}), before)
    numbers = Numbers(step)
    assert [q for q in every_quantity(step) if not explain_from(numbers, q).agrees] == []


def test_what_is_missing_is_said_instead_of_raised() -> None:
    step = dataclasses.replace(random_step(bare=True), ref_logp=None, settings=Settings(objective=Objective(beta=0.0)))
    for quantity, says in [
        (Quantity("kl", row=0), "no KL was computed"),
        (Quantity("kl"), "full distributions"),
        (Quantity("entropy"), "not recorded"),
        (Quantity("value", row=0), "no critic"),
        (Quantity("sampling_logp", row=0), "not recorded"),
        (Quantity("new_probability", context=0, action=0), "not a recorded table of logits"),
    ]:
        node = explain(step, quantity)
        assert math.isnan(node.value)
        assert node.agrees
        assert says in node.note


def test_padding_and_unused_completions_say_what_they_are() -> None:
    step = random_step(tokens=4, passes=1, seed=3)
    row = int(np.flatnonzero(~step.mask[:, 3])[0])
    assert "padding" in explain(step, Quantity("ratio", row=row, token=3)).note
    unused = dataclasses.replace(step, part=np.where(np.arange(8) == 2, -1, 0)[None])
    assert "not used" in explain(unused, Quantity("weight", row=2, token=0)).note


def test_an_update_without_any_token_is_explained_too() -> None:
    step = dataclasses.replace(random_step(tokens=2), mask=np.zeros((8, 2), dtype=bool))
    assert disagreements(step, NOT_FROM_TRAINING) == []
    assert reasons(step, 0)["gradient"].chip == "no signal"


def test_an_unknown_number_is_refused() -> None:
    with pytest.raises(KeyError, match="no number called"):
        explain(trained_with(1), Quantity("happiness"))
    with pytest.raises(IndexError):
        explain(trained_with(1), Quantity("reward", row=99))


def test_single_precision_is_judged_by_its_own_rounding() -> None:
    step = trained_with(2)
    node = explain(in_single_precision(step), Quantity("ratio", passed=3, row=1))
    assert node.agrees
    assert node.tolerance > explain(step, Quantity("ratio", passed=3, row=1)).tolerance * 1000


def test_long_sums_are_shortened_and_keep_all_inputs() -> None:
    node = explain(trained_with(1, learner__group_size=20), Quantity("group_mean", group=0))
    assert node.latex_values.count("+") == 6
    assert r"\cdots" in node.latex_values
    assert len(node.inputs) == 20


def test_numbers_are_set_with_four_digits() -> None:
    assert [number(x) for x in (0.0, -0.12345, 3.0, 1234567.0, 1.5e-7)] == [
        "0",
        "-0.1235",
        "3",
        "1234567",
        r"1.5 \times 10^{-7}",
    ]
    assert (number(math.inf), number(math.nan)) == (r"\infty", r"\mathrm{undefined}")
    assert signed(-1.0) == "(-1)"
    assert squared(1e-9) == r"(1 \times 10^{-9})^{2}"
    assert total([1.0, -2.0]) == "1 - 2"


def test_a_negative_number_after_a_minus_sign_is_in_parentheses() -> None:
    step = trained_with(2, task__landscape="custom", task__actions=3, task__custom=(-1.5, -0.5, -2.0))
    assert step.rewards.mean() < 0
    numbers = Numbers(step)
    nodes = [explain_from(numbers, quantity) for quantity in every_quantity(step)]
    assert [node.title for node in nodes if "- -" in node.values] == []


def test_titles_count_from_one() -> None:
    for quantity, title in [
        (Quantity("advantage", row=2), "advantage of sample 3"),
        (Quantity("ratio", passed=1, row=2, token=4), "ratio of sample 3, token 5, pass 2"),
        (Quantity("group_mean", group=0), "mean reward of group 1"),
        (
            Quantity("probability", passed=0, context=0, action=6),
            "probability of action 7 in place 1, before the update",
        ),
        (Quantity("probability", passed=2, context=0, action=6), "probability of action 7 in place 1, after pass 2"),
        (Quantity("kl"), "Exact KL"),
        (Quantity("kl", row=0), "KL estimate of sample 1, pass 1"),
        (Quantity("loss", passed=1), "loss, pass 2"),
    ]:
        assert quantity_title(quantity) == title


def test_every_formula_can_be_typeset() -> None:
    rng = np.random.default_rng(11)
    formulas: set[str] = set()
    patterns: dict[str, str] = {}
    for count in range(24):
        step = trained(random_settings(rng)) if count % 2 else made_up(rng, count)
        numbers = Numbers(step)
        for quantity in every_quantity(step):
            node = explain_from(numbers, quantity)
            formulas.add(node.latex)
            patterns.setdefault(quantity.name + re.sub(r"[\d.]+", "0", node.latex_values)[:120], node.latex_values)
    assert len(formulas) > 80
    for latex in (formulas - {""}) | set(patterns.values()):
        assert latex2mathml.converter.convert(latex)
    drawn = sorted(formulas - {""}, key=len)[::4] + sorted(patterns.values(), key=len)[:: len(patterns) // 20]
    for latex in drawn:
        assert "<svg" in ziamath.Latex(latex).svg(), latex  # type: ignore[attr-defined]


def test_a_long_completion_is_explained_quickly() -> None:
    step = random_step(prompts=2, group_size=4, tokens=2000, passes=2, contexts=4)
    start = time.process_time()
    for objective in (Objective(), Objective(surrogate="gmpo"), Objective(level="sequence", kl_importance=True)):
        other = asked(step, objective)
        for name in ("loss", "contribution", "push", "pull", "surrogate"):
            explain(other, Quantity(name, passed=1, row=0 if "row" in KINDS[name].axes else None, token=1))
    assert time.process_time() - start < 3
