"""A policy as a bar chart with lanes for rewards, draws, probabilities, and changes or advantages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.panels.policy_data import PolicyPicture, in_fewer_words, stage_sentence
from app.panels.policy_film import (
    BELOW,
    CENTRING,
    POLICY,
    REWARDS,
    SAMPLES,
    ceilings,
    centred,
    landed,
    marks,
    mean_share,
    stem_heights,
    weights,
)
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import WIDTH, BarPicture, BarSeries, Lane, side_by_side
from app.plotting.numbers import MINUS, shown
from app.workspace.cursor import Stage
from grpo_core.text import plural, tr

NOW = BarSeries(name=tr("now"), key="now", column=tr("π now"), meaning="policy")
BEFORE = BarSeries(name=tr("before"), key="old", column=tr("π before"), meaning="old", style="outline", width=0.72)
REFERENCE = BarSeries(
    name=tr("reference"), key="reference", column="π_ref", meaning="reference", style="level", width=WIDTH + 0.3
)
REWARD = BarSeries(name=tr("reward"), key="reward", column=tr("Reward"), meaning="reward", style="diamond")
UNDRAWN = BarSeries(name=tr("reward"), meaning="dead", style="diamond", listed=False)
DRAWN = BarSeries(name=tr("samples"), key="samples", column=tr("Samples"), meaning="text", style="tally")
MOVED = BarSeries(
    name=tr("change"), key="change", column=tr("Change"), meaning="push_up", below="push_down", kind="signed"
)
GAINED = BarSeries(
    name=tr("advantage"),
    key="advantage",
    column=tr("Advantage"),
    meaning="push_up",
    below="push_down",
    style="stem",
    kind="signed",
)
DISTANCE = BarSeries(name=tr("reward minus mean"), meaning="text", style="level", width=0.26, listed=False)
TITLE = tr("Policy over actions")
"""Title of a chart of the policy."""
CHANGE, ADVANTAGE = "change", "advantage"
"""Keys of the lanes below the policy."""
EARLIER = BarSeries(name=tr("end of earlier runs"), meaning="muted", style="outline")
LEGEND = tuple(series.entry for series in (NOW, BEFORE, REFERENCE))
LEGEND_WITH_EARLIER = (*LEGEND, EARLIER.entry)
ORDER = tuple(series.key for series in (NOW, BEFORE, REFERENCE, REWARD, DRAWN, MOVED, GAINED))
SMALL = 1e-3
"""Magnitude below which a change is grey. The axis of changes always extends to at least this value."""
SMALLEST = 5e-5
"""Magnitude below which the picture shows no number for a change."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The user's prediction of the likeliest action's probability.

    Attributes:
        height: the probability; None before the user has chosen one.
        asks: whether the user can drag it.
    """

    height: float | None
    asks: bool


def policy_picture(
    what: PolicyPicture, action: int | None, beside: PolicyPicture | None = None, guess: Guess | None = None
) -> BarPicture:
    """Return the picture of a policy in lanes.

    Args:
        action: the selected action, or None.
        beside: other data that the axes also include, so that two charts have the same axes.
        guess: a prediction, drawn as a line.
    """
    here = action if action is not None and action < len(what.names) else None
    others = (what,) if beside is None else (what, beside)
    highest = max(float(max(one.after.max(), one.old.max())) for one in others)
    farthest = max(float(np.abs(one.after - one.old).max()) for one in others)
    normalizes = what.stage is Stage.NORMALIZE and what.draws is not None
    below = _advantages(what) if normalizes else _change(what, farthest)
    lanes = [_samples(what), _policy(what, here, highest, guess), below]
    if what.rewards is not None:
        lanes.insert(0, _rewards(what, what.rewards))
    shares = weights(what)
    lanes = [replace(lane, weight=shares[lane.key if lane.key in shares else BELOW]) for lane in lanes]
    return BarPicture(
        names=what.names,
        label=tr("action"),
        lanes=tuple(lanes),
        sentence=stage_sentence(what),
        shorter=in_fewer_words(what),
        chosen=here,
        moment=what.number,
        marks=marks(what),
        table_order=ORDER,
    )


def show_policy(
    chart: BarChart,
    what: PolicyPicture,
    action: int | None,
    beside: PolicyPicture | None = None,
    guess: Guess | None = None,
) -> None:
    """Draw ``what`` in ``chart``. The other arguments are those of :func:`policy_picture`.

    If no action is selected, the arrow keys start from the likeliest one.
    """
    if action is None:
        chart.chosen = int(what.now.argmax())
    chart.show_picture(policy_picture(what, action, beside, guess))


def _rewards(what: PolicyPicture, rewards: np.ndarray) -> Lane:
    """Return the lane of the rewards.

    In the Score and Normalize stages, rewards of actions that were not drawn are grey.
    """
    drawn, staged = what.draws, what.draws is not None and Stage.SCORE <= what.stage < Stage.UPDATE
    series: tuple[BarSeries, ...] = (REWARD.with_heights(rewards, values=rewards),)
    if drawn is not None and staged:
        met = drawn.counts > 0
        bright, dim = np.where(met, rewards, np.nan), np.where(met, np.nan, rewards)
        series = REWARD.with_heights(bright, values=rewards), UNDRAWN.with_heights(dim)
    mean = None if drawn is None else drawn.mean
    return Lane(
        key=REWARDS,
        title=tr("Reward R(a)"),
        hint=tr("drag a diamond"),
        invites=True,
        symbol="R",
        series=series,
        reach=1.0,
        level=mean,
        level_share=mean_share(what.stage, what.progress),
        level_text="" if mean is None else tr("mean of the draws {mean}").format(mean=shown(mean)),
        level_brief="" if mean is None else tr("mean {mean}").format(mean=shown(mean)),
    )


def _samples(what: PolicyPicture) -> Lane:
    counts = np.zeros(len(what.names), int)
    hint = tr("none yet")
    if what.draws is not None:
        counts = landed(what.draws, what.stage, what.progress)
        hint = plural("{count} draw", "{count} draws", len(what.draws.order)).format(count=len(what.draws.order))
    series = DRAWN.with_heights(counts, values=counts if what.draws is not None else np.empty(0))
    return Lane(key=SAMPLES, title=tr("Samples"), hint=hint, symbol="n", ruled=False, series=(series,))


def _policy(what: PolicyPicture, here: int | None, highest: float, guess: Guess | None) -> Lane:
    """Return the lane of the probabilities, with numbers. Its axis includes ``highest``."""
    likeliest = int(what.now.argmax())
    held = {ceiling.place for ceiling in ceilings(what, what.draws)} if what.draws is not None else set()
    reference = np.empty(0) if what.reference is None else what.reference
    shapes = BEFORE.with_heights(what.old), NOW.with_heights(what.now), REFERENCE.with_heights(reference)
    earlier = tuple(
        BarSeries(
            name=tr("end of {run}").format(run=name), key=f"earlier {n}", meaning="muted", style="untold", heights=end
        )
        for n, (name, end) in enumerate(zip(what.earlier_names, what.earlier, strict=True))
    )
    height, asks = (None, False) if guess is None else (guess.height, guess.asks)
    predicted = "" if height is None else tr("your prediction {height}").format(height=shown(height))
    return Lane(
        key=POLICY,
        title=tr("Policy π(a)"),
        hint=tr("drag your prediction") if asks else tr("on its own scale"),
        symbol="π",
        cap=1.0,
        noted=True,
        ringed=True,
        reach=highest if guess is None else 1.0,
        series=(*(side_by_side(shapes) if what.paired else shapes), *earlier),
        notes=tuple("" if n in held else f"{value:.3f}" for n, value in enumerate(what.now.tolist())),
        kept=(likeliest,) if here is None else (likeliest, here),
        ghosts=what.earlier,
        invites=asks,
        level=height,
        level_text=predicted,
        level_brief=predicted,
        level_meaning="text",
        level_over=True,
        asks_level=asks,
    )


def _change(what: PolicyPicture, farthest: float) -> Lane:
    """Return the lane of this update's changes in probability so far. Its axis includes ``farthest``."""
    values, numbered = what.change.tolist(), what.draws is not None and what.stage is Stage.UPDATE
    return Lane(
        key=CHANGE,
        title=tr("Change Δπ"),
        hint=tr("by this update"),
        symbol="Δπ",
        symmetric=True,
        noted=True,
        series=(MOVED.with_heights(what.change),),
        reach=farthest if what.draws is None else max(farthest, SMALL),
        notes=tuple(_signed(value, SMALL) if numbered else "" for value in values),
        note_meanings=tuple(_meaning(value, SMALL) for value in values),
        kept=(int(np.abs(what.change).argmax()),),
    )


def _advantages(what: PolicyPicture) -> Lane:
    """Return the lane of the draws' advantages, which replaces that of the changes in the Normalize stage."""
    draws, distance = what.draws, centred(what)
    assert draws is not None
    gained = draws.advantage
    ends = [part[np.isfinite(part)] for part in (gained, distance) if part is not None]
    series = [GAINED.with_heights(stem_heights(what), values=gained)]
    if distance is not None and what.progress >= CENTRING:
        series.append(DISTANCE.with_heights(distance))
    return Lane(
        key=ADVANTAGE,
        title=tr("Advantage A"),
        hint=tr("of the draws"),
        symbol="A",
        symmetric=True,
        noted=True,
        series=tuple(series),
        reach=float(np.abs(np.concatenate(ends)).max(initial=0.0)),
        notes=tuple(_signed(value, 0.0) if what.progress >= 1 else "" for value in gained.tolist()),
        note_meanings=tuple(_meaning(value, 0.0) for value in gained.tolist()),
        kept=tuple(np.flatnonzero(np.isfinite(gained)).tolist()),
    )


def _meaning(value: float, least: float) -> str:
    if not abs(value) >= least or value != value:
        return "muted"
    return "push_down" if value < 0 else "push_up"


def _signed(value: float, least: float) -> str:
    """Return the text of a change or an advantage with its sign.

    It has three decimals, or four if the magnitude is below ``least``. It is empty for a missing value, and for
    one that is not 0 but below both ``least`` and :data:`SMALLEST`.
    """
    if value != value:
        return ""
    if abs(value) < least:
        return f"{value:+.4f}".replace("-", MINUS) if abs(value) >= SMALLEST else "0" if value == 0 else ""
    return f"{value:+.3f}".replace("-", MINUS)
