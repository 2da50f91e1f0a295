"""Files that prime-rl writes next to its rollouts: the trainer's configuration, its token export and its metrics.

Based on the source code of prime-rl 559b447. The launcher writes ``configs/trainer.json`` (or ``configs/rl.json``, with
the trainer's configuration as a part) with every default; a user's files are TOML. With ``trainer.enable_token_export``
the trainer writes one packed sequence per line to ``token_exports/step_12/rank_0.jsonl`` (``token_export.py``), in
float32, and ``STABLE`` once all processes have written; prime-rl since September 2026 has no such setting, and writes
annotations instead (``prime_rl_stream.py``). ``metrics.jsonl`` contains the mean of the losses of all
micro-batches as ``loss/mean``.

A sequence is a branch of a rollout from its first token on, possibly truncated at its end. It does not name its
rollout, which is identified by its tokens.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.config import Settings
from grpo_core.foreign.recording import file_stamp
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.importers import prime_rl_settings, recipe
from grpo_core.trainers.importers.records import complete_lines
from grpo_core.trainers.importers.text_run import numbered
from grpo_core.trainers.importers.verifiers_tokens import MOST_PLACES, RowTokens, as_dict

CONFIGS = ("trainer.json", "rl.json", "trainer.toml", "rl.toml")
"""Names of configuration files in ``configs``, in order of preference."""
LARGEST_CONFIG = 4 << 20
EXPORTS, METRICS, LOSS = "token_exports", "metrics.jsonl", "loss/mean"
SETTLED = 1e-6
"""Minimum distance from the trust region's bound at which a token is certain to be on one side of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedSequence:
    """A sequence of the token export.

    Attributes:
        tokens: its tokens, from the prompt on. NaN if the trainer's number was not finite. The loss counts those of the
            component "rl"; the trust region dropped some.
        micro_step: number of the micro-batch on its process.
        other: reason why the loss of its update is not that of the component "rl" alone with weights of 1; empty if
            it is.
    """

    tokens: RowTokens
    micro_step: int
    other: str

    def row(self, first: int, row: RowTokens) -> RowTokens:
        """Return the rollout's ``row``, which can be longer, with the numbers of this sequence from ``first`` on."""

        def cut(values: np.ndarray) -> np.ndarray:
            whole = np.full(len(row.ids), False if values.dtype == bool else np.nan, values.dtype)
            whole[: len(values) - first] = values[first:]
            return whole

        names = ("mask", "sampler", "trainer", "entropy", "advantage", "dropped")
        own: dict[str, Any] = {name: getattr(self.tokens, name) for name in names}
        own = {name: None if values is None else cut(values) for name, values in own.items()}
        return dataclasses.replace(row, **own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Exported:
    """The token export of an update.

    Attributes:
        sequences: sequences of all processes.
        why_not: why their loss cannot be compared with the trainer's; empty if it can.
    """

    sequences: tuple[PackedSequence, ...]
    why_not: str = ""

    @property
    def tokens(self) -> int:
        """The number of tokens of the component "rl", by which the loss is divided, at least 1."""
        return max(sum(int(one.tokens.mask.sum()) for one in self.sequences), 1)


class PrimeRlFolder:
    """The folder of a prime-rl run.

    Attributes:
        trainer: the trainer's configuration; None if there is none.
        loss: the settings of the loss; None if there is no configuration.
        why_unknown: why the loss is unknown or cannot be recomputed; empty if it can be.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.notes: list[str] = []
        self.trainer, self._orchestrator = self._configurations()
        self.loss = None if self.trainer is None else prime_rl_settings.loss_of(self.trainer)
        self.why_unknown = ""
        if self.loss is not None:
            self.why_unknown = prime_rl_settings.unsupported(self.loss)
        elif not self.notes:
            self.why_unknown = tr(
                "There is no configuration of prime-rl's trainer (configs/trainer.json) next to these rollouts, so "
                "the settings of the loss are not known."
            )
        self.why_unknown = self.why_unknown or " ".join(self.notes if self.loss is None else ())
        self._latest: tuple[int, tuple[int, ...], Exported] | None = None
        self._losses: tuple[tuple[int, ...], dict[int, float]] | None = None

    @property
    def has_exports(self) -> bool:
        folder = self.home / EXPORTS
        return folder.is_dir() and bool(numbered(folder, "step_", ""))

    def settings(self, settings: Settings) -> Settings:
        """Return ``settings`` with the loss of the configuration, if it can be recomputed."""
        task = dataclasses.replace(settings.recorded, source="prime-rl")
        if self.loss is None or self.why_unknown:
            return settings.replace({"task": task})
        named = json.dumps({f"loss.{name}": value for name, value in self.loss.items()}, sort_keys=True)
        task = dataclasses.replace(task, trainer_settings=named)
        return settings.replace({"task": task, "objective": prime_rl_settings.objective_of(self.loss)})

    def _configurations(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return the trainer's configuration, or None if there is none, and the orchestrator's, or an empty one."""
        for name in CONFIGS:
            path = self.home / "configs" / name
            if not path.is_file():
                continue
            try:
                whole = _parsed(path)
            except (OSError, ValueError, RecursionError) as error:
                self.notes.append(
                    tr("{path} cannot be read ({error}), so the settings of the loss are not known.").format(
                        path=path, error=error
                    )
                )
                return None, {}
            if path.suffix == ".toml":
                self.notes.append(
                    tr(
                        "{name} was written by hand: for loss settings that it leaves out, those of prime-rl in "
                        "August 2026 are assumed."
                    ).format(name=name)
                )
            if path.stem == "rl":
                return as_dict(whole.get("trainer")), as_dict(whole.get("orchestrator"))
            orchestrator: dict[str, Any] = {}
            with suppress(OSError, ValueError, RecursionError):
                orchestrator = _parsed(path.with_name(f"orchestrator{path.suffix}"))
            return whole, orchestrator
        return None, {}

    def stamp(self, label: int) -> tuple[int, ...]:
        """Return integers that change when more data about an update becomes available."""
        files = self._files(label)
        stamps = [n for file in files for n in file_stamp(file)]
        return (*stamps, int(self._is_whole(label)), int(self.mean_loss(label) is not None))

    def _folder(self, label: int) -> Path:
        return self.home / EXPORTS / f"step_{label}"

    def _files(self, label: int) -> list[Path]:
        folder = self._folder(label)
        return [f for _, f in numbered(folder, "rank_", ".jsonl")] if folder.is_dir() else []

    def _is_whole(self, label: int) -> bool:
        return (self._folder(label) / "STABLE").exists()

    def mean_loss(self, label: int) -> float | None:
        """Return the mean loss of an update's micro-batches as logged by the trainer, or None if it was not logged."""
        logged = as_dict(as_dict((self.trainer or {}).get("monitors")).get("file")).get("path", METRICS)
        place = Path(str(logged).replace("\0", ""))
        path = place if place.is_absolute() else self.home / place
        stamp = file_stamp(path)
        if self._losses is None or self._losses[0] != stamp:
            found = {}
            for line in complete_lines(path, []):
                if isinstance(line, dict) and type(line.get("step")) is int and isinstance(line.get(LOSS), int | float):
                    found[line["step"]] = float(line[LOSS])  # for a resumed run the last one counts
            self._losses = stamp, found
        return self._losses[1].get(label)

    def exported(self, label: int) -> Exported | None:
        """Return the token export of an update, or None if there is none."""
        files, stamp = self._files(label), self.stamp(label)
        if not files:
            return None
        if self._latest is None or self._latest[:2] != (label, stamp):
            self._latest = label, stamp, self._read(label, files)
        return self._latest[2]

    def _read(self, label: int, files: Sequence[Path]) -> Exported:
        sequences: list[PackedSequence] = []
        reasons: list[str] = []
        places = 0
        for file in files:
            for line in complete_lines(file, reasons):
                try:
                    one = _sequence(line)
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    reasons.append(
                        tr("A line of {name} is not what prime-rl writes ({error}) and is left out.").format(
                            name=file.name, error=repr(error)[:200]
                        )
                    )
                    continue
                places += len(one.tokens.ids)
                if places > MOST_PLACES:
                    reasons.append(tr("The token export of step {label} is too large.").format(label=label))
                    break
                sequences.append(one)
        if not self._is_whole(label):
            reasons.insert(0, tr("The token export of step {label} is still being written.").format(label=label))
        reasons += [one.other for one in sequences if one.other]
        return Exported(sequences=tuple(sequences), why_not=reasons[0] if reasons else "")

    def micro_batches(self, exported: Exported) -> int | None:
        """Return the number of micro-batches of an update on all processes. None if the number of processes is unknown.

        All processes run the same number of micro-batches. Missing ones were empty and therefore not exported.
        """
        processes = self._orchestrator.get("num_train_workers")
        if type(processes) is not int or processes < 1 or not exported.sequences:
            return None
        return processes * (1 + max(one.micro_step for one in exported.sequences))


def beside(path: Path) -> PrimeRlFolder | None:
    """Return the folder of the prime-rl run with the rollouts at ``path``. None if it is not a prime-rl run."""
    above = next((folder.parent for folder in (path, *path.parents) if folder.name == "rollouts"), None)
    home = path if (path / "rollouts").is_dir() or (path / "monitors").is_dir() else above
    if home is None or not ((home / EXPORTS).is_dir() or any((home / "configs" / name).is_file() for name in CONFIGS)):
        return None
    return PrimeRlFolder(home)


def matched(exported: Exported, rows: Sequence[RowTokens | None]) -> tuple[list[RowTokens | None], np.ndarray, int]:
    """Add the numbers of the token export to the rows of an update.

    Args:
        rows: the tokens of its completions according to the rollouts.

    Returns:
        The rows; which of them were trained, boolean (B,); and the number of sequences that belong to none of them.
    """
    found, trained = list(rows), np.zeros(len(rows), bool)
    whole = [None if row is None or row.before is None else np.concatenate([row.before, row.ids]) for row in rows]
    by_tokens: dict[bytes, list[int]] = {}
    for i, ids in enumerate(whole):
        if ids is not None:
            by_tokens.setdefault(ids.tobytes(), []).append(i)
    left = 0
    for one in sorted(exported.sequences, key=lambda one: -len(one.tokens.ids)):
        own = one.tokens.ids
        same = by_tokens.get(own.tobytes())
        longer = (  # completions that begin with the sequence, which may have been truncated
            i
            for i, ids in enumerate(whole)
            if ids is not None and not trained[i] and len(ids) > len(own) and np.array_equal(ids[: len(own)], own)
        )
        place = same.pop(0) if same else next(longer, None)
        row = None if place is None else rows[place]
        if place is None or row is None or row.before is None or len(row.before) >= len(own):
            left += 1
            continue
        trained[place] = True
        found[place] = one.row(len(row.before), row)
    return found, trained, left


def with_loss(
    step: Step, folder: PrimeRlFolder, count: int, rows: Sequence[RowTokens | None], trained: np.ndarray
) -> tuple[Step, int]:
    """Apply the loss of prime-rl's configuration to ``step``.

    Also returns the number of tokens for which export and settings disagree on whether the trust region drops them. The
    export takes precedence.

    Args:
        step: step with the rows, as created by :func:`~grpo_core.trainers.importers.verifiers_tokens.step_of`.
        folder: folder of the run, whose loss can be recomputed.
        count: number of tokens by which the loss is divided.
        trained: which of them were trained, boolean (B,).
    """
    assert folder.loss is not None
    part = np.where(trained[None], step.part, -1)
    counted = step.mask & (part[0] >= 0)[:, None]
    sampling = step.logp[0] if step.sampling_logp is None else step.sampling_logp
    advantage = np.zeros(step.mask.shape) if step.advantage is None else step.advantage
    advantage = np.broadcast_to(advantage[:, None] if advantage.ndim == 1 else advantage, step.mask.shape)
    logp, by_sampler = (np.where(counted, x, 0.0) for x in (step.logp[0], sampling))
    out = counted & prime_rl_settings.dropped(folder.loss, logp, by_sampler, advantage)
    theirs = out.copy()
    for i, row in enumerate(rows):
        if row is not None and row.dropped is not None:
            theirs[i, : len(row.dropped)] = row.dropped
    theirs &= counted
    moved = np.exp(logp) - np.exp(by_sampler)
    bounds = [value for name, value in folder.loss.items() if name.startswith(("dppo", "ipo"))]
    settled = np.all([np.abs(np.abs(moved) - bound) > SETTLED for bound in bounds], axis=0)
    gate = (np.where(theirs, 0.0, 1.0) * float(folder.loss["adv_tau"])).astype(np.float32)
    return dataclasses.replace(
        step,
        part=part,
        gate=gate[None],
        denominator=np.array([[float(count)]]),
        ref_logp=np.where(step.mask & np.isfinite(sampling), sampling, 0.0),
    ), int(((theirs != out) & settled).sum())


def _parsed(path: Path) -> dict[str, Any]:
    """Read a configuration file. OSError or ValueError if it is not there, or not a JSON or TOML object."""
    value = recipe.parsed(path, LARGEST_CONFIG)
    if not isinstance(value, dict):
        raise ValueError(tr("it is not an object"))
    return value


def _sequence(line: Any) -> PackedSequence:
    """Parse a line of the export. KeyError, TypeError, ValueError or OverflowError if prime-rl writes no such line."""
    if line["schema_version"] != 1:
        raise ValueError(f"schema_version {line['schema_version']}")
    length = len(line["token_ids"])

    def floats(name: str, empty: float = math.nan) -> np.ndarray:
        values = np.array([empty if value is None else value for value in line[name]], np.float64)
        if values.shape != (length,):
            raise ValueError(name)
        return values

    micro_step = line["micro_step"]
    if type(micro_step) is not int or not 0 <= micro_step < 1_000_000:
        raise ValueError("micro_step")
    mask = np.array(line["loss_mask"], bool)
    weights = floats("rl_weights", 1.0)
    whole = line.get("is_masked")
    known = isinstance(whole, list) and len(whole) == length and all(isinstance(value, bool) for value in whole)
    if mask.shape != (length,):
        raise ValueError("loss_mask")
    other = ""
    if floats("ce_weights", 0.0).any():
        other = tr(
            "In addition to the policy gradient, this update trained tokens by cross-entropy (prime-rl's “ce”); the "
            "logged loss includes theirs and cannot be compared."
        )
    elif floats("ref_kl_weights", 0.0).any():
        other = tr(
            "This update trained tokens by the KL to a reference model (prime-rl's “ref_kl”), which the loss here "
            "does not have in that form; it cannot be compared."
        )
    elif (mask & (weights != 0) & (weights != 1)).any():
        other = tr(
            "prime-rl weights tokens of this update by factors other than 0 and 1 (rl_weights); it also weights its "
            "KL term by them, which the loss here cannot express."
        )
    tokens = RowTokens(
        ids=np.array(line["token_ids"], np.int64),
        mask=mask & (weights != 0),
        sampler=floats("inference_logprobs"),
        trainer=floats("trainer_logprobs"),
        reference=np.full(length, np.nan),
        advantage=floats("advantages"),
        entropy=floats("entropy"),
        dropped=np.array(whole, bool) if known else None,
    )
    return PackedSequence(tokens=tokens, micro_step=micro_step, other=other)
