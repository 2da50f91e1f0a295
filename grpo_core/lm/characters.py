"""Base class of the character transformer's policies: text encoding, the passes of an update, and the fields of the
record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.arrays import Array, from_numpy, stop_gradient, to_numpy
from grpo_core.config import Objective, Optimizer, Settings
from grpo_core.kl import EXACT
from grpo_core.lm.interface import Drafts, Passes, Poll, Scores
from grpo_core.lm.packing import PackedTokens
from grpo_core.lm.passes import Loss, array_of, learn_values, require_finite, values_of
from grpo_core.lm.problems import Prompt
from grpo_core.lm.vocabulary import STOP, decode, encode, padded
from grpo_core.record import Step
from grpo_core.text import tr


class Characters:
    """The parts of :class:`grpo_core.lm.interface.LanguagePolicy` that do not depend on the engine.

    Attributes:
        critic: (D + 1,), weights of a linear value function of the stream, and its bias.
    """

    critic: Array

    def scored(self, batch: Any, temperature: float, *, by_reference: bool = False) -> Scores:
        """Score the batch under the current policy, or under the weights at the start of the run."""
        raise NotImplementedError

    def forward(self, batch: Any, temperature: float) -> Scores:
        """Score the batch under the current policy, in preparation for :meth:`backward`."""
        raise NotImplementedError

    def backward(self, loss: Loss, temperature: float) -> None:
        """Compute d loss / d weights from the scores of the last forward pass."""
        raise NotImplementedError

    def stepped(self, wanted: Optimizer) -> float:
        """Take one optimizer step along the gradients. Return their norm before clipping.

        Nothing is changed if that norm is not finite.
        """
        raise NotImplementedError

    def ledger(self) -> dict[str, Any]:
        """Return the memory that the policy takes, for the job of this name (:mod:`grpo_core.jobs.table`)."""
        raise NotImplementedError

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        rows = [encode(prompt.text) for prompt in prompts]
        return padded(rows, max(map(len, rows)))

    def text(self, tokens: np.ndarray) -> str:
        return decode(tokens)

    def completion(self, text: str) -> np.ndarray:
        return np.array([*encode(text), STOP])

    def answer(self, batch: PackedTokens[Any], settings: Settings) -> dict[str, Any]:
        temperature = settings.learner.temperature
        now, reference = self.scored(batch, temperature), self.scored(batch, temperature, by_reference=True)
        return {
            "logp": array_of(now.logp)[0],
            "ref_logp": array_of(reference.logp)[0],
            "dist_logp": array_of(now.dist_logp),
        }

    def check(self, settings: Settings) -> None:
        """Accept all settings: the character model can be trained under any of them."""

    def score(
        self,
        batch: PackedTokens[Any],
        temperature: float,
        poll: Poll,
        *,
        against_reference: bool = False,
        first: Scores | None = None,
    ) -> Scores:
        """Score the batch under the current policy. The distance from the reference follows from the record."""
        return self.scored(batch, temperature)

    def score_reference(self, batch: PackedTokens[Any], temperature: float, poll: Poll) -> Scores:
        return self.scored(batch, temperature, by_reference=True)

    def train(
        self,
        settings: Settings,
        batch: PackedTokens[Any],
        reference: Scores | None,
        draft: Drafts,
        poll: Poll,
        number: int,
    ) -> Passes:
        """Run all passes of update ``number``, each over the whole batch at once.

        The first pass is on-policy by construction: the old log-probabilities are its own.

        Raises:
            NonFiniteError: a loss or a gradient is not finite. The earlier passes have already changed the policy.
        """
        learner, scores, norms = settings.learner, list[Scores](), list[float]()
        step: Step | None = None
        old = advantage = np.empty(0)
        sampling: Array | None = None
        for passed in range(learner.mu):
            poll(passed + 1, learner.mu)
            now = self.forward(batch, learner.temperature)
            if step is None:
                old = stop_gradient(now.logp)
                values = array_of(values_of(self.critic, now, batch)) if learner.critic else None
                step = draft(array_of(old), values)
                advantage = from_numpy(recompute.advantage(step), old)
                if settings.objective.importance_cap is not None and step.sampling_logp is not None:
                    sampling = from_numpy(step.sampling_logp.copy(), old)
            loss = Loss(
                objective=settings.objective,
                place=batch,
                now=now,
                old=old,
                advantage=advantage,
                reference=reference,
                sampling=sampling,
            )
            value = float(stop_gradient(loss.terms.loss))
            require_finite(value, number, tr("the loss of pass {passed}").format(passed=passed + 1))
            self.backward(loss, learner.temperature)
            poll(passed + 1, learner.mu)
            norms.append(self.stepped(settings.optimizer))
            require_finite(norms[-1], number, tr("the gradient of pass {passed}").format(passed=passed + 1))
            dist_logp, logp, stream = (stop_gradient(x) for x in (now.dist_logp, now.logp, now.stream))
            scores.append(Scores(dist_logp=dist_logp, logp=logp, stream=stream))
        assert step is not None
        if learner.critic:
            learn_values(self.critic, learner.critic_rate, scores[0], batch, step.rewards)
        return Passes(draft=step, scores=scores, norm=norms[0])

    def recorded_before(self, batch: PackedTokens[Any], reference: Scores | None) -> dict[str, Any]:
        """Return the row of each token in the table of distributions, (B, T), and the reference's distributions."""
        known: dict[str, Any] = {"context": to_numpy(batch.context).astype(np.int32)}
        if reference is not None:
            known |= {"ref_logp": array_of(reference.logp), "ref_dist_logp": array_of(reference.dist_logp)}
        return known

    def recorded_after(
        self, objective: Objective, batch: PackedTokens[Any], scores: list[Scores], reference: Scores | None
    ) -> dict[str, Any]:
        """Return the log-probabilities of every pass, and full distributions: of all passes if the loss depends on
        them, otherwise of the first and last.
        """
        whole = scores if objective.kl == EXACT or objective.entropy_bonus else [scores[0], scores[-1]]
        return {
            "logp": np.stack([array_of(each.logp) for each in scores]),
            "dist_logp": np.stack([array_of(each.dist_logp) for each in whole]),
        }

    def measurements(self, batch: PackedTokens[Any], after: Scores, reference: Scores | None) -> dict[str, float]:
        """Return no measurements: everything follows from the recorded distributions."""
        return {}

    def smaller(self, settings: Settings) -> str:
        """Return an empty string, since memory is not estimated."""
        return ""
