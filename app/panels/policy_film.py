"""The film of one update on a bandit: the positions of all marks at a given progress of a stage.

Everything is computed from the record alone. In the Sample stage, dots for the draws fall from the bars into the lane
of samples. In the Score stage, they rise to their rewards, and a line is drawn at the mean. In the Normalize stage,
each stem grows to the reward minus the mean, and is then stretched to the advantage. In the Update stage, the bars move
pass by pass, and a ceiling marks each clipped ratio.
"""

from __future__ import annotations

import numpy as np

from app.clock import eased
from app.panels.policy_data import Draws, PolicyPicture
from app.plotting.bar_data import Ceiling, Dot, Mark, Spot
from app.workspace.cursor import Stage
from grpo_core.text import tr

LEAVING = 0.6
"""Fraction of the Sample stage during which the draws leave their bars one after another."""
RISING = 0.6
"""Fraction of the Score stage during which the draws rise to their rewards, before the mean is drawn."""
CENTRING = 0.4
"""Fraction of the Normalize stage during which the stems grow to the reward minus the mean."""
SAMPLES, REWARDS, POLICY = "samples", "rewards", "policy"
"""Keys of the lanes between which marks move."""
BELOW = "below"
"""Key of the lane below the policy: advantages in the Normalize stage, otherwise changes."""
WEIGHTS = {REWARDS: 74.0, SAMPLES: 34.0, POLICY: 92.0, BELOW: 76.0}
"""Relative heights of the lanes when an entire update is shown."""
STAGE_WEIGHTS = {
    Stage.SAMPLE: {REWARDS: 42.0, SAMPLES: 96.0, POLICY: 112.0, BELOW: 26.0},
    Stage.SCORE: {REWARDS: 136.0, SAMPLES: 62.0, POLICY: 52.0, BELOW: 26.0},
    Stage.NORMALIZE: {REWARDS: 84.0, SAMPLES: 26.0, POLICY: 38.0, BELOW: 128.0},
    Stage.UPDATE: {REWARDS: 36.0, SAMPLES: 26.0, POLICY: 112.0, BELOW: 102.0},
}
"""Relative heights of the lanes while a stage is shown. The lanes that the stage is about are taller."""
GROWING = 0.15
"""Fraction of each stage's film in which the heights of the lanes change to those of the stage.

At the end of the last stage, they change back during the same fraction.
"""


def weights(picture: PolicyPicture) -> dict[str, float]:
    """Return the relative height of each lane at the moment that ``picture`` shows."""
    stage, progress = picture.stage, picture.progress
    whole = stage is Stage.UPDATE and picture.passed < 0 and progress >= 1
    if picture.draws is None or picture.quick or whole:
        return WEIGHTS
    if progress >= 1:  # a stage whose film is not playing
        return STAGE_WEIGHTS[stage]
    last = stage is Stage.UPDATE and picture.passed in (-1, picture.passes - 1)
    if last and progress > 1 - GROWING:
        return _mixed(STAGE_WEIGHTS[stage], WEIGHTS, (progress - 1 + GROWING) / GROWING)
    if stage is Stage.UPDATE and picture.passed > 0:
        return STAGE_WEIGHTS[stage]
    before = WEIGHTS if stage is Stage.SAMPLE else STAGE_WEIGHTS[Stage(stage - 1)]
    return _mixed(before, STAGE_WEIGHTS[stage], min(progress / GROWING, 1.0))


def _mixed(one: dict[str, float], other: dict[str, float], share: float) -> dict[str, float]:
    """Return weights interpolated with an ease-in-out curve, from ``one`` at ``share`` 0 to ``other`` at 1."""
    return {lane: weight + eased(share) * (other[lane] - weight) for lane, weight in one.items()}


def landed(draws: Draws, stage: Stage, progress: float) -> np.ndarray:
    """Return how many draws of each entry have reached the lane of samples, (A,)."""
    if stage is not Stage.SAMPLE or progress >= 1:
        return draws.counts
    counts = np.zeros_like(draws.counts)
    for n, entry in enumerate(draws.order.tolist()):
        counts[entry] += _fallen(n, len(draws.order), progress) >= 1
    return counts


def mean_share(stage: Stage, progress: float) -> float:
    """Return the fraction of the mean's line that is drawn, from 0 to 1."""
    if stage is Stage.SCORE:
        return min(max((progress - RISING) / (1 - RISING), 0.0), 1.0)
    return 0.0 if stage is Stage.SAMPLE else 1.0


def stem_heights(picture: PolicyPicture) -> np.ndarray:
    """Return the heights of the stems in the Normalize stage, (A,), NaN for an action without an advantage.

    At the end of the stage, the heights are the advantages.
    """
    draws, share = picture.draws, picture.progress
    assert draws is not None
    distance = centred(picture)
    if distance is None:
        return np.asarray(draws.advantage * share)
    if share < CENTRING:
        return np.asarray(distance * (share / CENTRING))
    return np.asarray(distance + (draws.advantage - distance) * ((share - CENTRING) / (1 - CENTRING)))


def centred(picture: PolicyPicture) -> np.ndarray | None:
    """Return the reward of each drawn entry minus the mean, (A,), or None if the advantage is not computed from it."""
    draws = picture.draws
    if not picture.about_mean or picture.rewards is None or draws is None or draws.mean is None:
        return None
    return np.where(draws.counts > 0, picture.rewards - draws.mean, np.nan)


def marks(picture: PolicyPicture) -> tuple[Mark, ...]:
    """Return the marks in front of the lanes at the moment that ``picture`` shows."""
    draws = picture.draws
    if draws is None:
        return ()
    match picture.stage:
        case Stage.SAMPLE:
            return tuple(_falling(picture, draws)) if picture.progress < 1 else ()
        case Stage.SCORE:
            return tuple(_rising(picture, draws, min(picture.progress / RISING, 1.0)))
        case Stage.NORMALIZE:
            return tuple(_rising(picture, draws, 1.0))
        case Stage.UPDATE:
            return ceilings(picture, draws)


def _fallen(n: int, count: int, progress: float) -> float:
    """Return the fraction of its path that draw number ``n`` of ``count`` has covered."""
    start = LEAVING * n / count
    return min(max((progress - start) / (1 - LEAVING), 0.0), 1.0)


def _falling(picture: PolicyPicture, draws: Draws) -> list[Mark]:
    ranks = np.zeros_like(draws.counts)
    dots: list[Mark] = []
    for n, entry in enumerate(draws.order.tolist()):
        share, rank, count = _fallen(n, len(draws.order), picture.progress), int(ranks[entry]), int(draws.counts[entry])
        ranks[entry] += 1
        if 0 < share < 1:
            bar = Spot(lane=POLICY, place=entry, height=float(picture.old[entry]))
            rest = Spot(lane=SAMPLES, place=entry, height=0.5, rank=rank, count=count)
            dots.append(Dot(start=bar, end=rest, share=share))
    return dots


def _rising(picture: PolicyPicture, draws: Draws, share: float) -> list[Mark]:
    if picture.rewards is None:
        return []
    dots: list[Mark] = []
    for entry, count in enumerate(draws.counts.tolist()):
        for rank in range(min(count, 3)):
            rest = Spot(lane=SAMPLES, place=entry, height=0.5, rank=rank, count=count)
            paid = Spot(
                lane=REWARDS, place=entry, height=float(picture.rewards[entry]), rank=rank, count=count, below=True
            )
            dots.append(Dot(start=rest, end=paid, share=share))
    return dots


def ceilings(picture: PolicyPicture, draws: Draws) -> tuple[Ceiling, ...]:
    """Return lines at the probabilities at which the ratios of clipped draws leave 1 ± ε, in the pass shown.

    Beyond its line, a draw has no effect.
    """
    if picture.clip is None or picture.stage is not Stage.UPDATE or picture.passed < 0:
        return ()
    low, high = picture.clip
    lines: list[Ceiling] = []
    for entry in np.flatnonzero(draws.clipped).tolist():
        up = bool(draws.advantage[entry] > 0)
        height = float(picture.old[entry]) * (1 + high if up else 1 - low)
        over = max(height, float(picture.old[entry]), float(picture.now[entry]))
        lines.append(Ceiling(lane=POLICY, place=entry, height=height, up=up, text=tr("push 0"), over=over))
    return tuple(lines)
