"""One sentence per stage of an update: what was drawn, its rewards, and what moved."""

from __future__ import annotations

import numpy as np

from app.panels.policy_data import Draws, PolicyPicture
from app.workspace.cursor import Stage
from grpo_core.claims.captions import Moved, Sampled, Scored, Undrawn, most_moved
from grpo_core.reasons.normalized import normalized_words
from grpo_core.text import listed, tr

NAMED = 3
"""Maximum number of rising actions, and of falling ones, that are named. Those that move most come first."""


def stage_sentence(picture: PolicyPicture) -> str:
    """Return the sentence on what the stage does with the draws of this context, the same during its film."""
    draws = picture.draws
    if draws is None:
        return tr("Before the first update: draws are taken from these bars.")
    match picture.stage:
        case Stage.SAMPLE:
            return sampled(picture, draws).words()
        case Stage.SCORE:
            return paid(draws).words()
        case Stage.NORMALIZE:
            return normalized_words(draws.normalized)
        case Stage.UPDATE:
            return _updated(picture, draws)


def sampled(picture: PolicyPicture, draws: Draws) -> Sampled:
    met = int((draws.counts > 0).sum())
    return Sampled(draws=len(draws.order), met=met, of=len(picture.names), earlier=draws.earlier)


def paid(draws: Draws) -> Scored:
    return Scored(scored=len(draws.order) - draws.unscored, of=len(draws.order), mean=draws.mean)


def _updated(picture: PolicyPicture, draws: Draws) -> str:
    moved, missed = _moved(picture), undrawn(picture, draws)
    return moved if missed is None else " ".join((moved, missed.words()))


def in_fewer_words(picture: PolicyPicture) -> str:
    """Return a shorter form of :func:`stage_sentence`, or an empty string if it is already short."""
    if picture.draws is None or picture.stage is not Stage.UPDATE:
        return ""
    made = moves(picture)
    up, down = (listed(picture.names[n] for n in places) for places in (made.up, made.down))
    if not (up or down):
        return ""
    place = {"step": picture.number, "up": up, "down": down, "number": picture.passed + 1, "passes": picture.passes}
    whole, one_pass = {
        (True, True): (
            tr("Update {step:,}: up {up}; down {down}."),
            tr("By pass {number} of {passes}: up {up}; down {down}."),
        ),
        (True, False): (tr("Update {step:,}: up {up}."), tr("By pass {number} of {passes}: up {up}.")),
        (False, True): (tr("Update {step:,}: down {down}."), tr("By pass {number} of {passes}: down {down}.")),
    }[bool(up), bool(down)]
    moved = (whole if picture.passed < 0 else one_pass).format(**place)
    missed = undrawn(picture, picture.draws)
    return moved if missed is None else " ".join((moved, missed.in_fewer_words()))


def undrawn(picture: PolicyPicture, draws: Draws) -> Undrawn | None:
    """Return the claim that the best-paid action was not drawn, or None if it was or if several are best paid."""
    if picture.rewards is None:
        return None
    best = int(picture.rewards.argmax())
    alone = (picture.rewards < picture.rewards[best]).sum() == len(picture.rewards) - 1
    return Undrawn(best=best, name=picture.names[best]) if alone and not draws.counts[best] else None


def _moved(picture: PolicyPicture) -> str:
    moved = moves(picture).words()
    place = {"step": picture.number, "number": picture.passed + 1, "passes": picture.passes, "moved": moved}
    if picture.passed < 0:
        return tr("Update {step:,}: {moved}.").format(**place)
    return tr("Update, by pass {number} of {passes}: {moved}.").format(**place)


def moves(picture: PolicyPicture) -> Moved:
    """Return the claim about which entries moved, and whether all others moved the other way."""
    change = picture.change
    up, down = most_moved(change, NAMED), most_moved(-change, NAMED)
    rest = np.delete(change, [*up, *down])
    one_way = bool(up) != bool(down)
    others = one_way and bool((rest < 0).all() if up else (rest > 0).all())
    return Moved(names=picture.names, up=up, down=down, others=others)
