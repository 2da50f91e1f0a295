"""The interface of a language model's policy, whatever computes it: sample, score, train, reference, snapshot.

Three kinds of policy do this: the character transformer that comes with the program, in torch (``character_policy.py``)
or in NumPy (``numpy_engine/numpy_policy.py``), and a model from a folder of the user's
(``grpo_core.hf.folder_policy``). Prompts, rewards, loss and record are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from grpo_core.arrays import Array
from grpo_core.config import Objective, Optimizer, Settings
from grpo_core.lm.problems import Prompt
from grpo_core.record import Step


class Poll(Protocol):
    """Called before each piece of work. Whatever it raises ends the work."""

    def __call__(self, done: int, total: int, /) -> None:
        """Piece ``done`` of at most ``total`` is next, counted from 1."""


Drafts = Callable[[np.ndarray, np.ndarray | None], Step]
"""(log-probabilities before the first pass (B, T), a critic's values (B, T)) -> the update as far as it is known then:
all that its advantages follow from."""


class Scored(Protocol):
    """Results of a forward pass over a batch, and whatever else a policy measures there."""

    @property
    def logp(self) -> Array:
        """(B, T) log-probabilities of the sampled tokens. 0 in padding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Results of a forward pass of the character transformer.

    Attributes:
        dist_logp: (C, V) log-probabilities at every context, at the sampling temperature.
        logp: (B, T) of the sampled tokens; 0 in padding.
        stream: (C, D) the normalised stream at every context, which a critic reads.
    """

    dist_logp: Array
    logp: Array
    stream: Array


ReadRows = Callable[[slice], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Rows of completions being sampled -> their tokens (n, T) and mask (n, T) so far, and which of them the model has
ended (n,). Called between two tokens, by whom the sampler polls."""


class Environment(Protocol):
    """Whoever answers a model within its completion."""

    def reply(self, tokens: np.ndarray) -> list[int] | None:
        """The tokens that follow a completion (L,) whose last token the model wrote: none where nobody answers it.
        None where that token ends the completion."""


Table = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Completions, (B, T) each: tokens, the end sign included, 0 in padding; mask; the sampler's log-probabilities."""


class Sampling(Protocol):
    """Methods that drawing a batch needs of a policy."""

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """The tokens of prompts, (P, T_prompt), −1 in padding on the right."""

    def text(self, tokens: np.ndarray) -> str:
        """Text of a completion's tokens (L,), without its end sign."""

    def sample(
        self, prompt_tokens: np.ndarray, prompt_of: np.ndarray, uniforms: np.ndarray, *, temperature: float,
        greedy: np.ndarray, poll: Poll, drawing: Callable[[ReadRows], None] | None = None,
        environment: Environment | None = None,
    ) -> Table:  # fmt: skip
        """One completion a row.

        Args:
            prompt_tokens: (P, T_prompt), −1 in padding.
            prompt_of: (B,) the prompt of each row.
            uniforms: (B, T) in [0, 1), the random number of each token; T is the longest completion.
            temperature: divides the logits.
            greedy: (B,) rows that take the likeliest token instead.
            poll: called before every token with its number and T.
            drawing: takes, before the first token, what reads the rows while they are sampled.
            environment: answers the model; its tokens are in the completion, with the model's log-probabilities.
        """


BatchT = TypeVar("BatchT")
ScoresT = TypeVar("ScoresT", bound=Scored)


@dataclass(frozen=True, kw_only=True, eq=False)
class Passes(Generic[ScoresT]):
    """Results of the passes over a batch.

    Attributes:
        draft: the update as it was known before the first pass.
        scores: before each pass, without gradients.
        norm: Euclidean norm of the gradient in the first pass.
    """

    draft: Step
    scores: list[ScoresT]
    norm: float


class LanguagePolicy(Sampling, Protocol[BatchT, ScoresT]):
    """A trainable language model with its frozen reference and the optimizer's memory."""

    @property
    def engine(self) -> str:
        """Name of the engine, a key of :data:`grpo_core.lm.engines.ENGINES`."""

    def computing(self, settings: Settings) -> AbstractContextManager[object]:
        """Everything that is computed under ``settings`` is computed inside this."""

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether ``error`` says that memory was too short."""

    def make_space(self) -> bool:
        """Free what is held in reserve, and compute fewer rows at once from now on. False where there are no fewer."""

    def check(self, settings: Settings) -> None:
        """Nothing, if this policy can be trained under ``settings``.

        Raises:
            SettingsError: naming what it cannot do.
        """

    def batch(
        self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
    ) -> BatchT:  # fmt: skip
        """Prompts (P, T_prompt) and completions (B, T) as this policy computes them.

        Args:
            prompt_tokens, tokens: with −1 in the padding of prompts.
            mask: (B, T) tokens that the loss counts.
            present: (B, T) tokens that are there; None where these are the same.
        """

    def score(
        self, batch: BatchT, temperature: float, poll: Poll, *, against_reference: bool = False,
        first: ScoresT | None = None,
    ) -> ScoresT:  # fmt: skip
        """The batch under the present policy, without gradients.

        Args:
            batch: what is scored.
            temperature: divides the logits.
            poll: called before every chunk of rows with its number and how many there are.
            against_reference: the distance from the reference is measured, where it does not follow from the record.
            first: the scores before the first pass, whose likeliest tokens are looked up again where the full
                distributions are not recorded.
        """

    def score_reference(self, batch: BatchT, temperature: float, poll: Poll) -> ScoresT:
        """The batch under the reference."""

    def train(
        self, settings: Settings, batch: BatchT, reference: ScoresT | None, draft: Drafts, poll: Poll,
        number: int,
    ) -> Passes[ScoresT]:  # fmt: skip
        """All passes of update ``number``. The policy has moved afterwards.

        ``poll`` is called several times in each pass, with its number and how many passes there are.

        Raises:
            NonFiniteError: a loss or a gradient is not finite.
        """

    def recorded_before(self, batch: BatchT, reference: ScoresT | None) -> dict[str, Any]:
        """Fields of :class:`~grpo_core.record.Step` that are known before the first pass."""

    def recorded_after(
        self, objective: Objective, batch: BatchT, scores: list[ScoresT], reference: ScoresT | None
    ) -> dict[str, Any]:
        """Fields of the step that follow from the scores before each pass and after the last."""

    def measurements(self, batch: BatchT, after: ScoresT, reference: ScoresT | None) -> dict[str, float]:
        """Numbers that only the model could produce, for the step's own."""

    def kept_for(self, settings: Settings) -> Any:
        """State that is needed to give the next update up."""

    def put_back(self, kept: Any) -> None:
        """Return to where :meth:`kept_for` was asked.

        Raises:
            GrpoError: nothing was kept, and the weights have moved.
        """

    def state(self) -> dict[str, np.ndarray]:
        """Everything that later updates depend on, for the run file. Empty where it is not kept there."""

    def restore(self, state: dict[str, np.ndarray], optimizer: Optimizer) -> None:
        """Return to where :meth:`state` was taken.

        Raises:
            GrpoError: it belongs to another model.
        """
