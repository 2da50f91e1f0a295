"""Repeats of the run that is shown: the same settings from other seeds, computed beside the window as they come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import QObject

from app.experiments.jobs import Jobs
from app.experiments.runner import Poll
from app.panels.experiments.controller import ExperimentController
from app.plotting.numbers import shown
from app.workspace.trials import HALF, differences
from grpo_core.config import Settings
from grpo_core.experiments.repeats import SERIES, Repeats
from grpo_core.text import tr

COUNT = 16
"""Repeats at once."""
FEWEST, MOST = 40, 2000
"""Updates of each repeat: as many as the run has, within these limits."""


class RepeatResults:
    """The series of the repeats of a run (the same settings under other seeds), as their updates come in.

    Attributes:
        settings: what they ran under, but for the seed.
        seeds: (S,).
        updates: that each is to have.
        note: why not all updates have come; empty while they come and once they have.
    """

    def __init__(self, settings: Settings, seeds: tuple[int, ...], updates: int) -> None:
        self.settings, self.seeds, self.updates = settings, seeds, updates
        self.count = 0
        self.note = ""
        self._rows = {name: np.full((updates, len(seeds)), np.nan) for name in SERIES}

    def take(self, part: Repeats) -> None:
        """Add ``part``, the updates that follow those that are here."""
        last = part.first - 1 + len(part.series[SERIES[0]])
        for name in SERIES:
            self._rows[name][part.first - 1 : last] = part.series[name]
        self.count = last
        self._series = {name: rows[:last] for name, rows in self._rows.items()}

    @property
    def series(self) -> Mapping[str, np.ndarray]:
        """What has come of each of :data:`SERIES`, (n, S); the same arrays until more updates have come."""
        return self._series if self.count else {}

    @property
    def complete(self) -> bool:
        """Whether all updates have come."""
        return self.count == self.updates

    @property
    def so_far(self) -> str:
        """How far the repeats have come, in a sentence."""
        return tr("As far as it got: {count:,} of {updates:,} updates.").format(count=self.count, updates=self.updates)

    @property
    def past_half(self) -> np.ndarray:
        """The first update after which each repeat's largest probability is past one half, (S,); infinite for none."""
        above = self._rows["max_prob"][: self.count] > HALF
        first = above.argmax(axis=0) + 1.0 if self.count else np.empty(0)
        return np.where(above.any(axis=0), first, np.inf)

    def title(self, here: Settings) -> str:
        """How many repeats there are, and in what they differ from a run under ``here``."""
        differs = differences(self.settings, here)
        if not differs:
            return tr("{count} repeats").format(count=len(self.seeds))
        return tr("{count} repeats, {differences}").format(count=len(self.seeds), differences=", ".join(differs))

    def sentence(self, own: int | None) -> str:
        """Median and range of the repeats, and where the run that is shown lies among them.

        Args:
            own: the first update after which that run's largest probability is past one half; None for none.
        """
        if not self.count:
            return ""
        parts = [self._of_half(), self._of_reward()]
        past = self.past_half
        if own is not None and self.complete and np.isfinite(past).any():
            parts.insert(1, tr("This run passed it at update {own}, later than {before} of them.").format(
                own=own, before=int((past < own).sum())
            ))  # fmt: skip
        return " ".join([*parts, self.note] if self.note else parts)

    def _of_half(self) -> str:
        """When the largest probability passes one half."""
        past = np.sort(self.past_half)
        there = int(np.isfinite(past).sum())
        facts = {"count": len(past), "there": there, "updates": self.count}
        if not there:
            return tr("None of {count} repeats passes π = 0.5 within {updates:,} updates.").format(**facts)
        facts |= {"first": int(past[0]), "last": int(past[there - 1]), "middle": int(past[(there - 1) // 2])}
        if there < len(past):
            return tr(
                "{there} of {count} repeats pass π = 0.5 within {updates:,} updates: median of these {middle}, range "
                "{first} to {last}."
            ).format(**facts)
        return tr("All {count} repeats pass π = 0.5: median update {middle}, range {first} to {last}.").format(**facts)

    def _of_reward(self) -> str:
        """Where the mean reward is after the last update."""
        last = self._rows["reward_mean"][self.count - 1]
        if not np.isfinite(last).all():
            return tr("At least one repeat diverged: its rewards are no numbers.")
        return tr("Mean reward at update {updates:,}: median {middle}, range {low} to {high}.").format(
            updates=self.count, middle=shown(float(np.median(last))), low=shown(float(last.min())),
            high=shown(float(last.max())),
        )  # fmt: skip


class RepeatController(ExperimentController[RepeatResults]):
    """Computes repeats, the latest that were asked for."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs

    def start(self, settings: Settings, updates: int) -> None:
        """Repeat a run under ``settings`` from the next :data:`COUNT` seeds, for about as many updates as it has.

        Raises:
            SettingsError: the settings are a language model's.
        """
        seeds, count = following(settings), min(max(updates, FEWEST), MOST)

        def make(poll: Poll) -> object:
            return self._jobs.results("repeats", settings, seeds, count, poll=poll)

        self._begin(RepeatResults(settings, seeds, count), make)  # type: ignore[arg-type]

    def _take(self, coming: RepeatResults, result: object) -> None:
        assert isinstance(result, Repeats)
        coming.take(result)


def following(settings: Settings) -> tuple[int, ...]:
    """The seeds of the repeats of a run: those after its own."""
    return tuple(range(settings.seed + 1, settings.seed + 1 + COUNT))
