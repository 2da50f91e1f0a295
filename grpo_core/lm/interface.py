"""The interface of a language model's policy, independent of its engine: sample, score, train, reference, snapshot.

There are three implementations: the shipped character transformer, in torch (``character_policy.py``) or in NumPy
(``numpy_engine/numpy_policy.py``), and a model from a user's folder (``grpo_core.trainers.hf.folder_policy``).
Prompts, rewards, loss and record are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from grpo_core.arrays import Array
from grpo_core.config import Objective, Optimizer, Settings
from grpo_core.lm.problems import Prompt
from grpo_core.record import Step


class Poll(Protocol):
    """Callback that is called before each unit of work. It can raise an exception to stop the work."""

    def __call__(self, done: int, total: int, /) -> None:
        """Report that unit ``done`` of at most ``total`` is next, counted from 1."""


Drafts = Callable[[np.ndarray, np.ndarray | None], Step]
"""Function of (log-probabilities before the first pass (B, T), a critic's values (B, T)) that returns the part of the
update known at that point: everything that its advantages depend on.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Results of a forward pass of the character transformer.

    Attributes:
        dist_logp: (C, V) log-probabilities at every context, at the sampling temperature.
        logp: (B, T) log-probabilities of the sampled tokens; 0 in padding.
        stream: (C, D) normalised residual stream at every context, which a critic reads.
    """

    dist_logp: Array
    logp: Array
    stream: Array


ReadRows = Callable[[slice], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Function from rows of completions during sampling to their tokens (n, T) and mask (n, T) so far, and whether each has
ended (n,). It can be called between two tokens, from the sampler's ``poll``.
"""


class Environment(Protocol):
    """An environment that replies to a model within its completion."""

    def reply(self, tokens: np.ndarray) -> list[int] | None:
        """Return the tokens that follow a completion (L,) whose last token the model wrote. Empty if there is no reply,
        None if that token ends the completion.
        """


class Table(NamedTuple):
    """Completions, (B, T) each, 0 in padding: tokens, including the end-of-sequence token, the mask, and the sampler's
    log-probabilities, float32.
    """

    tokens: np.ndarray
    mask: np.ndarray
    logp: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingRequest:
    """Completions to sample, one per row.

    Attributes:
        prompt_tokens: (P, T_prompt), −1 in padding on the right.
        prompt_of: (B,) the prompt of each row.
        uniforms: (B, T) in [0, 1), the random number of each token; T is the maximum length.
        temperature: divides the logits.
        poll: called before every token with its number and T.
        likeliest: (B,) rows that take the likeliest token instead; None for none.
        drawing: called before the first token with a function that reads the rows during sampling.
        environment: replies to the model; its tokens are part of the completion and have the model's
            log-probabilities.
    """

    prompt_tokens: np.ndarray
    prompt_of: np.ndarray
    uniforms: np.ndarray
    temperature: float
    poll: Poll
    likeliest: np.ndarray | None = None
    drawing: Callable[[ReadRows], None] | None = None
    environment: Environment | None = None

    @property
    def longest(self) -> int:
        """T, the maximum length of a completion."""
        return int(self.uniforms.shape[1])

    @property
    def greedy(self) -> np.ndarray:
        """Rows that take the likeliest token, boolean (B,)."""
        return np.zeros(len(self.uniforms), bool) if self.likeliest is None else self.likeliest

    def only(self, rows: np.ndarray) -> SamplingRequest:
        return replace(self, prompt_of=self.prompt_of[rows], uniforms=self.uniforms[rows], likeliest=self.greedy[rows])


class Sampling(Protocol):
    """The methods of a policy that are needed to sample a batch."""

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """Encode prompts as tokens, (P, T_prompt), −1 in padding on the right."""

    def text(self, tokens: np.ndarray) -> str:
        """Return the text of a completion's tokens (L,), without its end-of-sequence token."""

    def sample(self, request: SamplingRequest) -> Table:
        """Sample one completion per row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Passes:
    """Results of the passes over a batch.

    Attributes:
        draft: the update as known before the first pass.
        scores: scores before each pass, without gradients.
        norm: Euclidean norm of the gradient in the first pass.
    """

    draft: Step
    scores: list[Any]
    norm: float


class LanguagePolicy(Sampling, Protocol):
    """A trainable language model with its frozen reference and the optimizer's state.

    Each kind of policy has its own format of a batch and of its scores, whose ``logp`` are the log-probabilities of the
    sampled tokens, (B, T), 0 in padding.
    """

    @property
    def engine(self) -> str:
        """Name of the engine, a key of :data:`grpo_core.lm.engines.ENGINES`."""

    def computing(self, settings: Settings) -> AbstractContextManager[object]:
        """Return a context manager in which all computation under ``settings`` must run."""

    def make_space(self) -> bool:
        """Free cached memory, and compute fewer rows at once from now on. Return False if that is not possible."""

    def smaller(self, settings: Settings) -> str:
        """Return a sentence that names changes of ``settings`` that need less memory. Empty if none is known."""

    def check(self, settings: Settings) -> None:
        """Check that this policy can be trained under ``settings``.

        Raises:
            SettingsError: it cannot; the message names what it does not support.
        """

    def batch(
        self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
    ) -> Any:
        """Convert prompts (P, T_prompt) and completions (B, T) to this policy's batch format.

        Args:
            prompt_tokens: (P, T_prompt), −1 in padding.
            tokens: (B, T).
            mask: (B, T) tokens that the loss counts.
            present: (B, T) tokens that exist; None if these are the same.
        """

    def score(
        self,
        batch: Any,
        temperature: float,
        poll: Poll,
        *,
        against_reference: bool = False,
        first: Any = None,
    ) -> Any:
        """Score the batch under the current policy, without gradients.

        Args:
            poll: called before every chunk of rows with its number and the number of chunks.
            against_reference: whether to measure the distance from the reference if it cannot be computed from the
                record.
            first: the scores before the first pass, whose likeliest tokens are looked up again if the full
                distributions are not recorded.
        """

    def score_reference(self, batch: Any, temperature: float, poll: Poll) -> Any:
        """Score the batch under the reference."""

    def train(
        self,
        settings: Settings,
        batch: Any,
        reference: Any,
        draft: Drafts,
        poll: Poll,
        number: int,
    ) -> Passes:
        """Run all passes of update ``number``, which change the policy.

        ``poll`` is called several times in each pass, with the pass's number and the number of passes.

        Raises:
            NonFiniteError: a loss or a gradient is not finite.
        """

    def recorded_before(self, batch: Any, reference: Any) -> dict[str, Any]:
        """Return the fields of :class:`~grpo_core.record.Step` that are known before the first pass."""

    def recorded_after(self, objective: Objective, batch: Any, scores: list[Any], reference: Any) -> dict[str, Any]:
        """Return the fields of the step that follow from the scores before each pass and after the last."""

    def measurements(self, batch: Any, after: Any, reference: Any) -> dict[str, float]:
        """Return the measurements of the step that only the model can produce."""

    def completion(self, text: str) -> np.ndarray:
        """Encode a typed completion, including the end-of-sequence token, (L,)."""

    def answer(self, batch: Any, settings: Settings) -> dict[str, Any]:
        """Score a batch of one completion. Return the fields of :class:`grpo_core.questions.Answer` that follow."""

    def kept_for(self, settings: Settings) -> Any:
        """Return the snapshot with which the next update can be undone."""

    def put_back(self, kept: Any) -> None:
        """Restore the snapshot ``kept`` of :meth:`kept_for`.

        Raises:
            GrpoError: there is no snapshot, and the weights have changed.
        """

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that later updates depend on, for the run file. Empty if it is not stored there."""

    def restore(self, state: dict[str, np.ndarray], optimizer: Optimizer) -> None:
        """Restore the state returned by :meth:`state`.

        Raises:
            GrpoError: the state belongs to another model.
        """


TORCH, NUMPY = "torch", "NumPy"
_BY_NUMPY = "by_numpy"


def marks(engine: str) -> dict[str, float]:
    """Return the measurements that mark an update as computed by ``engine``: none for torch, as in early runs."""
    return {_BY_NUMPY: 1.0} if engine == NUMPY else {}


def engine_of(step: Step) -> str:
    return NUMPY if _BY_NUMPY in step.measurements else TORCH
