"""The base class of every importer: a run recorded by another program, read in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.foreign.trajectory import Trajectory
from grpo_core.record import Step
from grpo_core.text import tr

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class Completions:
    """The table of one update that nearly every source provides: one row per completion, without per-token losses.

    Attributes:
        prompts: (B,), as text, a conversation as JSON; None if not recorded.
        completions: (B,), likewise.
        group: (B,) integer, the prompt of each completion, counted from 0.
        rewards: (B,), the sum that the trainer used; NaN if unscored.
        reward_names: (K,), names of the reward functions; empty if only the sum is known.
        reward_parts: (B, K), the value of each function before weighting; NaN if it returned none.
        reward_weights: (K,), 1 if not recorded.
        advantage: (B,), the trainer's; NaN if none was assigned; None if not recorded.
        length: (B,), number of tokens sampled by the policy; None if not recorded.
        truncated: (B,) boolean, whether a limit cut the completion off; None if not recorded.
        counted: (B,) boolean, False for a further branch of a rollout whose reward is already in its group; None if
            every row counts.
        entropy: (B,), entropy of the policy, mean over the row's tokens, in nats; NaN or None if not measured.
        sampling_logp: the sampler's log-probabilities of each row, NaN if missing; None if not recorded.
        training_logp: the trainer's log-probabilities of the same tokens.
        metric_names: (M,), names of the environment's numbers that are not rewards.
        metrics: (B, M), NaN if one was not measured; None if none are recorded.
        staleness: (B,), training steps between the policy that began a completion and the step that uses it; NaN if the
            policy's version is missing, None if the source never names it.
        reward_range: (B, 2), the lowest and the highest reward that the task can pay for each completion's prompt; None
            if unknown, as for every task but this program's own.
        sampled_by_trainer: whether the trainer's own code sampled the completions, so that sampler and trainer differ
            only by the age of the policy.
        trajectories: (B,), the turns of each completion, None for one that is too long to be shown by turns; None if
            the source has no turns.
        answers: (B,), the known right answer to each completion's prompt, None if it has none; None if not recorded.
        repeated: whether these are the completions of the previous update, because one generation served both; sums
            over several updates include them only once.
    """

    prompts: tuple[str | None, ...]
    completions: tuple[str | None, ...]
    group: np.ndarray
    rewards: np.ndarray
    reward_names: tuple[str, ...] = ()
    reward_parts: np.ndarray | None = None
    reward_weights: tuple[float, ...] = ()
    advantage: np.ndarray | None = None
    length: np.ndarray | None = None
    truncated: np.ndarray | None = None
    counted: np.ndarray | None = None
    entropy: np.ndarray | None = None
    sampling_logp: tuple[np.ndarray, ...] | None = None
    training_logp: tuple[np.ndarray, ...] | None = None
    metric_names: tuple[str, ...] = ()
    metrics: np.ndarray | None = None
    staleness: np.ndarray | None = None
    reward_range: np.ndarray | None = None
    sampled_by_trainer: bool = False
    trajectories: tuple[Trajectory | None, ...] | None = None
    answers: tuple[str | None, ...] | None = None
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """The trainer's report on one of its optimizer steps.

    Attributes:
        step: the trainer's number for the step.
        numbers: name, as logged by the trainer -> value.
        steps: number of optimizer steps over which they are means, except for the gradient norm; None if unknown.
    """

    step: int
    numbers: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None


class Source:
    """A recorded run: the base class of every importer's. Positions are counted from 1.

    Attributes:
        settings: the settings of the training; the task is a recorded one.
        labels: the trainer's number of each update.
        notes: notes on what is damaged, repeated, missing or skipped; empty if the source is complete.
        partial: whether only the last updates are available until the next :meth:`refresh`, which scans the rest of a
            large file. The positions of the updates then change.
        siblings: paths of the other runs in the same file, newest first.
        vocabulary: the text of each token by token ID, (V,); empty if the source has no tokens.
        columns: what the user said that columns mean (:func:`grpo_core.foreign.formats.open_source`).
        has_losses: whether the trainer's losses, or else its advantages, are available for comparison.
        why_no_losses: why the loss cannot be recomputed, and what is needed; empty if it can be, or if unknown.
        processes: number of processes that trained; 1 if unknown.
    """

    path: Path
    title: str
    settings: Settings
    labels: Sequence[int]
    notes: Sequence[str]
    partial: bool = False
    siblings: Sequence[Path] = ()
    vocabulary: tuple[str, ...] = ()
    columns: str = ""
    has_losses: bool = False
    why_no_losses: str = ""
    processes: int = 1

    def __len__(self) -> int:
        """Return the number of updates, as of the last :meth:`refresh`."""
        return len(self.labels)

    def step(self, position: int) -> Step:
        """Return the update at ``position``.

        Raises:
            RunFileError: its file is damaged, missing or malicious; the message names it.
            NotRecordedError: the source only contains text.
        """
        raise NotImplementedError

    def completions(self, position: int) -> Completions:
        """Return the completions of the update at ``position`` as a table.

        Raises:
            RunFileError: the file is damaged, missing or malicious; the message names it.
            NotRecordedError: the source only contains the trainer's reports.
        """
        raise NotImplementedError

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        """Return the table and the step of the update at ``position`` for computing numbers, possibly without text.

        Each is None if it is not recorded.

        Raises:
            RunFileError: its file is damaged, missing or malicious.
        """
        return or_why_not(self.completions, position)[0], or_why_not(self.step, position)[0]

    def reports(self, position: int) -> Sequence[Report]:
        """Return the trainer's reports on the optimizer steps of the update at ``position``, if any."""
        return ()

    def losses(self, position: int) -> np.ndarray | None:
        """Return the loss of each micro-batch as its process computed it, (N, M), NaN if not recorded."""
        return None

    def incomplete(self, position: int) -> str:
        """Return why the losses of an update cannot be compared. Empty if they can."""
        return ""

    def stamp(self, position: int) -> tuple[int, ...]:
        """Return integers that change when the recorded data of the update at ``position`` changes."""
        return file_stamp(self.path)

    def stamps(self, first: int, last: int) -> list[tuple[int, ...]]:
        """Return :meth:`stamp` of the updates from ``first`` to ``last``."""
        return [self.stamp(position) for position in range(first, last + 1)]

    def refresh(self) -> int:
        """Check for new data. Return the current number of updates."""
        return len(self)


def or_why_not(read: Callable[[int], T], position: int) -> tuple[T | None, str]:
    """Return what ``read`` returns about an update, or None and the reason why it is not recorded."""
    try:
        return read(position), ""
    except NotRecordedError as error:
        return None, str(error)


def file_stamp(path: Path, *more: int) -> tuple[int, ...]:
    """Return integers that change when a file is written: its size, time and identity. Zeros if there is no file."""
    try:
        facts = path.stat()
    except OSError:
        return (0, 0, 0, *more)
    return (facts.st_size, facts.st_mtime_ns, facts.st_ino & (2**62 - 1), *more)


NEEDS_PYARROW = tr("This run is stored in Parquet files, which need pyarrow: pip install pyarrow.")
