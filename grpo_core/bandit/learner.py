"""The bandit's learner: a generator of steps that records everything about one run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.gradient import needs_distributions
from grpo_core.bandit.layout import gather, prompt_of, runs_last
from grpo_core.bandit.optimizer import Moments
from grpo_core.bandit.simulate import Batch, State, Update, start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tabular_policy import Completions
from grpo_core.bandit.tasks import Task, task
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, NonFiniteError
from grpo_core.objective import evaluate
from grpo_core.progress import unpolled
from grpo_core.record import Origin, Step
from grpo_core.text import tr

STATE = frozenset({"logits", "adam_m", "adam_v", "adam_steps", "critic"})
"""Entries of a step's ``resume`` that are needed to continue a run."""


def origin(settings: Settings) -> Origin:
    """Return the bandit's origin. The starting policy is the reference."""
    work = task(settings.bandit)
    dist_logp = policy.log_probs(_first(start(work, 1).logits), settings.learner.temperature)
    return Origin(
        settings=settings,
        vocabulary=work.vocabulary,
        prompts=work.prompts,
        dist_logp=dist_logp,
        ref_dist_logp=dist_logp,
        action_rewards=work.action_rewards,
        context_names=work.context_names,
        reward_names=work.reward_names,
    )


class BanditLearner:
    """One run of the bandit. Each ``next()`` is one update (see :class:`grpo_core.learners.Learner`).

    Raises:
        SettingsError: ``resume`` was recorded with different structural settings.
        GrpoError: ``resume`` lacks the state of a bandit.
    """

    def __init__(self, settings: Settings, *, resume: Step | None, poll: Callable[[], None] = unpolled) -> None:
        self._poll = poll
        self._streams = Streams([settings.seed])
        self._settings = settings if resume is None else resume.settings
        self._task = task(self._settings.bandit)
        self._reference: tuple[float, np.ndarray] | None = None
        self._state = _resumed(resume, self._task) if resume else start(self._task, self._streams.runs)
        self.settings = settings

    @property
    def settings(self) -> Settings:
        """The settings of the next update. Structural fields cannot be changed within a run."""
        return self._settings

    @settings.setter
    def settings(self, wanted: Settings) -> None:
        self._settings.refuse_structural(wanted)
        if wanted.task != self._settings.task:
            self._task, self._reference = task(wanted.bandit), None
        self._settings = wanted

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        settings, work, streams = self._settings, self._task, self._streams
        done = update(settings, work, self._state, streams, self._poll, reference=self._log_reference())
        step = _recorded(settings, work, done)
        self._state = done.state
        return step

    def _log_reference(self) -> np.ndarray:
        """Return log π_ref (R, C, A), cached by temperature."""
        temperature = self._settings.learner.temperature
        if self._reference is None or self._reference[0] != temperature:
            logits = start(self._task, self._streams.runs).logits
            self._reference = temperature, policy.log_probs(logits, temperature)
        return self._reference[1]


def again(step: Step, settings: Settings, before: Step | None) -> Step:
    """Recompute update ``step`` under ``settings``, from the state in which it began.

    Args:
        step: the recorded update; its completions and rewards are reused.
        settings: must have the task, the temperature and the group size of the recorded update.
        before: the preceding update, in whose final state ``step`` began; None for the first.

    Returns:
        The update; under the step's own settings, ``step``, bit for bit on the kind of processor that recorded it.

    Raises:
        GrpoError: ``before`` is not the preceding update, or does not contain the state of a bandit.
        NonFiniteError: one of its numbers is not finite.
    """
    if (before.step if before else 0) + 1 != step.step:
        raise GrpoError(tr("Update {step} cannot be recomputed without the update before it.").format(step=step.step))
    work, streams = task(settings.bandit), Streams([settings.seed])
    state = start(work, streams.runs) if before is None else _resumed(before, work)
    done = update(settings, work, state, streams, batch=_batch(step, len(work.start)))
    return dataclasses.replace(_recorded(settings, work, done), row_id=step.row_id)


def _batch(step: Step, prompts: int) -> Batch:
    """Return the batch of a recorded update, duplicated as described in :class:`Streams`."""

    def twice(x: np.ndarray) -> np.ndarray:
        return runs_last(np.stack([x, x]))

    assert step.context is not None
    return Batch(
        completions=Completions(
            tokens=twice(step.tokens.astype(np.intp)),
            mask=twice(step.mask),
            context=twice(step.context.astype(np.intp)),
        ),
        rewards=twice(step.rewards),
        step_rewards=None if step.step_rewards is None else twice(step.step_rewards),
        sampling_logp=None if step.sampling_logp is None else twice(step.sampling_logp),
        attempt=np.zeros((2, prompts), dtype=np.intp),  # the rows keep their ids
        redrawn=np.full(2, step.measurements.get("resampled", 0.0)),
    )


def _recorded(settings: Settings, work: Task, done: Update) -> Step:
    """Create the record of an update from its first run.

    Raises:
        NonFiniteError: one of its numbers is not finite.
    """
    batch, state = done.batch, done.state
    tokens, mask, context = (
        _first(x) for x in (batch.completions.tokens, batch.completions.mask, batch.completions.context)
    )
    rows, prompts, passes = batch.rewards.shape[1], len(work.start), len(done.gradient)
    group, row = _rows(rows, prompts)
    after, logp = policy.log_probs(state.logits, settings.learner.temperature), done.passes.logp
    with np.errstate(all="ignore"):
        norms = [math.sqrt(np.dot(g, g)) for g in (gradient[0].ravel() for gradient in done.gradient)]
    measurements = {"grad_norm": norms[0]}
    if settings.learner.resample_dead:
        measurements["resampled"] = float(batch.redrawn[0])
        row = batch.attempt[0].astype(np.int32)[group] * rows + row
    step = Step(
        step=state.step,
        settings=settings,
        group=group,
        row_id=row,
        tokens=tokens.astype(np.int32),
        mask=mask,
        rewards=_first(batch.rewards),
        reward_parts=None if work.parts is None else work.parts(group, tokens[None], mask[None])[0],
        step_rewards=None if batch.step_rewards is None else _first(batch.step_rewards),
        old_logp=_first(logp[0]),
        ref_logp=_first(done.passes.ref_logp),
        sampling_logp=None if batch.sampling_logp is None else _first(batch.sampling_logp),
        logp=np.array([x[0] for x in (*logp, gather(after, done.places))]),
        part=_one_part(passes, rows),
        values=None if done.values is None else _first(done.values),
        context=context.astype(np.int32),
        dist_logp=np.array([x[0] for x in (*done.dist_logp, after)]),
        ref_dist_logp=_first(done.ref_dist_logp),
        measurements=measurements,
        resume={
            "logits": _first(state.logits),
            "adam_m": _first(state.moments.first),
            "adam_v": _first(state.moments.second),
            "adam_steps": np.array([state.moments.steps]),
            "critic": _first(state.critic),
            **({"history": np.array([x[0] for x in state.history])} if state.history else {}),
        },
    )
    _check_finite(step, done.advantage[:1], norms)
    return step


@lru_cache(maxsize=64)
def _rows(rows: int, prompts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the prompt of each row and its row id, both (B,) int32. Read-only, because updates share them."""
    group, row = prompt_of(rows, prompts).astype(np.int32), np.arange(rows, dtype=np.int32)
    row.flags.writeable = group.flags.writeable = False
    return group, row


@lru_cache(maxsize=64)
def _one_part(passes: int, rows: int) -> np.ndarray:
    """Return the assignment of every row to a single micro-batch in every pass, (N, B)."""
    part = np.zeros((passes, rows), dtype=np.int32)
    part.flags.writeable = False
    return part


def _resumed(step: Step, work: Task) -> State:
    """Return the state in which ``step`` ended, from which the run continues."""
    recorded = step.resume
    fresh = start(work, 2)
    shape = fresh.logits.shape[1:]
    known = recorded.keys() >= STATE and recorded["logits"].shape == shape
    if not known or recorded.get("history", fresh.logits).shape[1:] != shape:
        raise GrpoError(
            tr(
                "Update {step} does not contain a bandit's policy, so a run cannot continue from it; choose an "
                "update of a run that was trained here."
            ).format(step=step.step)
        )
    logits, first, second, critic = (
        runs_last(np.stack([recorded[name]] * 2)) for name in ("logits", "adam_m", "adam_v", "critic")
    )
    moments = Moments(first=first, second=second, steps=int(recorded["adam_steps"][0]))
    history = tuple(runs_last(np.stack([x] * 2)) for x in recorded.get("history", ()))
    return State(step=step.step, logits=logits, moments=moments, critic=critic, history=history)


def _check_finite(step: Step, advantage: np.ndarray, norms: list[float]) -> None:
    """Raise :class:`NonFiniteError` naming the first number of the update that is not finite.

    Args:
        advantage: (1, B) or (1, B, T).
    """
    losses = _losses(step, advantage)
    for passed, norm in enumerate(norms):
        if not math.isfinite(losses[passed]):
            raise NonFiniteError(step.step, tr("the loss of pass {passed}").format(passed=passed + 1))
        if not math.isfinite(norm):
            raise NonFiniteError(step.step, tr("the gradient of pass {passed}").format(passed=passed + 1))
    if not (np.isfinite(step.resume["logits"]).all() and np.isfinite(step.logp[-1]).all()):
        raise NonFiniteError(step.step, tr("a logit after the update"))
    if step.settings.learner.critic and not np.isfinite(step.resume["critic"]).all():
        raise NonFiniteError(step.step, tr("a value of the critic after the update"))


def _losses(step: Step, advantage: np.ndarray) -> np.ndarray:
    """Return the loss of every pass (N,), with the passes as the run axis. ``advantage`` is (1, B) or (1, B, T)."""
    objective = step.settings.objective
    whole: dict[str, np.ndarray] = {}
    if needs_distributions(objective) and step.dist_logp is not None:
        now = step.dist_logp[:-1]  # (N, C, A)
        whole["exact_kl"] = kl.exact(now, step.ref_dist_logp)[:, step.context]
        whole["entropy"] = kl.entropy(now)[:, step.context]
    mask = None if step.tokens.shape[-1] == 1 else step.mask
    with np.errstate(all="ignore"):
        return np.asarray(
            evaluate(
                objective,
                step.logp[:-1],
                step.old_logp,
                advantage,
                mask,
                ref_logp=step.ref_logp,
                sampling_logp=step.sampling_logp,
                **whole,
            ).loss
        )


def _first(x: np.ndarray) -> np.ndarray:
    """Return the first run's slice of ``x`` (R, ...), contiguous."""
    return np.array(x[0], order="C")
