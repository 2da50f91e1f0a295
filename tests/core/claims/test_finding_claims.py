"""Claims of a diagnosis on drawn runs: each is borne out by the raw arrays, and any other one is refused."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from grpo_core import recompute
from grpo_core.claims import findings, measures
from grpo_core.claims.claim import Claim
from grpo_core.claims.findings import Clipped, EntropyFar, EqualGroups, EqualShares, Run, Seen
from grpo_core.claims.measures import CutOff, CutOffMore, Drifts, FirstPassApart, SamplerApart
from grpo_core.health import diagnose, lengths, numerics
from grpo_core.health import policy as entropy_and_clip
from grpo_core.health import rewards as groups
from grpo_core.record import Step
from tests.core.health.test_diagnose import Tables, completions
from tests.core.health.test_findings_hold import Steps, drifted, of_steps, recorded, tables_of

KINDS = (
    EqualGroups, EntropyFar, EqualShares, Clipped, Drifts, CutOff, CutOffMore, FirstPassApart, SamplerApart
)  # fmt: skip


def runs(numbers: np.random.Generator) -> Iterator[Any]:
    """A run of tables, one whose entropy wanders, and one of tokens."""
    yield Tables(tables_of(numbers, 6), recorded())
    course = np.exp(np.cumsum(numbers.normal(size=12))) * numbers.choice([0.2, 1.0])
    paid = [numbers.choice([0.0, 1.0], 8, p=[0.8, 0.2]).tolist() for _ in course]
    pairs = zip(paid, course, strict=True)
    yield Tables([dataclasses.replace(completions(r), entropy=np.full(8, e)) for r, e in pairs], recorded())
    settings = recorded(
        level="token", beta=float(numbers.choice([0.0, 0.04])), kl=str(numbers.choice(["k1", "k3"])), surrogate="clip"
    )
    change = drifted(numbers, 5.0, pushed=True)
    yield of_steps(settings, 5, change, passes=int(numbers.integers(1, 3)), prompts=2, tokens=3)


def of_lengths(numbers: np.random.Generator) -> Iterator[Any]:
    """A run whose completions grow or shrink, one that a limit cuts off, and one whose sampler is another policy."""
    count = int(numbers.integers(6, 12))
    course = 40 * np.exp(np.linspace(0, numbers.choice([-1.0, 1.0]) * numbers.uniform(0.5, 2), count))
    tables = [completions(numbers.choice([0.0, 1.0], 8).tolist()) for _ in course]
    pairs = zip(tables, course, strict=True)
    yield Tables([dataclasses.replace(t, length=c + numbers.normal(size=8)) for t, c in pairs], recorded())
    shares = np.linspace(0, 1, count) ** 2 if numbers.random() < 0.5 else np.full(count, 0.97)
    cut = [numbers.random(8) < share for share in shares]
    yield Tables([dataclasses.replace(t, truncated=c) for t, c in zip(tables, cut, strict=True)], recorded())
    size = float(numbers.uniform(0.05, 1.0))

    def other(step: Step) -> Step:
        return dataclasses.replace(step, sampling_logp=step.logp[0] + size * numbers.normal(size=step.mask.shape))

    yield of_steps(recorded(), 4, other, passes=1, prompts=2, tokens=3)


def from_sampler(step: Step | None) -> np.ndarray | None:
    """The trainer's less the sampler's log-probabilities, one a token of the first pass."""
    if step is None or step.sampling_logp is None:
        return None
    return (step.logp[0] - step.sampling_logp)[recompute.used(step, 0)]


def as_seen(run: Any) -> Run:
    """The raw arrays of a run."""
    steps = run.steps if isinstance(run, Steps) else [None] * len(run)
    return [
        Seen(
            label=label, rewards=table.rewards, group=table.group, advantage=table.advantage, step=step,
            entropy=None if table.entropy is None else float(np.mean(table.entropy)),
            length=None if table.length is None else float(table.length.sum() / len(table.length)),
            cut=None if table.truncated is None else (float(table.truncated.sum()), len(table.truncated)),
            from_sampler=from_sampler(step),
        )
        for label, table, step in zip(run.labels, run.tables, steps, strict=True)
    ]  # fmt: skip


def noting(of: type[Claim[Run]], made: list[Claim[Run]]) -> Callable[..., Claim[Run]]:
    """Makes claims of a kind as ever, and keeps them in ``made``."""

    def make(**facts: Any) -> Claim[Run]:
        made.append(of(**facts))
        return made[-1]

    return make


def mutants(claim: Claim[Run]) -> Iterator[Claim[Run]]:
    """Claims that say something else: of each number another one, and the other kind."""
    assert dataclasses.is_dataclass(claim)
    for field in dataclasses.fields(claim):
        value = getattr(claim, field.name)
        if isinstance(value, bool):
            yield dataclasses.replace(claim, **{field.name: not value})
        elif isinstance(value, int):
            far = 100 if field.name in ("since", "where") else 1
            yield dataclasses.replace(claim, **{field.name: value + far})
        elif isinstance(value, float) and field.name == "limit":
            yield dataclasses.replace(claim, limit=value + 100)
        elif isinstance(value, float) and field.name != "part":
            yield dataclasses.replace(claim, **{field.name: value + 0.01})
        elif isinstance(value, str):
            yield from (dataclasses.replace(claim, kind=kind) for kind in ("right", "wrong", "same") if kind != value)


@pytest.mark.parametrize("count", [5, pytest.param(300, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_every_finding_is_borne_out_and_every_other_one_refused(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Claim[Run]] = []
    for kind in KINDS:
        for room in (groups, entropy_and_clip, lengths, numerics):
            if hasattr(room, kind.__name__):
                monkeypatch.setattr(room, kind.__name__, noting(kind, made))
    numbers, seen = np.random.default_rng(21), Counter[type]()
    while min(seen[kind] for kind in KINDS) < count:
        for run in (*runs(numbers), *of_lengths(numbers)):
            made.clear()
            sentences = " ".join(finding.what for finding in diagnose(run).findings)
            data = as_seen(run)
            for claim in made:
                seen[type(claim)] += 1
                assert claim.words() in sentences
                assert claim.check(data), claim
                if seen[type(claim)] <= count:
                    for other in mutants(claim):
                        assert other in made or not other.check(data), (claim, other)
    print(f"{sum(seen.values()):,} findings borne out: { {kind.__name__: n for kind, n in seen.items()} }")


def test_the_kinds_are_all_there_are() -> None:
    rooms = {**vars(findings), **vars(measures)}
    told = {name for name, value in rooms.items() if isinstance(value, type) and issubclass(value, Claim)}
    assert told - {"Claim"} == {kind.__name__ for kind in KINDS}
