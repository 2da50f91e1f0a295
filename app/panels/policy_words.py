"""One sentence on each stage of an update: what the draws were, what they were paid, what moved."""

from __future__ import annotations

import numpy as np

from app.panels.policy_data import Draws, PolicyPicture
from app.plotting.numbers import shown
from app.workspace.cursor import Stage
from grpo_core.reasons.normalized import Normalized
from grpo_core.text import tr

MOVED = 1e-3
"""A probability that moves by less is not named among those that rise or fall."""
NAMED = 3
"""Actions named of those that rise, and of those that fall: the ones that move most."""


def stage_sentence(picture: PolicyPicture) -> str:
    """What the stage shown does with the draws of this context; equal throughout a stage's film."""
    draws = picture.draws
    if draws is None:
        return tr("Before the first update: draws are taken from these bars.")
    match picture.stage:
        case Stage.SAMPLE:
            return tr("Sample: {count} draws from the bars; {met} of {actions} actions come up.").format(
                count=len(draws.order), met=int((draws.counts > 0).sum()), actions=len(picture.names)
            )
        case Stage.SCORE:
            if draws.mean is None:
                return tr("Score: no draw was scored.")
            if draws.unscored:
                return tr("Score: {scored} of {count} draws get a reward; the mean is {mean}.").format(
                    scored=len(draws.order) - draws.unscored, count=len(draws.order), mean=shown(draws.mean)
                )
            return tr("Score: every draw gets its reward; their mean is {mean}.").format(mean=shown(draws.mean))
        case Stage.NORMALIZE:
            return normalized_words(draws.normalized)
        case Stage.UPDATE:
            return _updated(picture, draws)


def normalized_words(made: Normalized | None, total: float | None = None) -> str:
    """What the rewards became, in a sentence; with the advantages' sum, if ``total`` is given and they differ."""
    if made is None or made.low is None or made.high is None:
        return tr("Normalize: rewards become advantages.")
    if made.silent:
        if made.equal:
            return tr("Normalize: all rewards are equal, so every advantage is 0 and the rewards push nothing.")
        return tr("Normalize: every advantage here is 0, so the rewards push nothing here.")
    low, high = shown(made.low), shown(made.high)
    if low == high:
        return tr("Normalize: every advantage here is {low}.").format(low=low)
    if total is not None:
        return tr("Normalize: rewards become advantages, from {low} to {high}; their sum is {total}.").format(
            low=low, high=high, total=shown(total)
        )
    return tr("Normalize: rewards become advantages, from {low} to {high}.").format(low=low, high=high)


def _updated(picture: PolicyPicture, draws: Draws) -> str:
    moved, missed = _moved(picture), _missed(picture, draws)
    if missed is None:
        return moved
    return " ".join((moved, tr("Action {best} pays most, but nobody drew it.").format(best=missed)))


def in_fewer_words(picture: PolicyPicture) -> str:
    """:func:`stage_sentence` for a narrow picture; empty where it is short already."""
    if picture.draws is None or picture.stage is not Stage.UPDATE:
        return ""
    up, down = _names(picture, picture.change), _names(picture, -picture.change)
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
    missed = _missed(picture, picture.draws)
    if missed is None:
        return moved
    return " ".join((moved, tr("Nobody drew {best}, which pays most.").format(best=missed)))


def _missed(picture: PolicyPicture, draws: Draws) -> str | None:
    """The one action that pays most, where nobody drew it."""
    if picture.rewards is None:
        return None
    best = int(picture.rewards.argmax())
    alone = (picture.rewards < picture.rewards[best]).sum() == len(picture.rewards) - 1
    return picture.names[best] if alone and not draws.counts[best] else None


def _moved(picture: PolicyPicture) -> str:
    up, down = _names(picture, picture.change), _names(picture, -picture.change)
    place = {"step": picture.number, "up": up, "down": down, "number": picture.passed + 1, "passes": picture.passes}
    if bool(up) != bool(down) and not _others_oppose(picture):
        whole, one_pass = (
            (
                tr("Update {step:,}: more probability for {up}."),
                tr("Update, by pass {number} of {passes}: more probability for {up}."),
            )
            if up
            else (
                tr("Update {step:,}: less probability for {down}."),
                tr("Update, by pass {number} of {passes}: less probability for {down}."),
            )
        )
        return (whole if picture.passed < 0 else one_pass).format(**place)
    whole, one_pass = {
        (True, True): (
            tr("Update {step:,}: more probability for {up}, less for {down}."),
            tr("Update, by pass {number} of {passes}: more probability for {up}, less for {down}."),
        ),
        (True, False): (
            tr("Update {step:,}: more probability for {up}, a little less for the others."),
            tr("Update, by pass {number} of {passes}: more probability for {up}, a little less for the others."),
        ),
        (False, True): (
            tr("Update {step:,}: less probability for {down}, a little more for the others."),
            tr("Update, by pass {number} of {passes}: less probability for {down}, a little more for the others."),
        ),
        (False, False): (
            tr("Update {step:,}: no probability moves by a thousandth."),
            tr("Update, by pass {number} of {passes}: no probability moves by a thousandth."),
        ),
    }[bool(up), bool(down)]
    return (whole if picture.passed < 0 else one_pass).format(**place)


def _others_oppose(picture: PolicyPicture) -> bool:
    """Whether every entry that is not named moves the other way than those that are, all of which move one way."""
    way = np.sign(picture.change[np.abs(picture.change).argmax()])
    named = np.argsort(-way * picture.change, kind="stable")[:NAMED]
    named = named[way * picture.change[named] >= MOVED]
    return bool((np.delete(way * picture.change, named) < 0).all())


def _names(picture: PolicyPicture, change: np.ndarray) -> str:
    """The entries that move up most, the first one most."""
    order = [int(n) for n in np.argsort(-change, kind="stable")[:NAMED] if change[n] >= MOVED]
    return ", ".join(picture.names[n] for n in order)
