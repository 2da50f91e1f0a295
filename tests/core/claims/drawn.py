"""Random races, sweeps and repeats, the claims made about them, and false claims."""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from grpo_core.bandit.tasks import task
from grpo_core.claims.claim import Claim, Derived, Tabled, agrees
from grpo_core.claims.comparison import Climbs, Failed, Lead, Level, Since, Sooner, Trained
from grpo_core.claims.repeats import Batches, LastReward, Later, OnWrong, Passed, Reached, Repeated
from grpo_core.claims.sweep import Between, Highest, Lowest, Moves, Smoothest, StillClimbing, Swept
from grpo_core.config import PRESETS, BanditTask, Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.outcome import details, found, of_sweep, outcome, swept, trained
from grpo_core.experiments.race import LOCAL_PEAK, race, spoken
from grpo_core.experiments.repeats import repeated

KINDS: tuple[type[Claim[Any]], ...] = (
    Lead,
    Level,
    Failed,
    Since,
    Sooner,
    Climbs,
    Highest,
    Lowest,
    Moves,
    Between,
    Smoothest,
    StillClimbing,
    Passed,
    Later,
    OnWrong,
    LastReward,
    Reached,
)
SHAKEN = 0.6
"""Share of the samples whose runs are modified: seeds diverge, runs coincide, or curves are made level."""
Said = tuple[Any, tuple[Claim[Any], ...]]


def settings_drawn(chance: np.random.Generator) -> Settings:
    """Return settings of a bandit whose training can succeed, stall or diverge."""
    changes: dict[str, Any] = {
        "optimizer.learning_rate": float(10 ** chance.uniform(-1.5, 0.7)),
        "objective.beta": float(chance.choice([0.0, 0.04, 0.4, 1.0])),
        "learner.group_size": int(chance.choice([2, 4, 8])),
        "learner.mu": int(chance.choice([1, 1, 4])),
        "learner.temperature": float(chance.choice([0.25, 1.0, 1.0, 2.0])),
    }
    changes |= LOCAL_PEAK if chance.random() < 0.3 else {}
    return Settings().replace(changes)


def said(chance: np.random.Generator) -> Iterator[Said]:
    """Yield data and the claims on them, for a random race, a random sweep, and a random run with repeats."""
    settings, seeds = settings_drawn(chance), int(chance.choice([4, 8, 12, 16]))
    updates = int(chance.integers(2, 40))
    with np.errstate(all="ignore"):
        names = [str(name) for name in chance.choice([*PRESETS], size=int(chance.integers(2, 6)), replace=False)]
        fairness = str(chance.choice(["updates", "samples", "step_length"]))
        lanes = dict(race(settings, names, seeds=range(seeds), updates=updates, fairness=fairness))
        data = trained({spoken(name): runs for name, runs in _shaken(lanes, chance).items()})
        yield data, (*outcome(data), *found(data, Sooner), *details(data))
        data = _swept(settings, seeds, updates, chance)
        in_order = bool(chance.random() < 0.6)
        told = of_sweep(data, in_order=in_order, smoothness=True)
        yield data, tuple(claim for claims in told for claim in claims)
        yield _repeats(settings, seeds, updates, chance)
        yield _batches(settings, seeds, updates, chance)


def _swept(settings: Settings, seeds: int, updates: int, chance: np.random.Generator) -> Swept:
    path = str(chance.choice(["objective.beta", "optimizer.learning_rate", "learner.temperature"]))
    values = np.sort(chance.uniform(0.05, 3.0, size=int(chance.integers(2, 6)))).tolist()
    points = [settings.replace({path: value}) for value in values]
    names = [f"{path} {value:.6f}" for value in values]
    runs = dict(zip(names, ensembles(points, range(seeds), updates), strict=True))
    rows = [names] if chance.random() < 0.7 else [names[:1], names[1:]]
    return swept(_shaken(runs, chance), rows)


def _repeats(settings: Settings, seeds: int, updates: int, chance: np.random.Generator) -> Said:
    landscape = str(chance.choice(["single_peak", "single_peak", "chain"]))
    settings = settings.replace({"task": BanditTask(landscape=landscape)})
    parts = list(repeated(settings, range(seeds), updates))
    series = {name: np.concatenate([part.series[name] for part in parts]) for name in ("max_prob", "reward_mean")}
    if chance.random() < 0.2:
        series["reward_mean"][-1, chance.integers(seeds)] = np.nan
    data = Repeated(
        max_prob=series["max_prob"],
        reward=series["reward_mean"],
        likeliest=parts[-1].likeliest,
        rewards=task(settings.bandit).action_rewards,
        own=int(chance.integers(1, updates + 1)),
    )
    return data, found(data, Passed, Later, OnWrong, LastReward)


def _batches(settings: Settings, seeds: int, updates: int, chance: np.random.Generator) -> Said:
    settings, batches = settings.replace({"task": BanditTask()}), dict[str, Repeated]()
    for size in (4, 8)[: int(chance.integers(1, 3))]:
        parts = list(repeated(settings.replace({"learner.group_size": size}), range(seeds), updates))
        best = np.concatenate([part.best_prob for part in parts if part.best_prob is not None])
        if chance.random() < 0.2:
            best[-1, chance.integers(seeds)] = np.nan
        batches[f"G {size}"] = Repeated(
            max_prob=best,
            reward=best,
            likeliest=parts[-1].likeliest,
            rewards=task(settings.bandit).action_rewards,
            best_prob=best,
        )
    data = Batches(repeated=batches, actions=task(settings.bandit).vocabulary)
    return data, found(data, Reached)


def _shaken(runs: dict[str, Ensemble], chance: np.random.Generator) -> dict[str, Ensemble]:
    """Return the runs, some of them modified: diverged, identical, or equal at the end after different curves."""
    if chance.random() > SHAKEN:
        return runs
    changed = {name: dataclasses.replace(own, measures=_copied(own)) for name, own in runs.items()}
    first, *others = changed
    kind = chance.integers(4)
    if kind == 0:
        for name in changed:
            lost = chance.random(len(changed[name].seeds)) < 0.15
            for values in changed[name].measures.values():
                values[len(values) // 2 :, lost] = np.nan
    elif kind == 1 and changed[others[0]].measures["reward"].shape == changed[first].measures["reward"].shape:
        changed[others[0]].measures.update(_copied(changed[first]))
    else:
        for place, name in enumerate(changed):
            values = changed[name].measures["reward"]
            way = np.minimum(np.arange(len(values)) * (1 + 2 * place) / len(values), 1.0)
            values[:] = 0.2 + 0.7 * way[:, None] + 0.01 * chance.normal(size=values.shape)
    return changed


def _copied(runs: Ensemble) -> dict[str, np.ndarray]:
    return {name: values.copy() for name, values in runs.measures.items()}


def mutants(claim: Claim[Any], data: Any, chance: np.random.Generator) -> Iterator[Claim[Any]]:
    """Yield claims that differ from ``claim`` in one field: another value, another sign or another name."""
    fields = dataclasses.fields(claim)  # type: ignore[arg-type]
    for field in fields:
        for value in _other(getattr(claim, field.name), data, chance):
            yield dataclasses.replace(claim, **{field.name: value})  # type: ignore[type-var]


def _other(value: Any, data: Any, chance: np.random.Generator) -> Iterator[Any]:
    match value:
        case int():
            yield value + 1
            yield value - 1
        case float() if math.isinf(value):
            yield from (-value, 0.0)
        case float():
            yield value + float(chance.choice([-1, 1])) * max(1e-6, abs(value) * float(chance.uniform(0.001, 0.5)))
            if not agrees(value, -value):
                yield -value
        case str():
            yield from _others((value,), data)
        case tuple():
            yield value[:-1]
            close = len(value) > 1 and isinstance(value[0], float) and agrees(value[0], value[1])
            if len(value) > 1 and value[0] != value[1] and not close:
                yield (value[1], value[0], *value[2:])
            yield from ((other, *value[1:]) for other in _others(value, data))
        case _:
            raise AssertionError(f"a claim holds {value!r}")


def _others(names: tuple[Any, ...], data: Trained | Batches) -> Iterator[Any]:
    """Yield names whose runs differ from those of the first of ``names``; a claim would also be true of equal runs."""
    if isinstance(data, Batches):
        yield f"{names[0]}x" if isinstance(names[0], str) else -1.0
        return
    first = data.courses[names[0]]
    for name, course in data.courses.items():
        same = course.shape == first.shape and np.allclose(course, first, rtol=0, atol=1e-7, equal_nan=True)
        if name not in names and not same:
            yield name


def kind_of(claim: Claim[Any]) -> str:
    """Return the name of a claim's kind: its class, or its row if its wording is one row of a table."""
    return claim.kind if isinstance(claim, Tabled) else type(claim).__name__


def kinds_in(*names: str) -> tuple[str, ...]:
    """Return the kinds of claims defined as classes in the modules with these names."""
    modules = [vars(importlib.import_module(name)) for name in names]
    values = [value for module in modules for value in module.values() if isinstance(value, type)]
    return tuple(sorted({v.__name__ for v in values if issubclass(v, Claim) and v not in (Claim, Derived, Tabled)}))


def assert_enough(seen: Counter[str], kinds: Sequence[str], count: int, refused: int) -> None:
    """Assert that every kind was drawn often enough and nothing else was drawn. Prints the counts."""
    few = {kind: seen[kind] for kind in kinds if seen[kind] < count}
    assert few == {} and set(seen) <= set(kinds), (few, set(seen) - set(kinds))
    print(f"\n{sum(seen.values()):,} claims borne out, {refused:,} others refused: {dict(seen)}")


WORDS = {"kind": ("right", "wrong", "same"), "sort": ("right", "wrong", "same"), "name": ("a", "b", "c")}
"""Possible values of the fields of a claim that hold a word."""


def others(claim: Claim[Any], chance: np.random.Generator, skipped: Collection[str] = ()) -> Iterator[Claim[Any]]:
    """Yield claims that say something else: another value or the opposite sign for each number, another word for
    each word.
    """
    if isinstance(claim, Tabled):
        for name, value in claim.values:
            for other in () if name in skipped else _else(name, value, chance):
                pairs = tuple((key, other if key == name else old) for key, old in claim.values)
                yield dataclasses.replace(claim, values=pairs)
        return
    for field in dataclasses.fields(claim):  # type: ignore[arg-type]
        for other in () if field.name in skipped else _else(field.name, getattr(claim, field.name), chance):
            yield dataclasses.replace(claim, **{field.name: other})  # type: ignore[type-var]


def is_same(claim: Claim[Any], other: Claim[Any]) -> bool:
    """Return whether two claims say the same: they are of one kind, and their numbers agree to eight digits."""
    if kind_of(claim) != kind_of(other):
        return False
    of_both = [dict(one.values) if isinstance(one, Tabled) else vars(one) for one in (claim, other)]
    pairs = [(of_both[0][name], of_both[1].get(name)) for name in of_both[0]]
    return all(
        a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-8)) for a, b in pairs
    )


def _else(name: str, value: Any, chance: np.random.Generator) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case int():
            yield value + (100 if name in ("since", "where", "label") else int(chance.choice([-1, 1])))
        case float() if not math.isfinite(value):
            yield 0.5
        case float() if name == "limit":
            yield value + 100
        case float():
            yield value + float(chance.choice([-1, 1])) * max(1e-3, abs(value) * float(chance.uniform(0.15, 0.5)))
            if not agrees(value, -value):
                yield -value
        case str():
            yield from (word for word in WORDS.get(name, ()) if word != value)
        case _:
            return
