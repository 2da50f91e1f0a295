"""Tokens of verifiers' message graph: one row per branch, and all rows of an update as a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import Trajectory
from grpo_core.record import Step
from grpo_core.text import tr

Node = dict[str, Any]
MOST_PLACES = 16_000_000
"""Maximum size of the arrays (B, T) of an update. A larger update is shown without tokens."""


def as_dict(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def stream(node: Node, name: str) -> np.ndarray:
    """Return one number for each sampled token of a node, NaN if the stream is missing or has another length."""
    count = sum(map(bool, node.get("mask") or ()))
    if not node.get(name):
        return np.full(count, np.nan)
    values = np.array([math.nan if v is None else v for v in node.get(name) or ()], np.float64)
    return values if values.shape == (count,) else np.full(count, np.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowTokens:
    """Tokens of a branch from the first message that the policy wrote, (L,) each. NaN if a number is missing.

    Attributes:
        ids: token IDs.
        mask: the tokens that the loss counts in this branch. A message shared by branches only counts in the first.
        sampler: the sampler's log-probabilities, in nats.
        trainer: the trainer's log-probabilities, in nats.
        reference: log-probabilities of the reference policy, in nats.
        entropy: entropy of the policy, in nats.
        advantage: the trainer's advantage.
        before: IDs of the preceding tokens, of any length; None if a message of the prompt has none.
        dropped: tokens whose push the trainer dropped; None if not recorded.
    """

    ids: np.ndarray
    mask: np.ndarray
    sampler: np.ndarray
    trainer: np.ndarray
    reference: np.ndarray
    entropy: np.ndarray
    advantage: np.ndarray
    before: np.ndarray | None = None
    dropped: np.ndarray | None = None

    @property
    def scored(self) -> bool:
        """Whether there are tokens in the loss and sampler or trainer recorded log-probabilities for all of them."""
        known = np.isfinite(self.trainer[self.mask]).all() or np.isfinite(self.sampler[self.mask]).all()
        return bool(self.mask.any() and known)

    @property
    def exact(self) -> bool:
        """Whether there are tokens in the loss and all of them have both log-probabilities and an advantage."""
        streams = (self.sampler, self.trainer, self.advantage)
        return bool(self.mask.any() and all(np.isfinite(values[self.mask]).all() for values in streams))


STREAMS = {
    "sampler": "logprobs",
    "trainer": "trainer_logprobs",
    "reference": "reference_logprobs",
    "entropy": "entropies",
    "advantage": "advantages",
}
"""Fields of :class:`RowTokens` that come from streams of a node, with the names of the streams."""


def row_tokens(nodes: Sequence[Node], path: Sequence[int], trajectory: Trajectory) -> RowTokens | None:
    """Return the tokens of a branch. None if a message has no tokens.

    Args:
        path: indices of the branch's nodes, from the root to the leaf.

    Raises:
        TypeError, ValueError, OverflowError: a value is not a number.
    """
    first = len(trajectory.prompt)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("ids", "mask", *STREAMS)}
    dropped: list[np.ndarray] = []
    told = False
    for place in range(first, len(path)):
        node = nodes[path[place]]
        ids, mask = node.get("token_ids") or [], np.array(node.get("mask") or [], bool)
        if not ids or len(ids) != len(mask):
            return None
        parts["ids"].append(np.array(ids, np.int64))
        parts["mask"].append(mask & (place >= trajectory.shared))
        for name, recorded in STREAMS.items():
            whole = np.full(len(ids), np.nan)
            whole[mask] = stream(node, recorded)
            parts[name].append(whole)
        known = node.get("is_masked") or []
        out = np.zeros(len(ids), bool)
        if len(known) == mask.sum():
            out[mask] = [value is True for value in known]
        dropped.append(out)
        told |= bool(known)
    if not parts["ids"]:
        return None
    prompt = [nodes[place].get("token_ids") or [] for place in path[:first]]
    before = np.array([number for ids in prompt for number in ids], np.int64) if all(prompt) else None
    return RowTokens(
        **{name: np.concatenate(values) for name, values in parts.items()},
        before=before,
        dropped=np.concatenate(dropped) if told else None,
    )


def step_of(
    rows: Sequence[RowTokens | None], table: Completions, settings: Settings, position: int, label: int
) -> Step:
    """Create a step of one pass from the tokens of an update. The trainer's log-probabilities are also the old ones.

    If only one of sampler and trainer recorded a completion's log-probabilities, they are used as the trainer's, and
    the sampler's are missing. A completion is used if each of its tokens in the loss has a log-probability and, if any
    completion has an advantage, an advantage.

    Args:
        settings: settings of the run; its objective is an assumption.
        label: the trainer's number for the update.

    Raises:
        NotRecordedError: no completion has tokens with log-probabilities, or there are too many tokens.
    """
    known = [row for row in rows if row is not None and row.scored]
    if not known:
        raise NotRecordedError(
            tr("No completion of this step has token numbers with a log-probability for each, so no tokens are shown.")
        )
    batch, length = len(rows), max(len(row.ids) for row in rows if row is not None)
    if batch * length > MOST_PLACES:
        raise NotRecordedError(tr("The completions of this step are too many and too long to show their tokens."))

    def padded(of: Callable[[RowTokens], np.ndarray], kind: type, empty: float) -> np.ndarray:
        whole: np.ndarray = np.full((batch, length), empty, kind)
        for i, row in enumerate(rows):
            if row is not None:
                whole[i, : len(row.ids)] = of(row)
        return whole

    both = np.array([row is not None and _both(row) for row in rows])
    logp = padded(_trainer, np.float32, np.nan)
    mask = padded(lambda row: row.mask, bool, False)
    present = padded(lambda row: np.ones(len(row.ids), bool), bool, False)
    given = padded(lambda row: row.advantage, np.float64, np.nan)
    reference = padded(lambda row: row.reference, np.float32, np.nan)
    entropy = padded(lambda row: row.entropy, np.float32, np.nan)
    sampling = np.where(both[:, None], padded(lambda row: row.sampler, np.float32, np.nan), np.nan)
    advantage = _advantage(given, mask)
    used = mask.any(axis=1) & (np.isfinite(logp) | ~mask).all(axis=1)
    if advantage is not None:
        used &= (np.isfinite(given) | ~mask).all(axis=1)
    counted = mask & used[:, None]
    task = replace(settings.recorded, reward_names=table.reward_names, reward_weights=table.reward_weights)
    first = np.unique(table.group, return_index=True)[1]
    return Step(
        step=position,
        label=label,
        settings=settings.replace({"task": task}),
        group=table.group,
        row_id=np.arange(batch),
        tokens=padded(lambda row: row.ids, np.int64, -1),
        mask=mask,
        present=None if np.array_equal(present, mask) else present,
        rewards=table.rewards,
        reward_parts=table.reward_parts,
        old_logp=np.where(mask, logp, 0.0),
        logp=np.where(mask, logp, 0.0)[None],
        ref_logp=np.where(mask, reference, 0.0) if np.isfinite(reference[counted]).all() else None,
        sampling_logp=np.where(mask, sampling, 0.0) if np.isfinite(sampling[counted]).any() else None,
        part=np.where(used, 0, -1)[None],
        advantage=advantage,
        entropy=entropy[None] if np.isfinite(entropy[counted]).any() else None,
        prompt_texts=tuple(table.prompts[row] for row in first),
        completion_texts=table.completions,
    )


def _trainer(row: RowTokens) -> np.ndarray:
    """Return the trainer's log-probabilities of a row, or the sampler's if the trainer's are incomplete."""
    return row.trainer if np.isfinite(row.trainer[row.mask]).all() else row.sampler


def _both(row: RowTokens) -> bool:
    """Return whether sampler and trainer both recorded a log-probability for every token of the row in the loss."""
    return bool(np.isfinite(row.trainer[row.mask]).all() and np.isfinite(row.sampler[row.mask]).all())


def _advantage(given: np.ndarray, mask: np.ndarray) -> np.ndarray | None:
    """Return ``given``, (B, T), or one advantage per completion, (B,), if all its tokens have equal ones.

    A token without an advantage gets 0. None if none is recorded.

    Args:
        given: advantages of the tokens; NaN for a token without one.
    """
    there = mask & np.isfinite(given)
    if not there.any():
        return None
    whole = np.where(there, given, 0.0)
    first = np.take_along_axis(whole, there.argmax(axis=1)[:, None], axis=1)
    return np.asarray(first[:, 0] if (np.where(there, whole, first) == first).all() else whole)
