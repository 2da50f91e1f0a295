"""The fair race: algorithms on the same landscape, with the same seeds, at equal updates, samples or step length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.config import PRESETS, Objective, Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble, Train, band, ensembles
from grpo_core.plugins import package_of
from grpo_core.progress import unpolled
from grpo_core.rounding import DOUBLE
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr

FAIRNESS = ("updates", "samples", "step_length")
SIX = ("REINFORCE", "REINFORCE + baseline", "RLOO", "GRPO (DeepSeekMath)", "Dr. GRPO", "PPO-clip")
"""Algorithms that take part in a race by default."""
ALONE = ("REINFORCE", "REINFORCE + running mean")
"""Algorithms without groups: at equal samples they update after each sample."""
MU = 1
"""Default number of passes over each batch, the same for every algorithm."""
STEP_LENGTH = 0.3
"""Euclidean length of an update of the logits in a race of equal step length."""
LOCAL_PEAK: dict[str, Any] = {
    "task.landscape": "double_peak",
    "task.half_width": 2.5,
    "task.bias": 2.0,
    "task.bias_action": 3,
}
"""Settings of the double peak with an initial policy that prefers the lower peak.

From a uniform start, hardly any run gets stuck.
"""


SPOKEN = {"GRPO (DeepSeekMath)": "GRPO"}
"""Names of algorithms in sentences, if different from their titles."""
TERMS = {"objective.beta": "β {:g}", "learner.mu": "μ {:g}", "learner.group_size": "G {:g}"}
"""Numbers that can differ between the algorithms of a race, with the format in which they are appended to a name."""
EXTRAS = {"learner.critic": tr("critic"), "learner.resample_dead": tr("redraws dead groups")}
"""Features that only some algorithms of a race have, with the words that are appended to their names."""


def entered(settings: Settings, name: str, fairness: str = "updates", *, own_mu: bool = False) -> Settings:
    """Return the settings of the preset ``name``, or of the surrogate ``name`` of a package, in a race.

    They have the preset's own objective, with the β of ``settings`` if it has a KL. ``own_mu``: whether to use the
    number of passes that the preset's source fixes. Otherwise all use that of ``settings``, because more passes over a
    batch mean more steps.

    Raises:
        SettingsError: there is no such preset or kind of fairness.
    """
    if fairness not in FAIRNESS:
        raise SettingsError(
            "fairness", fairness, tr("it must be one of {fairness}").format(fairness=", ".join(FAIRNESS))
        )
    if name in PRESETS:
        own = PRESETS[name].applied_to(settings)
    elif package_of(name) and name in SURROGATES:
        own = settings.replace({"objective": Objective(surrogate=name, beta=settings.objective.beta)})
    else:
        raise SettingsError("preset", name, tr("there is no such preset"))
    if not own_mu:
        own = own.replace({"learner.mu": settings.learner.mu})
    if own.objective.beta:
        own = own.replace({"objective.beta": settings.objective.beta})
    if fairness == "samples" and name in ALONE:
        own = own.replace({"learner.group_size": 1})
    return own.replace({"optimizer.step_length": STEP_LENGTH}) if fairness == "step_length" else own


def spoken(name: str) -> str:
    """Return the name of the algorithm ``name`` in a sentence."""
    return SPOKEN.get(name, name)


def differing(entries: Mapping[str, Settings]) -> dict[str, str]:
    """Return what distinguishes each algorithm of a race apart from its objective, in short form, such as "β 0.04".

    ``entries``: name -> its settings. The strings are empty if nothing differs.
    """
    apart = [path for path in (*TERMS, *EXTRAS) if len({own.get(path) for own in entries.values()}) > 1]
    return {
        name: ", ".join(
            TERMS[path].format(own.get(path)) if path in TERMS else EXTRAS[path]
            for path in apart
            if path in TERMS or own.get(path)
        )
        for name, own in entries.items()
    }


def race(
    settings: Settings,
    names: Sequence[str] = SIX,
    seeds: Sequence[int] = tuple(range(64)),
    updates: int = 200,
    fairness: str = "updates",
    own_mu: bool = False,
    *,
    poll: Callable[[], None] = unpolled,
    train: Train = ensembles,
) -> Iterator[tuple[str, Ensemble]]:
    """Run all algorithms with common random numbers, and yield the name and the runs of each.

    Args:
        settings: task, group size, learning rate, number of passes μ for all, and β for those with a KL in their loss;
            each preset determines the rest of its objective.
        names: names of presets in :data:`PRESETS`.
        seeds: seeds of the runs of each algorithm, (S,).
        updates: number of updates of each algorithm; at equal samples, of the one with the most samples per update.
        fairness: "updates": one batch of the same size each; "samples": each at its own group size (REINFORCE 1), with
            the number of updates that gives the same number of completions; "step_length": every update of the logits
            is scaled to :data:`STEP_LENGTH`, unless it is zero.
        own_mu: whether each preset uses the number of passes that its source fixes.
        poll: called before each pass; may raise to stop. Results already yielded remain valid.

    Raises:
        SettingsError: there is no such preset or kind of fairness, or the task has several decisions. Raised before
            anything is computed.
    """
    points = {name: entered(settings, name, fairness, own_mu=own_mu) for name in names}
    widest = max((point.learner.group_size for point in points.values()), default=1)
    lanes = []
    for name, own in points.items():
        count = updates * widest // own.learner.group_size if fairness == "samples" else updates
        lanes.append((name, train([own], seeds, count, poll=poll)))
    return ((name, next(lane)) for name, lane in lanes)


OVER_SEEDS = ("signal_to_noise", "wrong_way")
"""Measures computed from all seeds together, which do not exist for individual seeds."""
COURSES = ("reward", "best_prob", "kl", "entropy", *OVER_SEEDS)
"""Measures whose course over training a digest contains."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Digest:
    """The summary of one algorithm of a race, for display in a window.

    Attributes:
        courses: measure of :data:`COURSES` -> its median after each update and the limits of the middle half of the
            seeds, (U + 1,) each, or a single array (U,) without update 0 for a measure of :data:`OVER_SEEDS`.
        numbers: its row of the ranking table, without the name.
        repeats: name of an earlier algorithm with the same runs; empty if there is none.
    """

    name: str
    runs: Ensemble
    courses: dict[str, tuple[np.ndarray, ...]]
    numbers: tuple[float | int, ...]
    repeats: str = ""


def raced(
    settings: Settings,
    names: Sequence[str],
    seeds: Sequence[int],
    updates: int,
    fairness: str,
    own_mu: bool = False,
    *,
    poll: Callable[[], None],
    train: Train = ensembles,
) -> Iterator[Digest]:
    """Run a race (:func:`grpo_core.experiments.race.race`), and summarise each algorithm as soon as its runs are
    finished.

    Raises:
        GrpoError: the race is not possible. Raised before anything is computed.
    """
    firsts: dict[str, Ensemble] = {}
    for name, runs in race(settings, names, seeds, updates, fairness, own_mu, poll=poll, train=train):
        repeats = next((first for first, others in firsts.items() if same(others, runs)), "")
        if not repeats:
            firsts[name] = runs
        yield Digest(
            name=name,
            runs=runs,
            courses={measure: _course(runs, measure) for measure in COURSES},
            numbers=_numbers(runs),
            repeats=repeats,
        )


def _course(runs: Ensemble, measure: str) -> tuple[np.ndarray, ...]:
    if measure not in OVER_SEEDS:
        return band(runs.counted(measure))
    share = getattr(runs, measure)
    return (np.where(np.isfinite(share), share, np.nan),)


def same(one: Ensemble, other: Ensemble) -> bool:
    """Return whether two algorithms produced the same runs, seed by seed and update by update, up to rounding."""
    if not np.allclose(one.policy, other.policy, rtol=0, atol=DOUBLE):
        return False
    measured = [(values, other.measures[name]) for name, values in one.measures.items()]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=DOUBLE, atol=DOUBLE) for a, b in measured)


def _numbers(runs: Ensemble) -> tuple[float | int, ...]:
    last = runs.counted("reward")[-1]
    reward, low, high = (float(limit) for limit in band(last))
    best, kl = (float(np.median(runs.counted(name)[-1])) for name in ("best_prob", "kl"))
    settings, updates = runs.settings, len(runs.measures["reward"]) - 1
    return (
        float(last.mean()),
        reward,
        runs.stuck,
        float(runs.diverged.mean()),
        low,
        high,
        best,
        kl,
        float(runs.wrong_way.mean()),
        float(runs.signal_to_noise[0]),
        settings.learner.mu,
        settings.learner.group_size,
        updates,
        int(runs.samples[-1]),
    )
