"""The character transformer that comes with the program, as a policy (``interface.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from grpo_core.config import Objective, Settings
from grpo_core.kl import EXACT
from grpo_core.lm.interface import Drafts, Passes, Poll, ReadRows, Table
from grpo_core.lm.layout import Layout, layout
from grpo_core.lm.model import Transformer
from grpo_core.lm.passes import array_of, learned
from grpo_core.lm.policy import Kept, Policy
from grpo_core.lm.problems import Prompt
from grpo_core.lm.sampler import sample
from grpo_core.lm.scoring import Scores, score
from grpo_core.lm.vocabulary import decode, encode, padded


class CharacterSampling:
    """Draws completions of a character transformer (:class:`grpo_core.lm.interface.Sampling`).

    Attributes:
        model: whose they are.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """The tokens of prompts, one a character, (P, T_prompt), −1 in padding."""
        rows = [encode(prompt.text) for prompt in prompts]
        return padded(rows, max(map(len, rows)))

    def text(self, tokens: np.ndarray) -> str:
        """What a completion's tokens (L,) say, without its end sign."""
        return decode(tokens)

    def sample(
        self, prompt_tokens: np.ndarray, prompt_of: np.ndarray, uniforms: np.ndarray, *, temperature: float,
        greedy: np.ndarray, poll: Poll, drawing: Callable[[ReadRows], None] | None = None,
    ) -> Table:  # fmt: skip
        """One completion a row (:meth:`grpo_core.lm.interface.Sampling.sample`)."""
        done = sample(
            self.model, prompt_tokens, prompt_of, uniforms, temperature=temperature, greedy=greedy, poll=poll,
            drawing=drawing,
        )  # fmt: skip
        return done.tokens, done.mask, done.logp


class CharacterPolicy(Policy):
    """The policy of a run without a folder (:class:`grpo_core.lm.interface.LanguagePolicy`)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._sampling = CharacterSampling(self.model)
        self.encoded, self.text, self.sample = self._sampling.encoded, self._sampling.text, self._sampling.sample

    def check(self, settings: Settings) -> None:
        """Refuse nothing: the character model can be trained under all settings."""

    def batch(self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray) -> Layout:
        """The batch packed, so that nothing is computed twice."""
        return layout(prompt_tokens, tokens, mask, self.device)

    def score(
        self, batch: Layout, temperature: float, poll: Poll, *, against_reference: bool = False,
        first: Scores | None = None,
    ) -> Scores:  # fmt: skip
        """The batch under the present policy, without gradients."""
        with torch.no_grad():
            return score(self.model, batch, temperature)

    def score_reference(self, batch: Layout, temperature: float, poll: Poll) -> Scores:
        """The batch under the weights of the run's start."""
        with torch.no_grad():
            return score(self.reference, batch, temperature)

    def train(
        self, settings: Settings, batch: Layout, reference: Scores | None, draft: Drafts, poll: Poll,
        number: int,
    ) -> Passes[Scores]:  # fmt: skip
        """All passes of update ``number``, each over the whole batch at once."""
        return learned(self, settings, batch, reference, draft, poll, number)

    def recorded_before(self, batch: Layout, reference: Scores | None) -> dict[str, Any]:
        """Where the distributions stand, and those of the reference."""
        known: dict[str, Any] = {"context": batch.context.cpu().numpy().astype(np.int32)}
        if reference is not None:
            known |= {"ref_logp": array_of(reference.logp), "ref_dist_logp": array_of(reference.dist_logp)}
        return known

    def recorded_after(
        self, objective: Objective, batch: Layout, scores: list[Scores], reference: Scores | None
    ) -> dict[str, Any]:
        """Log-probabilities of every pass, and full distributions: of all where the loss was made of them, else of the
        ends."""
        whole = scores if objective.kl == EXACT or objective.entropy_bonus else [scores[0], scores[-1]]
        return {
            "logp": np.stack([array_of(each.logp) for each in scores]),
            "dist_logp": np.stack([array_of(each.dist_logp) for each in whole]),
        }

    def measurements(self, batch: Layout, after: Scores, reference: Scores | None) -> dict[str, float]:
        """None: all follows from the recorded distributions."""
        return {}

    def kept_for(self, settings: Settings) -> Kept:
        """A copy to go back to if the next update is given up."""
        return self.kept()
