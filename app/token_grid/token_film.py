"""The film of one update on one prompt's group: what is shown at a given progress of a stage.

Sample: answers appear token by token, and the token where they diverge lights up. Score: rewards appear one answer
after another. Normalize: the bars of the advantages grow. Update: the tints grow from none to full strength, which
shows the push on each token. Everything is computed from the record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from app.plotting.numbers import shown
from app.workspace import answers
from app.workspace.cursor import Cursor, Stage
from app.workspace.step_view import StepView
from app.workspace.view import fork_of
from grpo_core.bandit.gradient import needs_distributions
from grpo_core.evaluated_step import total
from grpo_core.reasons.normalized import normalized, normalized_words
from grpo_core.record import Step
from grpo_core.text import plural, tr

SCORING = 0.75
"""Fraction of the Score stage in which the rewards appear, one answer after another."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The revealed part of a group.

    Attributes:
        written: number of tokens shown of each completion.
        scored: number of completions, from the first, whose reward is shown.
        advantage: how far the bars of the advantages have grown, from 0 to 1; their numbers appear with the bars.
        pushed: strength of the tints, from 0 to 1; the update's other results appear with them.
        fork: the token at which the completions diverge, while it is highlighted; None otherwise.
    """

    written: int
    scored: int
    advantage: float
    pushed: float
    fork: int | None


def moment(step: Step, group: int, cursor: Cursor) -> Moment | None:
    """Return the part of ``group`` that ``cursor`` reveals, or None if the entire update is shown and no film plays."""
    if cursor == Cursor(step=cursor.step):
        return None
    rows = step.group == group
    count, longest = int(rows.sum()), int(step.there[rows].sum(axis=-1).max(initial=0))
    written = math.ceil(_share(cursor, Stage.SAMPLE) * longest)
    fork = fork_of(step, group)
    return Moment(
        written=written,
        scored=math.ceil(min(_share(cursor, Stage.SCORE) / SCORING, 1.0) * count),
        advantage=_share(cursor, Stage.NORMALIZE),
        pushed=_share(cursor, Stage.UPDATE) if cursor.passed <= 0 else 1.0,
        fork=fork if fork is not None and fork < written else None,
    )


def _share(cursor: Cursor, stage: Stage) -> float:
    """Return the share of ``stage`` that is shown: 0 before it, and 1 after it."""
    if cursor.stage is stage:
        return cursor.progress
    return 1.0 if cursor.stage > stage else 0.0


def advantage_bars(view: StepView, group: int) -> np.ndarray | None:
    """Return each completion's advantage divided by the largest in its group, (n,) from −1 to 1.

    The result is None if there is one advantage per token.
    """
    if view.advantage is None or view.step is None or view.advantage.ndim != 1:
        return None
    own = np.nan_to_num(view.advantage[view.step.group == group])
    return np.asarray(own / max(float(np.abs(own).max(initial=0.0)), 1e-300))


def stage_sentence(view: StepView, group: int, cursor: Cursor, *, short: bool = False) -> str:
    """Return a sentence on what the stage shown does to ``group``.

    It stays the same during a stage's film, and is empty if there is no step. ``short`` requests fewer words, for a
    narrow panel.
    """
    step = view.step
    if step is None:
        return ""
    rows = np.flatnonzero(step.group == group)
    match cursor.stage:
        case Stage.SAMPLE:
            return _sampled(step, group, len(rows))
        case Stage.SCORE:
            return _scored(view, step, rows)
        case Stage.NORMALIZE:
            return _normalized(view, rows)
        case Stage.UPDATE:
            return _updated(view, step, group, rows, short=short)


def _sampled(step: Step, group: int, count: int) -> str:
    fork = fork_of(step, group)
    if fork is None:
        return plural("Sample: {count} answer, all the same.", "Sample: {count} answers, all the same.", count).format(
            count=count
        )
    return plural(
        "Sample: {count} answer; they diverge at token {fork}.",
        "Sample: {count} answers; they diverge at token {fork}.",
        count,
    ).format(count=count, fork=fork + 1)


def _scored(view: StepView, step: Step, rows: np.ndarray) -> str:
    paid = step.rewards[rows]
    paid = paid[np.isfinite(paid)]
    if not len(paid):
        return tr("Score: none of these answers was scored.")
    right = answers.right(step, view.origin)
    if len(paid) < len(rows):
        return plural(
            "Score: {scored} of {count} answer gets a reward; the mean is {mean}.",
            "Score: {scored} of {count} answers get a reward; the mean is {mean}.",
            len(rows),
        ).format(scored=len(paid), count=len(rows), mean=shown(float(paid.mean())))
    if right is None:
        return tr("Score: every answer gets its reward; their mean is {mean}.").format(mean=shown(float(paid.mean())))
    return tr("Score: {right} of {count} are right; the mean of the rewards is {mean}.").format(
        right=int(right[rows].sum()), count=len(rows), mean=shown(float(paid.mean()))
    )


def _normalized(view: StepView, rows: np.ndarray) -> str:
    if view.advantage is None or view.advantage.ndim != 1:
        return tr("Normalize: rewards become advantages, token by token.")
    assert view.numbers is not None
    gained = view.advantage[rows]
    return normalized_words(normalized(view.numbers, rows, gained, total(gained[np.isfinite(gained)])))


def _updated(view: StepView, step: Step, group: int, rows: np.ndarray, *, short: bool) -> str:
    if view.gradient is None or view.terms is None:
        return ""
    push, fork = -view.gradient[rows], fork_of(step, group)
    if fork is not None and not push[:, fork].any():
        fork = None  # nothing is pushed there, so all tokens are counted
    clipped = int(view.terms.clipped[rows].sum())
    at = push if fork is None else push[:, fork]
    number = step.step if step.label is None else step.label
    counted = {"up": int((at > 0).sum()), "down": int((at < 0).sum()), "step": number}
    counted["count"] = len(rows) if fork is not None else int(step.mask[rows].sum())
    if not counted["up"] and not counted["down"]:
        through_all = needs_distributions(view.objective)  # then tokens that were not sampled can be pushed too
        sentence = (
            tr("Update {step:,}: the rewards push nothing here.")
            if through_all
            else tr("Update {step:,}: nothing here is pushed.")
        )
    elif fork is None:
        sentence = plural(
            "Update {step:,}: of {count} token, {up} is pushed up and {down} down.",
            "Update {step:,}: of {count} tokens, {up} are pushed up and {down} down.",
            counted["count"],
        )
    elif short:
        sentence = tr("At token {fork} they diverge: {up} pushed up, {down} down.")
    else:
        sentence = plural(
            "Update {step:,}: token {fork}, where {count} answer diverges, is pushed up in {up}, down in {down}.",
            "Update {step:,}: token {fork}, where {count} answers diverge, is pushed up in {up}, down in {down}.",
            counted["count"],
        )
    sentence = sentence.format(fork=0 if fork is None else fork + 1, **counted)
    if not clipped or short:
        return sentence
    cut = tr("Clipped tokens: {clipped}.").format(clipped=clipped)
    return f"{sentence} {cut}"
