"""One update of R independent runs at once: sample, score, compute advantages, and take mu steps.

Leading axis R: runs with their own seeds and, where numeric settings are arrays (R, 1, 1), their own settings. The
interactive run is a single run; races and sweeps have thousands. A run's numbers are independent of the other runs,
down to the last bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import kl, recompute
from grpo_core.advantages import advantages, equal_rewards, from_here_on, step_scores
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import gather, places, prompt_of, runs_last, scatter
from grpo_core.bandit.optimizer import Moments, no_moments, rescaled, stepped
from grpo_core.bandit.passes import Actions, Tokens, repeats_itself
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tabular_policy import Completions
from grpo_core.bandit.tasks import Task, task
from grpo_core.baselines import BASELINES
from grpo_core.config import Learner, Settings
from grpo_core.errors import SettingsError
from grpo_core.progress import unpolled
from grpo_core.text import tr

ATTEMPTS = 10
"""Maximum number of times that dead groups are redrawn before they are accepted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """The draws of an update.

    Attributes:
        completions: tokens, mask and context, (R, B, T).
        rewards: (R, B).
        attempt: (R, P) integer, the attempt at which each group was drawn; 0 = the first.
        redrawn: (R,) integer, number of redrawn groups, counting every attempt.
        step_rewards: (R, B, T), reward of the step that ends with each token, NaN if none does; None without steps.
        sampling_logp: (R, B, T), log π of the tokens under the sampling policy; None if that is the current one.
    """

    completions: Completions
    rewards: np.ndarray
    attempt: np.ndarray
    redrawn: np.ndarray
    step_rewards: np.ndarray | None = None
    sampling_logp: np.ndarray | None = None


def draw(
    learner: Learner, work: Task, prob: np.ndarray, step: int, streams: Streams, poll: Callable[[], None]
) -> Batch:
    """Draw the batch of update ``step``: G completions of every prompt from the policy π, ``prob`` (R, C, A).

    ``poll`` is called before each token and can raise an exception to stop.
    """
    runs, prompts, group = len(prob), len(work.start), learner.group_size
    shape = (prompts * group, work.longest)
    prompt = prompt_of(shape[0], prompts)
    uniforms = streams.uniforms(step, shape[0] * shape[1])
    drawn = policy.sample(prob, work, uniforms.reshape(runs, *shape), poll)
    rewards = runs_last(work.reward(prompt, drawn.tokens, drawn.mask))
    attempt = np.zeros((runs, prompts), dtype=np.intp)
    redrawn = np.zeros(runs, dtype=np.intp)
    again_at_all = learner.resample_dead and group > 1  # a group of one is always dead, so redrawing it is pointless
    for number in range(1, ATTEMPTS + 1) if again_at_all else ():
        dead = equal_rewards(rewards.reshape(runs, prompts, group))  # (R, P)
        again = np.flatnonzero(dead.any(axis=-1))
        if not again.size:
            break
        fresh_uniforms = streams.again(step, shape[0] * shape[1], number, again)
        fresh = policy.sample(prob[again], work, fresh_uniforms.reshape(-1, *shape), poll)
        replaced = np.repeat(dead[again], group, axis=-1)  # (some runs, B)
        for name in ("tokens",) if work.longest == 1 else ("tokens", "mask", "context"):
            kept = getattr(drawn, name)
            kept[again] = np.where(replaced[..., None], getattr(fresh, name), kept[again])
        rewards[again] = np.where(replaced, work.reward(prompt, fresh.tokens, fresh.mask), rewards[again])
        attempt[dead] = number
        redrawn += dead.sum(axis=-1)
    paid = None if work.step_rewards is None else runs_last(work.step_rewards(prompt, drawn.tokens, drawn.mask))
    return Batch(completions=drawn, rewards=rewards, step_rewards=paid, attempt=attempt, redrawn=redrawn)


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """State of R runs between two updates.

    Attributes:
        step: number of updates done.
        logits: (R, C, A).
        moments: Adam's moments of the logits.
        critic: value of every context, (R, C, 1).
        history: logits (R, C, A) before each of the last ``learner.staleness`` updates, the latest first.
    """

    step: int
    logits: np.ndarray
    moments: Moments
    critic: np.ndarray
    history: tuple[np.ndarray, ...] = ()

    def sampler(self, staleness: int) -> np.ndarray:
        """Return the logits (R, C, A) from ``staleness`` updates ago, or the oldest, which sample the next batch."""
        return self.history[min(staleness, len(self.history)) - 1] if staleness and self.history else self.logits


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """Results of one update of R runs. Lists have one entry per pass, taken before that pass.

    Attributes:
        advantage: (R, B), or (R, B, T) from a critic or from step rewards.
        values: the critic's value before each token (R, B, T), None without a critic.
        ref_dist_logp: (R, C, A).
        places: (R, B, T), flat index of each token in the memory of a table (R, C, A).
        passes: what computed their gradients; it has the log-probabilities of the tokens.
        dist_logp: (R, C, A) each.
        gradient: d loss / d logits, (R, C, A) each.
    """

    state: State
    batch: Batch
    advantage: np.ndarray
    values: np.ndarray | None
    ref_dist_logp: np.ndarray
    places: np.ndarray
    passes: Tokens | Actions
    dist_logp: list[np.ndarray]
    gradient: list[np.ndarray]


def start(work: Task, runs: int) -> State:
    """Return ``runs`` runs before their first update, with the task's starting policy."""
    table = work.start.reshape(1, -1, work.start.shape[-1])
    logits = runs_last(np.broadcast_to(table, (runs, *table.shape[1:])))
    return State(step=0, logits=logits, moments=no_moments(logits), critic=np.zeros_like(logits[..., :1]))


def updates(settings: Settings, seeds: Sequence[int]) -> Iterator[Update]:
    """Yield updates endlessly, each of one run per seed. R is the number of runs in :class:`Streams`."""
    work, streams = task(settings.bandit), Streams(seeds)
    state = start(work, streams.runs)
    reference = policy.log_probs(state.logits, settings.learner.temperature)
    while True:
        done = update(settings, work, state, streams, reference=reference)
        state = done.state
        yield done
        del done  # so that the next update reuses its memory while it is in the cache


def update(
    settings: Settings,
    work: Task,
    state: State,
    streams: Streams,
    poll: Callable[[], None] = unpolled,
    batch: Batch | None = None,
    reference: np.ndarray | None = None,
) -> Update:
    """Compute the update after ``state``, without side effects on its arguments.

    Args:
        settings: objective, learner and optimizer; numeric fields can be arrays (R, 1, 1).
        state: state of the runs, laid out by ``layout.runs_last``.
        poll: called before each token and each pass; can raise an exception to stop the update.
        batch: an existing batch, for a what-if; by default one is drawn.
        reference: log π_ref (R, C, A) at the temperature, if already computed.

    Returns:
        The update. Non-finite numbers are kept without a warning; the caller checks for them.
    """
    with np.errstate(all="ignore"):
        if reference is None:
            reference = policy.log_probs(start(work, streams.runs).logits, settings.learner.temperature)
        return _update(settings, work, state, streams, poll, batch, reference)


def _update(
    settings: Settings,
    work: Task,
    state: State,
    streams: Streams,
    poll: Callable[[], None],
    batch: Batch | None,
    ref_dist: np.ndarray,
) -> Update:
    temperature, drawn = settings.learner.temperature, batch is None
    dist = old = policy.log_probs(state.logits, temperature)
    prob, sampling = np.exp(dist), None
    if batch is None:
        sampler, table = state.sampler(settings.learner.staleness), prob
        if sampler is not state.logits:
            sampling = policy.log_probs(sampler, temperature)
            table = np.exp(sampling)
        batch = draw(settings.learner, work, table, state.step + 1, streams, poll)
    where = places(batch.completions.context, batch.completions.tokens, dist.shape)
    if sampling is not None:
        batch = dataclasses.replace(batch, sampling_logp=gather(sampling, where))
    advantage, values, critic = _compared(settings, batch, state.critic, where, dist, ref_dist)
    tokens: Tokens | Actions
    if drawn and repeats_itself(settings, work):
        tokens = Actions(settings, where, old, ref_dist, advantage, sampling)
    else:
        tokens = Tokens(settings, batch.completions, where, old, ref_dist, advantage, batch.sampling_logp)
    passes: list[tuple[np.ndarray, np.ndarray]] = []
    logits, moments = state.logits, state.moments
    for passed in range(settings.learner.mu):
        poll()
        if passed:
            dist = policy.log_probs(logits, temperature)
            prob = np.exp(dist)
        change = tokens.gradient(dist, prob)
        passes.append((dist, change))
        logits, moments = stepped(settings.optimizer, logits, change, moments)
    if settings.optimizer.step_length is not None:
        logits = rescaled(state.logits, logits, settings.optimizer.step_length)
    dists, changes = (list(arrays) for arrays in zip(*passes, strict=True))
    return Update(
        state=State(
            step=state.step + 1,
            logits=logits,
            moments=moments,
            critic=critic,
            history=(state.logits, *state.history)[: settings.learner.staleness],
        ),
        batch=batch,
        advantage=advantage,
        values=values,
        ref_dist_logp=ref_dist,
        places=where,
        passes=tokens,
        dist_logp=dists,
        gradient=changes,
    )


def _compared(
    settings: Settings, batch: Batch, critic: np.ndarray, where: np.ndarray, dist: np.ndarray, ref_dist: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return the advantage, the critic's values (None if there is none), and the critic after its own update."""
    learner, goal = settings.learner, settings.objective
    mask, values = batch.completions.mask, None
    if learner.critic:
        visited = places(batch.completions.context, 0, critic.shape)
        values = np.where(mask, gather(critic, visited), 0.0)
        estimate = runs_last(recompute.critic_advantage(batch.rewards, values, mask, learner))
        visits = np.maximum(scatter(mask, visited, critic.shape), 1)
        # towards the λ-return (its value plus the advantage), averaged over a context's visits
        critic = np.asarray(critic + learner.critic_rate * scatter(estimate, visited, critic.shape) / visits)
        if BASELINES[goal.baseline].from_critic:
            return estimate, values, critic
    grouped = (len(mask), -1, learner.group_size)
    if goal.credits_steps:
        if batch.step_rewards is None:
            raise SettingsError("objective.credit", "process", tr("this batch has no rewards for steps"))
        steps = batch.step_rewards.reshape(*grouped, mask.shape[-1])
        advantage = from_here_on(step_scores(goal, steps)).reshape(mask.shape)
        return runs_last(np.where(mask, advantage, 0.0)), values, critic
    k1 = None
    if goal.kl_in_reward:
        each = kl.estimate(kl.IN_REWARD, gather(dist, where), gather(ref_dist, where))
        k1 = np.where(mask, each, 0.0).sum(axis=-1).reshape(grouped)
    advantage = advantages(goal, batch.rewards.reshape(grouped), kl=k1, all_scored=k1 is None)
    return advantage.reshape(batch.rewards.shape), values, critic
