"""What came of runs under the same seeds, as claims: for race and sweep, in the window and on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grpo_core.claims.claim import Claim
from grpo_core.claims.comparison import (
    Climbs,
    Failed,
    Lead,
    Level,
    Since,
    Sooner,
    Trained,
    climbed,
    finish_line,
    led_since,
    sooner,
)
from grpo_core.experiments.ensemble import Ensemble


def trained(runs: Mapping[str, Ensemble]) -> Trained:
    """The raw arrays of ``runs``, by the names that sentences give them: their expected rewards, and who is stuck."""
    return Trained(
        courses={name: own.measures["reward"] for name, own in runs.items()},
        stuck={name: own.stuck_seeds for name, own in runs.items()},
        floor=min(own.floor for own in runs.values()),
    )


def outcome(data: Trained) -> tuple[Claim[Trained], ...]:
    """Who leads or who is level, and how many of their seeds failed; empty for fewer than two."""
    if len(data.courses) < 2:
        return ()
    ranked = data.ranked()
    (leader, best), (second, _) = ranked[:2]
    found = data.against(leader)
    level = (leader, *(name for name, _ in ranked[1:] if found[name].level))
    if len(level) == 1:
        ahead = found[second]
        since = led_since(data, leader) if data.equal_updates else None
        return (
            Lead(leader=leader, other=second, by=ahead.by, low=ahead.low, high=ahead.high),
            *(() if since is None else (Since(leader=leader, update=since),)),
            failed(data, (leader,)),
        )
    near = found[level[1]]
    told = Level(
        names=level, behind=len(ranked) - len(level), best=best, by=near.by, low=near.low, high=near.high
    )  # fmt: skip
    return (told, *_first(data, level), failed(data, level))


def details(data: Trained) -> tuple[Claim[Trained], ...]:
    """What is said where there is more room: who still climbs."""
    found = {name: climbed(data, name) for name, _ in data.ranked()}
    claims = (Climbs(name=name, by=here.by, low=here.low, high=here.high) for name, here in found.items())
    return tuple(claim for claim in claims if claim.holds)


def failed(data: Trained, names: Sequence[str]) -> Failed:
    """How many of the seeds of ``names`` are stuck, and how many diverged."""
    lost = [data.diverged(name) for name in names]
    return Failed(
        names=tuple(names), diverged=sum(int(own.sum()) for own in lost), of=sum(map(len, lost)),
        stuck=sum(int((data.stuck[name] & ~own).sum()) for name, own in zip(names, lost, strict=True)),
    )  # fmt: skip


def _first(data: Trained, level: tuple[str, ...]) -> tuple[Claim[Trained], ...]:
    """Who of those that end level was there first, if the seeds tell."""
    line = finish_line(data, level[0])
    found = sooner(data, level, line) if data.equal_updates else None
    if found is None:
        return ()
    names, updates, ahead = found
    return (Sooner(names=names, line=line, updates=updates, by=ahead.by, low=ahead.low, high=ahead.high),)
