"""Every caption of a film for random updates is checked against the raw arrays of the update."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from app.panels.policy_data import picture, stage_sentence
from app.plotting.numbers import shown
from app.token_grid import token_film as film
from app.workspace.cursor import Cursor, Stage
from app.workspace.step_view import StepView
from grpo_core import learners, recompute
from grpo_core.config import Settings
from grpo_core.record import Origin, Step
from tests.app.panels.conftest import view_of
from tests.core.claims import drawn_updates
from tests.core.claims.second_check import earlier
from tests.core.explain_cases import random_settings
from tests.core.lm_steps import lm_origin, lm_settings, lm_step

EQUAL = "Normalize: all rewards are equal, so every advantage is 0 and the rewards push nothing."
SILENT = "Normalize: every advantage here is 0, so the rewards push nothing here."
RANGE = re.compile(r"Normalize: rewards become advantages, from (\S+) to (\S+?)(?:; their sum is (\S+))?\.")
ONE = re.compile(r"Normalize: every advantage here is (\S+)\.")
MOVED = re.compile(
    r"Update(?: [\d,]+|, by pass \d+ of \d+): (?:(more|less) probability for ([^.;]*?))"
    r"(?:, less for ([^.]*?)|, a little (less|more) for the others)?\."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One context or one group of an update, and its captions at each stage.

    Attributes:
        rows, tokens: position of each sample, (n,) each; ``tokens`` is 0 for an entire completion.
        said: the captions, by stage.
        passed: the pass shown; −1 for the entire update.
        context: index of a context of a bandit's policy; None for a group of a language model.
        pays: reward of each action there, (A,); None if there is none, or if it is not checked.
    """

    step: Step
    rows: np.ndarray
    tokens: np.ndarray
    said: dict[Stage, str]
    passed: int = -1
    context: int | None = None
    pays: np.ndarray | None = None

    @property
    def advantages(self) -> np.ndarray:
        """The advantages of the samples, (n,)."""
        gained = recompute.advantage(self.step)
        return gained[self.rows] if gained.ndim == 1 else gained[self.rows, self.tokens]


def context_of(
    step: Step,
    context: int,
    origin: Origin,
    rewards: np.ndarray | None,
    *,
    passed: int = -1,
    pays: np.ndarray | None = None,
) -> Case:
    """Return a context of a bandit's update, after each stage."""
    assert step.context is not None
    rows, tokens = np.nonzero((step.context == context) & step.mask)
    said = {}
    for stage in Stage:
        view = StepView(origin, step, stage, passed if passed >= 0 else step.passes - 1)
        shown_here = picture(view, context, rewards, passed)
        assert shown_here is not None
        said[stage] = stage_sentence(shown_here)
    return Case(step=step, rows=rows, tokens=tokens, said=said, passed=passed, context=context, pays=pays)


def bandits(count: int, seed: int) -> Iterator[Case]:
    """Yield contexts of the first updates of random runs, mostly chains and completions of several lengths."""
    numbers = np.random.default_rng(seed)
    while count > 0:
        settings = random_settings(numbers)
        if numbers.random() < 0.6:
            landscape = str(numbers.choice(["chain", "length"]))
            settings = settings.replace(
                {"task.landscape": landscape, "learner.group_size": int(numbers.integers(2, 9))}
            )
        if numbers.random() < 0.3 and settings.bandit.landscape == "chain":
            steps = {"credit": "process", "kl_in": "loss", "baseline": "group_mean", "std": "sample"}
            settings = settings.replace({f"objective.{name}": value for name, value in steps.items()})
        origin, run = learners.origin(settings), learners.learner(settings)
        for step in [next(run) for _ in range(2)]:
            assert step.context is not None
            for context in np.unique(step.context[step.mask]):
                passed = int(numbers.integers(-1, step.passes))
                yield context_of(step, int(context), origin, origin.action_rewards, passed=passed)
                count -= 1


def groups(count: int, seed: int) -> Iterator[Case]:
    """Yield groups of a language model's updates, made by hand, with random switches."""
    numbers = np.random.default_rng(seed)
    for number in range(count):
        settings = lm_settings(
            **{
                "objective.baseline": str(numbers.choice(["group_mean", "leave_one_out", "batch_mean", "none"])),
                "objective.std": str(numbers.choice(["sample", "none", "batch"])),
                "objective.beta": float(numbers.choice([0.0, 0.04])),
                "objective.entropy_bonus": float(numbers.choice([0.0, 0.1])),
                "objective.kl": str(numbers.choice(["k3", "exact"])),
            }
        )
        dead = tuple(int(p) for p in np.flatnonzero(numbers.random(3) < 0.5))
        step = lm_step(int(numbers.integers(1, 6)), settings=settings, prompts=3, group_size=5, dead=dead, seed=number)
        if numbers.random() < 0.3:
            step.rewards[numbers.random(len(step.rewards)) < 0.3] = np.nan
        if numbers.random() < 0.3:
            step.rewards[:] = 0.0
        for group in range(3):
            rows = np.flatnonzero(step.group == group)
            view = view_of(step)
            said = {stage: film.stage_sentence(view, group, Cursor(step=1, stage=stage)) for stage in Stage}
            yield Case(step=step, rows=rows, tokens=np.zeros(len(rows), int), said=said, passed=0)


def premises(count: int, seed: int) -> Iterator[Case]:
    """Yield contexts or groups of updates in which rewards, tokens and the policy that sampled mean different things.

    These have penalties, hacked or missing rewards, stale samples, several prompts with levels, a tool's tokens, or are
    another trainer's.
    """
    numbers, number = np.random.default_rng(seed), 0
    while count > 0:
        number += 1
        drawn = [*drawn_updates.of_all_premises(numbers), drawn_updates.with_tool(numbers, number)]
        drawn += [drawn_updates.of_language(numbers, number), drawn_updates.odd_rewards(numbers, number)]
        for step in drawn:
            bandit = not (step.settings.is_language or step.settings.is_recorded) and step.context is not None
            for case in contexts_of(step) if bandit else groups_of(step):
                yield case
                count -= 1


def contexts_of(step: Step) -> Iterator[Case]:
    """Yield the contexts of a bandit's update, after each stage."""
    assert step.context is not None and step.dist_logp is not None
    rewards = learners.origin(step.settings).action_rewards
    known = rewards is not None and rewards.shape == step.dist_logp.shape[1:]
    for context in np.unique(step.context[step.mask]):
        pays = rewards[int(context)] if rewards is not None and known else None
        yield context_of(step, int(context), ORIGIN, rewards if known else None, pays=pays)


def groups_of(step: Step) -> Iterator[Case]:
    """Yield the groups of a language model's or another trainer's update, after each stage."""
    origin = lm_origin(step.settings) if step.settings.is_language else ORIGIN
    view = StepView(origin, step, Stage.UPDATE, step.passes - 1)
    for group in np.unique(step.group):
        said = {stage: film.stage_sentence(view, int(group), Cursor(step=1, stage=stage)) for stage in Stage}
        rows = np.flatnonzero(step.group == group)
        yield Case(step=step, rows=rows, tokens=np.zeros(len(rows), int), said=said, passed=step.passes - 1)


ORIGIN = learners.origin(Settings())


def number(text: str) -> float:
    """Parse a number written with a minus sign."""
    return float(text.replace("−", "-"))


def reads_as(text: str, value: float) -> bool:
    """Return whether ``text`` is ``value`` to the number of digits written."""
    if "e" in text:
        return abs(number(text) - value) <= 6e-3 * abs(value)
    return abs(number(text) - value) <= 0.5000001 * 10.0 ** -len(text.partition(".")[2])


def is_true_of_samples(sentence: str, case: Case) -> bool:
    """Return whether a caption of the stage Sample is true."""
    step = case.step
    if case.context is not None:
        found = re.fullmatch(r"Sample: (\d+) draws? from (.*); different actions: (\d+) of (\d+)\.", sentence)
        policy = step.distribution(0)
        assert found is not None and policy is not None, sentence
        met = len(np.unique(step.tokens[case.rows, case.tokens]))
        counted = tuple(int(found[n]) for n in (1, 3, 4)) == (len(case.rows), met, policy.shape[-1])
        return counted and (found[2] == "the bars") != earlier(step)
    found = re.fullmatch(r"Sample: (\d+) answers?(?:, all the same|; they diverge at token (\d+))\.", sentence)
    assert found is not None, sentence
    texts = [step.tokens[row][step.there[row]].tolist() for row in case.rows]
    alike = [len({tuple(text[: n + 1]) for text in texts}) == 1 for n in range(max(map(len, texts)))]
    part = None if all(alike) else alike.index(False) + 1
    return (int(found[1]), found[2]) == (len(texts), None if part is None else str(part))


def is_true_of_pushes(sentence: str, case: Case) -> bool:
    """Return whether a caption of the stage Update on a group of answers is true."""
    push, pull = recompute.token_gradient(case.step, case.passed)
    down = (push if pull is None else push + pull)[case.rows]
    used = case.step.mask[case.rows]
    if re.search(r": (nothing here is pushed|the rewards push nothing here)\.", sentence):
        return not down.any()
    if found := re.search(r": of (\d+) tokens?, (\d+) (?:is|are) pushed up and (\d+) down\.", sentence):
        true: tuple[int, ...] = (int(used.sum()), int((down < 0).sum()), int((down > 0).sum()))
    elif found := re.search(
        r"token (\d+), where (\d+) answers? diverges?, is pushed up in (\d+), down in (\d+)", sentence
    ):
        at = down[:, int(found[1]) - 1]
        true = (int(found[1]), len(at), int((at < 0).sum()), int((at > 0).sum()))
    else:
        return False
    cut = re.search(r"Clipped tokens: (\d+)\.", sentence)
    clipped = recompute.terms(case.step, case.passed).clipped[case.rows] & used
    return tuple(map(int, found.groups())) == true and int(cut[1] if cut else 0) == clipped.sum()


def is_true_of_rewards(sentence: str, case: Case) -> bool:
    """Return whether a caption of the stage Score is true."""
    paid = case.step.rewards[case.rows]
    scored = paid[~np.isnan(paid)]
    named = re.findall(r"(?<![\w.])−?\d+(?:\.\d+)?", sentence)
    if re.fullmatch(r"Score: none of (the draws|these answers) was scored\.", sentence):
        return not len(scored)
    if "get a reward" in sentence:
        return named == [str(len(scored)), str(len(paid)), shown(float(scored.mean()))] and len(scored) < len(paid)
    if found := re.match(r"Score: (\d+) of (\d+) are right", sentence):
        parts = case.step.reward_parts
        assert parts is not None
        if (int(found[1]), int(found[2])) != (int(parts[case.rows, 0].sum()), len(paid)):
            return False
    return len(scored) == len(paid) and named[-1] == shown(float(scored.mean()))


def is_true_of_advantages(sentence: str, case: Case) -> bool:
    """Return whether a caption of the stage Normalize is true."""
    gained, paid = case.advantages, case.step.rewards[case.rows]
    if sentence == EQUAL:
        return not gained.any() and len(np.unique(paid)) == 1 and len(paid) > 1
    if sentence == SILENT:
        return not gained.any()
    if found := ONE.fullmatch(sentence):
        return all(reads_as(found[1], float(a)) for a in gained)
    found = RANGE.fullmatch(sentence)
    if found is None:
        return sentence == "Normalize: rewards become advantages, token by token." and case.context is None
    ends = reads_as(found[1], float(gained.min())) and reads_as(found[2], float(gained.max())) and found[1] != found[2]
    return ends and (found[3] is None or abs(number(found[3]) - gained.sum()) < 6e-4)


def is_true_of_probabilities(sentence: str, case: Case) -> bool:
    """Return whether a caption of the stage Update is true of the probabilities in its context."""
    old, now = (case.step.distribution(passed) for passed in (0, case.passed + 1 or case.step.passes))
    assert old is not None and now is not None and case.context is not None
    change = np.exp(now[case.context]) - np.exp(old[case.context])
    if "no probability moves by a thousandth" in sentence:
        return bool((np.abs(change) < 1e-3).all())
    found = MOVED.match(sentence)
    assert found is not None, sentence
    sign = 1 if found[1] == "more" else -1
    first = [int(name) - 1 for name in found[2].split(", ")]
    second = [int(name) - 1 for name in found[3].split(", ")] if found[3] else []
    true = bool((sign * change[first] >= 1e-3).all() and (sign * change[second] <= -1e-3).all())
    if found[4]:
        true &= bool((sign * np.delete(change, first) < 0).all()) and found[4] == ("less" if sign > 0 else "more")
    return true


def is_true_of_undrawn(sentence: str, case: Case) -> bool:
    """Return whether a caption of the stage Update rightly names, or leaves out, a best action that was not drawn."""
    found = re.search(r"Action (\d+) pays most, but nobody drew it\.", sentence)
    assert case.pays is not None
    best = np.flatnonzero(case.pays == case.pays.max())
    missed = len(best) == 1 and best[0] not in case.step.tokens[case.rows, case.tokens]
    return (found is not None) == missed and (found is None or int(found[1]) == best[0] + 1)


def judged(case: Case) -> list[bool]:
    """Return whether each of the case's captions is true."""
    result = [
        is_true_of_samples(case.said[Stage.SAMPLE], case),
        is_true_of_rewards(case.said[Stage.SCORE], case),
        is_true_of_advantages(case.said[Stage.NORMALIZE], case),
    ]
    if case.pays is not None:
        result.append(is_true_of_undrawn(case.said[Stage.UPDATE], case))
    if case.context is None:
        result.append(is_true_of_pushes(case.said[Stage.UPDATE], case))
    if case.context is not None and case.step.settings.bandit.landscape not in ("chain", "length"):
        result.append(is_true_of_probabilities(case.said[Stage.UPDATE], case))
    return result


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.long)])
def test_no_caption_of_a_drawn_update_is_false(count: int) -> None:
    cases = [*bandits(count, 1), *groups(count // 3, 2), *premises(count, 4)]
    false = [(case.said, case.advantages) for case in cases if not all(judged(case))]
    assert not false, f"{len(false)} of {len(cases)}: {false[0]}"
    said = {re.sub(r"−?\d+(?:\.\d+)?", "#", case.said[Stage.NORMALIZE]) for case in cases}
    assert {EQUAL.replace("0", "#"), SILENT.replace("0", "#")} <= said and len(said) >= 5, "every sentence came up"


def mutants(sentence: str) -> Iterator[str]:
    """Yield ``sentence`` with another value or another end, or the sentence for equal rewards instead."""
    for found in re.finditer(r"(?<![\w.])−?\d+\.\d+", sentence):
        value = number(found[0])
        yield sentence[: found.start()] + shown(value + max(0.01, abs(value) / 10)) + sentence[found.end() :]
    if RANGE.fullmatch(sentence) or ONE.fullmatch(sentence):
        yield EQUAL
        yield SILENT
    if " is 0" in sentence:
        yield "Normalize: rewards become advantages, from −1.000 to 1.000."


def test_a_caption_with_another_value_is_refused() -> None:
    refused = 0
    for case in bandits(300, 3):
        for check, stage in ((is_true_of_rewards, Stage.SCORE), (is_true_of_advantages, Stage.NORMALIZE)):
            for mutant in mutants(case.said[stage]):
                assert not check(mutant, case), mutant
                refused += 1
        update = case.said[Stage.UPDATE]
        if "probability for" in update and case.step.settings.bandit.landscape not in ("chain", "length"):
            turned = update.replace(": more", ": MORE").replace(": less", ": more").replace(": MORE", ": less")
            assert not is_true_of_probabilities(turned, case), turned
            refused += 1
    assert refused >= 300


def test_an_action_whose_draws_have_several_advantages_is_in_the_range() -> None:
    settings = Settings().replace({"task.landscape": "length", "learner.group_size": 8, "objective.reduction": "token"})
    ranges = 0
    for seed in range(10):
        cases = bandits_of(settings.replace({"seed": seed}))
        ranges += sum(bool(RANGE.fullmatch(case.said[Stage.NORMALIZE])) for case in cases)
        assert all(is_true_of_advantages(case.said[Stage.NORMALIZE], case) for case in cases)
    assert ranges


def bandits_of(settings: Settings) -> list[Case]:
    """Return the contexts of the first update with ``settings``."""
    origin, step = learners.origin(settings), next(iter(learners.learner(settings)))
    assert step.context is not None
    contexts = np.unique(step.context[step.mask])
    return [context_of(step, int(context), origin, origin.action_rewards) for context in contexts]
