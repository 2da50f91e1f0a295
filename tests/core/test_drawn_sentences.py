"""Sentences on cards and in what-ifs for random updates, checked against the raw arrays of the update."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.bandit.gradient import logit_gradient
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.reasons import reasons
from grpo_core.record import Step
from grpo_core.testing.updates import random_objective, trained
from grpo_core.what_if import unchanged, what_if
from tests.core.explain_cases import made_up, random_settings

NUMBER = r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
ENDED = re.compile(rf"A range that ended below {NUMBER} would make the clip act\.")
BEGAN = re.compile(rf"A range that began above {NUMBER} would make the clip act\.")
BOTH = re.compile(rf"A range that ended below {NUMBER}, or began above {NUMBER}, would make the clip act\.")
CAP = re.compile(rf"A cap below {NUMBER} would act\.")
SLACK = 1e-6
"""Share of its distance from 1 by which a bound is moved past the named ratio."""


def updates(count: int, seed: int) -> Iterator[Step]:
    """Yield updates of every kind, synthetic and trained, many with small learning rates at which no ratio leaves
    the clip range.
    """
    numbers = np.random.default_rng(seed)
    for number in range(count):
        if number % 3 == 0:
            yield made_up(numbers, number)
            continue
        settings = random_settings(numbers)
        if numbers.random() < 0.5:
            settings = settings.replace({"objective.clip_low": 0.9, "objective.clip_high": 9.0, "learner.mu": 3})
        if numbers.random() < 0.3:
            settings = settings.replace({"task.custom": (0.5,) * 10, "task.landscape": "custom"})
        yield trained(settings, 1 + number % 3)


def acts(step: Step, passed: int, *, low: float | None = None, high: float | None = None) -> bool:
    """Return whether the clip acts on a token of the pass if the range begins just above ``low`` or ends just below
    ``high``.
    """
    objective = step.settings.objective
    gmpo = objective.surrogate == "gmpo"  # its range is one of log-ratios
    if high is not None:
        bound = high - SLACK * abs(high - 1) - 1e-9
        end = np.log(bound) if gmpo else bound if objective.surrogate == "cispo" else bound - 1
        objective = objective.replace(clip_high=max(float(end), 0.0))
    if low is not None:
        bound = low + SLACK * abs(low - 1) + 1e-9
        objective = objective.replace(clip_low=max(float(-np.log(bound) if gmpo else 1 - bound), 0.0))
    asked = recompute.under(step, step.settings.replace({"objective": objective}))
    return bool(recompute.terms(asked, passed).clipped[recompute.used(step, passed)].any())


def is_true_of_clip(sentence: str, step: Step, passed: int) -> bool:
    """Return whether the card's statement about a clip that acts on nothing is true."""
    if not recompute.terms(step, passed).clipped[recompute.used(step, passed)].any():
        if found := BOTH.search(sentence):
            return acts(step, passed, high=float(found[1])) and acts(step, passed, low=float(found[2]))
        if found := ENDED.search(sentence):
            return acts(step, passed, high=float(found[1])) and not acts(step, passed, low=1.0 - 1e-12)
        if found := BEGAN.search(sentence):
            return acts(step, passed, low=float(found[1])) and not acts(step, passed, high=1.0 + 1e-12)
        if found := CAP.search(sentence):
            return acts(step, passed, high=float(found[1]))
        if "no push to stop" in sentence or "no signal" in sentence:
            return not recompute.advantage(step)[step.mask.any(axis=-1)].any()
        if "No push has carried a ratio its own way" in sentence:
            return not (acts(step, passed, low=1.0 - 1e-12) or acts(step, passed, high=1.0 + 1e-12))
        if "With two or more inner passes" in sentence:
            return bool(recompute.advantage(step).any()) and step.passes == 1
    else:
        return "stopped" in sentence or "cut" in sentence
    return "More passes" not in sentence and "would make the clip act" not in sentence


@pytest.mark.parametrize("count", [120, pytest.param(1500, marks=pytest.mark.long)])
def test_what_a_card_says_of_its_clip_holds(count: int) -> None:
    kinds: Counter[str] = Counter()
    for step in updates(count, 5):
        said = reasons(step, step.passes - 1).get("clip_fraction")
        if said is None:
            continue
        assert is_true_of_clip(said.sentence, step, step.passes - 1), (said, step.settings)
        kinds.update([re.sub(NUMBER, "#", said.sentence).rpartition(". ")[2]])
    assert any("A range that" in kind for kind in kinds) and any("no push to stop" in kind for kind in kinds)


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.long)])
def test_where_nothing_is_said_to_be_pushed_no_logit_has_a_gradient(count: int) -> None:
    checked = 0
    for step in updates(count, 7):
        if step.dist_logp is None or len(step.dist_logp) <= step.passes - 1 or step.gate is not None:
            continue
        for passed in range(step.passes):
            said = reasons(step, passed).get("gradient")
            if said is None or step.ref_dist_logp is None:
                continue
            checked += 1
            assert np.abs(logit_gradient(step, passed)).max() <= 1e-8, (said, step.settings)
            if "policy and reference agree" in said.sentence:
                terms = recompute.terms(step, passed)
                assert terms.kl is not None and np.abs(terms.kl[recompute.used(step, passed)]).max(initial=0) <= 1e-8
    assert checked


def pairs(count: int, seed: int) -> Iterator[tuple[Step, Settings]]:
    """Yield updates of a bandit, with settings that differ from theirs in one switch or in all of them."""
    numbers = np.random.default_rng(seed)
    for number in range(count):
        settings = random_settings(numbers)
        if numbers.random() < 0.4:
            pulls = {"objective.kl": "exact", "objective.kl_in": "loss", "objective.kl_importance": False}
            settings = settings.replace({**pulls, "objective.beta": float(numbers.choice([0.0, 0.04, 1.0]))})
        if numbers.random() < 0.3:
            settings = settings.replace({"objective.entropy_bonus": 0.1})
        if numbers.random() < 0.3:
            settings = settings.replace({"task.custom": (0.0,) * 10, "task.landscape": "custom"})
        other = random_objective(numbers)
        match int(numbers.integers(4)):
            case 0:
                wanted = settings.replace({"objective": other})
            case 1:
                wanted = settings.replace({"objective.beta": float(numbers.choice([0.0, 0.1, 2.0]))})
            case 2:
                wanted = settings.replace({"objective.std": other.std})
            case _:
                wanted = settings.replace({"objective.reduction": other.reduction, "objective.max_tokens": 7})
        yield trained(settings, 1 + number % 3), wanted


def pushes_of(sentences: tuple[str, ...]) -> str:
    """Return those of the sentences that are about pushes."""
    return " ".join(s for s in sentences if "push" in s)


def is_true_of_pushes(said: str, ran: Step, other: Step, passed: int) -> bool:
    """Return whether a statement about the pushes of two updates is true of the tokens and of the logits."""
    pairs = [(step, min(passed, step.passes - 1)) for step in (ran, other)]
    tokens = [_on_tokens(step, nearest) for step, nearest in pairs]
    switches = [step.settings.objective for step in (ran, other)]
    spread = any(o.entropy_bonus or (o.beta and o.kl == "exact" and o.kl_in == "loss") for o in switches)
    logits = [logit_gradient(step, nearest) for step, nearest in pairs] if spread else tokens
    size = 1e-11 * np.abs(tokens[1]).max(initial=0.0)  # rounding of what cancels on the logits
    alike = [bool(np.allclose(a, b, rtol=1e-8, atol=size)) for a, b in (tokens, logits)]
    still = [all(np.abs(x).max(initial=0.0) <= 1e-11 for x in both) for both in (tokens, logits)]
    if "No token is pushed in either" in said:
        return all(still)
    if "No sampled token is pushed on its own in either" in said:
        return still[0] and not still[1]
    if "The push on every token is the same" in said:
        return all(alike)
    if "The push on every sampled token is the same, but not" in said:
        return alike[0] and not alike[1]
    if found := re.search(r"same way and is (\S+) times as large", said):
        ratio = float(np.linalg.norm(tokens[1]) / np.linalg.norm(tokens[0]))
        each = all(np.allclose(b, ratio * a, rtol=1e-8, atol=size) for a, b in (tokens, logits))
        return each and f"{ratio:.3g}" == found[1]
    return not said


def _on_tokens(step: Step, passed: int) -> np.ndarray:
    push, pull = recompute.token_gradient(step, passed)
    return push if pull is None else push + pull


@pytest.mark.parametrize("count", [150, pytest.param(1500, marks=pytest.mark.long)])
def test_what_a_what_if_says_of_pushes_holds_on_tokens_and_logits(count: int) -> None:
    kinds: Counter[str] = Counter()
    refused = 0
    for step, wanted in pairs(count, 8):
        try:
            w = what_if(step, wanted)
            passed = min(1, step.passes - 1)
            said = pushes_of(unchanged(w, passed))
        except GrpoError:
            continue
        ran, other = w.ran.step, w.other.step
        assert is_true_of_pushes(said, ran, other, passed), (said, w.differences, step.settings)
        kinds.update([re.sub(r"is \S+ times", "is # times", said)])
        if found := re.search(r"is (\S+) times as large", said):
            mutant = said.replace(found[0], f"is {float(found[1]) * 1.1:.3g} times as large")
            assert not is_true_of_pushes(mutant, ran, other, passed)
            refused += 1
        elif said.startswith("The push"):
            assert not is_true_of_pushes("No token is pushed in either.", ran, other, passed)
            refused += 1
    assert refused and len(kinds) >= 5, kinds
