"""Gradient of each pass on the logits, computed token by token, or action by action if there are fewer actions.

Both ways give the same bits: equal tokens have equal gradients, and these are summed in the order of the tokens.
"""

from __future__ import annotations

import numpy as np

from grpo_core import kl
from grpo_core import objective as loss
from grpo_core.bandit.gradient import needs_distributions, through_distributions, through_tokens, visits_of
from grpo_core.bandit.layout import filled, gather, places
from grpo_core.bandit.tabular_policy import Completions
from grpo_core.bandit.tasks import Task
from grpo_core.config import Settings


def repeats_itself(settings: Settings, work: Task) -> bool:
    """Return whether there are more completions than distinct ones, and equal completions have equal gradients.

    This holds if a completion is one action with a fixed reward, and the loss depends on the policy only through the
    log-probabilities of the sampled actions.
    """
    if work.action_rewards is None or work.longest > 1 or needs_distributions(settings.objective):
        return False
    return len(work.start) * settings.learner.group_size > work.action_rewards.size


class Tokens:
    """The passes over a batch, token by token.

    Attributes:
        logp: the tokens' log-probabilities before each pass so far, (R, B, T) each.
        ref_logp: the reference policy's, (R, B, T).

    Args:
        where: (R, B, T), flat index of each token in the memory of a table (R, C, A).
        old, ref: log π_old and log π_ref, (R, C, A).
        advantage: (R, B), or (R, B, T).
        sampling: log π of the tokens under the sampling policy, (R, B, T); None if that is ``old``.
    """

    def __init__(
        self,
        settings: Settings,
        drawn: Completions,
        where: np.ndarray,
        old: np.ndarray,
        ref: np.ndarray,
        advantage: np.ndarray,
        sampling: np.ndarray | None,
    ) -> None:
        self._settings, self._drawn, self._where, self._advantage = settings, drawn, where, advantage
        self._old, self._ref, self._sampling = old, ref, sampling
        self._old_logp, self.ref_logp = gather(old, where), gather(ref, where)
        self.logp: list[np.ndarray] = []

    def gradient(self, dist: np.ndarray, prob: np.ndarray) -> np.ndarray:
        """Return d loss / d logits of the next pass, (R, C, A), at log π ``dist`` and π ``prob``, both (R, C, A)."""
        goal, temperature, where = self._settings.objective, self._settings.learner.temperature, self._where
        mask, context = self._drawn.padding, self._drawn.context
        logp = self._old_logp if dist is self._old else gather(dist, where)
        self.logp.append(logp)
        if not needs_distributions(goal):
            by_token = loss.gradient(
                goal, logp, self._old_logp, self._advantage, mask, ref_logp=self.ref_logp, sampling_logp=self._sampling
            )
            return through_tokens(by_token, where, prob, temperature)
        at = places(context, 0, (*dist.shape[:-1], 1))
        whole = {
            "ref_logp": self.ref_logp,
            "sampling_logp": self._sampling,
            "exact_kl": gather(kl.exact(dist, self._ref)[..., None], at),
            "entropy": gather(kl.entropy(dist)[..., None], at),
        }
        by_token = loss.gradient(goal, logp, self._old_logp, self._advantage, mask, **whole)
        terms = loss.evaluate(goal, logp, self._old_logp, self._advantage, mask, **whole)
        beyond = through_distributions(goal, terms, visits_of(context, dist), dist, self._ref, temperature)
        return np.asarray(through_tokens(by_token, where, prob, temperature) + beyond)


class Actions:
    """The passes over a batch for which :func:`repeats_itself` is true, action by action.

    Arguments and attributes are those of :class:`Tokens`, except that ``sampling`` is a table (R, C, A). The attributes
    are computed on access, since the gradient does not need them.
    """

    def __init__(
        self,
        settings: Settings,
        where: np.ndarray,
        old: np.ndarray,
        ref: np.ndarray,
        advantage: np.ndarray,
        sampling: np.ndarray | None,
    ) -> None:
        self._settings, self._where, self._dists = settings, where, list[np.ndarray]()
        self._old, self._ref = _column(old), _column(ref)
        self._sampling = None if sampling is None else _column(sampling)
        self._advantage = _column(filled(advantage.reshape(where.shape), where, old.shape))

    def gradient(self, dist: np.ndarray, prob: np.ndarray) -> np.ndarray:
        """Return d loss / d logits of the next pass, like :meth:`Tokens.gradient`."""
        self._dists.append(dist)
        by_action = loss.gradient(
            self._settings.objective,
            _column(dist),
            self._old,
            self._advantage,
            None,
            ref_logp=self._ref,
            sampling_logp=self._sampling,
            denominator=float(self._where.shape[1]),
        ).reshape(dist.shape)
        by_token = gather(by_action, self._where)
        return through_tokens(by_token, self._where, prob, self._settings.learner.temperature)

    @property
    def logp(self) -> list[np.ndarray]:
        """The tokens' log-probabilities before each pass so far, (R, B, T) each."""
        return [gather(dist, self._where) for dist in self._dists]

    @property
    def ref_logp(self) -> np.ndarray:
        """The reference policy's log-probabilities of the tokens, (R, B, T)."""
        return gather(self._ref.reshape(self._dists[0].shape), self._where)


def _column(table: np.ndarray) -> np.ndarray:
    """Reshape a table (R, C, A) to completions of one token, (R, C A, 1)."""
    return table.reshape(len(table), -1, 1)
