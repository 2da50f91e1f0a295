"""Estimate of the memory needed to train a model from a folder, made before anything is loaded."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from grpo_core.config import Settings
from grpo_core.memory import GIB
from grpo_core.text import plural, tr
from grpo_core.trainers.hf.adapter_files import is_one, targets_in
from grpo_core.trainers.hf.folder import ModelFiles
from grpo_core.trainers.hf.refusal import refuse
from grpo_core.trainers.hf.token_tree import is_worth_repeating

LIBRARIES = 0.42 * GIB
"""Memory used by torch, transformers and peft themselves, measured on Linux."""
PROMPT = 50
"""Assumed number of tokens in a prompt."""
KEPT = 1.1
"""Numbers stored for the backward pass per token, relative to the inputs and outputs of the layers' matrices.

Measured on Llama, Qwen2 and GPT-NeoX with one to eight query heads per key head and feed-forward layers of two to four
times the width: 0.9 to 1.1. GPT-2, whose activation function stores every step of its formula, has up to 1.9.
"""
LEARNED_FROM, COMPARED = 5, 7
"""Number of tables (rows, tokens, vocabulary) in memory at once while a chunk of rows is trained on, and while it is
compared with the reference, without gradients.
"""
LEFT_OVER = 0.65
"""Share of the activations' memory that the allocator still holds when rows are compared with the reference. Measured.
"""
BESIDE = 0.1 * GIB
"""Additional bytes that the comparison with the reference needs. Measured."""
GROWING = 3
"""Memory of keys and values while they grow token by token, relative to their final size."""
DRAWING = 36
"""Bytes needed to sample a token, per token of the vocabulary: three tables of single precision, three of double."""
SPARE = 0.05
"""Share of a GPU's memory for rows that are learned from at once beyond those that the settings name. A GPU computes
many rows in the time of a few, and short completions need little memory.
"""
EXPERTS = 8
"""Maximum number of experts that a token passes through, in models with experts."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """Memory need in bytes, by purpose.

    Attributes:
        reference: a frozen copy; 0 with a new adapter, whose reference is the model without it.
        moments: the optimizer's state for the trained weights.
        kept: the copy of the trained weights and their moments that a cancelled update returns to.
        graphs: keys and values of the sampled rows that stay in their places for a CUDA graph.
        gradients: gradients of the trained weights; twice that if several chunks of rows are accumulated, since the
            part for the prompts is computed after the part for the completions.
        learning: distributions and activations of the rows that are trained on at once.
        comparing: the same while they are compared with the reference; 0 without a reference.
        sampling: keys and values of the sampled rows, and the memory needed to extend them.
        trained: number of trained parameters.
    """

    weights: float
    reference: float
    moments: float
    kept: float
    graphs: float
    gradients: float
    learning: float
    comparing: float
    sampling: float
    trained: int

    @property
    def whole(self) -> float:
        """Peak memory of the process in bytes while it trains, compares or samples."""
        always = LIBRARIES + self.weights + self.reference + self.moments + self.kept
        learned = self.graphs + max(self.gradients + self.learning, self.comparing)
        return always + max(learned, self.sampling)

    @property
    def sentence(self) -> str:
        return plural(
            "Trains {trained:,} number and needs about {whole:.1f} GB of memory.",
            "Trains {trained:,} numbers and needs about {whole:.1f} GB of memory.",
            self.trained,
        ).format(trained=self.trained, whole=self.whole / 1e9)


def need(files: ModelFiles, settings: Settings) -> Need:
    """Estimate the memory that a run under ``settings`` needs."""
    model, task, group = settings.model, settings.language, settings.learner.group_size
    each = 2 if model.in_bfloat16 and model.adapter_rank else 4
    trained = files.parameters
    if model.adapter_rank:
        layers_of = targets_in(files.shapes) or ()
        touched = [shape for name, shape in files.shapes.items() if len(shape) == 2 and is_one(name, layers_of)]
        trained = sum(model.adapter_rank * sum(shape) for shape in touched)
    if model.adapter_rank and files.adapter is not None:
        trained = files.adapter.parameters
    watched = settings.objective.beta != 0 or model.watch_reference
    frozen = watched and (not model.adapter_rank or files.adapter is not None)
    moments = (2 if settings.optimizer.kind == "adam" else 0) * 4 * trained
    layers = _layers(files)
    completions = task.prompts * group
    rows = min(model.rows_at_once, completions)
    read = task.max_tokens + PROMPT / group
    on_gpu = model.device == "cuda"
    inside = KEPT * sum(layer.activations for layer in layers)
    # each row attends to its prompt, whose keys and values are copied for it, and again for every head
    attended = rows * PROMPT * sum(layer.cached + 2 * layer.width for layer in layers)
    if model.checkpointing or (on_gpu and is_worth_repeating(rows / group, rows, PROMPT, task.max_tokens)):
        read, attended = task.max_tokens + PROMPT, 0  # prompts not shared
    if model.checkpointing:  # inputs of all layers plus the inside of one
        inside = len(layers) * layers[0].width + KEPT * max(layer.activations for layer in layers) if layers else 0
    vocabulary = max((max(shape) for shape in files.shapes.values() if len(shape) == 2), default=0)
    cached = sum(layer.cached for layer in layers)
    gradients = 4 * trained * (2 if completions > rows and not model.checkpointing else 1)
    table, activations = 4 * rows * task.max_tokens * vocabulary, 4 * (rows * read * inside + attended)
    return Need(
        weights=each * files.parameters,
        reference=each * files.parameters * frozen,
        moments=moments,
        kept=4 * trained + moments if keeps_copy(settings) else 0,
        graphs=4 * completions * (task.max_tokens + PROMPT) * cached * on_gpu,
        gradients=gradients,
        learning=LEARNED_FROM * table + activations,
        comparing=(COMPARED * table + LEFT_OVER * activations + BESIDE) * watched,
        sampling=completions * (GROWING * 4 * (task.max_tokens + PROMPT) * cached + DRAWING * vocabulary),
        trained=trained,
    )


def rows_within(files: ModelFiles, settings: Settings, spare: float) -> int:
    """Return the number of completions that are learned from at once: that of ``settings``, or as many as fit into
    ``spare`` bytes if these are more, in chunks of equal size.
    """
    each = need(files, settings.replace({"model.rows_at_once": 1})).learning if spare else 0.0
    most = int(spare / each) if each else 0
    if most <= settings.model.rows_at_once:
        return settings.model.rows_at_once
    completions = settings.language.prompts * settings.learner.group_size
    return math.ceil(completions / math.ceil(completions / most))


def keeps_copy(settings: Settings) -> bool:
    """Return whether a copy of the trained weights is kept during an update. It is not needed if every weight is
    trained in one pass, since such an update is cancelled before its step.
    """
    return bool(settings.model.adapter_rank) or settings.learner.mu > 1


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """Sizes of one layer, in numbers per token: its width, the inputs and outputs of its matrices, and its keys and
    values.
    """

    width: int
    activations: int
    cached: int


def _layers(files: ModelFiles) -> list[_Layer]:
    """Return the layers and their matrices, identified by the layer number in tensor names."""
    tables: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for name, shape in files.shapes.items():
        number = _NUMBER.search(name)
        if number and len(shape) == 2 and int((_EXPERT.search(name) or ["", "0"])[1]) < EXPERTS:
            tables.setdefault(number[1], []).append((name, shape))
    layers = []
    for each in tables.values():
        width = min(shape[-1] for _, shape in each)
        cached = sum(min(shape) for name, shape in each if is_one(name, KEYS_AND_VALUES))
        activations = sum(sum(shape) for _, shape in each)
        layers.append(_Layer(width=width, activations=activations, cached=cached or 2 * width))
    return layers


KEYS_AND_VALUES = ("k_proj", "v_proj", "attn_k", "attn_v")
_NUMBER = re.compile(r"(?:^|\.)(?:layers|h|blk|blocks|layer)\.(\d+)\.")
_EXPERT = re.compile(r"\.experts\.(\d+)\.")


def require_space(files: ModelFiles, settings: Settings, free: float | None = None) -> None:
    """Reject a model that does not fit into memory, before anything is loaded.

    Args:
        free: free bytes on its device; by default :func:`available`.

    Raises:
        SettingsError: there is too little memory; the message names the need and the available memory.
    """
    there = available(settings.model.device) if free is None else free
    wanted = need(files, settings).whole
    if there is None or wanted <= there:
        return
    needs = tr("training it needs about {wanted:.1f} GB of memory, but {there:.1f} GB are free").format(
        wanted=wanted / 1e9, there=there / 1e9
    )
    name, less = _smaller(files, settings, there)
    if not name:
        raise refuse(files.path, tr("{needs}; choose a smaller model").format(needs=needs))
    raise refuse(
        files.path,
        tr("{needs}; {name} would need about {less:.1f} GB").format(needs=needs, name=name, less=less / 1e9),
    )


def _smaller(files: ModelFiles, settings: Settings, there: float) -> tuple[str, float]:
    """Return the name of settings that fit into ``there`` bytes, empty if none do, and the bytes they need."""
    no_adapter = files.adapter is not None or targets_in(files.shapes) is None
    fitting = (
        (name, need(files, settings.replace(changes)).whole)
        for name, changes in SMALLER.items()
        if not (no_adapter and "model.adapter_rank" in changes)
    )
    return next(((name, less) for name, less in fitting if less <= there), ("", 0.0))


def smaller_sentence(files: ModelFiles, settings: Settings) -> str:
    """Return a sentence that names settings that need at least a fifth less memory than ``settings`` with one row at a
    time, which has been tried. Empty if there are none.
    """
    one_row = settings.replace({"model.rows_at_once": 1})
    now = need(files, one_row).whole
    name, less = _smaller(files, one_row, 0.8 * now)
    if not name:
        return ""
    return tr("By estimate, {name} needs {less:.1f} GB instead of {now:.1f} GB.").format(
        name=name, less=less / 1e9, now=now / 1e9
    )


SMALLER: dict[str, dict[str, Any]] = {
    tr("one pass over each batch (learner.mu=1)"): {"learner.mu": 1},
    tr("four completions at once (model.rows_at_once=4)"): {"model.rows_at_once": 4},
    tr("checkpointing (model.checkpointing=true)"): {"model.checkpointing": True},
    tr("an adapter (model.adapter_rank=8)"): {"model.adapter_rank": 8},
    tr("an adapter with checkpointing, one completion at once"): {
        "model.adapter_rank": 8,
        "model.checkpointing": True,
        "model.rows_at_once": 1,
    },
}
"""Settings that need less memory, by their names in an error message, in the order in which they are suggested."""


def available(device: str) -> float | None:
    """Return the number of bytes free on a device, or None if unknown, as for every device but the CPU."""
    if device != "cpu":
        return None
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123 - no ordinary file
            lines = dict(line.split(":", 1) for line in file)
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
