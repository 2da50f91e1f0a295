"""Selection of the objective's fields that have an effect given the others, for forms that show only those."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

from grpo_core.baselines import BASELINES
from grpo_core.config import Objective
from grpo_core.config.objective import IMPORTANCE
from grpo_core.deviations import DEVIATIONS
from grpo_core.plugins import package_of
from grpo_core.reductions import REDUCTIONS
from grpo_core.surrogates import SURROGATES, Ratio


def acting_fields(objective: Objective) -> frozenset[str]:
    """Return the names of the fields that can change the advantage, the loss or the gradient under ``objective``.

    The KL estimator is always included: with β = 0 it still decides which estimate is shown.
    """
    surrogate, deviation = SURROGATES[objective.surrogate], DEVIATIONS[objective.std]
    reduction, compared_with = REDUCTIONS[objective.reduction], BASELINES[objective.baseline]
    names = {*_of_all_choices(), *surrogate.knobs, *reduction.knobs}
    if not compared_with.from_critic:  # a critic's estimate is not divided
        names |= set(deviation.knobs)
    else:
        names -= {"std"}
    ratio_before_kl = objective.kl_importance and objective.beta != 0 and not objective.kl_in_reward
    if surrogate.ratio is not Ratio.LEVEL and not ratio_before_kl:
        names -= {"level"}
    if surrogate.ratio is Ratio.NONE and not ratio_before_kl:
        names -= {"log_ratio_limit"}
    if objective.beta == 0:
        names -= {"kl_in"}
    if objective.importance_cap is None:
        names -= {*IMPORTANCE[1:]}
    return frozenset(names)


@cache
def _of_all_choices() -> frozenset[str]:
    """Return the fields of the objective that have an effect whichever of our entries of these tables is chosen."""
    surrogates = {name: row for name, row in SURROGATES.items() if not package_of(name)}
    tables = (surrogates, REDUCTIONS, DEVIATIONS)
    of_some = {name for table in tables for row in table.values() for name in row.knobs}
    return frozenset({field.name for field in fields(Objective)} - of_some)
