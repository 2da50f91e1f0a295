"""Causes of deviations, and the search for them: found in some updates, verified on all, then classified and graded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.claims.claim import told
from grpo_core.text import tr
from grpo_core.trainers.audit.solver import Explanation, Search, alike
from grpo_core.trainers.changes import of_advantage, of_loss
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.changes.numbers import of_advantage as advantage_numbers
from grpo_core.trainers.changes.numbers import of_loss as loss_numbers
from grpo_core.trainers.claims.causes import Done, Explained, Misplaced, Remedy, done_in, settings_of
from grpo_core.trainers.claims.effects import Effect, effects, sides

NAMED, POSSIBLE, SUSPECTED = "named", "possible", "suspected"
"""Grades of a cause.

In order: it explains all numbers up to rounding, and no other equally simple cause does; it is one of several equally
simple causes that do; the record suggests it although the numbers agree.
"""
SEARCHED, ENOUGH = 8, 4
"""Maximum and minimum number of updates in which causes are searched for.

If fewer than the minimum deviate, later agreeing updates are added.
"""
LARGE = 400_000
"""Number of tokens in the searched updates and passes above which pairs of changes are not tried.

Above it, fewer updates are searched, too.
"""
CLEAR = 3.0
"""Minimum deviation, as a multiple of the rounding tolerance, that cannot be due to chance."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause, or a class of causes that this run cannot distinguish.

    Attributes:
        claims: the claims, one for each cause of the class, the simplest first.
        since: the trainer's number for the first affected update; None if that is the first update of the run.
        until: the trainer's number for the last affected update; None if that is the last update of the run.
        residual: largest remaining difference, relative to the rounding tolerance; None if not measured.
        effects: the claims about the pushes on tokens under the first cause of the class.
    """

    grade: str
    claims: tuple[Explained | Misplaced, ...]
    since: int | None = None
    until: int | None = None
    residual: float | None = None
    effects: tuple[Effect, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(done.cause for claim in self.claims for done in done_in(claim)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about what was done, one for each cause of the class."""
        return tuple(dict.fromkeys(claim.words() for claim in self.claims))

    @property
    def effect(self) -> str:
        """Sentences about the pushes on tokens under the cause. Empty if they cannot be computed."""
        return told(self.effects)

    @property
    def remedy(self) -> str:
        """Sentence about the setting, or the line of the trainer's script, that would correct the cause."""
        return Remedy(cause=self.claims[0]).words()

    @property
    def when(self) -> str:
        """Sentence about the updates that the cause affects. Empty if it affects all."""
        if self.since is None and self.until is None:
            return ""
        if self.until is None:
            return tr("From step {since} on.").format(since=self.since)
        if self.since is None:
            return tr("Up to step {until}.").format(until=self.until)
        return tr("From step {since} to step {until}.").format(since=self.since, until=self.until)


@dataclass(frozen=True, kw_only=True)
class Departing:
    """An update whose numbers of one kind have been compared.

    Attributes:
        label: the trainer's number for the update.
        excess: the largest difference, relative to the rounding tolerance; if it is above 1, the update deviates.
    """

    position: int
    label: int
    excess: float


def of_departures(what: str, compared: Sequence[Departing], read: Callable[[int], Update]) -> Iterator[Cause]:
    """Yield the causes of deviating numbers.

    Args:
        what: "advantage" or "loss".
        compared: every update whose numbers of this kind were compared, in order.
        read: function that reads an update by its position.
    """
    departing = [each for each in compared if each.excess > 1]
    if not departing:
        return
    chosen = _spread(departing, SEARCHED)
    later = [each for each in compared if each.excess <= 1 and each.position > departing[0].position]
    clear = any(each.excess > CLEAR for each in departing)
    added = _spread(later, ENOUGH - len(chosen))
    for those in ([*chosen, *added], chosen) if added else (chosen,):  # alone if the fault ended before the others
        updates = [read(each.position) for each in sorted(those, key=lambda each: -each.excess)]
        size = sum(update.step.mask.size * update.step.passes for update in updates)
        if size > LARGE:
            updates = updates[: max(2, int(len(updates) * LARGE / size))]
        held = list(_holding(what, _search(what, updates), compared, read, clear, pairs=size <= LARGE))
        yield from held
        if held:
            return


def _search(what: str, updates: Sequence[Update]) -> Search:
    first = updates[0].step
    if what == "loss":
        return Search(updates, loss_numbers, list(of_loss.of_loss(first)), of_loss.FACTORS)
    changes = list(of_advantage.of_advantage(first))
    return Search(updates, lambda u, apply, added: advantage_numbers(u, apply), changes, of_advantage.FACTORS)


def _spread(departing: Sequence[Departing], count: int) -> list[Departing]:
    """Select the first, the last and some in between, evenly spread."""
    if not departing or count < 1:
        return []
    places = np.unique(np.linspace(0, len(departing) - 1, min(count, len(departing))).round().astype(int))
    return [departing[place] for place in places]


def _distinct(search: Search, found: Sequence[Explanation]) -> list[Explanation]:
    """Return the explanations that are not redundant.

    An explanation is redundant if a simpler one changes the same part of an update and predicts the same numbers.
    """
    kept: list[Explanation] = []
    for each in found:
        simpler = [k for k in kept if _parts(k) == _parts(each) and k.cost < each.cost]
        if not any(_same(search, each, k) for k in simpler):
            kept.append(each)
    return kept


def _parts(explanation: Explanation) -> set[str]:
    return {change.part for change, _ in explanation.changes}


def _same(search: Search, one: Explanation, other: Explanation) -> bool:
    a, b = search.predicted(one), search.predicted(other)
    return a is not None and b is not None and alike(a, b)


def _holding(
    what: str, search: Search, compared: Sequence[Departing], read: Callable[[int], Update], clear: bool, pairs: bool
) -> Iterator[Cause]:
    """Yield the causes found in the searched updates that hold in all of them."""
    classes: list[list[tuple[Explanation, int | None, int | None, float]]] = []
    explanations = _distinct(search, search.explanations(pairs=pairs))
    for explanation, excesses in zip(explanations, _left(search, explanations, compared, read), strict=True):
        span = _span(compared, excesses)
        if span is None:
            continue
        own = next((those for those in classes if _same(search, explanation, those[0][0])), None)
        if own is None:
            classes.append(own := [])
        own.append((explanation, *span))
    for those in classes:
        explanation, since, until, residual = those[0]
        enough = sum(int((n.excess() > 1).sum()) for n in search.base) > explanation.numbers
        named = len(classes) == 1 and clear and enough
        claims = tuple(_claim(what, search, each[0]) for each in those)
        yield Cause(
            grade=NAMED if named else POSSIBLE,
            claims=claims,
            effects=effects(sides(claims[0], search.updates)),
            since=since,
            until=until,
            residual=residual,
        )


def _left(
    search: Search, explanations: Sequence[Explanation], compared: Sequence[Departing], read: Callable[[int], Update]
) -> list[list[float]]:
    """Return the largest remaining difference of every update, for each explanation.

    It is relative to the rounding tolerance.
    """
    left: list[list[float]] = [[] for _ in explanations]
    if explanations:
        for each in compared:
            update = read(each.position)
            for explanation, excesses in zip(explanations, left, strict=True):
                numbers = search.predicted(explanation, [update])
                excesses.append(max(float(each.excess().max()) for each in numbers) if numbers else float("inf"))
    return left


def _claim(what: str, search: Search, explanation: Explanation) -> Explained:
    objective = search.updates[0].step.settings.objective
    done = [
        Done(cause=c.name, values=p, detail=c.detail, set=settings_of(c.name, objective))
        for c, p in explanation.changes
    ]
    if explanation.factor is not None:
        name, value = explanation.factor.name, explanation.value
        known = settings_of(name, objective)
        value = float(f"{value * known[0]:.6g}") if name == "beta" else value
        done.append(Done(cause=name, values=(value,), set=known))
    return Explained(what=what, done=tuple(done))


def _span(compared: Sequence[Departing], left: Sequence[float]) -> tuple[int | None, int | None, float] | None:
    """Return the range of updates to which an explanation applies, and the largest remaining difference.

    The range is given by the labels of its first and last update (None for the first and the last of the run). The
    result is None if deviations remain in updates that no such range excludes. An update that agrees both with and
    without the explanation can be inside or outside the range.
    """
    shown = [i for i, each in enumerate(compared) if each.excess > 1]
    first, last = shown[0], shown[-1]
    if any(excess > LEAVES for excess in left[first : last + 1]):
        return None
    before = any(excess > LEAVES for excess in left[:first])
    after = any(excess > LEAVES for excess in left[last + 1 :])
    residual = max(left[first : last + 1])
    return compared[first].label if before else None, compared[last].label if after else None, residual


LEAVES = 2.0
"""Maximum remaining difference of an explained update, relative to the rounding tolerance."""
