"""What came of a race, in one sentence computed from its runs: who, by how much, from when."""

from __future__ import annotations

import numpy as np

from app.panels.experiments.race.looks import spoken
from app.panels.experiments.race.results import RaceResults
from app.plotting.numbers import shown
from grpo_core.text import tr

LEVEL = 0.005
"""Final rewards (medians over the seeds) that differ by less count as equal."""
FINISH = 0.9
"""Of those that end level the first one past this share of the best final reward is named."""
CLIMBING, LAST = 0.01, 0.1
"""An algorithm still climbs if the last tenth of its updates has raised its median reward by more than this."""


def headline(results: RaceResults) -> str:
    """The result of a race that is complete; empty before, and where fewer than two algorithms have finite rewards."""
    finite = [(name, reward) for name, reward in results.ranked() if np.isfinite(reward)]
    if not results.complete or len(finite) < 2:
        return ""
    (first, best), (second, next_best) = finite[:2]
    level = [name for name, reward in finite if best - reward < LEVEL]
    if len(level) > 1:
        line = FINISH * best
        past = {name: crossing for name in level if (crossing := _first_past(results, name, line)) is not None}
        quickest = [name for name, updates in past.items() if updates == min(past.values())]
        sentence = tr("{count} of {all} algorithms end level at reward {best}, {last} last at {worst}.").format(
            count=len(level), all=len(finite), best=shown(best), last=spoken(finite[-1][0]), worst=shown(finite[-1][1])
        )
        if len(quickest) == 1:
            sentence = tr(
                "{first} is first past reward {line}, after {updates} updates; {count} of {all} algorithms end level "
                "at {best}."
            ).format(
                first=spoken(quickest[0]), line=shown(line), updates=past[quickest[0]], count=len(level),
                all=len(finite), best=shown(best),
            )  # fmt: skip
    else:
        sentence = tr("{first} ends highest, at reward {best}, {gap} above {second}.").format(
            first=spoken(first), best=shown(best), gap=shown(best - next_best), second=spoken(second)
        )
        since = _led_since(results, first)
        if since is not None:
            sentence = tr(
                "{first} leads from update {since} on and ends at reward {best}, {gap} above {second}."
            ).format(
                first=spoken(first), since=since, best=shown(best), gap=shown(best - next_best), second=spoken(second)
            )
    climbing = [spoken(name) for name, _ in finite if _climbs(results, name)]
    if not climbing:
        return sentence
    return " ".join((sentence, tr("Still climbing at the end: {names}.").format(names=", ".join(climbing))))


def _led_since(results: RaceResults, first: str) -> int | None:
    """The first update after which ``first`` has always had the highest median; None where updates do not compare."""
    courses = {name: digest.courses["reward"].middle for name, digest in results.digests.items()}
    if results.plan.fairness == "samples" or len({len(course) for course in courses.values()}) > 1:
        return None
    others = np.nanmax(np.stack([course for name, course in courses.items() if name != first]), axis=0)
    behind = np.flatnonzero(~(courses[first] > others))
    return int(behind[-1]) + 1 if len(behind) else 0


def _first_past(results: RaceResults, name: str, line: float) -> int | None:
    """The first update whose median reward is past ``line``; None for none, and where updates do not compare."""
    if results.plan.fairness == "samples":
        return None
    past = np.flatnonzero(results.digests[name].courses["reward"].middle > line)
    return int(past[0]) if len(past) else None


def _climbs(results: RaceResults, name: str) -> bool:
    course = results.digests[name].courses["reward"].middle
    return bool(course[-1] - course[-1 - max(round(LAST * (len(course) - 1)), 1)] > CLIMBING)
