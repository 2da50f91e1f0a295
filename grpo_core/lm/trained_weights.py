"""The state that an update changes, with its snapshots and optimizer steps: the weights of the model and of a critic,
and the optimizer's state.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grpo_core.config import Optimizer, Settings
from grpo_core.errors import GrpoError
from grpo_core.lm.device_sampling import Graphs
from grpo_core.lm.interface import TORCH
from grpo_core.text import tr

State = dict[str, np.ndarray]
"""``weights`` and, with Adam, ``adam_m`` and ``adam_v``, (n,) float32 each; ``adam_steps`` (1,); ``critic`` (D + 1,).
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """Snapshot of a policy before an update. ``memory`` is the optimizer's state, one entry per weight."""

    weights: list[Tensor]
    critic: Tensor
    kind: str
    optimizer: torch.optim.Optimizer
    memory: list[dict[str, Tensor]]


def forget_casts() -> None:
    """Make autocast convert the weights again. Call after changing them: within one context, autocast converts each
    trained weight to lower precision once, and does not notice that it changes.
    """
    torch.clear_autocast_cache()


MARKED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")


def spare_the_compiler() -> None:
    """Unwrap the optimizers' methods, so that they do not import the compiler. Call before creating the first
    optimizer.

    torch 2.13 marks some methods of its optimizers as not to be compiled, and imports the compiler to do so when they
    are first called, which takes a second. If a later torch does this differently, only that second is lost.
    """
    for name in MARKED:
        method = inspect.unwrap(getattr(torch.optim.Optimizer, name))
        if not hasattr(method, "__dynamo_disable"):
            setattr(method, "__dynamo_disable", method)


@torch.no_grad()
def step(optimizer: torch.optim.Optimizer) -> None:
    """Call ``optimizer.step()``, bypassing its hooks and the profiler."""
    inspect.unwrap(type(optimizer).step)(optimizer)


class TrainedWeights:
    """The weights of a model and of a critic, with their optimizer, for any kind of model.

    Args:
        weights: the weights, in an order that is the same each time the model is created.
        critic: (D + 1,), weights of a linear value function of the stream, and its bias.
        optimizer: settings of the first step.
    """

    engine = TORCH

    def __init__(self, weights: Sequence[nn.Parameter], critic: Tensor, optimizer: Optimizer) -> None:
        self._weights = tuple(weights)
        self.graphs = Graphs(self._weights)
        self.critic = critic
        self.device = critic.device
        self._kind = optimizer.kind
        self._optimizer = self._made(optimizer)

    def computing(self, settings: Settings) -> torch.autocast:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=settings.model.in_bfloat16)

    def make_space(self) -> bool:
        """Free CUDA graphs and torch's cached memory. Return False without graphs: a batch is computed at once."""
        if self.device.type != "cuda":
            return False
        freed = self.graphs.make_space()
        torch.cuda.empty_cache()
        return freed

    def stepped(self, wanted: Optimizer) -> float:
        """Take one optimizer step along the gradients. Return their norm before clipping.

        Nothing is changed if that norm is not finite.
        """
        if wanted.kind != self._kind:
            self._kind, self._optimizer = wanted.kind, self._made(wanted)
        rules: dict[str, Any] = {"lr": wanted.learning_rate, "weight_decay": wanted.weight_decay}
        if wanted.kind == "adam":
            rules |= {"betas": (wanted.adam_beta1, wanted.adam_beta2), "eps": wanted.adam_epsilon}
        self._optimizer.param_groups[0].update(rules)
        limit = float("inf") if wanted.max_grad_norm is None else wanted.max_grad_norm
        norm = float(torch.nn.utils.clip_grad_norm_(self._weights, limit))
        if np.isfinite(norm):
            step(self._optimizer)
            forget_casts()
        self._optimizer.zero_grad(set_to_none=True)
        return norm

    def state(self) -> State:
        """Return the weights, critic and the optimizer's state: everything that later updates depend on."""
        moments = list(self._moments())
        steps = moments[0]["step"] if moments and "step" in moments[0] else torch.zeros(())
        snapshot = {
            "weights": _flat(self._weights),
            "critic": self.critic.cpu().numpy().copy(),
            "adam_steps": np.array([int(steps)]),
        }
        if any("exp_avg" in moment for moment in moments):
            snapshot["adam_m"] = _flat(moment["exp_avg"] for moment in moments)
            snapshot["adam_v"] = _flat(moment["exp_avg_sq"] for moment in moments)
        return snapshot

    def restore(self, state: State, optimizer: Optimizer) -> None:
        """Restore the state returned by :meth:`state`.

        Raises:
            GrpoError: the state belongs to a model of another size.
        """
        count = sum(weight.numel() for weight in self._weights)
        if "weights" not in state or state["weights"].shape != (count,):
            raise GrpoError(
                tr("The recorded weights belong to a model of another size; a run cannot continue from them.")
            )
        with torch.no_grad():
            for weight, part in zip(self._weights, self._split(state["weights"]), strict=True):
                weight.copy_(part)
            self.critic.copy_(torch.from_numpy(state["critic"].copy()))
        forget_casts()
        self._kind, self._optimizer = optimizer.kind, self._made(optimizer)
        if "adam_m" in state:
            steps = torch.tensor(float(state["adam_steps"][0]), device=self.device)
            parts = zip(self._split(state["adam_m"]), self._split(state["adam_v"]), strict=True)
            for weight, (mean, square) in zip(self._weights, parts, strict=True):
                self._optimizer.state[weight] = {
                    "step": steps.clone(),
                    "exp_avg": mean.clone(),
                    "exp_avg_sq": square.clone(),
                }

    def kept(self) -> Kept:
        """Return a snapshot on the model's device, for undoing the next update."""
        memory = [
            {name: value.clone() for name, value in self._optimizer.state.get(weight, {}).items()}
            for weight in self._weights
        ]
        return Kept(
            weights=[weight.detach().clone() for weight in self._weights],
            critic=self.critic.clone(),
            kind=self._kind,
            optimizer=self._optimizer,
            memory=memory,
        )

    def put_back(self, kept: Kept) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            self.critic.copy_(kept.critic)
            for weight, value in zip(self._weights, kept.weights, strict=True):
                weight.copy_(value)
        forget_casts()
        self._kind, self._optimizer = kept.kind, kept.optimizer
        for weight, moments in zip(self._weights, kept.memory, strict=True):
            self._optimizer.state.pop(weight, None)
            if moments:
                self._optimizer.state[weight] = moments

    def _made(self, wanted: Optimizer) -> torch.optim.Optimizer:
        spare_the_compiler()
        match wanted.kind:
            case "sgd":
                return torch.optim.SGD(self._weights, lr=wanted.learning_rate)
            case "adam":
                return torch.optim.AdamW(self._weights, fused=self.device.type in ("cpu", "cuda"))
            case unknown:
                raise ValueError(f"there is no optimizer “{unknown}”")

    @property
    def optimizer_states(self) -> list[Tensor]:
        return [tensor for moments in self._moments() for tensor in moments.values()]

    def _moments(self) -> Iterator[dict[str, Tensor]]:
        for weight in self._weights:
            if weight in self._optimizer.state:
                yield self._optimizer.state[weight]

    def _split(self, flat: np.ndarray) -> Iterator[Tensor]:
        start = 0
        for weight in self._weights:
            part = np.ascontiguousarray(flat[start : start + weight.numel()], dtype=np.float32)
            yield torch.from_numpy(part.copy()).view(weight.shape).to(self.device)
            start += weight.numel()


def _flat(tensors: Any) -> np.ndarray:
    return np.concatenate([tensor.detach().float().cpu().numpy().ravel() for tensor in tensors])
