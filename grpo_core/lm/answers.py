"""Answers to questions that need the weights of an update: the score of a typed completion, and the update under
different settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import GrpoError, NonFiniteError
from grpo_core.lm import rewards
from grpo_core.lm.engines import ENGINES, chosen_engine
from grpo_core.lm.learner import LanguageLearner, PolicyLearner
from grpo_core.lm.passes import array_of
from grpo_core.lm.vocabulary import STOP, decode, encode
from grpo_core.questions import Answer, AnyAnswer, Question, Replay, Replayed, not_finite
from grpo_core.record import ARRAYS, Step
from grpo_core.text import plural, tr


class Answering:
    """Callable that answers questions on a copy of the model. The run being trained is not touched.

    The copy is kept at the last update asked about, so that further questions about that update are answered at once.
    Answers are computed by the engine that computed the update.
    """

    def __init__(self) -> None:
        self._at: tuple[Settings, int, bytes] | None = None
        self._copy: LanguageLearner | None = None

    @overload
    def __call__(
        self, question: Question, step: Step, history: Sequence[Step], cancelled: Callable[[], bool]
    ) -> Answer: ...
    @overload
    def __call__(
        self, question: Question | Replay, step: Step, history: Sequence[Step], cancelled: Callable[[], bool]
    ) -> AnyAnswer: ...
    def __call__(
        self, question: Question | Replay, step: Step, history: Sequence[Step], cancelled: Callable[[], bool]
    ) -> AnyAnswer:
        """Answer a question.

        Args:
            history: the consecutive updates that end with the one before ``step``; empty for the first update.
            cancelled: returns True to stop with ``Cancelled``.

        Raises:
            GrpoError: the question cannot be answered; the message says why.
        """
        at = step.settings, step.step, step.old_logp.tobytes()  # the first two can be equal in two runs
        if self._copy is None or self._at != at:
            start = step.settings if not history else history[-1].settings
            engine = ENGINES[chosen_engine(start, step)]
            self._copy = LanguageLearner(start, history=history, cancelled=cancelled, make_policy=engine)
            self._at = at
        if isinstance(question, Replay):
            return replayed(self._copy, question, step)
        return scored(self._copy, question, step)


def replayed(learner: PolicyLearner[Any], question: Replay, step: Step) -> Replayed:
    """Recompute ``step`` under different settings. ``learner`` must be in the state just before ``step``; its state
    does not change.

    Raises:
        SettingsError: a structural setting differs.
        GrpoError: the update under those settings is not finite.
    """
    try:
        made = learner.again(step, question.settings)
    except NonFiniteError as error:
        raise not_finite(error) from None
    changed = {name: getattr(made, name) for name in ARRAYS if getattr(made, name) is not getattr(step, name)}
    return Replayed(
        arrays={name: x for name, x in changed.items() if x is not None and name != "part"},
        measurements=made.measurements,
    )


def asked(question: Question, step: Step, encoded: Callable[[str], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of a question's prompt, (1, T_prompt), −1 in padding, and of its completion, (L,).

    Args:
        encoded: maps text to its tokens, including the end-of-sequence token.

    Raises:
        GrpoError: the update has no such prompt, or the completion is longer than the run allows.
    """
    if step.prompt_tokens is None or not 0 <= question.group < len(step.prompt_tokens):
        raise GrpoError(tr("Update {step} has no prompt {group}.").format(step=step.step, group=question.group + 1))
    tokens, longest = encoded(question.completion), step.settings.language.max_tokens
    if len(tokens) > longest:
        raise GrpoError(
            plural(
                "“{completion}” has {count} token, including the end sign; completions of this run have at most "
                "{longest}.",
                "“{completion}” has {count} tokens, including the end sign; completions of this run have at most "
                "{longest}.",
                len(tokens),
            ).format(completion=question.completion[:40], count=len(tokens), longest=longest)
        )
    return step.prompt_tokens[question.group][None], tokens


def unpolled(done: int, total: int) -> None:
    """Do nothing: the poll for scoring a single completion, which is too short to interrupt."""


def scored(learner: LanguageLearner, question: Question, step: Step) -> Answer:
    """Score a completion under the policy of ``learner`` and under its reference.

    Raises:
        GrpoError: the completion is empty or too long, or contains a character that the model does not know.
    """
    settings = step.settings
    prompt_tokens, tokens = asked(question, step, lambda text: np.array([*encode(text), STOP]))
    text = decode([*prompt_tokens[0], -1])
    source = rewards.PromptSource(settings.language, settings.model.context)
    parts = np.array(rewards.parts(settings.language, source.prompt(text), question.completion))
    policy = learner.policy
    batch = policy.batch(prompt_tokens, tokens[None], np.ones((1, len(tokens)), dtype=bool))
    now = policy.score(batch, settings.learner.temperature, unpolled)
    reference = policy.score_reference(batch, settings.learner.temperature, unpolled)
    return Answer(
        tokens=tokens,
        logp=array_of(now.logp)[0],
        ref_logp=array_of(reference.logp)[0],
        dist_logp=array_of(now.dist_logp),
        reward=float(rewards.rewards(settings.language, parts[None])[0]),
        parts=parts,
    )
