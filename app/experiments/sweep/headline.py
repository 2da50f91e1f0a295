"""The result of a sweep as sentences made of claims.

They say where the reward is highest, how the KL varies, where training is smoothest, and which runs are still
improving.
"""

from __future__ import annotations

from app.experiments.sweep.grid_axis import name
from app.experiments.sweep.plan import BETA, Sweep
from app.experiments.sweep.results import SweepResults
from grpo_core.claims.claim import sentence
from grpo_core.experiments.outcome import of_sweep, swept
from grpo_core.text import tr


def headline(results: SweepResults) -> str:
    """Return sentences about the result of a complete sweep.

    The string is empty if the sweep is not complete, or has fewer than two positions.
    """
    sweep = results.sweep
    if not results.complete or results.count < 2:
        return ""
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
