"""The film of one update on a bandit: what stands where after a share of a stage has played. From the record alone.

Sample: draws leave the bars and come to rest in the lane of samples. Score: they rise to their rewards, and the mean
is drawn. Normalize: stems grow to the reward minus the mean, and are stretched to the advantage. Update: the bars move
pass by pass; where a ratio is clipped a ceiling stands.
"""

from __future__ import annotations

import numpy as np

from app.panels.policy_data import Draws, PolicyPicture
from app.plotting.lane_data import Ceiling, Dot, Mark, Spot
from app.workspace.cursor import Stage
from grpo_core.text import tr

LEAVING = 0.6
"""Share of the stage Sample in which draws leave their bars, one after the other."""
RISING = 0.6
"""Share of the stage Score in which draws rise to their rewards; then the mean is drawn."""
CENTRING = 0.4
"""Share of the stage Normalize in which stems grow to the reward minus the mean; then they are stretched."""
SAMPLES, REWARDS, POLICY = "samples", "rewards", "policy"
"""Keys of the lanes between which marks move."""


def landed(draws: Draws, stage: Stage, progress: float) -> np.ndarray:
    """How many draws of each entry have come to rest in the lane of samples, (A,)."""
    if stage is not Stage.SAMPLE or progress >= 1:
        return draws.counts
    counts = np.zeros_like(draws.counts)
    for n, entry in enumerate(draws.order.tolist()):
        counts[entry] += _fallen(n, len(draws.order), progress) >= 1
    return counts


def mean_share(stage: Stage, progress: float) -> float:
    """How far the line of the mean has been drawn, from 0 to 1."""
    if stage is Stage.SCORE:
        return min(max((progress - RISING) / (1 - RISING), 0.0), 1.0)
    return 0.0 if stage is Stage.SAMPLE else 1.0


def stem_heights(picture: PolicyPicture) -> np.ndarray:
    """Heights of the stems in the stage Normalize, (A,): they grow to the advantages; NaN for an action without one."""
    draws, share = picture.draws, picture.progress
    assert draws is not None
    distance = centred(picture)
    if distance is None:
        return np.asarray(draws.advantage * share)
    if share < CENTRING:
        return np.asarray(distance * (share / CENTRING))
    return np.asarray(distance + (draws.advantage - distance) * ((share - CENTRING) / (1 - CENTRING)))


def centred(picture: PolicyPicture) -> np.ndarray | None:
    """The reward of each entry that was drawn minus the mean, (A,); None where the advantage has no such part."""
    draws = picture.draws
    if not picture.about_mean or picture.rewards is None or draws is None or draws.mean is None:
        return None
    return np.where(draws.counts > 0, picture.rewards - draws.mean, np.nan)


def marks(picture: PolicyPicture) -> tuple[Mark, ...]:
    """What lies above the lanes at the moment that ``picture`` shows."""
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
    """Share of its way that draw ``n`` of ``count`` has covered."""
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
    """Lines where the ratios of clipped draws leave 1 ± ε, in the pass shown: beyond them these draws push nothing."""
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
