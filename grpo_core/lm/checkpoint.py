"""Weights of a language model as a safetensors file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from grpo_core.config import Model
from grpo_core.errors import SettingsError
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.vocabulary import VOCABULARY
from grpo_core.regular_file import opened_regular, write_whole
from grpo_core.shipped import CHECKPOINT, resource
from grpo_core.text import tr

SIZE = ("layers", "width", "heads", "context")


def started(size: Model, seed: int, device: torch.device) -> Transformer:
    """The model of a run before its first update.

    Raises:
        SettingsError: its checkpoint cannot be used.
    """
    model = Transformer(size)
    if size.checkpoint == "untrained":
        initialized(model, seed)
    else:
        shipped = size.checkpoint == "shipped"
        load(model, resource(CHECKPOINT) if shipped else Path(size.checkpoint))
    return model.to(device)


def save_model(model: Transformer, path: Path, about: dict[str, str]) -> None:
    """Writes the weights of ``model`` and what they are; what stood at ``path`` is replaced once they are whole.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    size = {name: getattr(model.size, name) for name in SIZE}
    metadata = {"size": json.dumps(size), "vocabulary": "".join(VOCABULARY), **about}
    weights = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    write_whole(path, save(weights, metadata))


def is_checkpoint(path: Path) -> bool:
    """Whether ``path`` is an ordinary file that begins like a safetensors file."""
    try:
        with opened_regular(path) as file:
            head = file.read(9)
    except OSError:
        return False
    return len(head) == 9 and head[8:] == b"{"


def load(model: Transformer, path: Path) -> dict[str, str]:
    """Fills ``model`` with the weights at ``path``; returns what the file says of itself.

    Raises:
        SettingsError: the file cannot be read, is no checkpoint, or belongs to a model of another size.
    """

    def refuse(allowed: str) -> SettingsError:
        return SettingsError("model.checkpoint", str(path), allowed)

    expected = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    try:
        opened_regular(path.expanduser()).close()  # reading a pipe would wait for somebody to write to it
        with safe_open(path.expanduser(), framework="pt") as file:
            about = dict(file.metadata() or {})
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - no mapping
            # others are not loaded: a file with holes may stand for more than the computer has room for
            weights = {name: file.get_tensor(name).float() for name in shapes} if shapes == expected else {}
    except OSError as error:
        raise refuse(
            tr("it cannot be read ({strerror}); choose “shipped” or another file").format(
                strerror=error.strerror or tr("not found")
            )
        ) from None
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise refuse(tr("it is no safetensors file ({error})").format(error=error)) from None
    stored = _size(about)
    wanted = {name: getattr(model.size, name) for name in SIZE}
    if stored is not None and stored != wanted:
        sizes = ", ".join(f"{name} {value}" for name, value in stored.items())
        raise refuse(
            tr("it belongs to a model with {sizes}; choose those, “untrained”, or another checkpoint").format(
                sizes=sizes
            )
        )
    if about.get("vocabulary", "".join(VOCABULARY)) != "".join(VOCABULARY):
        raise refuse(tr("it was trained on other characters"))
    if shapes != expected:
        raise refuse(tr("its tensors are not those of this model"))
    if not all(bool(weight.isfinite().all()) for weight in weights.values()):
        raise refuse(tr("some of its weights are not finite numbers"))
    model.load_state_dict(weights)
    return about


def _size(about: dict[str, str]) -> dict[str, int] | None:
    try:
        size = json.loads(about["size"])
        return {name: int(size[name]) for name in SIZE}
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def device_named(name: str) -> torch.device:
    """The device called ``name``.

    Raises:
        SettingsError: it is not there.
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[name]:
        here = ", ".join(known for known, present in there.items() if present)
        raise SettingsError(
            "model.device", name, tr("this machine (or this build of torch) has none; here is {here}").format(here=here)
        )
    return torch.device(name)


def devices() -> list[str]:
    """What models can be computed on here, in words."""
    names = [tr("cpu ({cpu_count} cores)").format(cpu_count=os.cpu_count() or 1)]
    if torch.cuda.is_available():
        names.append(tr("cuda ({get_device_name})").format(get_device_name=torch.cuda.get_device_name()))
    if torch.backends.mps.is_available():
        names.append("mps")
    return names
