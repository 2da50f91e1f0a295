"""The likeliest tokens at one position: before the update, after the part revealed so far, and under the reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.plotting.numbers import shown
from app.token_grid.white_space import visible_text
from app.workspace.step_view import StepView
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.text import tr

TOP = 5
"""Number of tokens shown from a full distribution."""


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """A token that could have been drawn at a position.

    Attributes:
        before, after: its probability before the update, and after the part revealed so far.
        reference: its probability under the reference policy; None if not recorded.
        taken: whether it was drawn.
        quantity: address that explains ``after``.
    """

    word: str
    before: float
    after: float
    reference: float | None
    taken: bool
    quantity: Quantity

    @property
    def sentence(self) -> str:
        """A sentence with all numbers of the alternative, for the tooltip and screen readers."""
        if self.reference is None:
            text = tr("“{word}”: {before} before, {after} after.")
        else:
            text = tr("“{word}”: {before} before, {after} after, {reference} under the reference.")
        return text.format(
            word=self.word, before=shown(self.before), after=shown(self.after), reference=shown(self.reference)
        )


def alternatives(view: StepView, words: tuple[str, ...], row: int, token: int) -> list[Alternative]:
    """Return the likeliest tokens at this position, or an empty list if none are recorded.

    Between two inner passes, the full distribution is not recorded; "after" then means after the last pass.
    """
    step = view.step
    if step is None or not step.there[row, token]:
        return []
    if step.context is not None and view.old is not None:
        return _of_distribution(view, step, words, row, token)
    return _of_record(view, step, words, row, token) if step.top_logp is not None else []


def remark(view: StepView, row: int, token: int) -> str:
    """Return a note on the alternatives at a position: that they are not all tokens, or why there are none."""
    step = view.step
    if step is None or not step.there[row, token]:
        return ""
    if step.context is not None and view.old is not None:
        return "" if view.now is not None else tr("before → after all passes")
    if step.top_tokens is None:
        return tr("Not recorded: other tokens at this place")
    if 0 < view.updated < step.passes:
        return tr("The {count} likeliest, not all: before → after all passes").format(count=step.top_tokens.shape[-1])
    return tr("The {count} likeliest, not all: before → after").format(count=step.top_tokens.shape[-1])


def _of_distribution(view: StepView, step: Step, words: tuple[str, ...], row: int, token: int) -> list[Alternative]:
    assert step.context is not None and view.old is not None
    now = view.policy(step.passes) if view.now is None else view.now
    passed = step.passes if view.now is None else view.updated
    assert now is not None
    place, sampled = int(step.context[row, token]), int(step.tokens[row, token])
    likeliest = np.argsort(-np.maximum(view.old[place], now[place]), kind="stable")[:TOP].tolist()
    chosen = likeliest if sampled in likeliest else [*likeliest[: TOP - 1], sampled]
    reference = None if view.reference is None else view.reference[place]
    return [
        Alternative(
            word=_word(words, a),
            before=float(view.old[place, a]),
            after=float(now[place, a]),
            reference=None if reference is None else float(reference[a]),
            taken=a == sampled,
            quantity=Quantity("probability", passed=passed, context=place, action=a),
        )
        for a in chosen
    ]


def _of_record(view: StepView, step: Step, words: tuple[str, ...], row: int, token: int) -> list[Alternative]:
    assert step.top_tokens is not None and step.top_logp is not None
    revealed = view.updated > 0
    before, last = np.exp(step.top_logp[:, row, token].astype(float))
    after, sampled = last if revealed else before, int(step.tokens[row, token])
    reference = None if step.ref_top_logp is None else np.exp(step.ref_top_logp[row, token].astype(float))
    return [
        Alternative(
            word=_word(words, a),
            before=float(before[k]),
            after=float(after[k]),
            reference=None if reference is None else float(reference[k]),
            taken=a == sampled,
            quantity=Quantity("alternative", passed=step.passes if revealed else 0, row=row, token=token, action=a),
        )
        for k, a in enumerate(step.top_tokens[row, token].tolist())
    ]


def _word(words: tuple[str, ...], token: int) -> str:
    return visible_text(words[token]) if token < len(words) else "?"
