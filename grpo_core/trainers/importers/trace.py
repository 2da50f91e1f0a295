"""Reader of our own trace of a TRL or verl run (``grpo_core/traces/recorders/``), with every token of each pass.

Completions of all processes are concatenated, starting with process 0; groups can span processes. Each optimizer step
is a pass, and each process's micro-batch is one part of the pass (``trace_step.py`` combines them).
"""

from __future__ import annotations

import copy
import dataclasses
import json
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.config import Learner, Settings
from grpo_core.config.recorded import RecordedTask
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError, shortened
from grpo_core.foreign.recording import Completions, Report, Source, file_stamp
from grpo_core.foreign.trajectory import trajectories_in
from grpo_core.record import Step
from grpo_core.text import listed, plural, tr
from grpo_core.trainers import token_text
from grpo_core.trainers.importers.arrays import Arrays, columns_of
from grpo_core.trainers.importers.parquet import Columns
from grpo_core.trainers.importers.records import complete_lines
from grpo_core.trainers.importers.trace_folder import LOG, TRACE, StepFiles, description_of, is_whole, steps_of
from grpo_core.trainers.importers.trace_step import KINDS, StepAssembly, generations_of, micro_batches, stacked
from grpo_core.trainers.importers.trl_table import weighted

TEXTS = ("prompt", "completion")
OF_THE_LOSS = ("completion_ids", "mask", "pass", "part", "logp")
"""Columns without which the loss cannot be recomputed."""
TOKENIZER = "tokenizer"
MOST_PROCESSES = 4096
MOST_NAMED = 1000
"""Maximum number of reward functions, and of tokens that end a completion."""


def kind_of(description: Mapping[str, Any]) -> type[StepAssembly]:
    """Return the class that combines the files of a step for the trainer that wrote a trace.

    Raises:
        ValueError: it is not in :data:`KINDS`.
    """
    name = str(description.get("trainer", "trl"))
    if name not in KINDS:
        raise ValueError(f"trainer = {shortened(name, 40)}")
    return KINDS[name]


def probe(path: Path) -> bool:
    """Return whether ``path`` is the folder of a trace, or its description."""
    return (path / TRACE).is_file() or (path.name == TRACE and path.is_file())


class Trace(Source):
    """A trace folder."""

    has_losses = True

    def __init__(self, path: Path) -> None:
        self.path = path if path.is_dir() else path.parent
        self.title = self.path.name
        self._description = description_of(self.path)
        self._trainer: dict[str, Any] = self._description["settings"]
        try:
            self._kind = kind_of(self._description)
            self.processes = _processes(self._description, self.path)
            self.settings = settings_of(self._description)
            self._unsupported = self._kind.unsupported(self._trainer)
        except KeyError as error:
            raise RunFileError(
                tr("A trainer setting is missing in {path} ({error}).").format(path=self.path / TRACE, error=error)
            ) from None
        except (TypeError, ValueError, AttributeError, OverflowError, GrpoError) as error:
            raise RunFileError(
                tr("{path}: a trainer setting cannot be used: {error}.").format(
                    path=self.path / TRACE, error=shortened(error).rstrip(".")
                )
            ) from None
        self.steps: list[StepFiles] = []
        self._logs: dict[int, tuple[tuple[int, ...], dict[int, list[Report]]]] = {}
        self._latest: tuple[int, tuple[int, ...], Step] | None = None
        self.refresh()

    def __deepcopy__(self, memo: object) -> Trace:
        """Return a copy that can be refreshed independently: lists are replaced, never modified."""
        return copy.copy(self)

    @property
    def vocabulary(self) -> tuple[str, ...]:  # type: ignore[override]
        """The text of each token, (V,). Empty if the trace has no tokenizer."""
        return token_text.vocabulary(self.path / TOKENIZER)

    def refresh(self) -> int:
        steps, notes = steps_of(self.path, self.processes)
        if self._description.get("level") == "texts":
            notes.append(
                tr("Only texts and rewards were recorded: {reason}.").format(reason=self._description.get("reason"))
            )
        if self._unsupported:
            notes.append(self._unsupported)
        dropped = next(iter(steps[-1].pieces.values())).index.get("dropped") if steps else None  # of the lowest rank
        if is_whole(dropped) and dropped:
            notes.append(
                plural(
                    "{count} step was dropped while recording, because the disk was too slow.",
                    "{count} steps were dropped while recording, because the disk was too slow.",
                    dropped,
                ).format(count=dropped)
            )
        self.steps, self.notes, self.labels = steps, notes, [step.last_step for step in steps]
        return len(steps)

    def step(self, position: int) -> Step:
        self._refuse_without_loss()
        with self._fitting(position):
            columns = self._columns(position)
            self._refuse_without_tokens(columns)
            step, (prompts, completions) = self._assembled(position, columns), _texts(columns)
            first = np.unique(step.group, return_index=True)[1]
            step = dataclasses.replace(
                step, prompt_texts=tuple(prompts[row] for row in first), completion_texts=completions
            )
        self._latest = (position, self.stamp(position), step)
        return step

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        with self._fitting(position):
            columns = self._columns(position, left_out=TEXTS)
            none = (None,) * sum(each.rows for each in columns)
            table = self._table(columns, none, none)
            step = None
            with suppress(NotRecordedError):
                self._refuse_without_loss()
                self._refuse_without_tokens(columns)
                step = self._assembled(position, columns)
            return table, step

    def _refuse_without_loss(self) -> None:
        """Raise NotRecordedError for a trace of texts and rewards alone, or with an unsupported loss."""
        if self._unsupported:
            raise NotRecordedError(self._unsupported)
        if self._description.get("level") == "texts":
            raise NotRecordedError(
                tr("This trace contains only texts and rewards ({reason}); the loss was not recorded.").format(
                    reason=self._description.get("reason")
                )
            )

    def _refuse_without_tokens(self, columns: list[Columns | Arrays]) -> None:
        """Raise NotRecordedError if a file lacks columns of the loss, or their values."""
        missing = [name for name in OF_THE_LOSS if any(name not in each.names for each in columns)]
        if not missing and all(each.has_values("pass") for each in columns):  # otherwise generated and never used
            missing = [name for name in OF_THE_LOSS if not all(each.has_values(name) for each in columns)]
        if missing:
            raise NotRecordedError(
                tr(
                    "The files of this update lack the columns {names}, so there is no loss to recompute; its texts, "
                    "rewards and advantages are shown. To get them, record again with GRPO Lab's recorder."
                ).format(names=listed(missing))
            )

    def _columns(self, position: int, left_out: Container[str] = ()) -> list[Columns | Arrays]:
        """Return the columns of each process's file, in order of rank."""
        return [columns_of(piece.path).load(left_out) for piece in self.steps[position - 1].pieces.values()]

    def _assembled(self, position: int, columns: list[Columns | Arrays]) -> Step:
        files = self.steps[position - 1]
        return self._kind(files, columns, self.processes, self._trainer).step(position, self.settings)

    @contextmanager
    def _fitting(self, position: int) -> Iterator[None]:
        """Context manager that turns errors of a mismatch between columns and index into RunFileError."""
        try:
            yield
        except (LookupError, ValueError, TypeError, OverflowError, MemoryError, AssertionError) as error:
            files = listed(piece.path.name for piece in self.steps[position - 1].pieces.values())
            raise RunFileError(
                tr("{files} and its line in the index do not match ({error}); one of them is damaged.").format(
                    files=files, error=shortened(repr(error))
                )
            ) from None

    def completions(self, position: int) -> Completions:
        with self._fitting(position):
            columns = [columns_of(piece.path) for piece in self.steps[position - 1].pieces.values()]
            return self._table(columns, *_texts(columns))

    def _table(
        self, columns: list[Columns | Arrays], prompts: tuple[str | None, ...], completions: tuple[str | None, ...]
    ) -> Completions:
        task = self.settings.recorded
        rewards = stacked([row for c in columns for row in c.lists("rewards", np.float64, optional=True)])
        generations = np.concatenate([generations_of(c) for c in columns])
        group = np.concatenate([c.numbers("group", np.int64) for c in columns]) + generations * len(generations)
        advantage = [row for c in columns for row in c.lists("advantage", np.float64, optional=True)]
        ids = [row for c in columns for row in c.lists("completion_ids", np.int64, optional=True)]
        tokens = None if any(row is None or not len(row) for row in ids) else [row for row in ids if row is not None]
        weights = np.asarray(task.reward_weights or (1.0,), np.float64)
        return Completions(
            prompts=prompts,
            completions=completions,
            group=np.unique(group, return_inverse=True)[1],
            rewards=np.full(len(group), np.nan) if rewards is None else weighted(rewards, weights),
            reward_names=task.reward_names,
            reward_parts=rewards,
            reward_weights=task.reward_weights,
            trajectories=trajectories_in(prompts, completions),
            advantage=None
            if all(row is None for row in advantage)
            else np.array([np.nan if row is None or not len(row) else row[0] for row in advantage]),
            length=None if tokens is None else np.array([len(row) for row in tokens]),
            truncated=None
            if tokens is None or not task.eos_ids
            else np.array(
                [len(row) >= (task.max_tokens or 0) and not np.isin(row, task.eos_ids).any() for row in tokens]
            ),
        )

    def reports(self, position: int) -> list[Report]:
        files = self.steps[position - 1]
        wanted = range(files.last_step - files.trainer_steps + 1, files.last_step + 1)
        log = self._log(files.attempt)
        return [report for step in sorted(log) if step in wanted for report in log[step]]

    def stamp(self, position: int) -> tuple[int, ...]:
        files = self.steps[position - 1]
        of_files = [file_stamp(piece.path) for piece in files.pieces.values()]
        digest = zlib.crc32(repr((files.attempt, files.missing, of_files)).encode())
        return (files.last_step, digest, len(self.reports(position)))

    def losses(self, position: int) -> np.ndarray | None:
        with self._fitting(position):
            known = self._latest is not None and self._latest[:2] == (position, self.stamp(position))
            step = self._latest[2] if known and self._latest is not None else self.step(position)
            assert step.denominator is not None and step.optimizer_step is not None
            noted = micro_batches(self.steps[position - 1])[1]
            theirs = np.full(step.denominator.shape, np.nan)
            for n, part in np.ndindex(*theirs.shape):
                value = noted.get((int(step.optimizer_step[n]), int(part)), {}).get("loss")
                if value is not None and (step.part[n] == part).any():
                    theirs[n, part] = value
            return theirs

    def incomplete(self, position: int) -> str:
        missing = self.steps[position - 1].missing
        if not missing:
            return ""
        return tr("The files of process {ranks} are missing.").format(ranks=listed(map(str, missing)))

    def _log(self, attempt: int) -> dict[int, list[Report]]:
        """Return the trainer's reports from an attempt's log, by step, read again if the file has changed."""
        path = self.path / "rank0" / f"attempt{attempt}" / LOG
        stamp = file_stamp(path)
        if attempt not in self._logs or self._logs[attempt][0] != stamp:
            self._logs[attempt] = stamp, _reports(path)
        return self._logs[attempt][1]


def _texts(columns: list[Columns | Arrays]) -> Iterator[tuple[str | None, ...]]:
    """Yield the prompts and the completions, each None if it is not recorded."""
    for name in TEXTS:
        yield tuple(text for c in columns for text in c.values(name, optional=True))


def _reports(path: Path) -> dict[int, list[Report]]:
    reports: dict[int, list[Report]] = {}
    for line in complete_lines(path, []):
        if isinstance(line, dict) and isinstance(line.get("logs"), dict) and isinstance(line.get("step"), int):
            numbers = {str(k): float(v) for k, v in line["logs"].items() if isinstance(v, (int, float))}
            reports.setdefault(line["step"], []).append(Report(step=line["step"], numbers=numbers))
    return reports


def _processes(description: dict[str, Any], folder: Path) -> int:
    """Return the number of processes that trained. ValueError if it is no number, or a too large one."""
    processes = description.get("num_processes") or len(list(folder.glob("rank*"))) or 1
    if not is_whole(processes, MOST_PROCESSES):
        raise ValueError(f"num_processes = {shortened(processes, 40)}")
    return int(processes)


def settings_of(description: dict[str, Any]) -> Settings:
    """Return the settings of a traced run, with the trainer's own settings as text.

    Raises:
        ValueError: a list has more entries than any trainer writes.
    """
    trainer, kind = description["settings"], kind_of(description)
    for name in ("reward_names", "reward_weights", "eos_ids"):
        if isinstance(given := description.get(name), list) and len(given) > MOST_NAMED:
            raise ValueError(f"{name}: {len(given)}")
    names = tuple(map(str, description.get("reward_names") or ()))
    weights = tuple(map(float, description.get("reward_weights") or ()))
    names += tuple(f"reward {number + 1}" for number in range(len(names), len(weights)))
    task = RecordedTask(
        source=f"{kind.title} {description.get('trainer_version', '')}".strip(),
        reward_names=names,
        reward_weights=weights if len(weights) == len(names) else (),
        eos_ids=tuple(map(int, description.get("eos_ids") or ())),
        max_tokens=trainer.get(kind.longest),
        trainer_settings=json.dumps(trainer, sort_keys=True),
    )
    learner = Learner(
        group_size=int(description.get("num_generations") or trainer["num_generations"]),
        mu=int(trainer.get(kind.iterations) or 1),
        temperature=float(trainer.get("temperature") or 1.0),
    )
    return Settings(objective=kind.objective(trainer), learner=learner, task=task)
