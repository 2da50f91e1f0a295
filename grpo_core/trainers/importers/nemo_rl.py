"""Reader of NeMo-RL's ``train_data_step12.jsonl``: a sequence per line, with its tokens, advantages and rewards.

Based on the source code of NeMo-RL 7ea279a (``algorithms/grpo.py``, ``grpo_sync.py`` and
``Logger.log_batched_dict_as_jsonl``), which writes the files by default. Each value is a list of one; arrays are padded
and hold prompt and response. ``prev_logprobs`` are the policy's before the update, ``generation_logprobs`` the
sampler's. The reference's log-probabilities and the loss are not in the files.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.importers import nemo_rl_settings, recipe
from grpo_core.trainers.importers.records import Record, complete_lines, records
from grpo_core.trainers.importers.rows import Row, RowRun, number, tokens_of
from grpo_core.trainers.importers.text_run import numbered, recorded_settings, whole
from grpo_core.trainers.importers.trl_table import as_text

BEFORE, AFTER = "train_data_step", ".jsonl"
TRAINED_BY = "NeMo-RL"
COLUMNS = {
    "mask": "token_loss_mask", "sampler": "generation_logprobs", "trainer": "prev_logprobs", "advantage": "advantages",
}  # fmt: skip # table
"""Meaning -> name in the file."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a file of NeMo-RL's training data, or a folder of them."""
    return path.exists() and bool(numbered(path, BEFORE, AFTER))


class NemoRun(RowRun):
    """A folder of NeMo-RL's training data, or a single file from such a folder."""

    has_losses = True
    why_no_step = tr(
        "These files contain no token numbers with log-probabilities, so there is no loss to recompute; NeMo-RL writes "
        "them unless env.should_log_nemo_gym_responses is true."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path, path.stem if path.is_file() else path.name, recorded_settings(TRAINED_BY))
        found = recipe.beside([path] if path.is_dir() else [], nemo_rl_settings.known)
        self.note(*found.notes)
        self._read = nemo_rl_settings.completed(found.values)
        self._unsupported = nemo_rl_settings.unsupported(self._read)
        self._known = found.path is not None
        self._describe(found)
        self.refresh()
        if self.files:
            sizes = np.bincount(self.last_readable().group)
            self.settings = recorded_settings(
                TRAINED_BY,
                group_size=int(sizes.max()),
                objective=None if self._unsupported else nemo_rl_settings.objective_of(self._read),
                max_tokens=whole(self._read["policy.max_total_sequence_length"]),
                trainer_settings=json.dumps(self._read, sort_keys=True, default=str) if self._known else "",
            )

    def _describe(self, found: recipe.Recipe) -> None:
        self.note(
            tr(
                "The settings of the loss are those of {name}; NeMo-RL's defaults are assumed for those not in it."
            ).format(name=found.path.name)
            if found.path is not None
            else tr(
                "The settings of the loss are not known, because no recipe of NeMo-RL (config.yaml) is in an opened "
                "folder with these files: its defaults are assumed (clip range 0.2, mean over tokens, no importance "
                "weights), and nothing is compared. Put the recipe there, and open the folder."
            )
        )
        if self._unsupported:
            self.note(self._unsupported)
        penalty = self._read["loss_fn.reference_policy_kl_penalty"]
        if found.path is not None and penalty and not self._read["loss_fn.use_kl_in_reward"]:
            self.note(
                tr(
                    "The loss had a KL term with the coefficient {beta}; NeMo-RL does not write the reference's "
                    "log-probabilities, so it is left out."
                ).format(beta=penalty)
            )

    def refresh(self) -> int:
        return self.take_files(self.path, BEFORE, AFTER, lambda file: any(True for _ in complete_lines(file, [])))

    def rows(self, position: int) -> list[Row]:
        label = self.labels[position - 1]
        notes: list[str] = []
        found = [_unwrapped(record) for record in records(self.files[label], notes)]
        filtered = next((record["filtered_rewards"] for record in found if "filtered_rewards" in record), None)
        if filtered is not None:
            notes.append(
                tr(
                    "NeMo-RL sampled dynamically: rewards are those of the completions that were kept "
                    "(filtered_rewards)."
                )
            )
        # a completion that dynamic sampling dropped has a line with nothing but its reward
        kept = [one for one in found if any(one.get(name) is not None for name in ("token_loss_mask", "content"))]
        rows = self.converted(label, kept)
        self.note(*notes)
        return rows

    def row_of(self, record: Record) -> Row:
        reward = number(record.get("filtered_rewards", record.get("rewards")))
        texts = record.get("content")
        texts = [texts] if isinstance(texts, str) else texts or []
        ids, count = record.get("token_ids"), int(record.get("input_lengths") or 0)
        counted = np.array(record["token_loss_mask"], bool)
        count = count if 0 < count <= len(counted) else len(counted)
        counted = counted[:count]
        prompt, completion = _split(texts, counted)
        if ids is None:
            return Row(prompt=prompt, completion=completion, reward=reward, length=int(counted.sum()))
        streams = {name: record.get(column) for name, column in COLUMNS.items()}
        tokens = tokens_of(ids[:count], {name: v if v is None else v[:count] for name, v in streams.items()})
        if tokens is None:
            raise ValueError("token_ids")
        return Row(
            prompt=prompt,
            completion=completion,
            group=b"" if tokens.before is None else tokens.before.tobytes(),
            reward=reward,
            advantage=float(tokens.advantage[tokens.mask].mean()) if tokens.mask.any() else math.nan,
            tokens=tokens,
            used=bool(record.get("sample_loss_mask", True)),
        )

    def _step(self, position: int, rows: Sequence[Row]) -> Step:
        step = super()._step(position, rows)
        if step.sampling_logp is None or not nemo_rl_settings.gates(self._read) or self._unsupported:
            return step
        weight = nemo_rl_settings.weights(self._read, step.old_logp, step.sampling_logp, step.mask)
        return dataclasses.replace(step, gate=weight.astype(np.float32))

    def is_first_pass(self, rows: Sequence[Row]) -> bool:
        return self._known and not self._unsupported and self._read["policy.train_global_batch_size"] == len(rows)

    def incomplete(self, position: int) -> str:
        return tr("NeMo-RL does not write the loss to these files, so only advantages are compared.")


def _unwrapped(record: Record) -> Record:
    """Return a line without the lists of one in which NeMo-RL wraps its values. An empty list becomes None."""
    return {
        name: (value[0] if value else None) if isinstance(value, list) and len(value) < 2 else value
        for name, value in record.items()
    }


def _split(texts: Sequence[Any], counted: np.ndarray) -> tuple[str | None, str | None]:
    """Return prompt and completion of a conversation, of which NeMo-RL writes the texts without their speakers.

    The model wrote as many messages as there are runs of counted tokens, each followed by one of the environment,
    except for the last if the sequence ends with a counted token.
    """
    if not texts:
        return None, None
    runs = int(np.count_nonzero(np.diff(counted.astype(np.int8), prepend=0) == 1))
    written = 2 * runs - bool(counted.size and counted[-1])
    first = min(max(len(texts) - written, 0), len(texts))
    said = [as_text(text) or "" for text in texts]
    if len(texts) - first < 2:
        return "\n".join(said[:first]), "".join(said[first:])
    turns = [
        {"role": "assistant" if place % 2 == 0 else "environment", "content": text}
        for place, text in enumerate(said[first:])
    ]
    return "\n".join(said[:first]), json.dumps(turns, ensure_ascii=False)
