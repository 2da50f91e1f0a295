"""The shipped character transformer in torch as a policy (``interface.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from grpo_core.config import Objective, Settings
from grpo_core.lm.characters import Characters, recorded_after, recorded_before
from grpo_core.lm.interface import Drafts, Passes, Poll, SamplingRequest, Scores, Table
from grpo_core.lm.layout import Layout, layout
from grpo_core.lm.model import Transformer
from grpo_core.lm.passes import Loss, learned
from grpo_core.lm.sampler import sample
from grpo_core.lm.scoring import score
from grpo_core.lm.trained_weights import Kept, Policy


class CharacterSampling(Characters):
    """Sampling from a character transformer (:class:`grpo_core.lm.interface.Sampling`).

    Attributes:
        model: the model to sample from.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def sample(self, request: SamplingRequest) -> Table:
        """Sample one completion per row."""
        return sample(self.model, request).table


class CharacterPolicy(Policy):
    """The trainable policy of a run without a model folder (:class:`grpo_core.lm.interface.LanguagePolicy`)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._sampling = CharacterSampling(self.model)
        self.encoded, self.text, self.sample = self._sampling.encoded, self._sampling.text, self._sampling.sample

    def check(self, settings: Settings) -> None:
        """Accept all settings: the character model can be trained under any of them."""

    def batch(
        self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
    ) -> Layout:
        """Pack the batch, so that nothing is computed twice."""
        return layout(prompt_tokens, tokens, mask, self.device, present)

    def score(
        self,
        batch: Layout,
        temperature: float,
        poll: Poll,
        *,
        against_reference: bool = False,
        first: Scores | None = None,
    ) -> Scores:
        """Score the batch under the current policy, without gradients."""
        with torch.no_grad():
            return score(self.model, batch, temperature)

    def score_reference(self, batch: Layout, temperature: float, poll: Poll) -> Scores:
        """Score the batch under the weights at the start of the run."""
        with torch.no_grad():
            return score(self.reference, batch, temperature)

    def train(
        self,
        settings: Settings,
        batch: Layout,
        reference: Scores | None,
        draft: Drafts,
        poll: Poll,
        number: int,
    ) -> Passes[Scores]:
        """Run all passes of update ``number``, each over the whole batch at once."""
        return learned(self, settings, batch, reference, draft, poll, number)

    def forward(self, place: Layout, temperature: float) -> Scores:
        """Score the batch under the current policy, recorded by autograd."""
        return score(self.model, place, temperature)

    def backward(self, place: Layout, temperature: float, loss: Loss) -> None:
        """Compute d loss / d weights with autograd."""
        loss.terms.loss.backward()

    def recorded_before(self, batch: Layout, reference: Scores | None) -> dict[str, Any]:
        """Return the context of each token, and the reference's distributions."""
        return recorded_before(batch.context, reference)

    def recorded_after(
        self, objective: Objective, batch: Layout, scores: list[Scores], reference: Scores | None
    ) -> dict[str, Any]:
        """Return the log-probabilities and full distributions of the passes."""
        return recorded_after(objective, scores)

    def measurements(self, batch: Layout, after: Scores, reference: Scores | None) -> dict[str, float]:
        """Return no measurements: everything follows from the recorded distributions."""
        return {}

    def kept_for(self, settings: Settings) -> Kept:
        """Return a snapshot for undoing the next update."""
        return self.kept()
