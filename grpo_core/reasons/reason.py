"""What a reason is, and the facts of a step that reasons are checked against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grpo_core import recompute
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.objective import Terms
from grpo_core.record import Step

LONGEST_CHIP = 26


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a number is what it is.

    Attributes:
        key: the metric it belongs to, "group:<p>" for a group, or "ratio", "clipped", "gradient", "kl_term" for what
            the pass shown says.
        chip: a few words for beside the number, at most 26 characters.
        sentence: in plain words, why, and what would change it.
        kind: "zero" for a zero that has a reason, "unhealthy" for what may go wrong, "note" otherwise.
        quantities: the numbers it points at.
    """

    key: str
    chip: str
    sentence: str
    kind: str
    quantities: tuple[Quantity, ...] = ()


class Facts:
    """The numbers of a step that reasons are drawn from, each computed when first asked for.

    Attributes:
        step: the update, under the objective asked for.
        objective: the switches.
        passed: the pass shown, counted from 0.
        numbers: the same numbers by address.
        tiny: what rounding alone may leave of a sum of ordinary numbers.
    """

    def __init__(self, numbers: Numbers, passed: int) -> None:
        self.numbers = numbers
        self.step = self.numbers.step
        self.objective = self.numbers.objective
        self.passed = passed
        self.tiny = 1e-9 if self.numbers.precision < 1e-6 else 1e-5

    @property
    def last(self) -> int:
        """The last pass."""
        return self.step.passes - 1

    def terms(self, passed: int) -> Terms:
        """The loss of a pass and every number on the way to it."""
        return self.numbers.terms(passed)

    def used(self, passed: int) -> np.ndarray:
        """Tokens that a pass learned from, boolean (B, T)."""
        return self.numbers.used(passed)

    def push(self, passed: int) -> np.ndarray:
        """d loss / d log π from the surrogate, (B, T)."""
        return self.numbers.push(passed)

    def pull(self, passed: int) -> np.ndarray:
        """d loss / d log π from the KL, (B, T)."""
        return self.numbers.pull(passed)

    def moves(self, passed: int) -> bool:
        """Whether a pass has a gradient: on the logits where they are known, else on the tokens."""
        logits = self.numbers.logit_gradient(passed)
        gradient = self.push(passed) + self.pull(passed) if logits is None else logits
        return bool(np.abs(gradient).max(initial=0.0) > self.tiny * 1e-3)

    def ratios(self, passed: int) -> np.ndarray:
        """Ratios of the tokens that a pass learned from, in one row."""
        return self.numbers.ratios(passed)

    def unmoved(self, passed: int) -> bool:
        """Whether every ratio of a pass is 1."""
        return bool(np.abs(self.ratios(passed) - 1).max(initial=0.0) <= self.tiny)

    @cached_property
    def row_advantage(self) -> np.ndarray:
        """(B,): a completion's advantage, or the mean of its tokens'."""
        return self.numbers.row_advantage

    @cached_property
    def silent(self) -> bool:
        """Whether every advantage is 0."""
        return not np.any(self.numbers.advantage[self.step.mask.any(axis=-1)])

    @cached_property
    def rewards(self) -> np.ndarray:
        """What is compared within each group, (P, n): rewards, or those of steps; NaN where unscored or empty."""
        return recompute.compared(self.step)

    @cached_property
    def dead(self) -> np.ndarray:
        """Groups whose rewards are all equal, boolean (P,)."""
        return self.numbers.dead

    def policy_loss(self, passed: int) -> float:
        """The surrogate's part of a pass's loss."""
        terms = self.terms(passed)
        return -float((terms.weight * terms.surrogate).sum())

    def kl_loss(self, passed: int) -> float:
        """The KL's part of a pass's loss."""
        terms = self.terms(passed)
        if terms.kl is None or self.objective.kl_in != "loss":
            return 0.0
        return float(self.objective.beta * (terms.weight * terms.kl).sum())

    def size(self, passed: int) -> float:
        """Size of the surrogates that the loss adds up, signs left out; at least a smallest number."""
        terms = self.terms(passed)
        return float(np.abs(terms.weight * terms.surrogate).sum()) or 1e-300


def cell(name: str, step: Step, row: int, token: int, passed: int = 0) -> Quantity:
    """The address of a token's number; completions of one token need no token."""
    return Quantity(name, passed=passed, row=row, token=token if step.mask.shape[1] > 1 else None)
