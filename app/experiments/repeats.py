"""Repeats of the current run: the same settings with other seeds, computed in the background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PySide6.QtCore import QObject

from app.experiments.controller import ExperimentController, ExperimentResults
from app.jobs.jobs import Jobs
from app.workspace.run_handle import RunHandle
from app.workspace.trials import differences
from grpo_core.bandit.tasks import task
from grpo_core.claims.claim import sentence
from grpo_core.claims.repeats import Batches, LastReward, Later, OnWrong, Passed, Reached, Repeated
from grpo_core.config import Settings
from grpo_core.experiments.outcome import found
from grpo_core.experiments.repeats import SERIES, Repeats
from grpo_core.text import listed, plural, tr

COUNT = 16
"""Number of repeats in one batch."""
PINNED = 3
"""Maximum number of earlier batches of repeats (with other settings) that are shown next to the latest."""
FEWEST, MOST = 40, 2000
"""Minimum and maximum number of updates of each repeat. Within these limits, a repeat has as many updates as
the run.
"""


class RepeatResults(ExperimentResults):
    """The series of a run's repeats, added as their updates arrive.

    Attributes:
        settings: settings of the repeats, apart from the seed.
        seeds: (S,) seeds of the repeats.
        series: values so far of each of :data:`SERIES`, (n, S); empty before the first. The same array objects remain
            until further updates arrive.
        wanted: planned number of updates of each repeat.
        count: number of updates computed so far.
    """

    def __init__(self, settings: Settings, seeds: tuple[int, ...], updates: int) -> None:
        super().__init__(updates)
        self.settings, self.seeds = settings, seeds
        self._parts: list[Repeats] = []
        self.series: Mapping[str, np.ndarray] = {}

    def take(self, result: Repeats) -> None:
        self._parts.append(result)
        self.series = {name: np.concatenate([part.series[name] for part in self._parts]) for name in SERIES}
        self.count = len(self.series[SERIES[0]])

    @property
    def so_far(self) -> str:
        return plural(
            "Incomplete: {count:,} of {updates:,} update.", "Incomplete: {count:,} of {updates:,} updates.", self.wanted
        ).format(count=self.count, updates=self.wanted)

    @property
    def past_half(self) -> np.ndarray:
        """The first update after which each repeat's largest probability exceeds one half, (S,).

        The value is infinite for a repeat without such an update.
        """
        return self._repeated().passed if self.count else np.empty(0)

    def title(self, here: Settings) -> str:
        """Return a caption: the number of repeats, and how their settings differ from ``here``, those of a run."""
        differs = differences(self.settings, here)
        if not differs:
            return plural("{count} repeat", "{count} repeats", len(self.seeds)).format(count=len(self.seeds))
        return plural("{count} repeat, {differences}", "{count} repeats, {differences}", len(self.seeds)).format(
            count=len(self.seeds), differences=listed(differs)
        )

    @property
    def numbers(self) -> str:
        """Text about the updates at which an action first had most of the probability: their range and median."""
        known = np.sort(self.past_half[np.isfinite(self.past_half)])
        if not len(known):
            return tr("π below 0.5")
        text = tr("π > 0.5 at {low:.0f} to {high:.0f}, median {middle:.0f}").format(
            low=known[0], high=known[-1], middle=np.median(known)
        )
        missing = len(self.seeds) - len(known)
        return tr("{text}, {missing} not").format(text=text, missing=missing) if missing else text

    def sentence(self, own: int | None) -> str:
        """Return sentences with the median and range of the repeats, and the rank of the current run among them.

        Args:
            own: the first update after which that run's largest probability exceeds one half; None if there is none.
        """
        if not self.count:
            return ""
        told = found(self._repeated(own if self.complete else None), Passed, Later, OnWrong, LastReward)
        return " ".join([*(sentence(claim) for claim in told), *([self.note] if self.note else [])])

    def own_of(self, run: RunHandle, past_half: int | None) -> int | None:
        """Return ``past_half``, an update of ``run``, or None if the run had other settings up to there."""
        used = [settings for first, settings in run.changes if past_half is not None and first <= past_half]
        return None if any(differences(self.settings, settings) for settings in used) else past_half

    def answer(self, earlier: Sequence[RepeatResults] = ()) -> str:
        """Return a sentence about the probability of the best action in these repeats and in ``earlier`` ones.

        Repeats of another task are left out. The sentence is empty if no action is the best.
        """
        if not self.count:
            return ""
        batches = [*(one for one in earlier if one.settings.task == self.settings.task), self]
        named = {listed(_apart(one.settings, batches)): one._repeated() for one in batches}
        return sentence(*found(Batches(repeated=named, actions=task(self.settings.bandit).vocabulary), Reached))

    def _repeated(self, own: int | None = None) -> Repeated:
        best = [part.best_prob for part in self._parts if part.best_prob is not None]
        return Repeated(
            max_prob=self.series["max_prob"],
            reward=self.series["reward_mean"],
            likeliest=self._parts[-1].likeliest,
            rewards=task(self.settings.bandit).action_rewards,
            own=own,
            best_prob=np.concatenate(best) if best else None,
        )


def _apart(settings: Settings, batches: Sequence[RepeatResults]) -> tuple[str, ...]:
    """Return the settings in which these differ from any of ``batches``, in a few words each."""
    return tuple(dict.fromkeys(word for one in batches for word in differences(settings, one.settings)))


class RepeatController(ExperimentController[RepeatResults]):
    """Computes the most recently requested repeats, and keeps some of the earlier ones.

    Attributes:
        pinned: complete repeats whose settings differ from those of the latest, newest last.
    """

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.pinned: tuple[RepeatResults, ...] = ()

    def repeat(self, settings: Settings, updates: int) -> None:
        """Repeat a run with ``settings`` for the next :data:`COUNT` seeds, with about as many updates as the run has.

        Raises:
            SettingsError: the settings are those of a language model.
        """
        seeds, count = following(settings), min(max(updates, FEWEST), MOST)
        before = self.results
        kept = [*self.pinned, *([before] if before is not None and before.complete else [])]
        self.pinned = tuple(one for one in kept if differences(one.settings, settings))[-PINNED:]
        asked = (settings, seeds, count)
        self.begin(RepeatResults(*asked), lambda poll: self._jobs.spread("repeats", *asked, poll=poll))


def following(settings: Settings) -> tuple[int, ...]:
    """Return the seeds for a run's repeats, which follow the run's own seed."""
    return tuple(range(settings.seed + 1, settings.seed + 1 + COUNT))
