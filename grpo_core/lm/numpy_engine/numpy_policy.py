"""The NumPy character transformer as a policy (:class:`grpo_core.lm.interface.LanguagePolicy`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np

from grpo_core.bandit.gradient import needs_distributions, through_distributions, visits_of
from grpo_core.bandit.layout import keep_freed_memory
from grpo_core.config import Model, Optimizer, Settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.lm.characters import Characters
from grpo_core.lm.checkpoint_file import checkpoint_path, read_checkpoint
from grpo_core.lm.interface import NUMPY, SamplingRequest, Scores, Table
from grpo_core.lm.numpy_engine.optimizer import Memory, limited, stepped
from grpo_core.lm.numpy_engine.sampler import CachedPrefixes
from grpo_core.lm.numpy_engine.threads import set_threads
from grpo_core.lm.numpy_engine.transformer import Trace, backward, forward, log_softmax
from grpo_core.lm.numpy_engine.weights import Weights, shapes, views
from grpo_core.lm.packing import Packing, packed
from grpo_core.lm.passes import Loss
from grpo_core.lm.sampling import drawn
from grpo_core.memory import counted
from grpo_core.text import tr

Kept: TypeAlias = tuple[np.ndarray, np.ndarray, str, Memory | None]
"""Snapshot of a policy before an update: weights, critic, kind of optimizer, and the optimizer's state."""


def started(size: Model, seed: int, dtype: Any = np.float32) -> Weights:
    """Create the weights of a run before its first update.

    Raises:
        SettingsError: its checkpoint cannot be used.
    """
    weights = Weights(size, dtype)
    if size.checkpoint == "untrained":
        weights.initialize(seed)
    else:
        weights.fill(read_checkpoint(checkpoint_path(size), size, shapes(size))[0])
    return weights


class NumpyPolicy(Characters):
    """A trainable character transformer with its frozen reference and the optimizer's state.

    Attributes:
        gradient: gradient of the loss; 0 between updates.

    Raises:
        SettingsError: the checkpoint cannot be used, or the settings name a device other than the CPU.
    """

    engine = NUMPY

    def __init__(self, settings: Settings, dtype: Any = np.float32) -> None:
        size = settings.model
        if size.device != "cpu":
            raise SettingsError(
                "model.device", size.device, tr("torch is not installed; without it, models run only on the cpu")
            )
        set_threads(size.threads)
        keep_freed_memory()
        self.weights, self.reference = (started(size, settings.seed, dtype) for _ in range(2))
        self.critic = np.zeros(size.width + 1, dtype)
        self.gradient = Weights(size, dtype)
        self._kind = settings.optimizer.kind
        self._memory: Memory | None = None
        self._traced: Trace | None = None

    def computing(self, settings: Settings) -> AbstractContextManager[object]:
        """Silence NumPy's warnings about non-finite numbers, which the learner reports."""
        return np.errstate(over="ignore", invalid="ignore", divide="ignore")

    def make_space(self) -> bool:
        """Return False: the whole batch is always computed at once."""
        return False

    # -- sample, score and train -----------------------------------------------------------------------------------

    def sample(self, request: SamplingRequest) -> Table:
        return drawn(CachedPrefixes(self.weights, request.prompt_tokens, request.longest), request)

    def batch(
        self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
    ) -> Packing:
        return packed(prompt_tokens, tokens, mask, present)

    def scored(self, batch: Packing, temperature: float, *, by_reference: bool = False) -> Scores:
        return _scores(forward(self.reference if by_reference else self.weights, batch), batch, temperature)

    def forward(self, batch: Packing, temperature: float) -> Scores:
        self._traced = forward(self.weights, batch)
        return _scores(self._traced, batch, temperature)

    def backward(self, loss: Loss, temperature: float) -> None:
        """Compute d loss / d weights through the logits.

        With g = d loss / d logp of each token and π of its context, d loss / d logits = (Σ g onehot − π Σ g) /
        temperature, plus the gradient through the full distributions.
        """
        assert self._traced is not None
        d_logits = logit_gradient(loss, temperature).astype(self.weights.flat.dtype)
        backward(self.weights, loss.place, self._traced, d_logits, self.gradient)
        self._traced = None

    def stepped(self, wanted: Optimizer) -> float:
        if wanted.kind != self._kind:
            self._kind, self._memory = wanted.kind, None
        gradient = self.gradient.flat
        norm = limited(gradient, wanted.max_grad_norm)
        if np.isfinite(norm):
            self._memory = stepped(wanted, self.weights.flat, gradient, self._memory)
        gradient[:] = 0.0
        return norm

    def ledger(self) -> dict[str, Any]:
        weights, memory = [*self.weights.named.values()], self._memory
        moments = [] if memory is None else [memory.mean, memory.square]
        states = [x for flat in moments for _, x in views(flat, shapes(self.weights.size))]
        blocks = counted(weights, [*self.gradient.named.values()], states, [*self.reference.named.values()])
        return {"blocks": blocks, "held": None, "allocated": None}

    # -- record, keep, restore -------------------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Return the state in the format of ``grpo_core.lm.trained_weights``, float32."""
        memory = self._memory
        snapshot = {
            "weights": _single(self.weights.flat),
            "critic": _single(self.critic),
            "adam_steps": np.array([0 if memory is None else memory.steps]),
        }
        if memory is not None:
            snapshot |= {"adam_m": _single(memory.mean), "adam_v": _single(memory.square)}
        return snapshot

    def restore(self, state: dict[str, np.ndarray], optimizer: Optimizer) -> None:
        """Restore the state returned by :meth:`state` of this engine or of torch.

        Raises:
            GrpoError: the state belongs to a model of another size.
        """
        flat = self.weights.flat
        if "weights" not in state or state["weights"].shape != flat.shape:
            raise GrpoError(
                tr("The recorded weights belong to a model of another size; a run cannot continue from them.")
            )
        flat[:], self.critic[:] = state["weights"], state["critic"]
        self._kind, self._memory = optimizer.kind, None
        if "adam_m" in state:
            mean, square = (state[name].astype(flat.dtype) for name in ("adam_m", "adam_v"))
            self._memory = Memory(mean=mean, square=square, steps=int(state["adam_steps"][0]))

    def kept_for(self, settings: Settings) -> Kept:
        return deepcopy((self.weights.flat, self.critic, self._kind, self._memory))

    def put_back(self, kept: Kept) -> None:
        self.gradient.flat[:] = 0.0
        self.weights.flat[:], self.critic[:], self._kind, self._memory = kept


def logit_gradient(loss: Loss, temperature: float) -> np.ndarray:
    """Return d ``loss`` / d logits, (C, V)."""
    dist_logp, place, real = loss.now.dist_logp, loss.place, loss.place.mask
    chosen = place.context[real] * dist_logp.shape[1] + place.targets[real]
    pushed = np.bincount(chosen, weights=loss.token_gradient[real], minlength=dist_logp.size).reshape(dist_logp.shape)
    pushed = (pushed - np.exp(dist_logp) * pushed.sum(axis=-1, keepdims=True)) / temperature
    if loss.reference is not None and needs_distributions(loss.objective):
        ref_dist = loss.reference.dist_logp
        pushed += through_distributions(
            loss.objective,
            loss.terms,
            visits_of(place.context[None], dist_logp[None]),
            dist_logp[None],
            ref_dist,
            temperature,
        )[0]
    return np.asarray(pushed)


def _scores(trace: Trace, batch: Packing, temperature: float) -> Scores:
    dist_logp = log_softmax(trace.logits if temperature == 1 else trace.logits / temperature)
    logp = np.where(batch.present, dist_logp[batch.context, batch.targets], dist_logp.dtype.type(0))
    return Scores(dist_logp=dist_logp, logp=logp, stream=trace.stream)


def _single(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)
