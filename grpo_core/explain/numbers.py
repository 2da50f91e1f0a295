"""What the code that trained says about one update: the engine's side of every explanation.

Each number is read from ``recompute``, ``metrics``, the bandit's gradient or the record itself; whole arrays are
computed once and kept while one explanation is being made.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from grpo_core import metrics, recompute
from grpo_core.bandit.gradient import logit_gradient
from grpo_core.config import PRESETS, Objective
from grpo_core.config.presets import nearest_preset, preset_of
from grpo_core.explain.quantity import KINDS, Quantity, is_card
from grpo_core.explain.readings import NAN, READ
from grpo_core.objective import Terms
from grpo_core.record import Step
from grpo_core.text import tr


class Numbers:
    """The numbers of one update under one objective, by :class:`Quantity`; NaN where the record lacks them.

    Attributes:
        step: the update; under another objective, as it would have been.
        objective: the switches.
        recorded: whether the objective is the one that the update ran under.
    """

    step: Step
    objective: Objective
    recorded: bool

    def __init__(self, step: Step, objective: Objective | None = None) -> None:
        self.recorded = objective is None or objective == step.settings.objective
        if objective is not None and not self.recorded:
            settings = step.settings.replace({"objective": objective})
            kept = {name: value for name, value in step.measurements.items() if name != "grad_norm"}
            step = dataclasses.replace(recompute.under(step, objective), settings=settings, measurements=kept)
        self.step = step
        self.objective = step.settings.objective
        self._values: dict[Quantity, float] = {}
        self._terms: dict[int, Terms] = {}
        self._gradients: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
        self._logit_gradients: dict[int, np.ndarray | None] = {}

    def __getitem__(self, quantity: Quantity) -> float:
        value = self._values.get(quantity)
        if value is None:
            value = self._values[quantity] = self._read(self.canonical(quantity))
        return value

    def _read(self, q: Quantity) -> float:
        if is_card(q):
            return self.cards.get(q.name, self.step.measurements.get(q.name, NAN))
        return READ[q.name](self, q)

    def canonical(self, q: Quantity) -> Quantity:
        """``q`` with the parts that its name has and no others, tokens left out where completions are one token long.

        Raises:
            KeyError: the update has no such number.
        """
        if is_card(q):
            if q.name not in metrics.METRICS and q.name not in self.step.measurements:
                raise KeyError(f"there is no number called “{q.name}”")
            return Quantity(q.name)
        if q.name in ("probability", "log_probability", "entropy", "exact_kl") and q.row is not None:
            q = self._at_place(q)
        axes = KINDS[q.name].axes
        token = None
        if "token" in axes and self.step.mask.shape[1] > 1 and not (q.name == "advantage" and self.advantage.ndim == 1):
            token = q.token or 0
        wanted = {a: (getattr(q, a) or 0) if a in axes else None for a in ("row", "context", "action", "group")}
        return Quantity(q.name, passed=q.passed if {"pass", "state"} & set(axes) else 0, token=token, **wanted)

    def _at_place(self, q: Quantity) -> Quantity:
        """The policy at the place where a token was chosen."""
        row, token = q.row or 0, q.token or 0
        context = None if self.step.context is None else int(self.step.context[row, token])
        action = int(self.step.tokens[row, token]) if q.action is None else q.action
        return Quantity(q.name, passed=q.passed, context=context, action=action)

    @cached_property
    def precision(self) -> float:
        """Relative agreement that the record's dtype allows."""
        held = (self.step.logp, self.step.old_logp, self.step.rewards, self.step.dist_logp)
        return 1e-9 if all(x is None or x.dtype == np.float64 for x in held) else 1e-5

    @property
    def long(self) -> bool:
        """Whether completions have more than one place."""
        return bool(self.step.mask.shape[1] > 1)

    @property
    def it(self) -> str:
        """The general index of a token in formulas."""
        return "{i,t}" if self.long else "{i}"

    def at(self, q: Quantity) -> str:
        """The index of this very token, counted from 1."""
        return f"{{{_one(q.row)},{_one(q.token)}}}" if q.token is not None else f"{{{_one(q.row)}}}"

    def token(self, name: str, q: Quantity, token: int | None = None) -> Quantity:
        """The number called ``name`` at the place of ``q``, or at another token of its completion."""
        place = q.token if token is None else token
        return self.canonical(Quantity(name, passed=q.passed, row=q.row, token=place))

    def visited(self, row: int | None) -> list[int]:
        """Places of a completion's tokens."""
        return [int(t) for t in np.flatnonzero(self.step.mask[row or 0])]

    def rows(self, group: int | None) -> list[int]:
        """Completions of a prompt."""
        return [int(i) for i in np.flatnonzero(self.step.group == group)]

    def idle(self, q: Quantity) -> str:
        """Why there is nothing at this place: padding, or a completion that the pass did not use; else empty."""
        axes = KINDS[q.name].axes if not is_card(q) else ()
        if "token" in axes and not self.step.mask[q.row or 0, q.token or 0]:
            return tr("padding: there is no token here")
        if "pass" in axes and "row" in axes and self.step.part[q.passed, q.row or 0] < 0:
            return tr("this completion was not used in this pass")
        return ""

    def terms(self, passed: int) -> Terms:
        """The loss of a pass and every number on the way to it."""
        if passed not in self._terms:
            self._terms[passed] = recompute.terms(self.step, passed, given=self.advantage)
        return self._terms[passed]

    def gradient(self, passed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The two summands of d loss / d log π, (B, T)."""
        if passed not in self._gradients:
            self._gradients[passed] = recompute.token_gradient(self.step, passed, given=self.advantage)
        return self._gradients[passed]

    def logit_gradient(self, passed: int) -> np.ndarray | None:
        """d loss / d logits (C, A); None where the update does not hold a table of logits."""
        if passed not in self._logit_gradients:
            known = "logits" in self.step.resume and self.step.distribution(passed) is not None
            self._logit_gradients[passed] = logit_gradient(self.step, passed, given=self.advantage) if known else None
        return self._logit_gradients[passed]

    @cached_property
    def advantage(self) -> np.ndarray:
        """(B,), or (B, T) from a critic."""
        return recompute.advantage(self.step)

    @cached_property
    def scores(self) -> np.ndarray:
        """What is compared within a group: rewards (B,), less the KL penalty where it enters there; or those of steps
        (B, T), NaN where none ends."""
        if self.by_step:
            return recompute.paid_for_steps(self.step)
        if not self.penalised:
            return self.step.rewards
        bare = dataclasses.replace(self.step, advantage=None)
        paid = recompute.advantage(bare, self.objective.replace(baseline="none", std="none"))
        return np.where(np.isnan(self.step.rewards), np.nan, paid)

    @property
    def by_step(self) -> bool:
        """Whether steps are rewarded, not whole completions."""
        return self.objective.credit == "process"

    def compared(self, group: int | None) -> list[Quantity]:
        """What is compared within a group, or within the batch: rewards of completions or of their steps."""
        rows = range(len(self.step.group)) if group is None else self.rows(group)
        if self.by_step:
            return [self.canonical(Quantity("step_reward", row=i, token=t)) for i in rows for t in self.visited(i)]
        return [Quantity("penalised_reward" if self.penalised else "reward", row=i) for i in rows]

    @cached_property
    def step_scores(self) -> np.ndarray:
        """Normalised rewards of steps, (B, T)."""
        return recompute.scores_of_steps(self.step)

    @property
    def penalised(self) -> bool:
        """Whether the KL is subtracted from the rewards."""
        return self.objective.kl_in == "reward" and self.step.ref_logp is not None

    @cached_property
    def td_errors(self) -> np.ndarray:
        """(B, T): GAE that looks one token ahead."""
        assert self.step.values is not None
        learner = dataclasses.replace(self.step.settings.learner, lam=0.0)
        return recompute.critic_advantage(self.step.rewards, self.step.values, self.step.mask, learner)

    @cached_property
    def cards(self) -> dict[str, float]:
        """The metric cards; the gradient norm of a what-if from the logits, where they are known."""
        cards, gradient = metrics.metrics(self.step), None if self.recorded else self.logit_gradient(0)
        return cards if gradient is None else cards | {"grad_norm": float(np.linalg.norm(gradient))}

    @cached_property
    def loss_source(self) -> str:
        """Where the loss comes from: the preset's source; of a mixture, that of the nearest preset."""
        name = preset_of(self.step.settings)
        if name is not None:
            return PRESETS[name].source
        nearest, _ = nearest_preset(self.step.settings)
        return tr("a mixture; nearest is {preset}: {source}").format(preset=nearest, source=PRESETS[nearest].source)

    @cached_property
    def dead(self) -> np.ndarray:
        """Which groups' rewards are all equal, (P,)."""
        return recompute.dead_groups(self.step)

    @cached_property
    def silent(self) -> np.ndarray:
        """Which groups carry no signal: every advantage of theirs is 0, (P,).

        Not the same as equal rewards: without a baseline, or with the KL in the reward, those may push.
        """
        return recompute.silent_groups(self.step, self.advantage)


def _one(place: int | None) -> int:
    return (place or 0) + 1
