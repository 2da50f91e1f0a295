"""Claims about the outcome of runs with the same seeds, for races and sweeps.

They are used in the window and on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from grpo_core.claims.claim import Claim
from grpo_core.claims.comparison import Climbs, Failed, Lead, Level, Since, Sooner, Trained, climbed, led_since, sooner
from grpo_core.claims.repeats import Batches, LastReward, Later, OnWrong, Passed, Reached, Repeated, wrong
from grpo_core.claims.sweep import (
    Between,
    Highest,
    Lowest,
    Moves,
    Smoothest,
    StillClimbing,
    Swept,
    climbing,
    lowest,
    median,
    moved,
    smoothest,
)
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
    ranked = data.ranked()
    (leader, best), (second, _) = ranked[:2]
    found = data.against(leader)
    level = data.in_front()
    if len(level) == 1:
        ahead = found[second]
        since = led_since(data, leader) if data.equal_updates else None
        return (
            Lead(leader=leader, other=second, by=ahead.by, low=ahead.low, high=ahead.high),
            *(() if since is None else (Since(leader=leader, update=since),)),
            failed(data, (leader,)),
        )
    near = found[level[1]]
    least = min(dict(ranked)[name] for name in level)
    told = Level(
        names=level,
        behind=len(ranked) - len(level),
        best=best,
        least=least,
        by=near.by,
        low=near.low,
        high=near.high,
        few=any(found[name].few for name in level[1:]),
    )
    return (told, failed(data, level))


def speed(data: Trained) -> tuple[Claim[Trained], ...]:
    """Return the claim about which algorithm is the first to pass a line. Empty if that cannot be compared."""
    there = sooner(data)
    if there is None:
        return ()
    names, line, updates, lead = there
    by = {"by": lead.by, "low": lead.low, "high": lead.high}
    return (Sooner(names=names, line=line, updates=updates, **by, few=lead.few),)


def details(data: Trained) -> tuple[Claim[Trained], ...]:
    """Return further claims, for displays with more space, about which algorithms are still improving."""
    found = climbed(data)
    claims = (Climbs(name=name, by=found[name].by, low=found[name].low, high=found[name].high) for name in found)
    return tuple(claim for claim in claims if claim.holds)


def failed(data: Trained, names: Sequence[str]) -> Failed:
    """Return the claim about the seeds of ``names`` that are stuck or diverged."""
    lost = [data.diverged(name) for name in names]
    return Failed(
        names=tuple(names),
        diverged=sum(int(own.sum()) for own in lost),
        of=sum(map(len, lost)),
        stuck=sum(int((data.stuck[name] & ~own).sum()) for name, own in zip(names, lost, strict=True)),
    )


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
    (leader, best), *_ = data.ranked()
    names, least = lowest(data)
    told = tuple(claim for claim in outcome(data) if not isinstance(claim, Since))
    first, *others = told
    if isinstance(first, Lead):
        first = Highest(leader=leader, other=first.other, by=first.by, low=first.low, high=first.high, best=best)
    lost = data.diverged(names[0])
    last = Lowest(names=names, least=least, diverged=int(lost.sum()), of=len(lost))
    yield (first, *((last,) if leader not in names else ()), *others)
    if len(data.kl) > 1:
        yield (_of_kl(data, in_order=in_order),)
        found = smoothest(data) if smoothness else None
        if found is not None:
            smooth, rough, least, most, more = found
            yield (Smoothest(best=smooth, worst=rough, least=least, most=most, low=more.low, high=more.high),)
    still = climbing(data)
    if still:
        yield (StillClimbing(names=still, all=len(data.kl), updates=len(data.courses[leader]) - 1),)


def _of_kl(data: Swept, *, in_order: bool) -> Claim[Swept]:
    middle = [median(data.last_kl(name)) for name in data.kl]
    least, most = min(middle), max(middle)
    if not in_order:
        return Between(least=least, most=most)
    first, last, change = moved(data)
    seeds = len(data.last_kl(next(iter(data.kl))))
    return Moves(first=first, last=last, low=change.low, high=change.high, least=least, most=most, seeds=seeds)


def of_batches(data: Batches) -> tuple[Claim[Batches], ...]:
    """Return the claim about the best action in batches of repeats. Empty if the task has no reward per action."""
    found = data.reached()
    if not found:
        return ()
    means, lows, highs = (tuple(getattr(one, name) for one in found) for name in ("by", "low", "high"))
    names = tuple(data.repeated)
    return (Reached(action=data.action, updates=data.updates, names=names, means=means, lows=lows, highs=highs),)


def of_repeats(data: Repeated) -> tuple[Claim[Repeated], ...]:
    """Return claims about repeats of a run, which must have at least one update."""
    past, own = np.sort(data.passed), data.own
    there, count = int(np.isfinite(past).sum()), len(past)
    middle = max(there - 1, 0)
    passed = Passed(
        count=count,
        there=there,
        updates=len(data.max_prob),
        first=float(past[0]),
        middle=float(past[middle // 2]),
        last=float(past[middle]),
    )
    last, missed = data.last, wrong(data)
    reward = LastReward(
        updates=len(data.reward),
        median=float(np.median(last)),
        mean=float(last.mean()),
        low=float(last.min()),
        high=float(last.max()),
        diverged=int((~np.isfinite(data.reward[-1])).sum()),
        of=count,
    )
    later = (Later(own=own, before=int((past < own).sum()), of=count),) if own is not None and there else ()
    ends = () if missed is None else (OnWrong(wrong=missed, of=count, updates=len(data.max_prob)),)
    return (passed, *later, *ends, reward)
