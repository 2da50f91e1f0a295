"""The result of a sweep as sentences made of claims.

They say where the reward is highest, how the KL varies, where training is smoothest, and which runs are still
improving.
"""

from __future__ import annotations

import numpy as np

from app.experiments.sweep.grid_axis import name
from app.experiments.sweep.plan import BETA, Sweep
from app.experiments.sweep.results import SweepResults
from grpo_core.claims.claim import sentence
from grpo_core.claims.sweep import Between
from grpo_core.experiments.outcome import of_sweep, swept
from grpo_core.text import tr


def headline(results: SweepResults) -> str:
    """Return sentences about the result of a complete sweep.

    The string is empty if the sweep is not complete, or has fewer than two positions.
    """
    sweep = results.sweep
    if not results.complete or results.count < 2:
        return ""
    if sweep.base.is_language:
        last = np.concatenate([results.final("kl", row).middle for row in range(len(sweep.rows))])
        between = sentence(Between(least=float(last.min()), most=float(last.max())))
        return " ".join((between, tr("These are too few seeds to call a value better than another.")))
    names = {key: _place(sweep, *key) for key in results.done}
    data = swept(
        {names[key]: runs for key, runs in results.done.items()},
        [[names[place, row] for place in range(len(sweep.over.values))] for row in range(len(sweep.rows))],
    )
    told = of_sweep(data, in_order=sweep.over.places.numeric, smoothness=sweep.over.path != BETA)
    return " ".join(sentence(*claims) for claims in told)


def _place(sweep: Sweep, place: int, row: int) -> str:
    if sweep.across is None:
        return f"{sweep.over.symbol} {name(sweep.over.values[place])}"
    return tr("{symbol} {value} and {across} {value2}").format(
        symbol=sweep.over.symbol,
        value=name(sweep.over.values[place]),
        across=sweep.across.symbol,
        value2=name(sweep.rows[row]),
    )
