"""Claims about the outcome of runs with the same seeds, for races and sweeps.

They are used in the window and on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from grpo_core.claims.claim import Claim
from grpo_core.claims.comparison import Climbs, Failed, Lead, Level, Since, Sooner, Trained, climbed
from grpo_core.claims.repeats import Batches, LastReward, Later, OnWrong, Passed, Reached, Repeated
from grpo_core.claims.sweep import Between, Highest, Lowest, Moves, Smoothest, StillClimbing, Swept
from grpo_core.experiments.ensemble import Ensemble


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
    lead = Lead.found_in(data)
    found = (lead or Level.found_in(data), None if lead is None else Since.found_in(data), Failed.found_in(data))
    return tuple(claim for claim in found if claim is not None)


def speed(data: Trained) -> tuple[Claim[Trained], ...]:
    """Return the claim about which algorithm is the first to pass a line. Empty if that cannot be compared."""
    first = Sooner.found_in(data)
    return () if first is None else (first,)


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
    found = (
        Highest.found_in(data) or Level.found_in(data),
        last if leader not in last.names else None,
        Failed.found_in(data),
    )
    yield tuple(claim for claim in found if claim is not None)
    if len(data.kl) > 1:
        yield (Moves.found_in(data) if in_order else Between.found_in(data),)
        smoothest = Smoothest.found_in(data) if smoothness else None
        if smoothest is not None:
            yield (smoothest,)
    still = StillClimbing.found_in(data)
    if still is not None:
        yield (still,)


def of_batches(data: Batches) -> tuple[Claim[Batches], ...]:
    """Return the claim about the best action in batches of repeats. Empty if the task has no reward per action."""
    reached = Reached.found_in(data)
    return () if reached is None else (reached,)


def of_repeats(data: Repeated) -> tuple[Claim[Repeated], ...]:
    """Return claims about repeats of a run, which must have at least one update."""
    found = (kind.found_in(data) for kind in (Passed, Later, OnWrong, LastReward))
    return tuple(claim for claim in found if claim is not None)
