"""Layers that adapters are applied to, and folders with a trained adapter instead of a full model (LoRA, as saved by
peft). Nothing here needs torch.

Of its ``adapter_config.json`` only rank, α and the name of its model are used. peft supports much more: regular
expressions, modules to import, changes to the model's own weights. Fields that would change the numbers are rejected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from grpo_core.errors import SettingsError, shortened
from grpo_core.parsing import object_in
from grpo_core.regular_file import read_limited
from grpo_core.text import tr
from grpo_core.trainers.hf.refusal import refuse
from grpo_core.trainers.hf.tensors import Shapes, numbers, shapes_of

TARGETS = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),  # Llama, Qwen, Mistral, Gemma
    ("c_attn", "attn.c_proj"),  # GPT-2
    ("query_key_value", "attention.dense"),  # GPT-NeoX, Pythia
    ("query_key_value", "self_attention.dense"),  # Bloom, Falcon
    ("qkv_proj", "o_proj"),  # Phi-3
    ("q_proj", "k_proj", "v_proj", "self_attn.dense"),  # Phi
    ("q_proj", "k_proj", "v_proj", "out_proj"),  # OPT, GPT-Neo
    ("attn_q", "attn_k", "attn_v", "attn_output"),  # GGUF
    ("attn_qkv", "attn_output"),  # GGUF of GPT-2
)
"""Suffixes of the names of the layers in a model's attention, by family."""
NO_TARGETS = tr(
    "no adapter fits this model, because its attention layers have other names; use 0 to train every weight"
)

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LARGEST_CONFIG = 4 << 20
LARGEST_RANK = 1024
LARGEST_ALPHA = 4096.0
PREFIX = "base_model.model."
"""Prefix that peft puts before every layer's name."""
_HARMLESS = (
    "alora_invocation_tokens", "auto_mapping", "base_model_name_or_path", "fan_in_fan_out", "inference_mode",
    "layers_pattern", "layers_to_transform", "lora_alpha", "lora_dropout", "megatron_core", "peft_type", "peft_version",
    "qalora_group_size", "r", "revision", "runtime_config", "target_modules", "task_type", "use_rslora",
)  # fmt: skip # table, one row per line
"""Fields that are read here, or that have no effect once the adapter's tensors exist."""
_PLAIN: Mapping[str, tuple[Any, ...]] = {"bias": ("none",), "init_lora_weights": (True, "gaussian")}
"""Other fields that can be non-empty -> values with which they do not affect a trained adapter."""


@dataclass(frozen=True, kw_only=True)
class AdapterFiles:
    """A trained adapter, as described by its files.

    Attributes:
        base: the folder of the model that it belongs to.
        alpha: α; the adapter's output is multiplied by α / r.
        layers: names of the layers that it changes, as in transformers.
    """

    path: Path
    base: Path
    rank: int
    alpha: float
    layers: tuple[str, ...]
    shapes: Shapes

    @property
    def parameters(self) -> int:
        return numbers(self.shapes)

    def check(self, base: Shapes) -> None:
        """Check that the adapter fits a model whose tensors have the shapes ``base``.

        Raises:
            SettingsError: the adapter belongs to another model.
        """
        for layer in self.layers:
            inner, outer = (self.shapes[f"{PREFIX}{layer}.{part}"] for part in ("lora_A.weight", "lora_B.weight"))
            bare = layer.partition(".")[2]  # without the prefix of the body, which only some files have
            own = next((base[f"{name}.weight"] for name in (layer, bare) if f"{name}.weight" in base), None)
            wanted = (inner[1], outer[0])
            if own is None or own not in (wanted, wanted[::-1]):
                raise refuse(
                    self.path,
                    tr("its adapter does not fit the model in {base}: {layer} has a different shape there").format(
                        base=self.base, layer=layer
                    ),
                )

    def check_settings(self, rank: int, alpha: float) -> None:
        """Check that a run's settings name the adapter's own rank and α, or train every weight (rank 0).

        Raises:
            SettingsError: they name another rank or α.
        """
        if rank and (rank, alpha) != (self.rank, self.alpha):
            raise SettingsError(
                "model.adapter_rank",
                rank,
                tr(
                    "the folder contains an adapter of rank {rank} and α {alpha:g}; use both, or 0 to train every "
                    "weight"
                ).format(rank=self.rank, alpha=self.alpha),
            )


def adapter_in(folder: Path) -> AdapterFiles | None:
    """Return the adapter in ``folder``, or None if there is none.

    Raises:
        SettingsError: the adapter cannot be used, or its model is not in an adjacent folder.
    """
    if not (folder / CONFIG).exists():
        return None
    config = _config(folder)
    if config.get("peft_type") != "LORA":
        raise refuse(
            folder,
            tr("its adapter is of type {kind}; only LORA can be read").format(
                kind=shortened(config.get("peft_type"), 60)
            ),
        )
    for name, value in config.items():
        if value and name not in _HARMLESS and value not in _PLAIN.get(name, ()):
            raise refuse(
                folder,
                tr("its {file} asks for {name} = {value}, which is not supported here").format(
                    file=CONFIG, name=shortened(name, 60), value=shortened(value, 60)
                ),
            )
    rank, alpha = config.get("r"), config.get("lora_alpha", 0)
    scaled = type(alpha) in (int, float) and 0 < alpha <= LARGEST_ALPHA
    if type(rank) is not int or not 1 <= rank <= LARGEST_RANK or not scaled:
        raise refuse(folder, tr("its {file} does not give a usable r and lora_alpha").format(file=CONFIG))
    shapes = shapes_of(folder / WEIGHTS) if (folder / WEIGHTS).exists() else {}
    if not shapes:
        raise refuse(folder, tr("it does not contain {file}").format(file=WEIGHTS))
    return AdapterFiles(
        path=folder,
        base=_base(folder, config),
        rank=rank,
        layers=_layers(folder, shapes, rank),
        shapes=shapes,
        alpha=float(alpha) * (math.sqrt(rank) if config.get("use_rslora") else 1.0),
    )


def _config(folder: Path) -> dict[str, Any]:
    read = object_in(read_limited(folder / CONFIG, LARGEST_CONFIG))
    if read is None:
        raise refuse(folder, tr("its {file} is empty or not JSON").format(file=CONFIG))
    return read


def _base(folder: Path, config: Mapping[str, Any]) -> Path:
    """Find the adapter's model, in the same folder or in a sibling folder with its name.

    No other location is tried, since the configuration can name any path, even on the network.
    """
    if (folder / "config.json").is_file():
        return folder
    named = config.get("base_model_name_or_path")
    text = named if isinstance(named, str) else ""
    name = PurePosixPath(PureWindowsPath(text).as_posix()).name
    beside = folder.parent / name
    if not name or name in (".", "..") or not (beside / "config.json").is_file():
        raise refuse(
            folder,
            tr("it contains only an adapter; put the folder of its model, {name}, next to it").format(
                name=shortened(name, 60) or tr("which it does not name")
            ),
        )
    return beside


def _layers(folder: Path, shapes: Shapes, rank: int) -> tuple[str, ...]:
    """Return the names of the adapted layers, from the tensors of their low-rank pairs A (r, in) and B (out, r)."""
    pairs: dict[str, set[str]] = {}
    for name, shape in shapes.items():
        layer, separator, part = name.removeprefix(PREFIX).partition(".lora_")
        side = {"A.weight": 0, "B.weight": 1}.get(part)
        if not name.startswith(PREFIX) or not separator or side is None or len(shape) != 2 or shape[side] != rank:
            raise refuse(
                folder,
                tr(
                    "its adapter contains the tensor {name} of shape {shape}, which does not belong to rank {rank}"
                ).format(name=shortened(name, 60), shape=shape, rank=rank),
            )
        pairs.setdefault(layer, set()).add(part)
    torn = [layer for layer, parts in pairs.items() if len(parts) < 2]
    if torn:
        raise refuse(folder, tr("its adapter contains only one half of {layer}").format(layer=shortened(torn[0], 60)))
    return tuple(sorted(pairs))


def targets_in(names: Iterable[str]) -> tuple[str, ...] | None:
    """Return the first family of :data:`TARGETS` whose suffixes all occur, or None if there is none.

    Args:
        names: names of layers, or of their tensors ending in ``.weight``.
    """
    known = [name.removesuffix(".weight") for name in names]
    return next((each for each in TARGETS if all(any(is_one(name, (end,)) for name in known) for end in each)), None)


def is_one(name: str, endings: tuple[str, ...]) -> bool:
    """Return whether the name of a layer, or of its tensor ending in ``.weight``, has one of ``endings``."""
    layer = name.removesuffix(".weight")
    return any(layer == ending or layer.endswith(f".{ending}") for ending in endings)
