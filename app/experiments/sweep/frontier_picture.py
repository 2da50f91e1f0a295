"""A sweep as a line chart of reward against KL."""

from __future__ import annotations

import dataclasses

import numpy as np

from app.experiments.sweep.grid_axis import name
from app.experiments.sweep.results import SweepResults, titled
from app.experiments.sweep.state import LEAST, SweepState, chosen_mark, row_look, row_name, spread_columns, theory_line
from app.plotting.axis import Scale
from app.plotting.line_data import Line, LinePicture, PointSet, Tag
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr


def frontier_picture(state: SweepState) -> LinePicture:
    """Return a chart with one mark per point, joined in grid order, and the exact frontier if theory provides one."""
    results, front = state.results, state.front()
    if results is None:
        return LinePicture(x=Scale(label=titled("kl"), unit=tr("nats"), low=0), y=Scale(label=titled("reward")))
    best, rows = results.optimum(front), range(len(results.sweep.rows))
    lines = [_row_of_frontier(results, row, front=row == front) for row in rows]
    chosen = chosen_mark(state, lines, None)
    right = np.concatenate([best["kl"], *(results.final("kl", row).high for row in rows)])
    return LinePicture(
        x=Scale(label=titled("kl"), unit=tr("nats"), low=0, high=float(np.nanmax([*right, LEAST])) * 1.05),
        y=Scale(label=titled("reward")),
        lines=(*lines, theory_line(best["kl"], best["reward"])),
        subject=results,
        tags=_frontier_tags(state, results, lines[front]),
        points=(PointSet(name="chosen", meaning="selection", size=12, filled=False, x=chosen[0], y=chosen[1], z=9),),
        make_reading=lambda x: _frontier_reading(state, results),
        make_table=lambda: _frontier_table(results),
    )


def _row_of_frontier(results: SweepResults, row: int, *, front: bool) -> Line:
    kl, reward, sweep = results.final("kl", row), results.final("reward", row), results.sweep
    look = row_look(sweep, row, front=front)
    line = Line(meaning="kl", title=tr("reward"), **look).over(kl.middle, reward.middle)
    crossed = dataclasses.replace(line, low=reward.low, high=reward.high, left=kl.low, right=kl.high)
    return crossed if front else line


def _frontier_tags(state: SweepState, results: SweepResults, front: Line) -> tuple[Tag, ...]:
    """Return the labels: the setting's value at every mark of the front row, and the frontier's name.

    The label of the selected mark comes first.
    """
    sweep, best = results.sweep, results.optimum(state.front())
    known = np.flatnonzero(np.isfinite(front.x)).tolist()
    tags = [Tag(name(sweep.over.values[n]), float(front.x[n]), float(front.y[n])) for n in known]
    if len(best["kl"]):
        half = int(np.argmin(np.abs(best["kl"] - best["kl"].max() / 4)))
        tags.insert(0, Tag(tr("exact optimum"), float(best["kl"][half]), float(best["reward"][half]), "text"))
    near = state.grid.nearest(state.x)
    if near in known:
        tags.insert(
            0, Tag(sweep.over.named(sweep.over.values[near]), float(front.x[near]), float(front.y[near]), "text")
        )
    return tuple(tags)


def _frontier_reading(state: SweepState, results: SweepResults) -> list[tuple[str, str]]:
    """Return the read-out of the selected point. It names the point, because several points can have the same KL."""
    near, over = state.grid.nearest(state.x), results.sweep.over
    kl, reward = (results.final(measure, state.front()).middle[near] for measure in ("kl", "reward"))
    return [
        (over.named(over.values[near]), "muted"),
        (tr("KL  {kl}").format(kl=shown(kl)), "kl"),
        (tr("reward  {reward}").format(reward=shown(reward)), "reward"),
    ]


def _frontier_table(results: SweepResults) -> tuple[list[Column], Rows]:
    """Return one row per point: its value, and its KL and reward with their middle halves."""
    sweep = results.sweep
    columns = [] if sweep.across is None else [Column("row", sweep.across.title, chars=10, kind="text")]
    numeric = sweep.over.places.numeric
    columns.append(Column("value", sweep.over.title, chars=9, kind="number" if numeric else "text"))
    columns += [*spread_columns("kl"), *spread_columns("reward")]
    table: list[list[object]] = []
    for row in range(len(sweep.rows)):
        kl, reward = results.final("kl", row), results.final("reward", row)
        for place, value in enumerate(sweep.over.values):
            table.append([*row_name(sweep, row), value, *(float(limit[place]) for limit in (*kl, *reward))])
    return columns, table
