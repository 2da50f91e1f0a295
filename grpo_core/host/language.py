"""A language model in the process that trains it and answers questions about it. Torch is imported only if needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.learners import Earlier, leading_to, origin
from grpo_core.questions import AnyAnswer, AnyQuestion, FirstAnswers, FixedAnswers
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.update_time import UpdateTimeQuestion

if TYPE_CHECKING:
    from grpo_core.lm.learner import PolicyLearner


class AnsweringLearner(Iterator[Step]):
    """A learner (:class:`grpo_core.learners.Learner`) that can answer questions about any of its updates.

    Attributes:
        note: note for the user on how the run was resumed; empty if there is nothing to say.
    """

    def __init__(self, learner: PolicyLearner[Any], poll: Callable[[], None]) -> None:
        from grpo_core.lm.answers import Answering

        self._learner, self._answering, self._poll = learner, Answering(), poll
        self.note = continuation_note(learner)

    @property
    def settings(self) -> Settings:
        return self._learner.settings

    @settings.setter
    def settings(self, wanted: Settings) -> None:
        self._learner.settings = wanted

    def __next__(self) -> Step:
        return next(self._learner)

    def ask(self, question: AnyQuestion, step: Step | None, earlier: Earlier) -> AnyAnswer:
        """Answer a question about ``step``, on a copy of a character model, or on the model itself if it comes from
        a folder. Before the first update, ``step`` is None.

        Raises:
            GrpoError: it cannot be answered; the message says why.
        """
        of_folder: Any = self._learner  # if the model comes from a folder (grpo_core.learners.FolderModels)
        if isinstance(question, FirstAnswers):
            if step is not None:
                raise GrpoError(
                    tr("The run already has an update; its answers before any training are recorded with it.")
                )
            rows = self._learner.watched_tokens()
            return FixedAnswers(tokens=tuple(tuple(token for token in row if token >= 0) for row in rows.tolist()))
        if isinstance(question, UpdateTimeQuestion):
            if step is not None:
                raise GrpoError(tr("The run already has an update; the time each update took is recorded with it."))
            if not self.settings.model.folder:
                raise GrpoError(tr("Update times are measured only for models from folders."))
            time: AnyAnswer = of_folder.update_time()
            return time
        assert step is not None
        before = leading_to(earlier(step.step - 1), earlier) if step.step > 1 else []
        if step.settings.model.folder:
            answer: AnyAnswer = of_folder.answered(origin(step.settings), question, step, before)
            return answer
        return self._answering(question, step, before, self._poll)


def devices(settings: Settings, resume: Step | None) -> tuple[str, ...]:
    """Return descriptions of the devices that can compute models. If torch computes this run, it is imported, which
    takes seconds.
    """
    from grpo_core.lm.engines import chosen_engine, torch_is_there
    from grpo_core.lm.interface import TORCH

    if torch_is_there() if settings.model.folder else chosen_engine(settings, resume) == TORCH:
        from grpo_core.lm import checkpoint

        return tuple(checkpoint.devices())
    count = os.cpu_count() or 1
    text = plural("cpu ({cpu_count} core, with NumPy)", "cpu ({cpu_count} cores, with NumPy)", count)
    return (text.format(cpu_count=count),)


def continuation_note(learner: PolicyLearner[Any]) -> str:
    """Return a note for a run that is continued by another engine, or whose replay differs from the record.

    It is empty for any other run.
    """
    drift, settings, engine = learner.drift, learner.settings, learner.policy.engine
    if learner.recorded_by != engine:
        return tr(
            "The run was computed with {before}; here it continues with {now}. On the recorded completions, the two "
            "differ by up to {drift:.1g} nats, so its further updates will differ from those of {before}."
        ).format(before=learner.recorded_by, now=engine, drift=drift)
    if drift == 0:
        return ""
    if settings.model.folder:
        return tr(
            "Replayed here, the run's log-probabilities differ by up to {drift:.1g} nats from those recorded: a "
            "different machine, version of torch or of this program, or number of threads adds numbers in a different "
            "order. Its further updates will differ from those made there."
        ).format(drift=drift)
    return tr(
        "The run was recorded on another machine or by another version. Replayed here, its log-probabilities differ "
        "by up to {drift:.1g} nats, so its further updates will differ from those made there."
    ).format(drift=drift)
