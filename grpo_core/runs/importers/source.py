"""A run that another program recorded, read where it lies: what every importer offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Prompts and completions of one update as text, one entry a completion; None where the source holds none.

    Attributes:
        prompts: (B,), a conversation as JSON.
        completions: (B,).
    """

    prompts: tuple[str | None, ...]
    completions: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the trainer said of one of its optimizer steps.

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
        title: what the run is called.
        settings: what the run was trained under; its task is a recorded one.
    """

    path: Path
    title: str
    settings: Settings

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what is torn, repeated, missing or left out; empty where the source is whole."""
        ...

    @property
    def labels(self) -> Sequence[int]:
        """The trainer's number of each update."""
        ...

    def __len__(self) -> int:
        """Updates there are, as of the last :meth:`refresh`."""
        ...

    def step(self, position: int) -> Step:
        """The update at ``position``.

        Raises:
            RunFileError: its file is torn, missing or hostile; the message says which.
            NotRecordedError: the source holds texts alone.
        """
        ...

    def texts(self, position: int) -> Texts:
        """Prompts and completions of the update at ``position``."""
        ...

    def reports(self, position: int) -> Sequence[Report]:
        """What the trainer said of the optimizer steps of the update at ``position``; empty where it said nothing."""
        ...

    def refresh(self) -> int:
        """Look for what has been written since; returns the number of updates now."""
        ...


NEEDS_PYARROW = tr("This run lies in Parquet files, which need pyarrow; install GRPO Lab with the extra “traces”.")
