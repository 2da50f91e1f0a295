"""The table of trials, with a row for the run shown, each earlier run, and each repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.experiments.repeats import RepeatResults
from app.plotting.table_model import Column
from app.workspace.run_handle import RunHandle
from app.workspace.trials import HALF, Trial, differences
from grpo_core.config import Settings
from grpo_core.metrics import METRICS
from grpo_core.text import listed, tr

LAST = ("reward_mean", "max_prob", "kl", "entropy")
"""Series whose last value is shown in a column."""
COLUMNS = (
    Column("run", tr("Run", "noun"), chars=16, kind="text"),
    Column("seed", tr("Seed"), chars=6, decimals=0),
    Column("differs", tr("Differs in"), chars=14, kind="text"),
    Column(
        "past_half",
        tr("π > {half:g} at").format(half=HALF),
        chars=9,
        decimals=0,
        help=tr("The first update after which the largest probability, averaged over the visited places, is past 0.5."),
    ),
    Column("updates", tr("Updates"), chars=8, decimals=0),
    *(Column(name, METRICS[name].title, chars=12, unit=METRICS[name].unit, help=METRICS[name].help) for name in LAST),
)


def trial_rows(
    run: RunHandle, past_half: int | None, trials: tuple[Trial, ...], repeats: Sequence[RepeatResults]
) -> list[list[object]]:
    """Return the rows: ``run``, then ``trials``, newest first, then all ``repeats``, newest first, by their seeds."""
    rows = [_row(run, tr("this run"), "", past_half)]
    rows += [_row(one.run, one.run.title, _words(one.differs), one.past_half) for one in reversed(trials)]
    here = run.changes[-1][1]
    return rows + [row for batch in reversed(repeats) if batch.count for row in _repeats(batch, here)]


def _words(differs: tuple[str, ...]) -> str:
    return listed(differs) or tr("nothing but the seed")


def _row(run: RunHandle, title: str, differs: str, past_half: int | None) -> list[object]:
    last = [run.series[name].last if len(run.series[name]) else None for name in LAST]
    return [title, run.origin.settings.seed, differs, past_half, run.head, *last]


def _repeats(repeats: RepeatResults, here: Settings) -> list[list[object]]:
    past, differs = repeats.past_half, _words(differences(repeats.settings, here))
    return [
        [
            tr("repeat"),
            seed,
            differs,
            int(past[place]) if np.isfinite(past[place]) else None,
            repeats.count,
            *(float(repeats.series[name][-1, place]) for name in LAST),
        ]
        for place, seed in enumerate(repeats.seeds)
    ]
