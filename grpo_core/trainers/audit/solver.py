"""Search for explanations of deviating numbers: discrete and fitted changes, alone, with a factor, and in pairs.

The simplest explanations are tried first: one change or one factor; a change with fitted parameters; a change with a
factor; two changes. Of the explanations that match every number up to rounding, those about as simple as the simplest
one are kept. Finally, those with equal predictions for this run are merged into one class. Parameters are fitted by
least squares if the loss is linear in them, otherwise by Gauss–Newton steps.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.errors import SettingsError
from grpo_core.trainers.changes.change import Change, Factor, Parameters, combined
from grpo_core.trainers.changes.numbers import SINGLE, Apply, Numbers, Update

STARTS, ROUNDS, HALVINGS = 2, 14, 4
"""Number of starting points that are followed, number of steps from each, and maximum number of halvings of a step.

A step is halved if it does not improve the fit.
"""
SLOW = 0.98
"""Fitting stops when a step leaves more than this share of the sum of squares."""
DIGITS = (1, 2, 3, 4)
"""Numbers of digits to which a fitted number is rounded. The smallest that still explains the numbers is used."""
ROUND = 2
"""A number with at most this many digits may have been chosen by a person."""
MOST = 64
"""Maximum integer that is plausible as a setting, for example as the number of processes or the group size.

Its reciprocal is plausible, too. Such numbers count as chosen by a person even if they have more digits than
:data:`ROUND`.
"""

Residuals = Callable[[Parameters], np.ndarray | None]
"""Differences relative to the rounding tolerance, (K,). None if they cannot be computed."""


def followed(residuals: Residuals, starts: Sequence[Parameters], low: float, high: float) -> Parameters:
    """Return the parameters with the smallest sum of squares, found by Gauss–Newton steps from the best of ``starts``,
    and further steps from the best result.
    """
    scored = sorted((squares(residuals(start)), start) for start in starts)
    found = [_descended(residuals, start, low, high) for _, start in scored[:STARTS]]
    return _descended(residuals, min(found, key=lambda p: squares(residuals(p))), low, high)


def squares(residuals: np.ndarray | None) -> float:
    if residuals is None:
        return np.inf
    total = float(residuals @ residuals) if np.isfinite(residuals).all() else np.inf
    return total if np.isfinite(total) else np.inf


def _descended(residuals: Residuals, start: Parameters, low: float, high: float) -> Parameters:
    now, here = np.array(start), residuals(start)
    for _ in range(ROUNDS):
        if here is None or not np.isfinite(here).all() or np.abs(here).max(initial=0.0) < 1e-3:
            break
        slopes = []
        for k in range(len(now)):
            nudged = now.copy()
            nudged[k] += 1e-5 * max(abs(now[k]), 0.01)
            there = residuals(tuple(nudged))
            slopes.append(np.zeros_like(here) if there is None else (there - here) / (nudged[k] - now[k]))
        jacobian = np.stack(slopes, axis=1)
        if not np.isfinite(jacobian).all() or not jacobian.any():
            break
        step = np.linalg.lstsq(jacobian, -here, rcond=None)[0]
        for _ in range(HALVINGS):
            tried = np.clip(now + step, low, high)
            there = residuals(tuple(tried))
            if squares(there) < squares(here):
                break
            step = step / 2
        else:
            break
        slow = squares(there) > SLOW * squares(here)
        now, here = tried, there
        if slow:
            break
    return tuple(float(x) for x in now)


def factor(numbers: Sequence[Numbers], columns: Sequence[int]) -> float | None:
    """Return the factor by which the coefficients of these ``columns`` are off, by least squares over all numbers.

    None if the columns do not determine it.
    """
    weights = np.concatenate([1.0 / np.maximum(each.allowed, 1e-300) for each in numbers])
    parts = [each.columns * each.coefficients for each in numbers]
    moved = np.concatenate([part[:, list(columns)].sum(axis=1) for part in parts]) * weights
    rest = [i for i in range(parts[0].shape[1]) if i not in columns]
    left = np.concatenate([n.theirs - part[:, rest].sum(axis=1) for n, part in zip(numbers, parts, strict=True)])
    size = float(moved @ moved)
    if not np.isfinite(size) or size <= 1.0 or not np.isfinite(left).all():
        return None
    return float(moved @ (left * weights)) / size


def rounded(values: Parameters, explains: Callable[[Parameters], bool]) -> Parameters:
    """Return ``values`` with the fewest digits that still explain the numbers, or unchanged if none do."""
    nothing = (0.0,) * len(values)
    if explains(nothing):
        return nothing
    for digits in DIGITS:
        tried = tuple(float(f"{value:.{digits}g}") for value in values)
        if explains(tried):
            return tried
    parts = tuple(1.0 / round(1.0 / value) if value and abs(value) < 1 else float(round(value)) for value in values)
    return parts if explains(parts) else values


def is_round(values: Parameters) -> bool:
    """Return whether a person may have chosen these numbers: few digits, a small integer or its reciprocal."""
    return all(_written(value) for value in values)


def _written(value: float) -> bool:
    if value == float(f"{value:.{ROUND}g}"):
        return True
    whole = value if abs(value) >= 1 else 1.0 / value
    return abs(whole) <= MOST and abs(whole - round(whole)) < 1e-9 * abs(whole)


PROMISING = 5
"""Number of the most promising changes that are combined with fitted ones in pairs."""
WORK, PASS = 25_000_000, 3_500
"""Budget in tokens for pairs of changes, which takes a few seconds, and the overhead of each pass in tokens."""
FEW = 3
"""Number of updates with which a fit begins."""
AS_SIMPLE = 0.25
"""Maximum cost above that of the cheapest explanation at which an explanation counts as equally simple."""
WRITTEN, FITTED, FURTHER = 1.2, 2.0, 0.3
"""Costs of a fitted number that a person may have chosen, of any other number, and of each additional number.

A change without numbers costs 1.
"""
ALIKE = 0.25
"""Maximum difference between equal predictions, as a share of the rounding tolerance."""
LOOSE = 10.0
"""Maximum tolerance of an explanation.

It is a multiple of the larger of two tolerances: the original one, and the rounding error of the trainer's number.
"""
SLACK = 1.5
"""Maximum deviation under an explanation, as a multiple of the rounding tolerance."""

Measure = Callable[[Update, Apply | None, np.ndarray | None], Numbers | None]
Changes = tuple[tuple[Change, Parameters], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """An explanation of deviating numbers.

    Attributes:
        changes: changes with their parameters, in the order in which they are applied; empty for a factor alone.
        cost: its complexity, lower for fewer and rounder numbers.
    """

    changes: Changes = ()
    factor: Factor | None = None
    value: float = 1.0
    cost: float = 0.0

    @property
    def numbers(self) -> int:
        """Number of fitted numbers."""
        return sum(len(p) for _, p in self.changes) + (self.factor is not None)


class Search:
    """Searches for explanations of the numbers of some updates.

    Attributes:
        updates: updates to search, those with the largest deviations first.
        measure: function that computes the numbers of an update under a change.
    """

    def __init__(
        self, updates: Sequence[Update], measure: Measure, changes: Sequence[Change], factors: Sequence[Factor]
    ) -> None:
        self.updates, self.measure, self.factors = updates, measure, factors
        self._work, self._allowed = 0, dict[int, np.ndarray]()
        self._kept: dict[int, list[Numbers] | None] = {}
        self.base = [numbers for update in updates if (numbers := measure(update, None, None)) is not None]
        self.changes = [change for change in changes if change.starts or self._acts(change)]

    def explanations(self, *, pairs: bool) -> list[Explanation]:
        """Return all explanations found, the simplest first. Empty if there are none."""
        alone: tuple[Callable[[], Iterator[Explanation]], ...] = (self._single, self._with_numbers)
        if any(update.rounding > SINGLE or update.precision is not None for update in self.updates):
            alone = (lambda: itertools.chain(self._single(), self._with_numbers()),)  # few digits fit by chance
            pairs = False
        for stage in (*alone, self._with_factor, self._pairs) if pairs else alone:
            found = sorted(stage(), key=lambda each: each.cost)
            if found:
                return [each for each in found if each.cost <= found[0].cost + AS_SIMPLE]
        return []

    def predicted(self, explanation: Explanation, updates: Sequence[Update] | None = None) -> list[Numbers] | None:
        """Return the numbers of ``updates`` (those of the search by default) under an explanation."""
        changes = explanation.changes
        if updates is None and len(changes) == 1 and not changes[0][1]:
            numbers = self._discrete(changes[0][0])
        elif updates is None and not changes:
            numbers = self.base
        else:
            numbers = self._measured(changes, self.updates if updates is None else updates)
        if numbers is None or explanation.factor is None:
            return numbers
        return [each.scaled(explanation.factor.columns, explanation.value) for each in numbers]

    def _single(self) -> Iterator[Explanation]:
        for change in self.changes:
            if not change.starts and explains(self._discrete(change)):
                yield Explanation(changes=((change, ()),), cost=1.0)
        yield from self._factored(())

    def _with_numbers(self) -> Iterator[Explanation]:
        for change in self.changes:
            if change.starts:
                yield from self._fitted((), change)

    def _with_factor(self) -> Iterator[Explanation]:
        for change in self.changes:
            if not change.starts:
                yield from self._factored(((change, ()),))

    def _pairs(self) -> Iterator[Explanation]:
        """Yield pairs of changes, starting with those that explain most on their own, until the budget is used up.

        Fitted changes are only combined with the most promising ones, because each such pair needs a fit.
        """
        ranked = sorted(self.changes, key=self._left)
        end = self._work + WORK
        pairs = sorted(itertools.combinations(range(len(ranked)), 2), key=lambda pair: (pair[0], pair[1]))
        order = {id(change): place for place, change in enumerate(self.changes)}
        for one, other in ((ranked[i], ranked[j]) for i, j in pairs if i < PROMISING or not ranked[j].starts):
            if self._work > end:
                return
            one, other = sorted((one, other), key=lambda change: order[id(change)])
            if one.part == other.part or (one.starts and other.starts):
                continue
            if not one.starts and not other.starts:
                changes: Changes = ((one, ()), (other, ()))
                found = all(explains(self._measured(changes, tried)) for tried in (self.updates[:1], self.updates))
                each = [Explanation(changes=changes, cost=2.0)] if found else []
            else:
                free, fixed = (one, other) if one.starts else (other, one)
                each = list(self._fitted(((fixed, ()),), free))
            if each:
                end = min(end, self._work + WORK // 4)
            yield from each

    def _left(self, change: Change) -> float:
        """Return the sum of squares that a change alone leaves in the first updates."""
        few = self.updates[:FEW]
        if not change.starts:
            return squares(self._residuals(((change, ()),), few))
        return min(squares(self._residuals(((change, start),), few)) for start in change.starts)

    def _factored(self, changes: Changes) -> Iterator[Explanation]:
        numbers = self.predicted(Explanation(changes=changes))
        if numbers is None or sum(len(each.theirs) for each in numbers) < 3:
            return
        for each in self.factors:

            def fits(value: Parameters, by: Factor = each) -> bool:
                return explains([each.scaled(by.columns, value[0]) for each in numbers])

            found = factor(numbers, each.columns)
            if found is None or abs(found - 1) < 1e-6 or not fits((found,)):
                continue
            (value,) = rounded((found,), fits)
            if value == 0.0 and each.name == "beta":  # a separate change
                continue
            cost = len(changes) + (WRITTEN if is_round((value,)) else FITTED)
            yield Explanation(changes=changes, factor=each, value=value, cost=cost)

    def _fitted(self, before: Changes, change: Change) -> Iterator[Explanation]:
        """Yield the change with its best-fitting parameters, if they explain the numbers and change any of them."""

        def residuals(p: Parameters, updates: Sequence[Update]) -> np.ndarray | None:
            return self._residuals((*before, (change, p)), updates)

        def measured(p: Parameters, updates: Sequence[Update]) -> list[Numbers] | None:
            return self._measured((*before, (change, p)), updates)

        few, count = self.updates[:FEW], len(change.starts[0])
        if sum(len(each.theirs) for each in self.base) <= count + 1:
            return
        start = followed(lambda p: residuals(p, few), change.starts, change.low, change.high)
        if not explains(measured(start, few)):
            return
        best = followed(lambda p: residuals(p, self.updates), (start,), change.low, change.high)
        if not explains(measured(best, self.updates)):
            return
        values = rounded(best, lambda p: explains(measured(p, self.updates)))
        without, numbers = self.predicted(Explanation(changes=before)), measured(values, self.updates)
        if without is not None and numbers is not None and alike(without, numbers):
            return
        cost = len(before) + (WRITTEN if is_round(values) else FITTED) + FURTHER * (count - 1)
        yield Explanation(changes=(*before, (change, values)), cost=cost)

    def _residuals(self, changes: Changes, updates: Sequence[Update]) -> np.ndarray | None:
        """Return the differences relative to the original rounding tolerance.

        The tolerance of a change must not affect its fit.
        """
        numbers = self._measured(changes, updates)
        if numbers is None:
            return None
        return np.concatenate([(n.ours - n.theirs) / b.allowed for n, b in zip(numbers, self.base, strict=False)])

    def _acts(self, change: Change) -> bool:
        numbers = self._discrete(change)
        return numbers is not None and not alike(numbers, self.base)

    def _discrete(self, change: Change) -> list[Numbers] | None:
        if id(change) not in self._kept:
            self._kept[id(change)] = self._measured(((change, ()),), self.updates)
        return self._kept[id(change)]

    def _measured(self, changes: Changes, updates: Sequence[Update]) -> list[Numbers] | None:
        apply = combined(*(change.bound(p) for change, p in changes))
        adding = [change.added for change, _ in changes if change.added is not None]
        found = []
        for update in updates:
            self._work += update.step.passes * (PASS + update.step.mask.size)
            try:
                added = sum(add(update) for add in adding) if adding else None
                numbers = self.measure(update, apply, added)  # type: ignore[arg-type]
            except (SettingsError, ValueError):
                return None
            if numbers is None:
                return None
            found.append(self._tight(update, numbers))
        return found

    def _tight(self, update: Update, numbers: Numbers) -> Numbers:
        """Return the numbers with limited tolerances, so that huge summands that cancel do not make everything fit."""
        if update.step.step not in self._allowed:
            base = self.measure(update, None, None)
            self._allowed[update.step.step] = numbers.allowed if base is None else base.allowed
        most = LOOSE * np.maximum(self._allowed[update.step.step], SINGLE * np.abs(numbers.theirs))
        return dataclasses.replace(numbers, allowed=np.minimum(numbers.allowed, most))


def explains(numbers: Sequence[Numbers] | None) -> bool:
    """Return whether there are numbers and none deviates by more than :data:`SLACK` allows."""
    return numbers is not None and len(numbers) > 0 and all(each.excess().max() <= SLACK for each in numbers)


def alike(one: Sequence[Numbers], other: Sequence[Numbers]) -> bool:
    """Return whether two predictions are equal, up to a share of the rounding tolerance."""
    return all(
        bool((np.abs(a.ours - b.ours) <= ALIKE * np.minimum(a.allowed, b.allowed) + 1e-12).all())
        for a, b in zip(one, other, strict=True)
    )
