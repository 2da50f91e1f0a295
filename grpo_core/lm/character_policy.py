"""The shipped character transformer in torch as a policy (``interface.py``)."""

from __future__ import annotations

import numpy as np
import torch

from grpo_core.config import Settings
from grpo_core.lm.characters import TrainedCharacters
from grpo_core.lm.interface import Poll, SamplingRequest, Scores, Table
from grpo_core.lm.layout import Layout, layout
from grpo_core.lm.passes import Loss
from grpo_core.lm.sampler import sample
from grpo_core.lm.scoring import score
from grpo_core.lm.trained_weights import Kept, Policy


class CharacterPolicy(Policy, TrainedCharacters[Layout]):
    """The trainable policy of a run without a model folder (:class:`grpo_core.lm.interface.LanguagePolicy`)."""

    def sample(self, request: SamplingRequest) -> Table:
        """Sample one completion per row."""
        return sample(self.model, request, self.graphs).table

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

    def forward(self, place: Layout, temperature: float) -> Scores:
        """Score the batch under the current policy, recorded by autograd."""
        return score(self.model, place, temperature)

    def backward(self, place: Layout, temperature: float, loss: Loss) -> None:
        """Compute d loss / d weights with autograd."""
        loss.terms.loss.backward()

    def kept_for(self, settings: Settings) -> Kept:
        """Return a snapshot for undoing the next update."""
        return self.kept()
