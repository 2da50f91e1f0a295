"""The update of R runs as compiled by JAX, using the functions of :mod:`grpo_core.bandit.simulate` on traced arrays.

Only tasks with a single decision are supported. Loss, advantages, softmax, optimizer and measures are the functions
that train with NumPy. Only sampling and the sum over tokens are rewritten: equal actions have equal gradients, so the
loss is evaluated once per action, and its gradient is multiplied by the number of times the action was drawn. Results
equal NumPy's up to rounding.

Tables are (C, A, R), runs last, so that each instruction operates on many runs. Formulas that expect the runs on the
first axis receive a view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from grpo_core import kl
from grpo_core import objective as loss
from grpo_core.advantages import advantages, gae
from grpo_core.arrays import Array
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.gradient import needs_distributions, through_distributions, through_softmax
from grpo_core.bandit.layout import runs_first_view, runs_last_view
from grpo_core.bandit.optimizer import Moments, rescaled, stepped
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings


class State(NamedTuple):
    """R runs between two updates: logits and Adam's moments (C, A, R), Adam's steps, the critic (C, 1, R)."""

    logits: Array
    first: Array
    second: Array
    steps: Array
    critic: Array


class Updates:
    """Compiled updates of R runs that share all settings except for some numeric ones.

    Args:
        settings: settings of a one-decision task; those that differ between runs can have any value.
        values: path of a setting -> its value in each run, (R,).
        start: logits of the starting policy, (C, A).
        rewards: rewards of every action, (C, A).
        true: the value True, passed at run time so that the compiler does not know it: see :meth:`_kept`.
    """

    def __init__(
        self, settings: Settings, values: Mapping[str, Array], start: np.ndarray, rewards: np.ndarray, true: Array
    ) -> None:
        self._by_table = settings.replace(dict(values))  # broadcasts with (C, A, R)
        self._by_row = settings.replace({path: value[:, None] for path, value in values.items()})  # (C A, R, 1)
        self._by_run = settings.replace({path: value[:, None, None] for path, value in values.items()})  # (R, ., .)
        self._rewards, self._true = rewards, true
        self.reference = policy.log_probs(jnp.asarray(start[..., None]), self._temperature, axis=-2)

    def after(self, state: State, uniforms: Array) -> tuple[State, Array]:
        """Return the runs after the next update, and log π before it, (C, A, R). ``uniforms`` has one number per
        completion, (C, G, R).
        """
        before, shape = state.logits, state.logits.shape
        old = dist = self._kept(self._log_probs, before)
        prob = self._kept(jnp.exp, dist)
        reference = jnp.broadcast_to(self.reference, shape)
        tokens = self._kept(_drawn, prob, uniforms)
        advantage, critic = self._compared(tokens, state.critic, dist, reference)
        drawn = _Drawn(*self._kept(_by_action, tokens, advantage, jnp.zeros(shape)))

        def one_pass(logits: Array, moments: Moments, dist: Array, prob: Array) -> tuple[Array, Moments]:
            pushed = self._kept(self._pushed, drawn, old, reference, dist)
            change = self._kept(self._change, drawn, old, reference, dist, prob, pushed)
            return self._stepped(logits, change, moments)

        def later_pass(_: int, carried: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            logits, first, second, steps = carried
            dist = self._kept(self._log_probs, logits)
            moments = Moments(first=first, second=second, steps=steps)
            logits, moments = one_pass(logits, moments, dist, self._kept(jnp.exp, dist))
            return logits, moments.first, moments.second, moments.steps

        moments = Moments(first=state.first, second=state.second, steps=state.steps)
        logits, moments = one_pass(before, moments, dist, prob)
        carried = logits, moments.first, moments.second, moments.steps
        if self._by_run.learner.mu > 1:
            carried = jax.lax.fori_loop(1, self._by_run.learner.mu, later_pass, carried)
        logits, first, second, steps = carried
        length = self._by_run.optimizer.step_length
        if length is not None:
            logits = runs_last_view(rescaled(runs_first_view(before), runs_first_view(logits), length))
        return State(logits, first, second, steps, critic), dist

    def measured(self, measure: Callable[..., dict[str, Array]], dist: Array, change: Array) -> dict[str, Array]:
        """Return :func:`grpo_core.experiments.gauge.measured` of one policy and the step after it, by name, (R,)."""
        found: dict[str, Array] = self._kept(
            lambda dist, change: measure(dist[None], change[None], self._rewards, self.reference), dist, change
        )
        return {name: values[0] for name, values in found.items()}

    def _kept(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of ``function`` for the arguments, forced to be computed once and stored in memory.

        The call is inside a conditional whose condition is always true. Without it, the compiler recomputes the result
        for each number that depends on it, ten times for ten actions, which takes three times as long.
        """
        made = jax.eval_shape(function, *arguments)

        def nothing(*_: Any) -> Any:
            return jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), made)

        return jax.lax.cond(self._true, function, nothing, *arguments)

    @property
    def _temperature(self) -> Any:
        return self._by_table.learner.temperature

    def _log_probs(self, logits: Array) -> Array:
        return policy.log_probs(logits, self._temperature, axis=-2)

    def _compared(self, tokens: Array, critic: Array, dist: Array, reference: Array) -> tuple[Array, Array]:
        """Return the advantage (C, G, R), and the critic after its own update."""
        goal, learner = self._by_run.objective, self._by_run.learner
        paid = self._kept(_of_tokens, tokens, self._rewards[..., None])
        if BASELINES[goal.baseline].from_critic:
            values, there = jnp.broadcast_to(critic, paid.shape), jnp.ones((*paid.shape, 1), bool)
            estimate = gae(paid[..., None], values[..., None], there, gamma=learner.gamma, lam=learner.lam)[..., 0]
            return estimate, critic + learner.critic_rate * estimate.mean(axis=1, keepdims=True)
        k1 = None
        if goal.kl_in_reward:
            k1 = runs_first_view(self._kept(_of_tokens, tokens, kl.estimate(kl.IN_REWARD, dist, reference)))

        def compared(paid: Array, k1: Array | None) -> Array:
            return runs_last_view(advantages(goal, runs_first_view(paid), kl=k1, all_scored=k1 is None))

        return self._kept(compared, paid, k1), critic

    def _loss(self, drawn: _Drawn, old: Array, reference: Array, dist: Array) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments of the loss, with the actions as completions of one token,
        (C A, R, 1).
        """
        whole: dict[str, Array] = {}
        if needs_distributions(self._by_row.objective):
            found = {"exact_kl": kl.exact(dist, reference, axis=-2), "entropy": kl.entropy(dist, axis=-2)}
            whole = {name: _column(jnp.broadcast_to(value[:, None], dist.shape)) for name, value in found.items()}
        batch = float(dist.shape[0] * self._by_row.learner.group_size)
        given = self._by_row.objective, _column(dist), _column(old), _column(drawn.advantage), None
        return given, {"ref_logp": _column(reference), "denominator": batch, **whole}

    def _pushed(self, drawn: _Drawn, old: Array, reference: Array, dist: Array) -> Array:
        """Return dL/d log π of the actions, summed over the tokens of each, (C, A, R)."""
        given, more = self._loss(drawn, old, reference, dist)
        return drawn.times(loss.gradient(*given, **more).reshape(dist.shape))

    def _change(self, drawn: _Drawn, old: Array, reference: Array, dist: Array, prob: Array, pushed: Array) -> Array:
        """Return d loss / d logits, (C, A, R)."""
        change = through_softmax(pushed, prob, self._temperature, axis=-2)
        goal = self._by_row.objective
        if not needs_distributions(goal):
            return change
        given, more = self._loss(drawn, old, reference, dist)
        beyond = through_distributions(
            goal,
            loss.evaluate(*given, **more),
            drawn.visits,
            runs_first_view(dist),
            runs_first_view(reference),
            self._by_run.learner.temperature,
        )
        return change + runs_last_view(beyond)

    def _stepped(self, logits: Array, change: Array, moments: Moments) -> tuple[Array, Moments]:
        if self._by_run.optimizer.max_grad_norm is None:
            return stepped(self._by_table.optimizer, logits, change, moments)
        seen = Moments(
            first=runs_first_view(moments.first), second=runs_first_view(moments.second), steps=moments.steps
        )
        after, then = stepped(self._by_run.optimizer, runs_first_view(logits), runs_first_view(change), seen)
        moments = Moments(first=runs_last_view(then.first), second=runs_last_view(then.second), steps=then.steps)
        return runs_last_view(after), moments


class _Drawn(NamedTuple):
    """Number of times that each action was drawn, and its advantage (0 if not drawn), both (C, A, R)."""

    count: Array
    advantage: Array

    def times(self, table: Array) -> Array:
        """Multiply ``table`` (C, A, R) by the number of times each action was drawn. The result is 0 where it was not
        drawn, even if the table has NaN there.
        """
        return jnp.where(self.count > 0, table * self.count, 0.0)

    def visits(self, weight: Array) -> Array:
        """Sum weights given by action (C A, R, 1) over the tokens of each context, (R, C, 1)."""
        weight = jnp.broadcast_to(weight, (self.count.shape[0] * self.count.shape[1], self.count.shape[2], 1))
        return runs_first_view(self.times(weight.reshape(self.count.shape)).sum(axis=1, keepdims=True))


def _drawn(prob: Array, uniforms: Array) -> Array:
    """Sample actions (C, G, R) by inverting the cumulative distribution of ``prob`` (C, A, R), like
    :func:`grpo_core.bandit.tabular_policy.sample`.
    """
    below, tokens = prob[:, 0], jnp.zeros(uniforms.shape, jnp.int32)
    for action in range(1, prob.shape[1]):
        tokens = tokens + (below[:, None] <= uniforms)
        below = below + prob[:, action]
    return tokens


def _of_tokens(tokens: Array, table: Array) -> Array:
    """Gather the entries of ``table``, (C, A, R) or (C, A, 1), at the ``tokens``, (C, G, R)."""
    found = jnp.broadcast_to(table[:, :1], tokens.shape)
    for action in range(1, table.shape[1]):
        found = jnp.where(tokens == action, table[:, action, None], found)
    return found


def _by_action(tokens: Array, advantage: Array, nothing: Array) -> tuple[Array, Array]:
    """Return the count and the advantage of each action, both (C, A, R), from those of the tokens, (C, G, R).

    ``nothing`` is an array of zeros, (C, A, R).
    """
    actions = jnp.arange(nothing.shape[1], dtype=tokens.dtype)[:, None]

    def add(place: Array | int, found: tuple[Array, Array]) -> tuple[Array, Array]:
        count, kept = found
        hit = tokens[:, place, None] == actions
        return count + hit, jnp.where(hit, advantage[:, place, None], kept)

    if tokens.shape[1] > UNROLLED:
        looped: tuple[Array, Array] = jax.lax.fori_loop(0, tokens.shape[1], add, (nothing, nothing))
        return looped
    found = nothing, nothing
    for place in range(tokens.shape[1]):
        found = add(place, found)
    return found


UNROLLED = 16
"""Largest group size for which the compiled program unrolls the loop over completions."""


def _column(table: Array) -> Array:
    """Reshape a table (C, A, R) to completions of one token, one for each action, (C A, R, 1)."""
    return table.reshape(-1, table.shape[-1], 1)
