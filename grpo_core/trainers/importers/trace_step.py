"""Assembly of one step of a traced run from the parts of all processes, as the loss of TRL or of verl uses it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grpo_core.config import Objective, Settings
from grpo_core.errors import NotRecordedError, RunFileError
from grpo_core.kl import estimate
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.importers import trl_settings, verl_settings
from grpo_core.trainers.importers.arrays import Arrays
from grpo_core.trainers.importers.parquet import Columns
from grpo_core.trainers.importers.trace_folder import StepFiles
from grpo_core.trainers.importers.trl_table import weighted


def generations_of(columns: Columns | Arrays) -> np.ndarray:
    """Return the generation batch of each completion within its step, (B,), the first if not recorded."""
    known = columns.has_values("generation")
    return columns.numbers("generation", np.int64) if known else np.zeros(columns.rows, np.int64)


def stacked(rows: list[np.ndarray | None]) -> np.ndarray | None:
    """Stack the rows into one array. None if one is missing or their lengths differ."""
    known = [row for row in rows if row is not None]
    return np.array(known) if len(known) == len(rows) and len({len(row) for row in known}) == 1 else None


def micro_batches(files: StepFiles) -> tuple[int, dict[tuple[int, int], dict[str, Any]]]:
    """Return the number of parts of a process, and the facts about each micro-batch, by (optimizer step, part)."""
    known = [(rank, micro) for rank, piece in files.pieces.items() for micro in piece.index["micro_batches"]]
    width = 1 + max((int(micro["part"]) for _, micro in known), default=0)
    return width, {(int(micro["pass"]), rank * width + int(micro["part"])): micro for rank, micro in known}


class StepAssembly:
    """Combines the parts of all processes into one step, padded to the longest completion, as TRL's loss uses it.

    Attributes:
        title: the trainer's name.
        longest, iterations: names of the settings for the maximum length of a completion and the number of uses of a
            batch.
        objective: function from the trainer's settings to the loss that it minimises.
        unsupported: function from these settings to the reason why the loss cannot be recomputed; empty if it can.
    """

    title, longest, iterations = "TRL", "max_completion_length", "num_iterations"
    objective: Callable[[Mapping[str, Any]], Objective] = staticmethod(trl_settings.objective_of)
    unsupported: Callable[[Mapping[str, Any]], str] = staticmethod(lambda settings: "")

    def __init__(
        self, files: StepFiles, columns: Sequence[Columns | Arrays], processes: int, trainer: dict[str, Any]
    ) -> None:
        """Begin with the ``columns`` of each of the ``files``, in order of rank."""
        self.files, self.columns = files, columns
        self.width, self.micro = micro_batches(files)
        self.processes, self.trainer = processes, trainer
        self.ids = self._lists("completion_ids", np.int64)
        self.length = max((len(ids) for ids in self.ids if ids is not None), default=0)
        if not self.length:
            raise NotRecordedError(tr("This step contains no tokens."))
        self.batch = len(self.ids)
        self.generation = np.concatenate([generations_of(each) for each in columns])
        self.part, self.entry, self.optimizer_step = (np.empty(0, np.int64) for _ in range(3))

    def step(self, position: int, settings: Settings) -> Step:
        """Create the step with all recorded data."""
        self._place_uses()
        mask = self._rows("mask", bool, False)
        logp = self._uses("logp", np.nan)
        tokens = self._rows("completion_ids", np.int64, -1)
        assert logp is not None and mask is not None and tokens is not None
        present = self._present()
        old = self._rows("old_logp", np.float32, 0.0)
        if old is None:  # TRL's old policy is then that of each completion's first pass
            old = logp[(self.entry >= 0).argmax(axis=0), np.arange(self.batch)]
        rewards = stacked(self._lists("rewards", np.float64))
        weights = np.asarray(settings.recorded.reward_weights or (1.0,), np.float64)
        coefficient, weight = self._entropy_bonus(mask)
        group = np.concatenate([each.numbers("group", np.int64) for each in self.columns])
        total = None if rewards is None else weighted(rewards, weights)
        return Step(
            step=position,
            label=self.files.last_step,
            settings=settings,
            group=np.unique(group + self.generation * self.batch, return_inverse=True)[1],
            row_id=np.arange(self.batch),
            tokens=tokens,
            mask=mask,
            present=None if np.array_equal(present, mask) else present,
            written=self._rows("tool_mask", bool, False),
            rewards=np.full(self.batch, np.nan) if total is None else total,
            reward_parts=rewards,
            old_logp=old,
            ref_logp=self._rows("ref_logp", np.float32, 0.0),
            sampling_logp=self._rows("sampling_logp", np.float32, 0.0),
            logp=logp,
            part=self.part,
            denominator=self._denominators(mask),
            advantage=self._advantage(),
            gate=self._gate(),
            entropy=self._uses("entropy", np.nan),
            entropy_coefficient=coefficient,
            entropy_weight=weight,
            optimizer_step=self.optimizer_step,
            prompt_tokens=None,
        )

    def _place_uses(self) -> None:
        """Determine the number of passes N and the part of each row in them.

        If one optimizer step uses a completion several times (several iterations within an accumulation), that step
        counts as that many passes.
        """
        uses: list[tuple[int, int, int, int, int]] = []  # row, step, time within it, which of the row's entries, part
        first = 0
        for rank, columns in zip(self.files.pieces, self.columns, strict=True):
            both = (columns.lists(name, np.int64) for name in ("pass", "part"))
            for i, (passed, part) in enumerate(zip(*both, strict=True)):
                seen: Counter[int] = Counter()
                for entry in range(0 if passed is None else len(passed)):
                    assert passed is not None and part is not None
                    n, own = int(passed[entry]), int(part[entry])
                    micro = rank * self.width + own if 0 <= own < self.width else -1
                    uses.append((first + i, n, seen[n], entry, micro))
                    seen[n] += 1
            first += columns.rows
        order = sorted({(n, time) for _, n, time, _, _ in uses})
        if not order:
            raise NotRecordedError(tr("This step was generated but never used; it has no loss."))
        for row, n, _, _, micro in uses:
            if (n, micro) not in self.micro:  # such a number would determine the size of arrays
                raise RunFileError(
                    tr(
                        "Completion {row} was used in a micro-batch of optimizer step {n} that the index does not "
                        "name; the file or its line in the index is damaged."
                    ).format(row=row + 1, n=n)
                )
        place = {key: index for index, key in enumerate(order)}
        self.part = np.full((len(order), self.batch), -1)
        self.entry = np.full((len(order), self.batch), -1)
        for row, n, time, entry, micro in uses:
            self.part[place[n, time], row] = micro
            self.entry[place[n, time], row] = entry
        self.optimizer_step = np.array([n for n, _ in order])

    def _lists(self, name: str, kind: Any) -> list[np.ndarray | None]:
        return [x for each in self.columns for x in each.lists(name, kind, optional=True)]

    def _rows(self, name: str, kind: Any, empty: Any) -> np.ndarray | None:
        """Stack one array per completion with padding: (B, T). None if not recorded."""
        lists = self._lists(name, kind)
        if all(x is None for x in lists):
            return None
        whole = np.full((self.batch, self.length), empty, kind)
        for row, values in zip(whole, lists, strict=True):
            if values is not None:
                row[: len(values)] = values
        return whole

    def _uses(self, name: str, empty: float) -> np.ndarray | None:
        """Stack one array per use of a completion with padding: (N, B, T). None if not recorded."""
        lists = [x for each in self.columns for x in each.nested(name, np.float32)]
        whole = np.full((len(self.part), self.batch, self.length), empty, np.float32)
        recorded = False
        for n, row in zip(*np.nonzero(self.entry >= 0), strict=True):
            values = lists[row][self.entry[n, row]] if self.entry[n, row] < len(lists[row]) else ()
            if len(values):
                recorded = True
                there = self.length if len(values) == 1 else len(values)
                whole[n, row, :there] = values
        return whole if recorded else None

    def _present(self) -> np.ndarray:
        lengths = np.array([0 if ids is None else len(ids) for ids in self.ids])
        return np.asarray(np.arange(self.length) < lengths[:, None])

    def _advantage(self) -> np.ndarray | None:
        lists = self._lists("advantage", np.float64)
        if any(x is None or not len(x) for x in lists):
            return None
        if all(len(x) == 1 for x in lists if x is not None):
            return np.array([float(x[0]) for x in lists if x is not None])
        whole = self._rows("advantage", np.float64, 0.0)
        present = self._present()
        if whole is None or not present.any(axis=1).all():
            return whole
        first = np.take_along_axis(whole, present.argmax(axis=1)[:, None], axis=1)
        return first[:, 0] if (np.where(present, whole, first) == first).all() else whole

    def _gate(self) -> np.ndarray | None:
        """Return the factor of the surrogate: both masks, and the sampler's importance weights if TRL applies them."""
        gates = [self._uses(name, 1.0) for name in ("off_policy_mask", "entropy_mask")]
        ratio = self._rows("sampling_ratio", np.float32, 1.0)
        if ratio is not None and self.trainer.get("loss_type") != "vespo":
            for row, values in zip(ratio, self._lists("sampling_ratio", np.float32), strict=True):
                if values is not None and len(values) == 1:
                    row[:] = values[0]
            gates.append(ratio[None])
        known = [gate for gate in gates if gate is not None]
        if not known:
            return None
        whole = np.ones((len(self.part), self.batch, self.length), np.float32)
        for gate in known:
            whole = whole * gate
        return whole

    def _denominators(self, mask: np.ndarray) -> np.ndarray:
        """Return the trainer's divisors (N, M), 1 if a pass has no such micro-batch."""
        whole = np.ones((len(self.part), 1 + int(self.part.max())))
        for n, part, noted in self._parts():
            whole[n, part] = self._denominator(noted, mask, self.part[n] == part)
        return whole

    def _denominator(self, noted: dict[str, Any], mask: np.ndarray, rows: np.ndarray) -> float:
        """Return the divisor of the loss of the micro-batch ``rows``, from the recorded facts ``noted``."""
        return trl_settings.denominator_of(
            str(self.trainer["loss_type"]),
            rows=int(rows.sum()),
            tokens=int(mask[rows].sum()),
            generated_tokens=self._generated_tokens(noted, mask, rows),
            accumulation=self._accumulation(noted),
            processes=self.processes,
            steps_per_generation=int(self.trainer.get("steps_per_generation") or self._accumulation(noted)),
        )

    def _generated_tokens(self, noted: dict[str, Any], mask: np.ndarray, rows: np.ndarray) -> float | None:
        """Return the number of tokens in the loss in the generation batch to which these ``rows`` belong.

        The number is taken from the record, or counted if every process's file exists. Otherwise it is None.
        """
        value = noted.get("num_items_in_batch")
        if value is not None or len(self.columns) < self.processes:
            return None if value is None else float(value)
        return float(mask[self.generation == self.generation[rows][0]].sum())

    def _accumulation(self, noted: dict[str, Any]) -> float:
        """Return the number of micro-batches per optimizer step, as recorded for one of them or as configured."""
        value = noted.get("accumulation")
        return float(self.trainer.get("gradient_accumulation_steps") or 1) if value is None else float(value)

    def _parts(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield (pass, part, recorded facts) of every non-empty micro-batch."""
        for n in range(len(self.part)):
            for part in map(int, np.unique(self.part[n][self.part[n] >= 0])):
                yield n, part, self.micro[int(self.optimizer_step[n]), part]

    def _entropy_bonus(self, mask: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the applied coefficient (N, M), and each token's weight in the mean entropy, (N, B, T)."""
        if not any(micro.get("entropy_coef") for micro in self.micro.values()):
            return None, None
        acts = self._uses("entropy_mask", 0.0)
        coefficient = np.zeros((len(self.part), 1 + int(self.part.max())))
        weight = np.zeros((len(self.part), self.batch, self.length))
        for n, part, noted in self._parts():
            rows = self.part[n] == part
            counts = mask[rows] if acts is None else mask[rows] * acts[n][rows]
            coefficient[n, part] = noted.get("entropy_coef") or 0.0
            weight[n, rows] = counts / max(counts.sum(), 1.0) / (self._accumulation(noted) * self.processes)
        return coefficient, weight


class VerlAssembly(StepAssembly):
    """Combines the parts of all processes into one update, as verl's loss uses it."""

    title, longest, iterations = "verl", "data.max_response_length", "ppo_epochs"
    objective = staticmethod(verl_settings.objective_of)
    unsupported = staticmethod(verl_settings.unsupported)

    def step(self, position: int, settings: Settings) -> Step:
        step = super().step(position, settings)
        self._refuse_cut_kl(step)
        self._refuse_weights_of_tokens(step)
        if np.bincount(step.group).max() <= settings.learner.group_size:
            return step
        # several outputs of one session have the advantage of the last, so the group's mean is not that of all rows
        given = settings.replace({"objective.baseline": "given", "objective.std": "none"})
        return dataclasses.replace(step, settings=given)

    def _denominator(self, noted: dict[str, Any], mask: np.ndarray, rows: np.ndarray) -> float:
        counted = mask[rows]
        return verl_settings.denominator_of(
            self.trainer, noted, rows=int(counted.any(axis=1).sum()), tokens=int(counted.sum())
        )

    def _entropy_bonus(self, mask: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return None twice: the bonus has the configured coefficient, and the weights of the other terms."""
        return None, None

    def _refuse_cut_kl(self, step: Step) -> None:
        """Refuse an update in which verl clamped the KL of a token, which this program's loss does not do."""
        objective = step.settings.objective
        if not objective.beta or objective.kl != "k3" or step.ref_logp is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            cut = int((step.mask & (estimate("k3", step.logp, step.ref_logp) > verl_settings.LARGEST_KL)).sum())
        if cut:
            raise NotRecordedError(
                plural(
                    "verl cut the KL of {count} token at {limit:g}, so the loss of this update cannot be recomputed.",
                    "verl cut the KL of {count} tokens at {limit:g}, so the loss of this update cannot be recomputed.",
                    cut,
                ).format(count=cut, limit=verl_settings.LARGEST_KL)
            )

    def _refuse_weights_of_tokens(self, step: Step) -> None:
        """Refuse an update with importance weights per token and the ratio of the completion: verl multiplies each push
        by its own weight, while the loss of this program would use their mean.
        """
        if step.gate is None or step.settings.objective.level != "sequence":
            return
        gate = np.where(step.mask, step.gate, np.nan)
        with np.errstate(all="ignore"):
            apart = np.nanmax(gate, axis=-1, initial=-np.inf) - np.nanmin(gate, axis=-1, initial=np.inf)
        if (apart > 0).any():
            raise NotRecordedError(
                tr(
                    "verl gives each token its own importance weight in addition to the completion's ratio (GSPO "
                    "with rollout_is “token”), so the loss of this update cannot be recomputed."
                )
            )


KINDS = {"trl": StepAssembly, "verl": VerlAssembly}
"""The trainers that a recorder supports, by their names in ``trace.json``."""
