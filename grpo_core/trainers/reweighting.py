"""A recorded update with other weights or scores of its reward functions.

The completions, the policy before the update, and the log-probabilities of every pass are those of the run. Advantages,
groups without a signal, and pushes are recomputed by the training functions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.pushes import Pair
from grpo_core.errors import GrpoError
from grpo_core.parsing import ParseError, csv_lines
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.put_right import Reweighted
from grpo_core.trainers.importers.trl_table import weighted

FOLLOWS = 1e-3
"""Maximum difference between equal advantages, whose precision can differ."""


def why_not(step: Step) -> str:
    """Return the reason, as a sentence, why the rewards of ``step`` cannot be reweighted. Empty if they can."""
    if step.reward_parts is None or not step.reward_parts.shape[1]:
        return tr("The record of this step does not list its reward functions separately.")
    if step.settings.objective.credits_steps or BASELINES[step.settings.objective.baseline].from_critic:
        return tr("The advantages of this run depend on more than one reward per completion.")
    return ""


def weights_of(step: Step) -> tuple[float, ...]:
    """Return the weights with which the reward functions were summed, or all 1 if they are not recorded."""
    assert step.reward_parts is not None
    known = step.settings.recorded.reward_weights
    return known if len(known) == step.reward_parts.shape[1] else (1.0,) * step.reward_parts.shape[1]


def reweighted(step: Step, weights: Sequence[float], parts: np.ndarray | None = None) -> Step:
    """Return ``step`` with its reward functions summed under other ``weights``, and the resulting advantages.

    Args:
        weights: one for each of the K reward functions.
        parts: other scores, (B, K). By default those of the record.
    """
    parts = step.reward_parts if parts is None else parts
    assert parts is not None
    rewards = weighted(np.asarray(parts, np.float64), np.asarray(weights, np.float64))
    return dataclasses.replace(step, rewards=rewards, reward_parts=parts, advantage=None)


def of_reweighted(ran: Step, other: Step) -> tuple[Reweighted, ...]:
    """Return the claims about the recorded update and the update under other weights."""
    then, now = recompute.advantage(ran), recompute.advantage(other)
    turned = int((np.sign(then) * np.sign(now) < 0).sum())
    silent = [int(recompute.silent_groups(step, gained).sum()) for step, gained in ((ran, then), (other, now))]
    return (
        Reweighted.of("turned", count=turned, all=len(then)) if turned else Reweighted.of("none_turned", all=len(then)),
        Reweighted.of("silent", now=silent[1], all=len(np.unique(ran.group)), then=silent[0]),
    )


def proof(ran: Step) -> Reweighted:
    """Return the claim on whether the advantages recomputed with the recorded weights equal the trainer's."""
    same = Pair(ran=ran, other=reweighted(ran, weights_of(ran)), passes=(0, 0))
    then, now = recompute.advantage(same.ran), recompute.advantage(same.other)
    difference = float(np.abs(then - now).max(initial=0.0))
    return Reweighted.of("follows" if difference <= FOLLOWS else "departs", difference=difference)


def scores_in(text: str, count: int) -> np.ndarray:
    """Parse the scores of ``count`` completions from CSV: one per line in order, with or without a heading.

    If there are several columns, the last one counts. An empty cell means a completion without a score.

    Raises:
        GrpoError: the data is invalid.
    """
    try:
        lines = [row for row in csv_lines(text.replace("\t", ",").splitlines()) if row]
    except ParseError as error:
        raise GrpoError(tr("Line {line} is not CSV ({error}).").format(line=error.line, error=error)) from None
    cells = [row[-1].strip() for row in lines]
    if cells and len(cells) == count + 1 and not _is_number(cells[0]):
        cells = cells[1:]
    if len(cells) != count:
        raise GrpoError(
            plural(
                "The clipboard contains {found} line of scores, but this step has {count} completions.",
                "The clipboard contains {found} lines of scores, but this step has {count} completions.",
                len(cells),
            ).format(found=len(cells), count=count)
        )
    for place, cell in enumerate(cells, 1):
        if cell and not _is_number(cell):
            raise GrpoError(tr("Line {line} is not a score: “{cell}”.").format(line=place, cell=cell[:40]))
    return np.array([float(cell) if cell else np.nan for cell in cells])


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False
