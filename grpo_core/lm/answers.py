"""Answers to questions that need the weights of an update: the score of a typed completion, and the update under
different settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import GrpoError, NonFiniteError
from grpo_core.lm import rewards
from grpo_core.lm.engines import ENGINES, chosen_engine
from grpo_core.lm.learner import LanguageLearner, PolicyLearner
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

    def __call__(
        self, question: Question | Replay, step: Step, history: Sequence[Step], poll: Callable[[], None]
    ) -> AnyAnswer:
        """Answer a question.

        Args:
            history: the consecutive updates that end with the one before ``step``; empty for the first update.
            poll: called before every token; stops by raising ``Cancelled``.

        Raises:
            GrpoError: the question cannot be answered; the message says why.
        """
        at = step.settings, step.step, step.old_logp.tobytes()  # the first two can be equal in two runs
        if self._copy is None or self._at != at:
            start = step.settings if not history else history[-1].settings
            engine = ENGINES[chosen_engine(start, step)]
            self._copy = LanguageLearner(start, history=history, poll=poll, make_policy=engine)
            self._at = at
        return answered(self._copy, question, step, self._copy.policy.text)


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


def answered(
    learner: PolicyLearner[Any], question: Question | Replay, step: Step, prompt_text: Callable[[np.ndarray], str]
) -> Answer | Replayed:
    """Answer a question about ``step``, in whose state before it ``learner`` is and stays.

    Args:
        prompt_text: maps the tokens of a prompt (T_prompt,), −1 in padding, to its text.

    Raises:
        GrpoError: the question cannot be answered; the message says why.
    """
    return (
        replayed(learner, question, step)
        if isinstance(question, Replay)
        else scored(learner, question, step, prompt_text)
    )


def scored(
    learner: PolicyLearner[Any], question: Question, step: Step, prompt_text: Callable[[np.ndarray], str]
) -> Answer:
    """Score a completion under the policy of ``learner`` and under its reference.

    Raises:
        GrpoError: the update has no such prompt, or the completion is empty, longer than the run allows, or contains a
            character that the model does not know.
    """
    if step.prompt_tokens is None or not 0 <= question.group < len(step.prompt_tokens):
        raise GrpoError(tr("Update {step} has no prompt {group}.").format(step=step.step, group=question.group + 1))
    settings, policy, prompt = step.settings, learner.policy, step.prompt_tokens[question.group]
    tokens, longest = policy.completion(question.completion), settings.language.max_tokens
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
    source = rewards.PromptSource(settings.language, settings.model.longest_text)
    asked = source.prompt(prompt_text(prompt))
    parts = np.array(rewards.parts(settings.language, asked, question.completion, len(tokens)))
    batch = policy.batch(prompt[None], tokens[None], np.ones((1, len(tokens)), dtype=bool))
    return Answer(
        tokens=tokens,
        reward=float(rewards.rewards(settings.language, parts[None])[0]),
        parts=parts,
        **policy.answer(batch, settings),
    )
