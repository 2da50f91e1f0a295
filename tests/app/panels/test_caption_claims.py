"""Claims of captions on random updates: each is confirmed by the raw arrays, and any other claim is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.panels.policy_data import moves, paid, picture, sampled, undrawn
from app.panels.score import claims_on
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core import learners, recompute
from grpo_core.advantages import advantages
from grpo_core.claims.captions import CAPTIONS, Caption, Drawn, Moved, Undrawn
from grpo_core.claims.claim import Claim
from grpo_core.claims.typed import TYPED, Joined, Typed
from grpo_core.config import Objective
from grpo_core.reasons.normalized import normalized
from tests.core.claims.drawn import assert_enough, kind_of, others
from tests.core.explain_cases import random_settings

Said = tuple[Any, Claim[Any]]
KINDS = (*CAPTIONS, "Moved", "Undrawn")


def said(numbers: np.random.Generator) -> Iterator[Said]:
    """Yield data and the claims on them, for each context of an update of a random run."""
    staleness = int(numbers.choice([0, 0, 4]))
    settings = random_settings(numbers).replace(
        {"learner.group_size": int(numbers.integers(2, 9)), "learner.staleness": staleness}
    )
    if numbers.random() < 0.4:
        settings = settings.replace({"task.landscape": "custom", "task.custom": (0.5,) * 10})
    origin, run = learners.origin(settings), learners.learner(settings)
    step = [next(run) for _ in range(int(numbers.integers(1, 3)))][-1]
    if numbers.random() < 0.2:
        lost = numbers.random(len(step.rewards)) < numbers.choice([0.3, 1.0])
        step = dataclasses.replace(step, rewards=np.where(lost, np.nan, step.rewards))
    assert step.context is not None
    for context in np.unique(step.context[step.mask]):
        shown = picture(StepView(origin, step, Stage.UPDATE, 0), int(context), origin.action_rewards)
        assert shown is not None and shown.draws is not None
        rows, tokens = np.nonzero((step.context == context) & step.mask)
        pays = None if origin.action_rewards is None else origin.action_rewards[context]
        drawn = Drawn(step=step, rows=rows, tokens=tokens, pays=pays)
        missed = undrawn(shown, shown.draws)
        if missed is not None:
            yield drawn, missed
        for total in (None, float(drawn.advantages.sum())):
            view, given = StepView(origin, step, Stage.UPDATE, 0), recompute.advantage(step)
            gained = given[rows] if given.ndim == 1 else given[rows, tokens]
            made = None if view.numbers is None else normalized(view.numbers, rows, gained, total)
            assert total is not None or made == shown.draws.normalized
            if made is not None:
                yield drawn, made
        caption = sampled(shown, shown.draws)
        assert ("from an earlier policy" in caption.words()) == (staleness > 0 and step.step > 1)
        yield drawn, caption
        yield drawn, paid(shown.draws)
        yield shown.change, moves(shown)


OTHERWISE = {
    "sampled": ("sampled_earlier",),
    "sampled_earlier": ("sampled",),
    "unscored": ("scored", "scored_some"),
    "scored": ("unscored",),
    "scored_some": ("scored", "unscored"),
    "ranged": ("ranged_sum", "silent", "silent_alike", "all_alike"),
    "ranged_sum": ("silent", "silent_alike", "all_alike"),
    "all_alike": ("silent", "silent_alike", "ranged"),
    "silent_alike": ("silent", "ranged", "all_alike"),
    "silent": ("silent_alike", "ranged", "all_alike"),
}
"""Kind -> kinds that are not true of the same draws."""


def mutants(claim: Claim[Any]) -> Iterator[Claim[Any]]:
    """Yield claims that say something else."""
    if isinstance(claim, Caption):
        facts = {"low": -1.0, "high": 1.0, "total": 1e3, "mean": 0.123, "scored": 1, "count": 99, **dict(claim.values)}
        yield from others(claim, np.random.default_rng(1))
        for kind in OTHERWISE.get(claim.kind, ()):
            yield Caption.of(kind, **facts)
    elif isinstance(claim, Undrawn):
        yield dataclasses.replace(claim, best=claim.best + 1)
        yield dataclasses.replace(claim, best=claim.best - 1)
    elif isinstance(claim, Moved):
        if (claim.up, claim.down) != ((), ()):
            yield dataclasses.replace(claim, up=claim.down, down=claim.up)
            yield dataclasses.replace(claim, up=(), down=(), others=False)
        yield dataclasses.replace(claim, others=not claim.others)
        yield dataclasses.replace(claim, up=(*claim.up, 99))


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.long)])
def test_every_caption_is_borne_out_and_every_other_one_refused(count: int) -> None:
    numbers, seen, refused = np.random.default_rng(11), Counter[str](), 0
    for _ in range(60 * count):
        for data, claim in said(numbers):
            seen[kind_of(claim)] += 1
            assert claim.check(data), claim
            assert claim.words()
            if seen[kind_of(claim)] <= count:
                changed = list(mutants(claim))
                assert not any(other.check(data) for other in changed), claim
                refused += len(changed)
        if all(seen[kind] >= count for kind in KINDS):
            break
    assert_enough(seen, KINDS, count, refused)


def typed(numbers: np.random.Generator) -> Joined:
    """Return a typed completion that joins a group of four, whose rewards can all be equal."""
    count, parts = int(numbers.integers(1, 12)), numbers.choice([0.0, 1.0], 3)
    reward = float(parts[0])
    others = (
        numbers.choice([0.0, 1.0, np.nan], 4, p=[0.45, 0.45, 0.1]) if numbers.random() < 0.6 else np.full(4, reward)
    )
    rewards = np.array([*others, reward])
    return Joined(
        logp=-numbers.exponential(float(numbers.choice([0.1, 4.0])), count),
        own=np.arange(count) != 2,  # as if a tool wrote the third token
        reward=reward,
        parts=parts,
        names=("right", "form", "short"),
        weights=(1.0, *numbers.choice([0.0, 0.5], 2).tolist()),
        rewards=rewards,
        advantages=advantages(Objective(), rewards[None])[0],
    )


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.long)])
def test_every_claim_on_a_typed_completion_is_borne_out_and_every_other_one_refused(count: int) -> None:
    numbers, seen, refused = np.random.default_rng(12), Counter[str](), 0
    for _ in range(60 * count):
        data = typed(numbers)
        for claim in claims_on(data):
            seen[kind_of(claim)] += 1
            assert claim.check(data), claim
            assert "{" not in claim.words() and "nan" not in claim.words()
            for other in others(claim, numbers) if seen[kind_of(claim)] <= count else ():
                assert not other.check(data), (claim, other)
                refused += 1
            opposite = {"up": "down", "down": "up", "neither": "up", "odds": "rare", "rare": "odds"}.get(claim.kind)
            assert opposite is None or not Typed.of(opposite, **dict(claim.values)).check(data)
        if all(seen[kind] >= count for kind in TYPED):
            break
    assert_enough(seen, tuple(TYPED), count, refused)
