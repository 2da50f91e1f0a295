"""Memory that training a model from a folder needs, said before anything is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass

from grpo_core.config import Settings
from grpo_core.hf.attention import is_one, targets_in
from grpo_core.hf.folder import ModelFiles
from grpo_core.hf.refusal import refuse
from grpo_core.memory import GIB
from grpo_core.text import tr

LIBRARIES = 0.45 * GIB
"""torch, transformers and peft themselves, measured on Linux."""
PROMPT = 50
"""Tokens that a prompt is taken to have."""
KEPT = 34
"""Numbers that a layer keeps for the backward pass, for each token and each number of its width
(arXiv:2205.05198, equation 2, without the part that is quadratic in length)."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """Bytes, by what needs them.

    Attributes:
        weights: of the policy.
        reference: a frozen copy; 0 with a fresh adapter, whose reference is the model without it.
        training: gradients and the optimizer's two moments, for what is trained.
        logits: of the rows that are computed at once.
        trained: numbers that are trained.
    """

    weights: float
    reference: float
    training: float
    logits: float
    trained: int

    @property
    def whole(self) -> float:
        """Bytes of the process."""
        return LIBRARIES + self.weights + self.reference + self.training + self.logits

    @property
    def sentence(self) -> str:
        """The need, for people."""
        return tr("Trains {trained:,} numbers and needs about {whole:.1f} GB of memory.").format(
            trained=self.trained, whole=self.whole / 1e9
        )


def need(files: ModelFiles, settings: Settings) -> Need:
    """Memory that a run under ``settings`` needs."""
    model, task = settings.model, settings.language
    each = 2 if model.in_bfloat16 and model.adapter_rank else 4
    trained = files.parameters
    if model.adapter_rank:
        layers_of = targets_in(files.shapes) or ()
        touched = [shape for name, shape in files.shapes.items() if len(shape) == 2 and is_one(name, layers_of)]
        trained = sum(model.adapter_rank * sum(shape) for shape in touched)
    if model.adapter_rank and files.adapter is not None:
        trained = files.adapter.parameters
    frozen = (not model.adapter_rank or files.adapter is not None) and (
        settings.objective.beta != 0 or model.watch_reference
    )
    tables = [shape for shape in files.shapes.values() if len(shape) == 2]
    vocabulary, width = max(((max(shape), min(shape)) for shape in tables), default=(0, 1))
    rows = min(model.rows_at_once, task.prompts * settings.learner.group_size)
    layers = max(sum(math.prod(shape) for shape in tables) / (12 * width * width), 1)
    activations = rows * (task.max_tokens + PROMPT / settings.learner.group_size) * width * layers * KEPT * 4
    if model.checkpointing:  # the inputs of all layers and the inside of one; prompts are not shared then
        activations = rows * (task.max_tokens + PROMPT) * width * (layers + KEPT) * 4
    return Need(
        weights=each * files.parameters, reference=each * files.parameters * frozen,
        training=3 * 4 * trained, logits=rows * task.max_tokens * vocabulary * 4 * 5 + activations, trained=trained,
    )  # fmt: skip


def require_space(files: ModelFiles, settings: Settings, free: float | None = None) -> None:
    """Refuses a model that does not fit, before anything is loaded.

    Args:
        files: of the model.
        settings: of the run.
        free: bytes that are free on its device; None asks :func:`available`.

    Raises:
        SettingsError: naming what it needs and what there is.
    """
    there = available(settings.model.device) if free is None else free
    wanted = need(files, settings).whole
    if there is not None and wanted > there:
        raise refuse(
            files.path,
            tr(
                "training it needs about {wanted:.1f} GB of memory, and {there:.1f} GB are free; choose a smaller "
                "model, an adapter, or fewer completions at once"
            ).format(wanted=wanted / 1e9, there=there / 1e9),
        )


def available(device: str) -> float | None:
    """Bytes that are free on a device. None where that is not known."""
    if device != "cpu":
        return None
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123 - no ordinary file
            lines = dict(line.split(":", 1) for line in file)
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
