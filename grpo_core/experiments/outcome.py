"""Claims about the outcome of runs with the same seeds, for races and sweeps.

They are used in the window and on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from grpo_core.claims.claim import Claim, Derived
from grpo_core.claims.comparison import Climbs, Failed, Lead, Level, Since, Trained, climbed
from grpo_core.claims.sweep import Between, Highest, Lowest, Moves, Smoothest, StillClimbing, Swept
from grpo_core.experiments.ensemble import Ensemble

Data = TypeVar("Data")


def found(data: Data, *kinds: type[Derived[Data]]) -> tuple[Claim[Data], ...]:
    """Return the claims of these kinds about the data, without those for which there is nothing to claim."""
    return tuple(claim for kind in kinds if (claim := kind.found_in(data)) is not None)


def trained(runs: Mapping[str, Ensemble], measure: str = "reward") -> Trained:
    """Return the raw data of ``runs`` by the names used in sentences: rewards, and which seeds are stuck.

    ``measure``: "reward", or "best_prob" to use the probability of the best action instead of the reward.

    Raises:
        ValueError: another measure, for which higher is not always better.
    """
    if measure not in ("reward", "best_prob"):
        raise ValueError(f"runs are not compared by {measure}")
    return Trained(
        courses={name: own.measures[measure] for name, own in runs.items()},
        stuck={name: own.stuck_seeds for name, own in runs.items()},
        floor=min(own.floor for own in runs.values()) if measure == "reward" else 0.0,
    )


def outcome(data: Trained) -> tuple[Claim[Trained], ...]:
    """Return claims about which algorithm leads or whether several are level, and how many of their seeds failed.

    Empty for fewer than two algorithms.
    """
    if len(data.courses) < 2:
        return ()
    first = (Lead, Since) if len(data.in_front()) == 1 else (Level,)
    return found(data, *first, Failed)


def details(data: Trained) -> tuple[Claim[Trained], ...]:
    """Return further claims, for displays with more space, about which algorithms are still improving."""
    claims = (Climbs(name=name, **rise.numbers) for name, rise in climbed(data).items())
    return tuple(claim for claim in claims if claim.holds)


def swept(runs: Mapping[str, Ensemble], rows: Sequence[Sequence[str]]) -> Swept:
    """Return the raw data of a sweep by point. The one of ``rows`` that has the best point is described."""
    data = trained(runs)
    best = data.ranked()[0][0]
    (row,) = (row for row in rows if best in row)
    return Swept(
        courses=data.courses,
        stuck=data.stuck,
        floor=data.floor,
        kl={name: runs[name].measures["kl"] for name in row},
    )


def of_sweep(data: Swept, *, in_order: bool, smoothness: bool) -> Iterator[tuple[Claim[Swept], ...]]:
    """Yield the claims about a sweep of at least two points, one tuple per sentence.

    Args:
        in_order: whether the points of the row are numbers, which have an order.
        smoothness: whether to include where training was smoothest.
    """
    (leader, _), *_ = data.ranked()
    last = Lowest.found_in(data)
    yield (*found(data, Highest, Level), *(() if leader in last.names else (last,)), *found(data, Failed))
    if len(data.kl) > 1:
        yield found(data, Moves if in_order else Between)
        if smoothness and (smoothest := found(data, Smoothest)):
            yield smoothest
    if still := found(data, StillClimbing):
        yield still
