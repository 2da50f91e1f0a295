"""Parts of the character transformer's policy that all engines share: text encoding, the passes of an update, and the
fields of the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grpo_core.arrays import to_numpy
from grpo_core.config import Objective, Settings
from grpo_core.kl import EXACT
from grpo_core.lm.interface import Drafts, Passes, Poll, Scores
from grpo_core.lm.passes import PlaceT, Trained, array_of, learned
from grpo_core.lm.problems import Prompt
from grpo_core.lm.vocabulary import decode, encode, padded


class Characters:
    """Encoding with one token per character (:class:`grpo_core.lm.interface.Sampling`)."""

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """Encode prompts, one token per character, (P, T_prompt), −1 in padding."""
        rows = [encode(prompt.text) for prompt in prompts]
        return padded(rows, max(map(len, rows)))

    def text(self, tokens: np.ndarray) -> str:
        """Return the text of a completion's tokens (L,), without its end-of-sequence token."""
        return decode(tokens)


class TrainedCharacters(Characters, Trained[PlaceT]):
    """The parts of :class:`grpo_core.lm.interface.LanguagePolicy` that do not depend on the engine."""

    def check(self, settings: Settings) -> None:
        """Accept all settings: the character model can be trained under any of them."""

    def train(
        self,
        settings: Settings,
        batch: PlaceT,
        reference: Scores | None,
        draft: Drafts,
        poll: Poll,
        number: int,
    ) -> Passes[Scores]:
        """Run all passes of update ``number``, each over the whole batch at once."""
        return learned(self, settings, batch, reference, draft, poll, number)

    def recorded_before(self, batch: PlaceT, reference: Scores | None) -> dict[str, Any]:
        """Return ``context`` (B, T), the row of each token in the table of distributions, and the reference's
        distributions.
        """
        known: dict[str, Any] = {"context": to_numpy(batch.context).astype(np.int32)}
        if reference is not None:
            known |= {"ref_logp": array_of(reference.logp), "ref_dist_logp": array_of(reference.dist_logp)}
        return known

    def recorded_after(
        self, objective: Objective, batch: PlaceT, scores: list[Scores], reference: Scores | None
    ) -> dict[str, Any]:
        """Return the log-probabilities of every pass, and full distributions: of all passes if the loss depends on
        them, otherwise of the first and last.
        """
        whole = scores if objective.kl == EXACT or objective.entropy_bonus else [scores[0], scores[-1]]
        return {
            "logp": np.stack([array_of(each.logp) for each in scores]),
            "dist_logp": np.stack([array_of(each.dist_logp) for each in whole]),
        }

    def measurements(self, batch: PlaceT, after: Scores, reference: Scores | None) -> dict[str, float]:
        """Return no measurements: everything follows from the recorded distributions."""
        return {}

    def smaller(self, settings: Settings) -> str:
        """Return an empty string, since memory is not estimated."""
        return ""
