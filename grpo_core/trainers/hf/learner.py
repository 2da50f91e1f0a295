"""The learner of a model from a folder: the loop of all language models (``lm/learner.py``) with another policy,
and the estimate of an update's time, measured on a few tokens and one chunk of rows.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.lm.answers import answered
from grpo_core.lm.interface import SamplingRequest
from grpo_core.lm.learner import PolicyLearner
from grpo_core.lm.rewards import PromptSource
from grpo_core.lm.trained_weights import Kept
from grpo_core.questions import Answer, Question, Replay, Replayed
from grpo_core.record import Origin, Step
from grpo_core.snapshot_file import holds_weights
from grpo_core.text import tr
from grpo_core.texts import question_in
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.scoring import distributions
from grpo_core.update_time import UpdateTime


class FolderLearner(PolicyLearner[FolderPolicy]):
    """One run of a model from a folder. For the arguments see the base class.

    With an adapter, it can temporarily return to the start of an earlier update to answer a question: the model is
    already loaded, and copies of the adapter are kept from the start of the run, from before the last update, and from
    before the update last asked about. If all weights are trained, it can return only to updates after its first
    snapshot.
    """

    def _policy_maker(self, recorded: Step | None) -> Callable[[Settings], FolderPolicy]:
        return self._loaded

    def _loaded(self, settings: Settings) -> FolderPolicy:
        begun = time.perf_counter()
        made = FolderPolicy(settings)
        self._loading = time.perf_counter() - begun  # seconds
        made.ask = self._ask
        self._start = made.kept() if settings.model.adapter_rank else None
        # states before the last update and before the one last asked about, by its old log-probabilities, since two
        # branches share update numbers
        self._before: tuple[bytes, Kept] | None = None
        self._asked: tuple[bytes, Kept] | None = None
        self._astray = False  # whether the weights are those of an earlier update
        return made

    def __next__(self) -> Step:
        self._require_own_weights()
        return super().__next__()

    def _update(self, settings: Settings, number: int) -> Step:
        step = super()._update(settings, number)
        self._before = None if self._start is None else (step.old_logp.tobytes(), self._kept)
        return step

    def update_time(self) -> UpdateTime:
        """Estimate the time of an update on this machine without computing one.

        Raises:
            Cancelled: the estimate was cancelled.
        """
        with self._autocast():
            return dataclasses.replace(probe(self.policy, self._settings, self._ask), loading=self._loading)

    def answered(
        self, origin: Origin, question: Question | Replay, step: Step, history: Sequence[Step]
    ) -> Answer | Replayed:
        """Answer a question about ``step``. The learner is restored to its previous state afterwards.

        Args:
            history: the consecutive updates that end with the one before ``step``.

        Raises:
            GrpoError: the question cannot be answered; the message says why.
        """
        with self.standing_before(step, history):
            return answered(self, question, step, lambda prompt: question_in(prompt.tolist(), origin))

    @contextmanager
    def standing_before(self, step: Step, history: Sequence[Step]) -> Iterator[None]:
        """Context manager in which the learner is in its state before ``step``. Its previous state is restored
        afterwards.

        Args:
            history: the consecutive updates that end with the one before ``step``, starting with one that has weights,
                or with the first.

        Raises:
            GrpoError: every weight of the model is trained, and there is no snapshot of an update before ``step``.
            Cancelled: the work was cancelled.
        """
        if self._start is None:
            with self._standing_at_snapshot(step, history):
                yield
            return
        here = self.policy.kept(), self._step, self._settings, self.drift, self._keep_next
        try:
            self._go_before(step, history)
            with self._autocast():
                yield
        finally:
            kept, self._step, self._settings, self.drift, self._keep_next = here
            self.policy.put_back(kept)

    @contextmanager
    def _standing_at_snapshot(self, step: Step, history: Sequence[Step]) -> Iterator[None]:
        """Implement :meth:`standing_before` for runs that train all weights, using files in the snapshot folder."""
        if not history or not holds_weights(history[0]):
            raise GrpoError(
                tr(
                    "Every weight of this model is trained, and no snapshot contains the weights from before update "
                    "{step}. A run that trains an adapter can answer such questions. With a folder for snapshots, "
                    "they can be asked about updates after the last snapshot but one."
                ).format(step=step.step)
            )
        self._require_own_weights()
        here = self._step, self._settings, self.drift, self._keep_next
        with self.policy.set_aside():
            self._astray = True
            try:
                for earlier in history:
                    self._replay(earlier)
                with self._autocast():
                    yield
            finally:
                self._step, self._settings, self.drift, self._keep_next = here
        self._astray = False

    def _require_own_weights(self) -> None:
        if self._astray:
            raise GrpoError(
                tr("The run's weights could not be restored after a question; its updates are being learned again.")
            )

    def _go_before(self, step: Step, history: Sequence[Step]) -> None:
        assert self._start is not None
        name = step.old_logp.tobytes()
        known = next((kept for one, kept in filter(None, (self._asked, self._before)) if one == name), None)
        self.policy.put_back(_copied(known or self._start))
        self._step = step.step - 1 if known else 0
        if known is None:
            for earlier in history:
                self._replay(earlier)
        self._asked = name, self.policy.kept()


def _copied(kept: Kept) -> Kept:
    """Return ``kept`` with a copy of its optimizer state, which the optimizer adopts when it is restored."""
    memory = [{name: value.clone() for name, value in moments.items()} for moments in kept.memory]
    return Kept(weights=kept.weights, critic=kept.critic, kind=kept.kind, optimizer=kept.optimizer, memory=memory)


TOKENS = 3
"""Number of tokens sampled for the estimate. The time of the first includes the processing of the prompts; the others
give the time per token.
"""


def probe(policy: FolderPolicy, settings: Settings, ask: Callable[[], None]) -> UpdateTime:
    """Measure the parts of an update under ``settings`` and add them up. The policy is unchanged.

    ``ask`` is called between the parts; it can raise an exception to stop.
    """
    task, rows = settings.language, settings.language.prompts * settings.learner.group_size
    prompts = policy.encoded(PromptSource(task, None).drawn(np.random.default_rng(0)))
    prompt_of = np.arange(rows) // settings.learner.group_size
    longest = min(TOKENS, task.max_tokens)
    uniforms = np.random.default_rng(1).random((rows, longest))
    moments = list[float]()

    def note(done: int, total: int) -> None:
        ask()
        moments.append(_now(policy))

    policy.sample(
        SamplingRequest(
            prompt_tokens=prompts,
            prompt_of=prompt_of,
            uniforms=uniforms,
            temperature=settings.learner.temperature,
            poll=note,
        )
    )
    moments.append(_now(policy))
    first, each = moments[1] - moments[0], float(np.median(np.diff(moments[1:])))
    ask()
    at_once = min(policy.at_once, rows)
    size = int(policy.model.config.get_text_config().vocab_size)
    tokens = np.random.default_rng(2).integers(0, size, (rows, task.max_tokens), dtype=np.int32)
    batch = policy.batch(prompts, tokens, np.ones(tokens.shape, dtype=bool))
    start = _now(policy)
    dist = distributions(policy.model, batch, slice(0, at_once), settings.learner.temperature, policy.ways)
    forward = _now(policy) - start
    ask()
    dist.logp[:, 0].sum().backward()  # type: ignore[no-untyped-call]
    backward = _now(policy) - start - forward
    policy.forget_gradients()
    watches = settings.objective.beta != 0 or settings.model.watch_reference
    chunk = settings.learner.mu * (forward + backward) + forward * (3 if watches else 1)
    return UpdateTime(
        sampling=first + each * task.max_tokens,
        learning=chunk * math.ceil(rows / at_once),
        device=settings.model.device,
    )


def _now(policy: FolderPolicy) -> float:
    """Wait until the device has finished all pending work, then return the current time."""
    if policy.device.type == "cuda":
        torch.cuda.synchronize(policy.device)
    return time.perf_counter()
