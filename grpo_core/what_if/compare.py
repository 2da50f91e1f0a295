"""Comparison of a recorded update and its what-if, pass by pass, with the training functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grpo_core.config import PRESETS, Settings
from grpo_core.explain import Numbers
from grpo_core.questions import Replayed
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.what_if.replay import Difference, differences, replayed


@dataclass(frozen=True, kw_only=True, eq=False)
class WhatIf:
    """A recorded update, and the same batch under other settings.

    Attributes:
        ran: the update as recorded.
        other: the update under other settings; only its first pass if the rest is unknown.
        asked: whether the language model itself computed the other update.
    """

    ran: Numbers
    other: Numbers
    differences: tuple[Difference, ...]
    asked: bool = False

    @property
    def sides(self) -> tuple[Numbers, Numbers]:
        return self.ran, self.other

    def passes(self, passed: int) -> tuple[tuple[Numbers, int], tuple[Numbers, int]]:
        """Return both updates with the index of pass ``passed`` (0 = the first), or of their last if it is earlier."""
        return (self.ran, self.ran.nearest_pass(passed)), (self.other, self.other.nearest_pass(passed))


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A number of the recorded update, and its value under other settings.

    Attributes:
        name: stable identifier.
        ran, other: the two values; None if not available, or not yet.
    """

    name: str
    title: str
    help: str
    ran: float | None
    other: float | None
    decimals: int = 4

    @property
    def same(self) -> bool:
        return self.ran == self.other


@dataclass(frozen=True, kw_only=True)
class Direction:
    """The direction of one gradient relative to another.

    Attributes:
        cosine: cosine of the angle between them; 1 for the same direction, 0 for orthogonal, −1 for opposite; None if
            one is 0.
        ratio: length of the what-if's gradient relative to the recorded one; None if the latter is 0.
    """

    cosine: float | None
    ratio: float | None


def what_if(step: Step, wanted: Settings | str, before: Step | None = None, answer: Replayed | None = None) -> WhatIf:
    """Return the update and its what-if under other settings or a preset.

    Args:
        wanted: settings, or the name of a preset.
        before: the previous update, for a bandit's later passes; None for the first update.
        answer: the language model's own result, if it has computed the update.

    Raises:
        SettingsError: the settings require something that the record does not have.
        GrpoError: the update under those settings is not finite.
    """
    settings = PRESETS[wanted].applied_to(step.settings) if isinstance(wanted, str) else wanted
    return side_by_side(Numbers(step), Numbers(replayed(step, settings, before, answer)), settings, asked=bool(answer))


def side_by_side(ran: Numbers, other: Numbers, wanted: Settings, *, asked: bool = False) -> WhatIf:
    """Create a what-if from two updates that have already been evaluated.

    Args:
        other: its record under the settings ``wanted``, as created by :func:`replayed`.
        asked: whether the language model itself has computed the other update.

    Raises:
        SettingsError: the settings require something that the record does not have.
    """
    result = WhatIf(ran=ran, other=other, differences=differences(ran.step, wanted), asked=asked)
    result.other.gradient(0)  # missing data is rejected here rather than in the middle of drawing
    return result


def direction(here: np.ndarray, there: np.ndarray) -> Direction:
    """Return the direction of gradient ``there`` relative to gradient ``here``, arrays of the same shape."""
    a, b = float(np.linalg.norm(here)), float(np.linalg.norm(there))
    cosine = float(np.clip(np.vdot(here, there) / (a * b), -1.0, 1.0)) if a and b else None
    return Direction(cosine=cosine, ratio=b / a if a else None)


def compared(w: WhatIf, passed: int) -> tuple[Compared, ...]:
    """Return the rows of the comparison table: numbers of pass ``passed`` (0 = the first), and of the final policy."""
    rows = []
    for name, title, help, decimals, number in ROWS:
        ran, other = (number(side, nearest) for side, nearest in w.passes(passed))
        rows.append(Compared(name=name, title=title, help=help, ran=ran, other=other, decimals=decimals))
    ran, other = (_mean(side.step, side.gradient_parts(nearest)[1]) for side, nearest in w.passes(passed))
    if ran or other:
        help = tr("What the KL term alone does to a token's log π.")
        rows.append(Compared(name="pull", title=tr("Mean |pull| of the KL"), help=help, ran=ran, other=other))
    return tuple(row for row in (*rows, *_ends(w)) if row.ran is not None or row.other is not None)


def _ends(w: WhatIf) -> list[Compared]:
    """Return the rows about the policy after the update, None where only the first pass is known."""
    cards = [side.cards if side.step.scored_after else {} for side in w.sides]
    rows = []
    for name, title, help in CARDS:
        ran, other = (None if np.isnan(c.get(name, np.nan)) else c[name] for c in cards)
        rows.append(Compared(name=name, title=title, help=help, ran=ran, other=other))
    for name, sign, title, help in CHANGES:
        chosen = w.ran.step.mask & (np.sign(w.ran.token_advantage) == sign)
        ran, other = (_moved(side, chosen) for side in w.sides)
        rows.append(Compared(name=name, title=title, help=help, ran=ran, other=other))
    return rows


def _moved(side: Numbers, chosen: np.ndarray) -> float | None:
    """Return the mean change of log π over the chosen tokens due to the complete update."""
    if not side.step.scored_after or not chosen.any():
        return None
    return float((side.step.logp[-1] - side.step.old_logp)[chosen].mean())


def _mean(step: Step, values: np.ndarray | None) -> float:
    """Return the mean absolute value over the tokens that are not padding. 0 if ``values`` is None."""
    return 0.0 if values is None else float(np.abs(values[step.mask]).mean()) if step.mask.any() else 0.0


ROWS: tuple[tuple[str, str, str, int, Callable[[Numbers, int], float]], ...] = (
    ("loss", tr("Loss"),
     tr("Loss of this pass; with another reduction it is a different number, not a better or worse one."),
     4, lambda side, passed: float(side.terms(passed).loss)),
    ("advantage", tr("Largest |A|"), tr("The advantage farthest from 0."),
     4, lambda side, passed: float(np.abs(side.advantage).max(initial=0.0))),
    ("clipped", tr("Tokens clipped"),
     tr("Tokens whose push is stopped by the clip (for CISPO: whose weight is capped)."),
     0, lambda side, passed: int(side.terms(passed).clipped.sum())),
    ("still", tr("Tokens without push"), tr("Tokens whose log π has no effect on the loss."),
     0, lambda side, passed: int((side.step.mask & (side.gradient(passed) == 0)).sum())),
    ("dead", tr("Dead groups"),
     tr("Groups whose rewards are all equal (the rewards of completions, or of their steps if steps are rewarded)."),
     0, lambda side, passed: int(side.dead.sum())),
    ("push", tr("Mean |push|"), tr("Mean over tokens of |∂loss/∂log π|."),
     4, lambda side, passed: _mean(side.step, side.gradient(passed))),
    ("largest_push", tr("Largest |push|"), tr("The largest |∂loss/∂log π| of a token."),
     4, lambda side, passed: float(np.abs(side.gradient(passed)).max(initial=0.0))),
    ("weight", tr("Largest weight W"), tr("Weight of the heaviest token in the loss."),
     4, lambda side, passed: float(side.terms(passed).weight.max(initial=0.0))),
    ("share", tr("Heaviest completion"), tr("The heaviest completion's share of the total weight."),
     4, lambda side, passed: float(side.shares(passed).max(initial=0.0))),
)  # fmt: skip # table
"""(name, title, help, decimals, function) of each compared number of a pass."""
CARDS = (
    ("grad_norm", tr("Gradient norm"), tr("Euclidean norm of the parameters' gradient in the first pass.")),
    ("kl", tr("KL after"), tr("Exact KL from the reference after the update, averaged over the visited places.")),
    ("entropy", tr("Entropy after"), tr("Exact entropy after the update, averaged over the visited places.")),
    ("max_prob", tr("max π(a) after"), tr("Largest probability after the update, averaged over the visited places.")),
)
"""(name, title, help) of the cards that are compared after the complete update."""
CHANGES = (
    (
        "risen",
        1,
        tr("Change of log π, A > 0"),
        tr("Mean over the tokens whose recorded advantage was above 0: log π after the update minus log π before it."),
    ),
    (
        "fallen",
        -1,
        tr("Change of log π, A < 0"),
        tr("Mean over the tokens whose recorded advantage was below 0: log π after the update minus log π before it."),
    ),
)
"""(name, sign of the advantage, title, help) for the mean change of log π of tokens with that sign."""
