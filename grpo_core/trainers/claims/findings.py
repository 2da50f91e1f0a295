"""The updates of a run as input to a diagnosis, and its claim about groups of equal rewards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.claims.arrays import ALIKE, equal
from grpo_core.claims.claim import Claim, agrees
from grpo_core.config import Settings
from grpo_core.foreign.recording import Completions
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.concepts import names_of

SILENT = 1e-3
"""Largest advantage of a completion that rounding can give to a group of equal rewards: TRL divides by 1e-4."""
NEAR = 1e-6
"""Maximum relative difference between a reward and the run's highest or lowest reward."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen(Completions):
    """One update as input to a diagnosis: its completions as recorded, none without a table, and what is beside them.

    Attributes:
        label: the trainer's number for the update.
        step: the tokens; None if the source only contains text.
        mean_entropy: in nats per token; None if unknown.
        mean_length: mean number of tokens of the completions; None if unknown.
        cut: number of completions cut off by a limit, and number of completions; None if unknown.
        from_sampler: trainer's minus sampler's log-probability of each token scored by both; None if not recorded.
        turns: (n, 2) integer, for each turn whether the model wrote it, and its number of tokens in the loss mask; None
            if not recorded.
        answered: (B,) boolean, whether a message from a tool or a user follows the model's; None if not recorded.
        reported: the trainer's metrics: name -> numbers.
        report_steps: number of optimizer steps over which the trainer reports means; None if unknown.
    """

    label: int
    settings: Settings
    step: Step | None = None
    mean_entropy: float | None = None
    mean_length: float | None = None
    cut: tuple[float, int] | None = None
    from_sampler: np.ndarray | None = None
    turns: np.ndarray | None = None
    answered: np.ndarray | None = None
    reported: tuple[tuple[str, float], ...] = ()
    report_steps: int | None = None

    def logged(self, concept: str) -> float | None:
        """Return the mean of the trainer's numbers for a quantity of :data:`.CONCEPTS`. None if it logged none."""
        names = names_of(concept, dict(self.reported))
        values = [value for name, value in self.reported if names and name == names[0]]
        return sum(values) / len(values) if values else None

    @property
    def compared(self) -> np.ndarray:
        """The completions that count and were scored, boolean (B,)."""
        scored = np.isfinite(self.rewards)
        return np.asarray(scored if self.counted is None else scored & self.counted)

    @property
    def groups(self) -> list[np.ndarray]:
        """The compared completions of each prompt that has at least two."""
        every = [np.flatnonzero(self.compared & (self.group == g)) for g in np.unique(self.group)]
        return [members for members in every if len(members) > 1]

    def is_equal(self, members: np.ndarray) -> bool:
        return equal(self.rewards[members])

    def idle(self) -> list[np.ndarray]:
        """Return the groups whose rewards are equal and whose advantages are 0 up to rounding, or not recorded."""
        silent = [
            members
            for members in self.groups
            if self.advantage is None or np.abs(np.nan_to_num(self.advantage[members])).max() <= SILENT
        ]
        return [members for members in silent if self.is_equal(members)]


Run = Sequence[Seen]


@dataclass(frozen=True, kw_only=True)
class EqualGroups(Claim[Run]):
    """Claims that from update ``since`` on, ``dead`` of ``groups`` groups have equal rewards of one ``kind``.

    No gradient from these groups is recorded. The kind is "right" for the run's highest reward, ``high``, "wrong" for
    its lowest, ``low``, and "same" for one in between. If ``of_task``, what counts is instead the highest and lowest
    reward that the task can pay for each prompt. ``known``: whether their advantages are all recorded, as 0.
    """

    since: int
    dead: int
    groups: int
    kind: str
    low: float
    high: float
    known: bool
    of_task: bool

    def check(self, data: Run) -> bool:
        low, high = extremes(data)
        if not (agrees(self.low, low) and agrees(self.high, high)):
            return False
        dead, known, of_task = 0, True, True
        for update, members in idle_groups(data, self.since, self.kind):
            gained = update.advantage
            dead += 1
            known &= gained is not None and bool((gained[members] == 0).all())
            of_task &= update.reward_range is not None
        found = dead, sum(len(u.groups) for u in later(data, self.since)), known, of_task
        return found == (self.dead, self.groups, self.known, self.of_task) and dead > 0

    def words(self) -> str:
        why = (OF_TASK if self.of_task else OF_RUN)[self.kind]
        if self.kind == "same" and self.low == self.high:
            why = tr("every completion of the run has the reward {high:.4g}")
        facts = {"label": self.since, "dead": self.dead, "groups": self.groups, "why": self.filled(why)}
        if self.known:
            return tr("Since step {label}, {dead} of {groups} groups give no advantage: {why}.").format(**facts)
        equal = tr("Since step {label}, in {dead} of {groups} groups all rewards are equal: {why}.").format(**facts)
        return " ".join((equal, tr("Compared only within such a group, they give no advantage.")))


OF_RUN = {
    "right": tr("every completion has the highest reward of the run, {high:.4g}"),
    "wrong": tr("every completion has the lowest reward of the run, {low:.4g}"),
    "same": tr(
        "all completions of a prompt have the same reward, between the lowest, {low:.4g}, and the highest, {high:.4g}"
    ),
}
OF_TASK = {
    "right": tr("every completion has the highest reward that the task pays for its prompt"),
    "wrong": tr("every completion has the lowest reward that the task pays for its prompt"),
    "same": tr(
        "all completions of a prompt have the same reward, between the lowest and the highest that the task pays for it"
    ),
}
"""Kind of equal rewards -> why they give no advantage, by the ends of the run or of the task."""


def later(data: Run, since: int) -> Run:
    """Return the updates from update ``since`` on. Empty if there is no such update."""
    return [update for update in data if update.label >= since] if any(u.label == since for u in data) else []


def is_mean(claimed: float, values: Iterable[Any]) -> bool:
    """Return whether a number is the mean of others, of which there is at least one."""
    known = [float(value) for value in values]
    return bool(known) and agrees(claimed, sum(known) / len(known))


def one_text(completions: Sequence[str | None], members: np.ndarray) -> bool:
    """Return whether the ``members`` of a group are recorded, and all the same text."""
    return len(found := {completions[row] for row in members}) == 1 and None not in found


def extremes(data: Run) -> tuple[float, float]:
    """Return the run's lowest and highest reward, over the updates with comparable rewards."""
    every = np.concatenate([update.rewards[update.compared] for update in data if update.groups])
    return float(every.min()), float(every.max())


def idle_groups(data: Run, since: int, kind: str) -> Iterator[tuple[Seen, np.ndarray]]:
    """Yield the groups from update ``since`` on with equal rewards of a kind and without a known gradient."""
    of_run = extremes(data)
    for update in later(data, since):
        for members in update.idle():
            ends = None if update.reward_range is None else update.reward_range[members[0]]
            reward, flat = float(update.rewards[members[0]]), ends is not None and ends[0] == ends[1]
            if ("same" if flat else _kind(reward, *(of_run if ends is None else ends))) == kind:
                yield update, members


def _kind(reward: float, low: float, high: float) -> str:
    """Classify a reward of the run. In a run with a single reward value, 1 is right, and 0 or less is wrong."""
    near = NEAR * max(abs(low), abs(high), ALIKE)
    if high - low <= near:
        return "right" if abs(reward - 1) <= NEAR else "wrong" if reward <= 0 else "same"
    return "right" if high - reward <= near else "wrong" if reward - low <= near else "same"
