"""The interface of every importer: a run recorded by another program, read in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.traces.trajectory import Trajectory


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Prompts and completions of one update as text, one entry per completion. None where not recorded.

    Attributes:
        prompts: (B,), a conversation as JSON.
        completions: (B,).
    """

    prompts: tuple[str | None, ...]
    completions: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Completions:
    """The table of one update that nearly every source has: one row per completion, without the loss of its tokens.

    Attributes:
        prompts: (B,) as text, a conversation as JSON; None where not recorded.
        completions: (B,) likewise.
        group: (B,) integer, the prompt of each completion, from 0.
        rewards: (B,) the sum that the trainer used, NaN = unscored.
        reward_names: (K,) of the reward functions; empty where only the sum is known.
        reward_parts: (B, K) what each function gave, before its weight; NaN where it gave nothing.
        reward_weights: (K,), 1 where not recorded.
        advantage: (B,) as the trainer had it, NaN = none assigned; None where not recorded.
        length: (B,) tokens that the policy sampled; None where not recorded.
        truncated: (B,) boolean, whether a limit cut the completion off; None where not recorded.
        counted: (B,) boolean, False for a further branch of a rollout, whose reward is already in its group; None where
            every row counts.
        entropy: of the policy, mean over the row's tokens, (B,), in nats; NaN or None where not measured.
        sampling_logp: a row's log-probabilities by the sampler, NaN where it gave none; None where not recorded.
        training_logp: the trainer's of the same tokens.
        metric_names: (M,) of the environment's numbers that are no reward.
        metrics: (B, M), NaN where one was not measured; None where none are recorded.
        staleness: (B,) training steps between the policy that began a completion and the step that it is used in; NaN
            where the source does not name the policy's version, None where it names none.
        trajectories: (B,) the turns of each completion, None for one that is too long to be shown by turns; None where
            the source holds no turns.
        repeated: whether these are the completions of the previous update again, since one generation served both;
            counts over updates include them only there.
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
    trajectories: tuple[Trajectory | None, ...] | None = None
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """The trainer's report on one of its optimizer steps.

    Attributes:
        step: the trainer's own number.
        numbers: name, as the trainer logs it -> value.
    """

    step: int
    numbers: Mapping[str, float] = field(default_factory=dict)


class Source(Protocol):
    """A recorded run. Positions are 1..n; the trainer's own numbers are :attr:`labels`.

    Attributes:
        path: the file or folder.
        title: title of the run.
        settings: the settings of the training; the task is a recorded one.
        partial: whether only its last updates are available, because the whole of a large file is scanned by the next
            :meth:`refresh`, after which their positions change.
    """

    path: Path
    title: str
    settings: Settings
    partial: bool

    @property
    def siblings(self) -> Sequence[Path]:
        """The other runs of the same file, newest first, as paths to open them."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what is damaged, repeated, missing or left out. Empty where the source is complete."""
        ...

    @property
    def labels(self) -> Sequence[int]:
        """The trainer's number of each update."""
        ...

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of each token by its number, (V,). Empty where the source knows no tokens."""
        ...

    def __len__(self) -> int:
        """Number of updates, as of the last :meth:`refresh`."""
        ...

    def step(self, position: int) -> Step:
        """The update at ``position``.

        Raises:
            RunFileError: its file is damaged, missing or malicious; the message says which.
            NotRecordedError: the source holds only texts.
        """
        ...

    def texts(self, position: int) -> Texts:
        """Prompts and completions of the update at ``position``."""
        ...

    def completions(self, position: int) -> Completions:
        """The completions of the update at ``position`` as a table.

        Raises:
            RunFileError: the file is damaged, missing or malicious; the message says which.
            NotRecordedError: the source holds only the trainer's reports.
        """
        ...

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        """The update at ``position`` for computing numbers, possibly without texts. None for a part that is not
        recorded.

        Raises:
            RunFileError: its file is damaged, missing or malicious.
        """
        ...

    def reports(self, position: int) -> Sequence[Report]:
        """The trainer's reports on the optimizer steps of the update at ``position``. Empty without any."""
        ...

    def stamp(self, position: int) -> tuple[int, ...]:
        """Integers that change when the recorded data of the update at ``position`` change."""
        ...

    def refresh(self) -> int:
        """Check for new data. Returns the current number of updates."""
        ...


def read_twice(source: Source, position: int) -> tuple[Completions | None, Step | None]:
    """Implementation of :meth:`Source.measured` for sources whose tables are read together with their texts."""
    table = step = None
    with suppress(NotRecordedError):
        table = source.completions(position)
    with suppress(NotRecordedError):
        step = source.step(position)
    return table, step


def has_losses(source: Source) -> bool:
    """Whether the trainer's losses are available for comparison (:class:`grpo_core.audit.audit.Traced`)."""
    return bool(getattr(source, "has_losses", False))


def stamps(source: Source, first: int, last: int) -> list[tuple[int, ...]]:
    """:meth:`Source.stamp` of the updates from ``first`` to ``last``. A source in another process is asked only once
    for all of them.
    """
    at_once = getattr(source, "stamps", None)
    if at_once is not None:
        known: list[tuple[int, ...]] = at_once(first, last)
        return known
    return [source.stamp(position) for position in range(first, last + 1)]


def file_stamp(path: Path, *more: int) -> tuple[int, ...]:
    """Integers that change when a file is written: its size, time and identity. Zeros if there is no file."""
    try:
        facts = path.stat()
    except OSError:
        return (0, 0, 0, *more)
    return (facts.st_size, facts.st_mtime_ns, facts.st_ino & (2**62 - 1), *more)


NEEDS_PYARROW = tr("This run lies in Parquet files, which need pyarrow: pip install pyarrow.")
