"""Reading and writing the weights of a language model as a safetensors file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from safetensors.torch import save

from grpo_core.config import Model
from grpo_core.errors import SettingsError
from grpo_core.lm.checkpoint_file import SIZE, checkpoint_path, read_checkpoint
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.vocabulary import VOCABULARY
from grpo_core.regular_file import opened_regular, write_whole
from grpo_core.text import plural, tr


def started(size: Model, seed: int, device: torch.device) -> Transformer:
    """Create the model of a run before its first update.

    Raises:
        SettingsError: its checkpoint cannot be used.
    """
    model = Transformer(size)
    if size.checkpoint == "untrained":
        initialized(model, seed)
    else:
        load(model, checkpoint_path(size))
    return model.to(device)


def save_model(model: Transformer, path: Path, about: dict[str, str]) -> None:
    """Write the weights of ``model`` with the metadata ``about``. ``path`` is replaced once the new file is complete.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    size = {name: getattr(model.size, name) for name in SIZE}
    metadata = {"size": json.dumps(size), "vocabulary": "".join(VOCABULARY), **about}
    weights = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    write_whole(path, save(weights, metadata))


def is_checkpoint(path: Path) -> bool:
    """Return whether ``path`` is a regular file that starts like a safetensors file."""
    try:
        with opened_regular(path) as file:
            head = file.read(9)
    except OSError:
        return False
    return len(head) == 9 and head[8:] == b"{"


def load(model: Transformer, path: Path) -> dict[str, str]:
    """Load the weights at ``path`` into ``model``. Return the file's metadata.

    Raises:
        SettingsError: the file cannot be read, is not a checkpoint, or belongs to a model of another size.
    """
    expected = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    weights, about = read_checkpoint(path, model.size, expected)
    model.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights.items()})
    return about


def device_named(name: str) -> torch.device:
    """Return the device called ``name``.

    Raises:
        SettingsError: the device is not available, or is untested.
    """
    if name == "mps":
        raise SettingsError("model.device", name, tr("this program has never been tested on it; choose cpu"))
    there = {"cpu": True, "cuda": torch.cuda.is_available()}
    if not there[name]:
        here = ", ".join(known for known, present in there.items() if present)
        raise SettingsError(
            "model.device",
            name,
            tr("this machine (or this build of torch) has none; available: {here}").format(here=here),
        )
    return torch.device(name)


def devices() -> list[str]:
    """Return the names of the devices available for models."""
    names = [
        plural("cpu ({cpu_count} core)", "cpu ({cpu_count} cores)", os.cpu_count() or 1).format(
            cpu_count=os.cpu_count() or 1
        )
    ]
    if torch.cuda.is_available():
        names.append(f"cuda ({torch.cuda.get_device_name()})")
    return names
