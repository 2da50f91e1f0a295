"""Data for the policy picture of one context: policies, rewards, the update's draws, and a sentence on each stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from app.workspace.trials import Trial
from grpo_core.claims.captions import Caption, Moved, Undrawn, most_moved
from grpo_core.premises import drawn_by_earlier
from grpo_core.reasons.normalized import normalized, normalized_words
from grpo_core.text import listed, tr


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """One update's draws in one context, and the numbers derived from them, over the A entries of the vocabulary.

    Attributes:
        order: the drawn entries, (n,), in the order of the record's rows.
        counts: how often each was drawn, (A,).
        rows: for each entry, the completions (rows of the record) that drew it.
        mean: mean of the draws' rewards; None if none was scored.
        unscored: number of draws without a reward.
        earlier: whether an earlier policy drew them, not the one before the update.
        advantage: advantage of each entry's draws, (A,); NaN if it has no draws, or if they differ among themselves.
        normalized: the claim about the advantages of all draws; None if none is known.
        clipped: whether a draw of the entry is clipped in the pass shown, (A,).
    """

    order: np.ndarray
    counts: np.ndarray
    rows: list[list[int]]
    mean: float | None
    unscored: int
    earlier: bool
    advantage: np.ndarray
    normalized: Caption | None
    clipped: np.ndarray


def earlier_ends(trials: tuple[Trial, ...], context: int, count: int) -> tuple[tuple[str, ...], tuple[np.ndarray, ...]]:
    """Return the names and the final probabilities (A,) of those ``trials`` that are shown and have ``context`` with
    ``count`` vocabulary entries.
    """
    known = [
        (trial.name, trial.policy[context])
        for trial in trials
        if trial.shown and trial.policy is not None and len(trial.policy) > context
    ]
    alike = [(name, end) for name, end in known if len(end) == count]
    return tuple(name for name, _ in alike), tuple(end for _, end in alike)


@dataclass(frozen=True, kw_only=True, eq=False)
class PolicyPicture:
    """All data of the picture of one context, over the A entries of the vocabulary.

    Attributes:
        now, old, reference: probabilities (A,); while the film of a pass plays, ``now`` is interpolated.
        after: probabilities (A,) after the entire update.
        rewards: (A,); None if the task has no reward for a single action.
        draws: draws of the update at the cursor; None at update 0.
        number: number of that update.
        stage, passed, progress: how much of it is revealed; ``passed`` is −1 if the entire update is shown.
        passes: number of passes of the update, 0 at update 0.
        clip: how far the ratio can fall below and rise above 1 before it is clipped; None if there is no clipping.
        quick: whether its film is too short for lanes to change height for a stage.
        about_mean: whether the advantage is computed from the reward minus the group's mean.
        earlier, earlier_names: final probabilities (A,) of each earlier run, and its name.
        paired: whether the bars before and after are side by side instead of one behind the other.
    """

    names: tuple[str, ...]
    now: np.ndarray
    old: np.ndarray
    after: np.ndarray
    reference: np.ndarray | None
    rewards: np.ndarray | None
    draws: Draws | None
    number: int
    stage: Stage
    passed: int
    progress: float
    passes: int
    clip: tuple[float, float] | None
    about_mean: bool
    quick: bool = False
    earlier: tuple[np.ndarray, ...] = ()
    earlier_names: tuple[str, ...] = ()
    paired: bool = False

    @property
    def change(self) -> np.ndarray:
        """The change of each probability in this update so far, (A,)."""
        return np.asarray(self.now - self.old)

    def rows(self, action: int) -> list[int]:
        return self.draws.rows[action] if self.draws is not None and action < len(self.draws.rows) else []


def picture(
    view: StepView,
    context: int,
    rewards: np.ndarray | None,
    passed: int = -1,
    progress: float = 1.0,
    **beside: Any,
) -> PolicyPicture | None:
    """Return the picture of ``context``, or None if the policy's full distribution is not recorded.

    Args:
        view: the update, with the stage and the pass that are shown.
        rewards: rewards of every action in every context, (C, A), or None.
        passed: the pass at the cursor, −1 for the entire update.
        progress: played share of the stage's film.
        beside: further fields of the picture, which have defaults.
    """
    if view.now is None or view.old is None or context >= len(view.now):
        return None
    now = view.now[context]
    if view.stage is Stage.UPDATE and progress < 1:
        before = view.policy(view.updated - 1)
        now = now if before is None else before[context] + progress * (now - before[context])
    objective, after = view.objective, view.policy(view.passes)
    return PolicyPicture(
        names=view.origin.vocabulary[: view.now.shape[1]],
        now=now,
        old=view.old[context],
        after=now if after is None else after[context],
        reference=None if view.reference is None else view.reference[context],
        rewards=None if rewards is None else rewards[context],
        draws=_draws(view, context, view.now.shape[1]),
        number=view.number,
        stage=view.stage,
        passed=passed,
        progress=progress,
        passes=view.passes,
        clip=(objective.clip_low, objective.clip_high) if objective.surrogate == "clip" else None,
        about_mean=objective.baseline == "group_mean",
        **beside,
    )


def _draws(view: StepView, context: int, count: int) -> Draws | None:
    step = view.step
    if step is None:
        return None
    rows: list[list[int]] = [[] for _ in range(count)]
    order: list[int] = []
    advantage, clipped = np.full(count, np.nan), np.zeros(count, bool)
    drawn, gains = list[int](), list[float]()
    if step.context is not None:
        gained, cut = view.advantage, view.terms.clipped if view.terms is not None else None
        for row, token in zip(*np.nonzero((step.context == context) & step.mask), strict=True):
            entry = int(step.tokens[row, token])
            order.append(entry)
            if gained is not None:
                own = float(gained[row] if gained.ndim == 1 else gained[row, token])
                same = not rows[entry] or abs(advantage[entry] - own) <= 1e-12 * max(abs(own), 1.0)
                advantage[entry] = own if same else np.nan
                gains.append(own)
            if cut is not None:
                clipped[entry] |= bool(cut[row, token])
            rows[entry].append(int(row))
            drawn.append(int(row))
    paid = step.rewards[drawn]
    scored = paid[np.isfinite(paid)].tolist()
    return Draws(
        order=np.array(order, int),
        counts=np.array([len(drawn) for drawn in rows]),
        rows=rows,
        mean=sum(scored) / len(scored) if scored else None,
        unscored=len(paid) - len(scored),
        earlier=drawn_by_earlier(step),
        advantage=advantage,
        clipped=clipped,
        normalized=None if view.numbers is None else normalized(view.numbers, np.array(drawn, int), np.array(gains)),
    )


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
            moved, missed = _moved(picture), undrawn(picture, draws)
            return moved if missed is None else " ".join((moved, missed.words()))


def sampled(picture: PolicyPicture, draws: Draws) -> Caption:
    kind, met = "sampled_earlier" if draws.earlier else "sampled", int((draws.counts > 0).sum())
    return Caption.of(kind, count=len(draws.order), met=met, actions=len(picture.names))


def paid(draws: Draws) -> Caption:
    count = len(draws.order)
    if draws.mean is None:
        return Caption.of("unscored")
    if draws.unscored:
        return Caption.of("scored_some", scored=count - draws.unscored, count=count, mean=draws.mean)
    return Caption.of("scored", mean=draws.mean)


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
    up, down = most_moved(change), most_moved(-change)
    rest = np.delete(change, [*up, *down])
    one_way = bool(up) != bool(down)
    others = one_way and bool((rest < 0).all() if up else (rest > 0).all())
    return Moved(names=picture.names, up=up, down=down, others=others)
