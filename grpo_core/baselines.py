"""Baselines, which are subtracted from a reward to obtain an advantage: b in A = (R − b) / σ.

=============  ===================================  ==========================================
baseline       b                                    source
=============  ===================================  ==========================================
group_mean     mean of the group, itself included   DeepSeekMath, arXiv:2402.03300, sec. 4.1.2
leave_one_out  mean of the others in the group      RLOO, arXiv:2402.14740
batch_mean     mean of the batch                    after Williams 1992
none           0                                    Williams 1992
given          a critic's value                     GAE, arXiv:1506.02438
=============  ===================================  ==========================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_core.arrays import Array, as_array, at_least_one, constant
from grpo_core.errors import SettingsError
from grpo_core.expression import Expression
from grpo_core.text import tr
from grpo_core.typeset import total

DEEPSEEKMATH = "DeepSeekMath, arXiv:2402.03300, section 4.1.2"
RLOO = "RLOO, arXiv:2402.14740"
WILLIAMS = tr("after Williams 1992")
GAE = "GAE, arXiv:1506.02438, equations 11 and 16"


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A baseline that can be subtracted from rewards.

    Attributes:
        value: function of (xp, rewards (..., P, G) with 0 where unscored, number scored in each group as (..., P, 1) or
            one number for all, the given baseline) that returns b.
        mean: kind of mean, "group" or "batch"; empty if it is not a mean.
        subtracts: whether anything is subtracted; otherwise b is 0.
        within_group: whether it depends only on the group, so that equal rewards give an advantage of exactly 0.
        from_critic: whether it is a critic's value of each token; advantages are then estimated with GAE.
        explained: b of one completion from the scores of the others in its group, if it is not a mean.
        phrase: the baseline as part of a sentence.
        in_training: sentence saying that a trainer used it.
        source: the algorithm that uses it; ``undivided``: the algorithm that uses it without dividing by a standard
            deviation.
        equal_push, equal_rest: why a group of equal rewards can have a gradient with this baseline, and why it need not
            have one; empty if equal rewards always give an advantage of 0.
        inline: b as a symbol in a one-line formula; empty if b is 0 or does not apply to a total reward.
        script: b as a NumPy expression of ``r``, the scored rewards of a group, and ``{scored}``, those of the batch.
    """

    value: Callable[[Array, Array, Array | float, Any], Array | float]
    mean: str = ""
    subtracts: bool = True
    within_group: bool = False
    from_critic: bool = False
    explained: Callable[[Sequence[float]], Expression] | None = None
    phrase: str
    in_training: str
    source: str
    undivided: str
    equal_push: str = ""
    equal_rest: str = ""
    inline: str = ""
    script: str = ""


def _batch_mean(xp: Array, r: Array, n: Array | float, given: Any) -> Array:
    count = n * r.shape[-2] if constant(n) else xp.sum(n, axis=-2, keepdims=True)
    return xp.sum(xp.sum(r, axis=-1, keepdims=True), axis=-2, keepdims=True) / at_least_one(count)


def _given(xp: Array, r: Array, n: Array | float, given: Any) -> Array:
    if given is None:
        raise SettingsError("baseline", "given", tr("the baseline itself must be passed"))
    return as_array(given, r)


def _mean_of_others(others: Sequence[float]) -> Expression:
    if not others:
        note = tr("There is no other completion to compare with.")
        return Expression(general=r"0", values="", value=0.0, note=note, source=RLOO)
    return Expression(
        general=r"\frac{1}{n - 1} \sum_{j \neq i} R_{j}",
        values=rf"\frac{{1}}{{{len(others)}}} \left({total(others)}\right)",
        value=math.fsum(others) / len(others),
        source=RLOO,
    )


BASELINES: dict[str, Baseline] = {
    "group_mean": Baseline(
        value=lambda xp, r, n, given: xp.sum(r, axis=-1, keepdims=True) / at_least_one(n),
        mean="group",
        within_group=True,
        phrase=tr("the group's mean"),
        in_training=tr("The baseline was the mean of the group."),
        source=DEEPSEEKMATH,
        undivided="Dr. GRPO, arXiv:2503.20783",
        inline=r"\bar{R}",
        script="r.mean()",
    ),
    "leave_one_out": Baseline(
        value=lambda xp, r, n, given: (xp.sum(r, axis=-1, keepdims=True) - r) / at_least_one(n - 1),
        within_group=True,
        explained=_mean_of_others,
        phrase=tr("the mean of the others"),
        in_training=tr("The baseline was the mean of the other completions."),
        source=RLOO,
        undivided=RLOO,
        inline=r"\bar{R}_{-i}",
        script="(r.sum() - r) / (len(r) - 1)",
    ),
    "batch_mean": Baseline(
        value=_batch_mean,
        mean="batch",
        phrase=tr("the batch's mean"),
        in_training=tr("The baseline was the mean of the whole batch."),
        source=WILLIAMS,
        undivided=WILLIAMS,
        equal_push=tr("The advantages are not 0: they compare with the mean of the whole batch, not of the group."),
        equal_rest=tr("That is the mean of the whole batch."),
        inline=r"\bar{R}_{B}",
        script="{scored}.mean()",
    ),
    "none": Baseline(
        value=lambda xp, r, n, given: 0.0,
        subtracts=False,
        explained=lambda others: Expression(
            general="0", values="", value=0.0, note=tr("Nothing is subtracted from the reward.")
        ),
        phrase=tr("nothing", "baseline"),
        in_training=tr("There was no baseline."),
        source=WILLIAMS,
        undivided=WILLIAMS,
        equal_push=tr(
            "The advantages are not 0: nothing is subtracted from the reward, so any reward other than 0 pushes."
        ),
        equal_rest=tr("Without a baseline a reward of 0 pushes nothing."),
        script="0.0",
    ),
    "given": Baseline(
        value=_given,
        from_critic=True,
        explained=lambda others: Expression(
            general="",
            values="",
            value=math.nan,
            note=tr("The baseline is the critic's value of each token; see the advantage."),
        ),
        phrase=tr("the critic's value"),
        in_training=tr("The baseline was a critic's value of each token."),
        source=GAE,
        undivided=GAE,
        equal_push=tr("The advantages are not 0: they compare with the critic's values, not within the group."),
        equal_rest=tr("That is what the critic expected."),
    ),
}
"""Baselines by name in the settings."""
