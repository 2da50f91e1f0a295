"""Claims of captions on drawn updates: each is borne out by the raw arrays, and any other one is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.panels.policy_data import picture
from app.panels.policy_words import moves, paid, sampled
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core import learners
from grpo_core.claims.captions import AllAlike, Drawn, Moved, Ranged, Sampled, Scored, Silent
from grpo_core.claims.claim import Claim
from tests.core.explain_cases import random_settings

Said = tuple[Any, Claim[Any]]


def said(numbers: np.random.Generator) -> Iterator[Said]:
    """Data and what is claimed of them, for each context of an update of a drawn run."""
    settings = random_settings(numbers).replace({"learner.group_size": int(numbers.integers(2, 9))})
    if numbers.random() < 0.4:
        settings = settings.replace({"task.landscape": "custom", "task.custom": (0.5,) * 10})
    origin, run = learners.origin(settings), learners.learner(settings)
    step = [next(run) for _ in range(int(numbers.integers(1, 3)))][-1]
    assert step.context is not None
    for context in np.unique(step.context[step.mask]):
        shown = picture(StepView(origin, step, Stage.UPDATE, 0), int(context), origin.action_rewards)
        assert shown is not None and shown.draws is not None
        rows, tokens = np.nonzero((step.context == context) & step.mask)
        drawn = Drawn(step=step, rows=rows, tokens=tokens)
        if shown.draws.normalized is not None:
            yield drawn, shown.draws.normalized
        yield drawn, sampled(shown, shown.draws)
        yield drawn, paid(shown.draws)
        yield shown.change, moves(shown)


def mutants(claim: Claim[Any]) -> Iterator[Claim[Any]]:
    """Claims that say something else."""
    if isinstance(claim, Ranged):
        for name in ("low", "high"):
            yield dataclasses.replace(claim, **{name: getattr(claim, name) + 0.001})
            yield dataclasses.replace(claim, **{name: -getattr(claim, name) - 0.01})
        yield dataclasses.replace(claim, total=1e3)
        yield Silent(equal=True)
    elif isinstance(claim, AllAlike):
        yield AllAlike(value=claim.value + 0.001)
        yield AllAlike(value=-claim.value + 1e-3)
        yield Silent(equal=False)
    elif isinstance(claim, Silent):
        yield Silent(equal=not claim.equal)
        yield Ranged(low=-1.0, high=1.0)
        yield AllAlike(value=0.5)
    elif isinstance(claim, (Sampled, Scored)):
        for field in dataclasses.fields(claim):
            value = getattr(claim, field.name)
            other: Any = {field.name: 0.5 if value is None else value + 1}
            yield dataclasses.replace(claim, **other)
        if isinstance(claim, Scored):
            yield dataclasses.replace(claim, mean=-claim.mean if claim.mean else 1e-3)
    elif isinstance(claim, Moved):
        if (claim.up, claim.down) != ((), ()):
            yield dataclasses.replace(claim, up=claim.down, down=claim.up)
            yield dataclasses.replace(claim, up=(), down=(), others=False)
        yield dataclasses.replace(claim, others=not claim.others)
        yield dataclasses.replace(claim, up=(*claim.up, 99))


@pytest.mark.parametrize("count", [10, pytest.param(300, marks=pytest.mark.long)])
def test_every_caption_is_borne_out_and_every_other_one_refused(count: int) -> None:
    numbers, seen = np.random.default_rng(11), Counter[type]()
    while min((seen[kind] for kind in (Ranged, AllAlike, Silent, Sampled, Scored, Moved)), default=0) < count:
        for data, claim in said(numbers):
            seen[type(claim)] += 1
            assert claim.check(data), claim
            assert claim.words()
            if seen[type(claim)] <= count:
                assert not any(other.check(data) for other in mutants(claim)), claim
    print(f"{sum(seen.values()):,} captions borne out: { {kind.__name__: n for kind, n in seen.items()} }")
