"""The language model's learner, a generator of steps: sample, score, compute advantages, and
descend the shared loss.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError, is_out_of_memory
from grpo_core.lm.batches import Drawing, draw, likeliest, masks, measured
from grpo_core.lm.calculator import counted
from grpo_core.lm.engines import ENGINES, chosen_engine
from grpo_core.lm.interface import LanguagePolicy, Poll, engine_of, marks
from grpo_core.lm.passes import array_of, require_finite
from grpo_core.lm.rewards import PromptSource
from grpo_core.progress import Phase, Progress, UpdateProgress, unpolled, unreported
from grpo_core.record import Step
from grpo_core.snapshot_file import holds_weights
from grpo_core.text import plural, tr

PolicyT = TypeVar("PolicyT", bound=LanguagePolicy)
T = TypeVar("T")


class Clock:
    """A stopwatch with named laps, which times the stages of an update.

    No explicit synchronisation with the device is needed: each stage ends with numbers read by the host, except the
    optimizer's last step, whose time on a GPU is counted in the following stage.
    """

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


class PolicyLearner(Iterator[Step], Generic[PolicyT]):
    """One run of a language model. Each ``next()`` is one update (see :class:`grpo_core.learners.Learner`).

    Args:
        settings: settings of the next update.
        history: the recorded updates up to the point where the run continues: the first has weights, or is update 1;
            the others are replayed.
        poll: called before every token and every pass; ends the work by raising ``Cancelled``.
        progress: receives reports of a long update (:class:`grpo_core.progress.UpdateProgress`).
        group: returns the index of the group whose completions are reported during sampling.
        make_policy: creates the initial model, its reference and its optimizer; by default with the engine of a new
            run, or the one that computed the last update of ``history``.

    Attributes:
        drift: largest difference in nats between recorded log-probabilities and those of the replay; 0 on the machine
            and with the versions that recorded them.
        recorded_by: the engine that computed the last recorded update; this learner's own if there is none.

    Raises:
        SettingsError: the settings need something that is not available, or a structural one differs.
        GrpoError: the prompts, the checkpoint or the recorded updates cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        history: Sequence[Step] = (),
        poll: Callable[[], None] = unpolled,
        progress: Callable[[Progress], None] = unreported,
        group: Callable[[], int] = lambda: 0,
        make_policy: Callable[[Settings], PolicyT] | None = None,
    ) -> None:
        self._ask = poll
        self._progress = UpdateProgress(progress, quiet=0.0 if settings.model.folder else None, group=group)
        self._settings = history[-1].settings if history else settings
        self._step = 0
        self._kept: Any = None  # the snapshot before the update in progress
        self._source = PromptSource(self._settings.language, self._settings.model.longest_text)
        recorded = history[-1] if history else None
        self.policy: PolicyT = (make_policy or self._policy_maker(recorded))(self._settings)
        self.drift = 0.0
        self.recorded_by = engine_of(history[-1]) if history else self.policy.engine
        for step in history:
            self._replay(step)
        self._keep_next = bool(history) and not holds_weights(history[-1])
        self.settings = settings

    def _policy_maker(self, recorded: Step | None) -> Callable[[Settings], Any]:
        return ENGINES[chosen_engine(self._settings, recorded)]

    @property
    def settings(self) -> Settings:
        """The settings of the next update. Structural fields cannot be changed within a run."""
        return self._settings

    @settings.setter
    def settings(self, wanted: Settings) -> None:
        self._settings.refuse_structural(wanted)
        self.policy.check(wanted)
        if wanted.task != self._settings.task:
            self._source = PromptSource(wanted.language, wanted.model.longest_text)
        self._settings = wanted

    def __next__(self) -> Step:
        step = self._in_memory(self._undone_or_done)
        self._step, self._keep_next = step.step, False
        return step

    def _undone_or_done(self) -> Step:
        """Compute the next update. After an error, the weights are those before it."""
        self._kept = self.policy.kept_for(self._settings)
        try:
            return self._update(self._settings, self._step + 1)
        except BaseException as error:
            try:
                self.policy.put_back(self._kept)
            except GrpoError as lost:
                if isinstance(error, Cancelled) or not isinstance(error, GrpoError):
                    raise
                raise GrpoError(f"{error} {lost}") from None
            raise
        finally:
            self._kept = None

    def _in_memory(self, compute: Callable[[], T]) -> T:
        """Return the result of ``compute``, which is repeated with fewer rows at once if memory runs out.

        Raises:
            GrpoError: there is too little memory even for one row at a time.
        """
        while True:
            try:
                return compute()
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            # the error and its frames have been released, unless they are part of a cycle
            gc.collect()
            if not self.policy.make_space():
                advice = self.policy.smaller(self._settings)
                raise GrpoError(" ".join(filter(None, [_too_large(self._settings, self._step), advice])))

    def _update(self, settings: Settings, number: int) -> Step:
        clock, policy = Clock(), self.policy
        drawing = Drawing(settings.learner.group_size)
        self._progress.begin(number, drawing.written, drawing.shares)
        with self._autocast():
            drawn = draw(settings, policy, self._source, number, self._poll_in(Phase.SAMPLING), drawing)
            clock.lap("seconds_sampling")
            assert drawn.prompt_tokens is not None
            batch = policy.batch(drawn.prompt_tokens, drawn.tokens, drawn.mask, drawn.there)
            if _watches_reference(settings):
                self._progress.at(Phase.REFERENCE)
            reference = self._scored_by_reference(settings, batch, self._poll_in(Phase.REFERENCE))
            known = policy.recorded_before(batch, reference)
            clock.lap("seconds_reference")
            draft = partial(_draft, drawn, known)
            accuracy: dict[str, float] = {}
            if (number - 1) % settings.language.accuracy_every == 0:
                accuracy = measured(settings, policy, self._source, number, self._poll_in(Phase.MEASURING))
            clock.lap("seconds_measuring")
            done = policy.train(settings, batch, reference, draft, self._poll_in(Phase.TRAINING), number)
            clock.lap("seconds_training")
            self._progress.at(Phase.SCORING)
            after = self._scored_after(settings, batch, done.scores[0], number, self._poll_in(Phase.SCORING))
            clock.lap("seconds_after")
        extra = drawn.measurements | policy.measurements(batch, after, reference) | marks(policy.engine)
        return dataclasses.replace(
            done.draft,
            **policy.recorded_after(settings.objective, batch, [*done.scores, after], reference),
            measurements={"grad_norm": done.norm, **accuracy, **extra, **clock.seconds},
            resume=policy.state() if self._keep_next or number % settings.model.snapshot_every == 0 else {},
        )

    def watched_tokens(self) -> np.ndarray:
        """Return the likeliest answers to the watched prompts under the current weights: tokens (W, T), −1 in padding.

        This consumes no random numbers.
        """
        with self._autocast():
            return likeliest(self._settings, self.policy, self._source.watched, self._poll)

    def again(self, step: Step, settings: Settings) -> Step:
        """Return the next update under ``settings``, with the batch of ``step``. The learner is unchanged afterwards.

        Args:
            step: the recorded update that follows this learner's state.
            settings: settings with the structural settings of the run.

        Returns:
            The update, without a state to continue from. Under the step's own settings, its passes equal those of
            ``step``, bit for bit on the kind of processor that recorded it.

        Raises:
            NonFiniteError: one of its numbers is not finite.
        """
        if step.step != self._step + 1 or step.prompt_tokens is None:
            raise GrpoError(
                tr("Update {step} cannot be recomputed without the updates before it.").format(step=step.step)
            )
        self._settings.refuse_structural(settings)
        self.policy.check(settings)
        before = self.policy.kept_for(settings)
        try:
            return self._again(step, settings)
        finally:
            self.policy.put_back(before)

    def _again(self, step: Step, settings: Settings) -> Step:
        assert step.prompt_tokens is not None
        policy = self.policy
        mask = counted(settings.language, step.tokens, step.there)
        batch = policy.batch(step.prompt_tokens, step.tokens, mask, step.there)
        known: dict[str, Any] = {"settings": settings, "resume": {}, **masks(mask, step.there)}
        known["part"] = np.zeros((settings.learner.mu, len(step.tokens)), dtype=np.int32)
        with self._autocast():
            reference = self._scored_by_reference(settings, batch, self._poll)
            if reference is not None:
                known |= policy.recorded_before(batch, reference)
            draft = partial(_draft, step, known)
            done = policy.train(settings, batch, reference, draft, self._poll, step.step)
            after = self._scored_after(settings, batch, done.scores[0], step.step, self._poll)
        return dataclasses.replace(
            done.draft,
            **policy.recorded_after(settings.objective, batch, [*done.scores, after], reference),
            measurements={
                "grad_norm": done.norm,
                **policy.measurements(batch, after, reference),
                **marks(policy.engine),
            },
        )

    def _scored_by_reference(self, settings: Settings, batch: Any, poll: Poll) -> Any:
        if not _watches_reference(settings):
            return None
        return self.policy.score_reference(batch, settings.learner.temperature, poll)

    def _scored_after(self, settings: Settings, batch: Any, first: Any, number: int, poll: Poll) -> Any:
        # the step is not taken again: there may be no copy of the weights before it
        temperature, watched = settings.learner.temperature, _watches_reference(settings)
        after = self._in_memory(
            lambda: self.policy.score(batch, temperature, poll, against_reference=watched, first=first)
        )
        require_finite(float(after.logp.sum()), number, tr("a log-probability after the update"))
        return after

    def _replay(self, step: Step) -> None:
        """Return to the state at the end of ``step``, from its weights or by replaying it with its completions."""
        self._ask()
        if holds_weights(step):
            self.policy.restore(step.resume, step.settings.optimizer)
            if engine_of(step) != self.policy.engine:
                self._compare_scores(step)
        elif step.step != self._step + 1 or step.prompt_tokens is None:
            raise GrpoError(
                tr(
                    "Update {step} contains no weights, and the updates before it are missing; choose an update of a "
                    "run that was trained here, and keep the run that it branched from."
                ).format(step=step.step)
            )
        else:
            batch = self.policy.batch(step.prompt_tokens, step.tokens, step.mask, step.present)
            with self._autocast():
                reference = self._scored_by_reference(step.settings, batch, self._poll)
                again = self.policy.train(
                    step.settings, batch, reference, lambda old, values: step, self._poll, step.step
                )
            for passed, now in enumerate(again.scores):
                self._note_drift(now, step, passed)
        self._step = step.step

    def _compare_scores(self, step: Step) -> None:
        """Update :attr:`drift` with the difference from scores that another engine recorded under the same weights."""
        if step.prompt_tokens is None or not step.scored_after:
            return
        batch = self.policy.batch(step.prompt_tokens, step.tokens, step.mask, step.present)
        with self._autocast():
            now = self.policy.score(batch, step.settings.learner.temperature, self._poll)
        self._note_drift(now, step, step.passes)

    def _note_drift(self, now: Any, step: Step, passed: int) -> None:
        difference = np.abs(array_of(now.logp) - step.logp[passed])[step.there]
        self.drift = max(self.drift, float(difference.max(initial=0.0)))

    def _poll_in(self, phase: Phase) -> Poll:
        """Create a poll that checks for cancellation and reports progress in ``phase``."""

        def poll(done: int, total: int) -> None:
            self._ask()
            self._progress.at(phase, done, total)

        return poll

    def _poll(self, done: int, total: int) -> None:
        """Check for cancellation in work that is not a new update."""
        self._ask()

    def _autocast(self) -> AbstractContextManager[object]:
        return self.policy.computing(self._settings)


class LanguageLearner(PolicyLearner[Any]):
    """One run of the shipped character transformer. For the arguments see the base class."""


def _draft(drawn: Step, known: dict[str, Any], old_logp: np.ndarray, values: np.ndarray | None) -> Step:
    """Return the record of an update as known before its first pass."""
    return dataclasses.replace(drawn, old_logp=old_logp, logp=old_logp[None], values=values, advantage=None, **known)


def _watches_reference(settings: Settings) -> bool:
    """Return whether completions are also scored under the reference."""
    return settings.objective.beta != 0 or settings.model.watch_reference


def _too_large(settings: Settings, step: int) -> str:
    completions = settings.language.prompts * settings.learner.group_size
    return plural(
        "There is not enough memory for {completions} completion of up to {max_tokens} tokens. The run is at update "
        "{step}; halve the prompts or the group size, or choose shorter completions.",
        "There is not enough memory for {completions} completions of up to {max_tokens} tokens. The run is at update "
        "{step}; halve the prompts or the group size, or choose shorter completions.",
        completions,
    ).format(completions=completions, max_tokens=settings.language.max_tokens, step=step)
