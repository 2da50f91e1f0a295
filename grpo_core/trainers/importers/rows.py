"""Base class of sources whose files hold a completion per row, with or without tokens."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grpo_core.errors import NotRecordedError, RunFileError, shortened
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import Trajectory, trajectories_in
from grpo_core.parsing import from_json
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.importers.records import Record
from grpo_core.trainers.importers.text_run import TextRun, equal_groups
from grpo_core.trainers.importers.trl_table import MOST_REWARDS, weighted
from grpo_core.trainers.importers.verifiers_tokens import RowTokens, step_of

STREAMS = ("sampler", "trainer", "reference")
OF_TOKENS = (*STREAMS, "mask", "prompt_ids", "advantage", "entropy")
"""Meanings of the columns that belong to the tokens of a row."""
MALFORMED = (LookupError, TypeError, ValueError, OverflowError, AttributeError)
"""Errors of a conversion that show that a row is not what the trainer writes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A completion. A number that is not recorded is NaN or None.

    Attributes:
        prompt, completion: as text, a conversation as JSON; None if not recorded.
        group: key that the completions of a prompt share; None if unknown.
        parts: name -> value of each part of the reward.
        weights: name -> weight of a part; 1 for a part without one.
        metrics: name -> value of the environment's numbers that are not rewards.
        advantage: the trainer's advantage.
        length: number of tokens that the policy sampled.
        truncated: whether a limit cut the completion off.
        entropy: mean entropy of the policy over the tokens, in nats.
        tokens: the tokens; None if not recorded.
        used: whether the trainer used the completion.
    """

    prompt: str | None = None
    completion: str | None = None
    group: Hashable = None
    reward: float = math.nan
    parts: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    advantage: float = math.nan
    length: int | None = None
    truncated: bool | None = None
    entropy: float = math.nan
    tokens: RowTokens | None = None
    used: bool = True


class RowRun(TextRun):
    """A source with a completion per row. Subclasses implement :meth:`rows` and :meth:`refresh`."""

    def rows(self, position: int) -> list[Row]:
        """Return the completions of an update. Unreadable ones are noted."""
        raise NotImplementedError

    def table(self, position: int) -> Completions:
        return table_of(self._some(position))

    def step(self, position: int) -> Step:
        return self._step(position, self._some(position))

    def _step(self, position: int, rows: Sequence[Row]) -> Step:
        """Return the tokens of an update. NotRecordedError if there are none."""
        if not any(row.tokens is not None for row in rows):
            raise NotRecordedError(self.why_no_step)
        tokens = [row.tokens for row in rows]
        step = step_of(tokens, table_of(rows), self.settings, position, self.labels[position - 1])
        return dataclasses.replace(step, part=np.where([row.used for row in rows], step.part, -1))

    def measured(self, position: int) -> tuple[Completions | None, Step | None]:
        rows = self._some(position)
        step = None
        if self.is_first_pass(rows):
            with suppress(NotRecordedError):
                step = self._step(position, rows)
        return table_of(rows), step

    def is_first_pass(self, rows: Sequence[Row]) -> bool:
        """Return whether the log-probabilities of an update are known to be those of its only pass."""
        return False

    def _some(self, position: int) -> list[Row]:
        """Return the completions of an update. RunFileError if none can be read."""
        rows = self.rows(position)
        if not rows:
            label = self.labels[position - 1]
            raise RunFileError(
                tr("{name} contains no readable completion.").format(name=self.files.get(label, self.path).name)
            )
        return rows

    def converted(self, label: int, found: Iterable[Record]) -> list[Row]:
        """Return the rows of ``found`` that :meth:`row_of` can convert, and note the others."""
        rows: list[Row] = []
        bad, first = 0, None
        for record in found:
            try:
                rows.append(self.row_of(record))
            except MALFORMED as error:
                bad, first = bad + 1, first or error
        if bad:
            self.note(
                plural(
                    "Step {label}: {count} row is not what {source} writes and is left out; the first: {why}.",
                    "Step {label}: {count} rows are not what {source} writes and are left out; the first: {why}.",
                    bad,
                ).format(label=label, count=bad, source=self.settings.recorded.source, why=shortened(repr(first), 200))
            )
        return rows

    def row_of(self, record: Record) -> Row:
        """Convert a row of the file.

        Raises:
            LookupError, TypeError, ValueError, OverflowError, AttributeError: it is not what the trainer writes.
        """
        raise NotImplementedError


def table_of(rows: Sequence[Row], trajectories: tuple[Trajectory | None, ...] | None = None) -> Completions:
    """Return rows as the table of an update, by default with the ``trajectories`` in their texts."""
    names, parts = _columns([row.parts for row in rows])
    measured, metrics = _columns([row.metrics for row in rows])
    factors = np.array([[row.weights.get(name, 1.0) for name in names] for row in rows]).reshape(parts.shape)
    rewards = np.array([row.reward for row in rows])
    if names:
        rewards = np.where(np.isnan(rewards), weighted(parts * factors, np.ones(len(names))), rewards)
    prompts, completions = tuple(row.prompt for row in rows), tuple(row.completion for row in rows)
    tokens = [row.tokens for row in rows]
    known = [row.length if row.tokens is None else int(row.tokens.mask.sum()) for row in rows]
    length = np.array([-1 if n is None else n for n in known])
    cut = [row.truncated for row in rows]
    advantage, entropy = np.array([row.advantage for row in rows]), np.array([row.entropy for row in rows])
    return Completions(
        prompts=prompts,
        completions=completions,
        group=equal_groups([_key(row, place) for place, row in enumerate(rows)]),
        rewards=rewards,
        reward_names=names,
        reward_parts=parts if names else None,
        reward_weights=_weights(factors, ~np.isnan(parts)) if any(row.weights for row in rows) else (),
        trajectories=trajectories_in(prompts, completions) if trajectories is None else trajectories,
        advantage=None if np.isnan(advantage).all() else advantage,
        length=None if (length < 0).any() else length,
        truncated=None if None in cut else np.array(cut, bool),
        entropy=None if np.isnan(entropy).all() else entropy,
        sampling_logp=_scores(tokens, "sampler"),
        training_logp=_scores(tokens, "trainer"),
        metric_names=measured,
        metrics=metrics if measured else None,
    )


def _columns(rows: Sequence[Mapping[str, float]]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names in some rows, and a table (B, K) of their values, NaN where a row has none."""
    names = tuple(dict.fromkeys(name for row in rows for name in row))[:MOST_REWARDS]
    return names, np.array([[row.get(name, math.nan) for name in names] for row in rows]).reshape(len(rows), -1)


def _weights(factors: np.ndarray, known: np.ndarray) -> tuple[float, ...]:
    """Return the weight of each reward function, or an empty tuple if the completions disagree on one.

    Args:
        factors: the weight of each score, (B, K).
        known: whether a completion was scored by a function, boolean (B, K).
    """
    columns = [np.unique(factors[known[:, k], k]) for k in range(factors.shape[1])]
    return tuple(float(each[0]) for each in columns) if all(len(each) == 1 for each in columns) else ()


def _key(row: Row, place: int) -> Hashable:
    """Return what completions of a group share: their key, or else the prompt. A row without either is alone."""
    if row.group is not None:
        return "group", row.group
    return ("prompt", row.prompt) if row.prompt is not None else ("row", place)


def _scores(tokens: Sequence[RowTokens | None], name: str) -> tuple[np.ndarray, ...] | None:
    """Return the log-probabilities of the tokens in the loss of each row. None if no row has any."""
    rows = [np.zeros(0) if one is None else getattr(one, name)[one.mask] for one in tokens]
    return tuple(rows) if any(np.isfinite(row).any() for row in rows) else None


def number(value: Any) -> float:
    """Return a value as a number, NaN for a missing one. Text is parsed.

    Raises:
        TypeError, ValueError, OverflowError: it is not a number.
    """
    if isinstance(value, str):
        value = value.strip() or None
    return math.nan if value is None else float(value)


def numbers(value: Any, count: int) -> np.ndarray:
    """Return a list of ``count`` numbers, NaN for a missing one, or for all if ``value`` is None.

    Raises:
        TypeError, ValueError, OverflowError: it is something else.
    """
    if value is None:
        return np.full(count, np.nan)
    found = np.array([math.nan if one is None else one for one in value], np.float64)
    if found.shape != (count,):
        raise ValueError(f"{len(found)} numbers for {count} tokens")
    return found


def tokens_of(ids: Any, of: Mapping[str, Any]) -> RowTokens | None:
    """Return the tokens of a completion. None if ``ids`` is not a list of token numbers.

    The numbers may begin with those of the prompt: then the mask, or else the log-probabilities, are those of the
    completion alone, or the mask begins with zeros. A stream can have one number for each token of the mask.

    Args:
        ids: the token numbers.
        of: meaning -> value of the row.

    Raises:
        TypeError, ValueError, OverflowError: lengths do not fit, or a value is not a number.
    """
    ids = _list(ids)
    if not ids or not all(type(one) is int for one in ids):
        return None
    whole = np.array(ids, np.int64)
    given = {name: _list(of.get(name)) for name in STREAMS}
    mask = _list(of.get("mask"))
    length = len(mask if mask is not None else next((v for v in given.values() if v is not None), ids))
    counted = np.ones(length, bool) if mask is None else np.array(mask, bool)
    if length > len(whole):
        raise ValueError(f"{length} places for {len(whole)} tokens")
    before, whole = whole[: len(whole) - length], whole[len(whole) - length :]
    first = int(counted.argmax()) if not len(before) and of.get("prompt_ids") is None else 0
    prompt = _list(of.get("prompt_ids"))
    if prompt is not None:
        before = np.array(prompt, np.int64)
    advantage, entropy = of.get("advantage"), of.get("entropy")

    def spread(values: list[Any] | None) -> np.ndarray:
        if values is not None and len(values) == counted.sum() != length:
            found = np.full(length, np.nan)
            found[counted] = numbers(values, int(counted.sum()))
            return found[first:]
        return numbers(values, length)[first:]

    return RowTokens(
        ids=whole[first:],
        mask=counted[first:],
        before=np.concatenate([before, whole[:first]]) if len(before) + first else None,
        advantage=spread(advantage) if isinstance(advantage, list) else np.full(length - first, number(advantage)),
        entropy=spread(entropy) if isinstance(entropy, list) else np.full(length - first, np.nan),
        **{name: spread(values) for name, values in given.items()},
    )


def _list(value: Any) -> list[Any] | None:
    """Return a list, also one that a CSV file holds as JSON, None for anything else. ValueError if it is no JSON."""
    if isinstance(value, str) and value.strip().startswith("["):
        value = from_json(value)
    return value if isinstance(value, list) else None
