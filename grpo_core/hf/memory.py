"""Memory that training a model from a folder needs, said before anything is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from grpo_core.config import Settings
from grpo_core.hf.attention import is_one, targets_in
from grpo_core.hf.folder import ModelFiles
from grpo_core.hf.refusal import refuse
from grpo_core.memory import GIB
from grpo_core.text import tr

LIBRARIES = 0.42 * GIB
"""torch, transformers and peft themselves, measured on Linux."""
PROMPT = 50
"""Tokens that a prompt is taken to have."""
KEPT = 1.1
"""Numbers that the backward pass keeps for each token, over those that go into and come out of the layers' tables.

Counted on Llama, Qwen2 and GPT-NeoX with one to eight heads a key and feed-forward layers of two to four widths: 0.9 to
1.1. GPT-2, whose activation keeps every step of its formula, has up to 1.9.
"""
LEARNED_FROM, COMPARED = 5, 7
"""Tables (rows, tokens, vocabulary) that are held at once while a chunk of rows is learned from, and while it is
compared with the reference, without gradients."""
LEFT_OVER = 0.65
"""Share of the activations whose memory the allocator still holds when rows are compared. Measured, as is the next."""
BESIDE = 0.1 * GIB
"""Bytes that comparing takes beside that."""
GROWING = 3
"""Bytes taken for keys and values while they grow token by token, over those of the longest."""
DRAWING = 36
"""Bytes that drawing a token takes for each token of the vocabulary: three tables of single precision, three of
double."""
EXPERTS = 8
"""Experts that a token passes at most, where a model has several."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """Bytes, by what needs them.

    Attributes:
        weights: of the policy.
        reference: a frozen copy; 0 with a fresh adapter, whose reference is the model without it.
        moments: the optimizer's, of what is trained.
        kept: the copy of what is trained, and of its moments, that an update which is given up goes back to.
        gradients: of what is trained. Twice where several chunks of rows add theirs up, since the prompts' part is
            computed after that of the completions.
        learning: distributions and activations of the rows that are learned from at once.
        comparing: the same where they are compared with the reference; 0 without one.
        sampling: keys and values of the rows that are sampled, and what makes them longer.
        trained: numbers that are trained.
    """

    weights: float
    reference: float
    moments: float
    kept: float
    gradients: float
    learning: float
    comparing: float
    sampling: float
    trained: int

    @property
    def whole(self) -> float:
        """Bytes of the process where it needs the most: while it learns, compares or samples."""
        always = LIBRARIES + self.weights + self.reference + self.moments + self.kept
        return always + max(self.gradients + self.learning, self.comparing, self.sampling)

    @property
    def sentence(self) -> str:
        """The need, for people."""
        return tr("Trains {trained:,} numbers and needs about {whole:.1f} GB of memory.").format(
            trained=self.trained, whole=self.whole / 1e9
        )


def need(files: ModelFiles, settings: Settings) -> Need:
    """Memory that a run under ``settings`` needs."""
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
    inside = KEPT * sum(layer.activations for layer in layers)
    # each row attends to its prompt, whose keys and values are copied for it, and once more for every head
    attended = rows * PROMPT * sum(layer.cached + 2 * layer.width for layer in layers)
    if model.checkpointing:  # the inputs of all layers and the inside of one; prompts are not shared then
        read, attended = task.max_tokens + PROMPT, 0
        inside = len(layers) * layers[0].width + KEPT * max(layer.activations for layer in layers) if layers else 0
    vocabulary = max((max(shape) for shape in files.shapes.values() if len(shape) == 2), default=0)
    cached = sum(layer.cached for layer in layers)
    gradients = 4 * trained * (2 if completions > rows and not model.checkpointing else 1)
    table, activations = 4 * rows * task.max_tokens * vocabulary, 4 * (rows * read * inside + attended)
    return Need(
        weights=each * files.parameters, reference=each * files.parameters * frozen, moments=moments,
        kept=4 * trained + moments if keeps_copy(settings) else 0, gradients=gradients,
        learning=LEARNED_FROM * table + activations,
        comparing=(COMPARED * table + LEFT_OVER * activations + BESIDE) * watched,
        sampling=completions * (GROWING * 4 * (task.max_tokens + PROMPT) * cached + DRAWING * vocabulary),
        trained=trained,
    )  # fmt: skip


def keeps_copy(settings: Settings) -> bool:
    """Whether a copy of what is trained is kept during an update. Where every weight is trained in one pass, none is:
    such an update is given up before its step."""
    return bool(settings.model.adapter_rank) or settings.learner.mu > 1


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """One layer of a model, in numbers a token: its width, what its tables take and give, and its keys and values."""

    width: int
    activations: int
    cached: int


def _layers(files: ModelFiles) -> list[_Layer]:
    """The layers by their tables, whose names hold the number of their layer."""
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
    if there is None or wanted <= there:
        return
    needs = tr("training it needs about {wanted:.1f} GB of memory, and {there:.1f} GB are free").format(
        wanted=wanted / 1e9, there=there / 1e9
    )
    no_adapter = files.adapter is not None or targets_in(files.shapes) is None
    fitting = (
        (name, need(files, settings.replace(changes)).whole)
        for name, changes in SMALLER.items()
        if not (no_adapter and "model.adapter_rank" in changes)
    )
    name, less = next(((name, less) for name, less in fitting if less <= there), ("", 0.0))
    if not name:
        raise refuse(files.path, tr("{needs}; choose a smaller model").format(needs=needs))
    raise refuse(
        files.path,
        tr("{needs}; {name} would need about {less:.1f} GB").format(needs=needs, name=name, less=less / 1e9),
    )


SMALLER: dict[str, dict[str, Any]] = {
    tr("one pass over each batch (learner.mu=1)"): {"learner.mu": 1},
    tr("four completions at once (model.rows_at_once=4)"): {"model.rows_at_once": 4},
    tr("checkpointing (model.checkpointing=true)"): {"model.checkpointing": True},
    tr("an adapter (model.adapter_rank=8)"): {"model.adapter_rank": 8},
    tr("an adapter with checkpointing, one completion at once"): {
        "model.adapter_rank": 8, "model.checkpointing": True, "model.rows_at_once": 1,
    },
}  # fmt: skip
"""Settings under which less memory is needed, by what a refusal calls them, in the order in which they are offered."""


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
