"""Sentences about a race."""

from __future__ import annotations

from app.experiments.controller import ExperimentController
from app.experiments.race.choices import FAIR
from app.experiments.race.plan import RacePlan
from app.experiments.race.results import RaceResults
from app.plotting.numbers import shown
from grpo_core.claims.claim import sentence
from grpo_core.claims.numbers import written
from grpo_core.config import described_at
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.race import spoken
from grpo_core.text import enumeration, listed, plural, tr

BANDS = tr("Bands contain the middle half of the seeds.")


def status_text(controller: ExperimentController[RaceResults], wanted: RacePlan, remark: str, *, settling: bool) -> str:
    """Return a message about the most urgent aspect of the state of a race.

    Args:
        wanted: the race that the controls currently define.
        remark: a message about settings of the run that a race cannot use.
        settling: whether a new race is about to start automatically.
    """
    results, coming = controller.results, controller.coming
    if coming is not None:
        return tr("Racing: {running}, {done} of {count}.").format(
            running=spoken(coming.running), done=coming.count + 1, count=len(wanted.names)
        )
    if controller.problem or results is None:
        return controller.problem
    if results.plan != wanted and not settling:
        return of_change(results.plan, wanted)
    climbing = sentence(*results.details) if results.complete else ""
    outcome = (of_same(results), of_rest(results), climbing, FAIR[results.plan.fairness][1], BANDS)
    return " ".join(part for part in (results.note, remark, *outcome) if part)


def of_same(results: RaceResults) -> str:
    """Return sentences about algorithms whose runs are identical seed by seed, or an empty string if there are none."""
    return " ".join(
        tr("{names} coincide: the same runs, seed by seed.").format(names=enumeration([spoken(name) for name in group]))
        for group in results.coinciding()
    )


def of_rest(results: RaceResults) -> str:
    """Return a sentence about what else differs between the algorithms in a race with equal step length.

    The string is empty for other races, and if nothing else differs.
    """
    if results.plan.fairness != "step_length":
        return ""
    patterns = {
        "objective.beta": tr("β still differs: it is {highest:g} for {names}."),
        "learner.mu": tr("μ still differs: it is {highest:g} for {names}."),
    }
    sentences = []
    for path, pattern in patterns.items():
        of_lanes = {spoken(name): runs.settings.get(path) for name, runs in results.lanes.items()}
        highest = max(of_lanes.values(), default=0)
        if len(set(of_lanes.values())) > 1:
            names = [name for name, value in of_lanes.items() if value == highest]
            sentences.append(pattern.format(highest=highest, names=enumeration(names)))
    return " ".join(sentences)


def of_differences(results: RaceResults) -> list[str]:
    """Return lines that say how far each algorithm is behind the leader of a complete race."""
    leader = spoken(results.ranked()[0][0])
    lines = []
    for name, gap in results.trained.behind.items():
        by, low, high = written(*gap.numbers.values())
        pattern = (
            tr("{leader} and {name}: level, {by} [{low}, {high}]")
            if gap.level
            else tr("{leader} leads {name} by {by} [{low}, {high}]")
        )
        lines.append(pattern.format(leader=leader, name=name, by=by, low=low, high=high))
    return lines


def of_change(then: RacePlan, now: RacePlan) -> str:
    """Return a sentence about what the user has changed since the displayed race was started."""
    try:
        paths = list(then.settings.differences(now.settings))
    except SettingsError:
        paths = []
    if not paths:
        return tr("Another race is chosen; press Race.")
    if "task" in paths:
        return tr("Raced with another kind of task; press Race.")
    titles = [tr("“{title}”").format(title=described_at(path).title) for path in paths]
    if len(titles) <= 3:
        return tr("Raced before a change of {settings}; press Race.").format(settings=enumeration(titles))
    return plural(
        "Raced before a change of {settings} and {count} more setting; press Race.",
        "Raced before a change of {settings} and {count} more settings; press Race.",
        len(titles) - 2,
    ).format(settings=listed(titles[:2]), count=len(titles) - 2)


def of_opening(name: str, runs: Ensemble, place: int) -> str:
    """Return a sentence that says which run of a race is opened, and how closely the opened run repeats it."""
    updates = len(runs.measures["reward"]) - 1
    return plural(
        "{name}, seed {seeds}: {updates:,} update repeats what the race computed, bit for bit on the same "
        "kind of processor.",
        "{name}, seed {seeds}: {updates:,} updates repeat what the race computed, bit for bit on the same "
        "kind of processor.",
        updates,
    ).format(name=spoken(name), seeds=runs.seeds[place], updates=updates)


def summary(results: RaceResults) -> str:
    """Return a one-sentence summary of the race for screen readers."""
    plan = results.plan
    best = [f"{name} {shown(reward)}" for name, reward in results.ranked()]
    if not best:
        return tr("No algorithm has finished yet.")
    lost = [name for name, runs in results.lanes.items() if runs.diverged.any()]
    sentences = [
        plural(
            "Race over {seeds} seed and {updates:,} updates; mean of the final reward, the best first: {best}.",
            "Race over {seeds} seeds and {updates:,} updates; mean of the final reward, the best first: {best}.",
            plan.seeds,
        ).format(seeds=plan.seeds, updates=plan.updates, best=listed(best)),
        of_same(results),
        tr("{lost} became non-finite.").format(lost=enumeration(lost)) if lost else "",
        results.note,
    ]
    return " ".join(filter(None, sentences))
