"""The definition of a race: algorithms, landscape, seeds, and fairness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from app.jobs.jobs import Jobs
from grpo_core.bandit.tasks import TASKS
from grpo_core.config import BanditTask, Objective, Settings
from grpo_core.config.presets import nearest_preset
from grpo_core.errors import SettingsError
from grpo_core.experiments.race import LOCAL_PEAK, SIX, STEP_LENGTH, Digest, differing, entered
from grpo_core.text import tr

REINFORCE, GRPO = "REINFORCE", "GRPO (DeepSeekMath)"
LEVELS = (0.0, 1.0, 2.0)
"""Reward levels of three prompts, which differ so that no common baseline fits them all."""
FAIR = {
    "updates": (tr("Equal updates"), tr("Each has the same batch size and number of updates.")),
    "samples": (
        tr("Equal samples"),
        tr("Each with its own G (REINFORCE updates after every completion); the same number of completions in all."),
    ),
    "step_length": (
        tr("Equal step length"),
        tr("Every update changes the logits by a length of {step_length:g}; an update of zero stays zero.").format(
            step_length=STEP_LENGTH
        ),
    ),
}
"""Quantity held equal for all algorithms -> label in the combo box, and explanation."""
NOT_THE_BANDIT = tr("A race runs on the bandit: here with its default settings, not those of the language model.")
NOT_ONE_DECISION = tr("A race needs a task with one decision: here, the single peak is used instead.")


def base_of(settings: Settings) -> Settings:
    """Return the part of ``settings`` that a race uses: task, sampling, optimizer and β.

    The rest depends on the algorithm.
    """
    if settings.is_language:
        return base_of(Settings())
    task = settings.bandit if settings.bandit.landscape not in TASKS else BanditTask()
    return settings.replace(
        {
            "objective": Objective(beta=settings.objective.beta),
            "learner.resample_dead": False,
            "learner.critic": False,
            "optimizer.step_length": None,
            "task": task,
            "seed": 0,
        }
    )


def opponents(settings: Settings) -> tuple[str, ...]:
    """Return the algorithm of a bandit's run, and REINFORCE. GRPO stands for a language model's and for REINFORCE."""
    own = nearest_preset(settings)[0]
    return (GRPO if settings.is_language or own == REINFORCE else own, REINFORCE)


def remark_on(settings: Settings) -> str:
    """Return a message explaining why a race cannot use all of ``settings``, or an empty string if it can."""
    if settings.is_language:
        return NOT_THE_BANDIT
    return NOT_ONE_DECISION if settings.bandit.landscape in TASKS else ""


@dataclass(frozen=True, kw_only=True)
class RacePlan:
    """Definition of a race. Equal plans lead to equal numbers.

    Attributes:
        base: the common settings, including the number of passes μ; see :func:`base_of`.
        names: the racing algorithms, keys of ``PRESETS``.
        fairness: the quantity held equal: "updates", "samples" or "step_length".
        seeds: S; the seeds are 0 to S - 1.
        block: number of the block of S seeds; 1 for S to 2 S - 1, and so on.
        updates: U, the updates of each algorithm; with equal samples, those of the one that draws
            the most samples per update.
        constant: a constant added to every reward.
        levels: reward levels of the prompts, replacing those of ``base``; None to keep those.
        local_peak: whether the landscape has two peaks and a start near the lower one.
        own_mu: whether each algorithm makes the number of passes that its source specifies, rather than that of
            ``base``.
    """

    base: Settings
    names: tuple[str, ...] = SIX
    fairness: str = "updates"
    seeds: int = 64
    block: int = 0
    updates: int = 200
    constant: float = 0.0
    levels: tuple[float, ...] | None = None
    local_peak: bool = False
    own_mu: bool = False

    @property
    def settings(self) -> Settings:
        """Settings shared by all algorithms.

        Raises:
            SettingsError: there are too few actions for two peaks.
        """
        levels = self.base.bandit.levels if self.levels is None else self.levels
        changes: dict[str, Any] = {"task.levels": tuple(level + self.constant for level in levels)}
        return self.base.replace({**changes, **(LOCAL_PEAK if self.local_peak else {})})

    def differing(self) -> dict[str, str]:
        """Return what else distinguishes each algorithm, by name (:func:`grpo_core.experiments.race.differing`)."""
        settings = self.settings
        return differing({name: entered(settings, name, self.fairness, own_mu=self.own_mu) for name in self.names})

    def digests(self, jobs: Jobs, poll: Callable[[], None]) -> Iterator[Digest]:
        """Yield the results of one algorithm after another, computed through ``jobs``.

        Raises:
            GrpoError: the race is impossible; raised before anything is computed.
        """
        if not self.names:
            raise SettingsError("algorithms", None, tr("choose at least one"))
        seeds = tuple(range(self.block * self.seeds, (self.block + 1) * self.seeds))
        asked = (self.settings, self.names, seeds, self.updates, self.fairness, self.own_mu)
        return jobs.spread("race", *asked, poll=poll)
