"""Snapshots of all weights of a model and of its optimizer, as safetensors files in a folder of the user's choice.

The run file contains only the name of such a file (:mod:`grpo_core.snapshot_file`). Files are written under a temporary
name first, so that every snapshot file is complete, and are never overwritten. The last two of a run are kept.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from grpo_core.errors import GrpoError, SettingsError, shortened
from grpo_core.snapshot_file import entry
from grpo_core.text import plural, tr

_WEIGHT = "weight"
"""Prefix of a weight's name. In the optimizer's state, the kind of state is the prefix instead."""
_ADAM_MEMORY = ("step", "exp_avg", "exp_avg_sq")
"""Names of the entries in torch's AdamW state."""
KEPT = 2
"""Number of snapshot files kept for each run."""


class Snapshots:
    """The snapshots that one run has written.

    Args:
        digest: digest of the model's files; only snapshots with the same digest are read.
    """

    def __init__(self, digest: str) -> None:
        self._digest = digest
        self._written: list[Path] = []

    def write(
        self, folder: str, weights: Mapping[str, Tensor], memory: Mapping[Tensor, Mapping[str, Tensor]]
    ) -> dict[str, np.ndarray]:
        """Write a new file with ``weights``, by name, and the optimizer's state ``memory``. Return the entry of
        ``resume`` that names it, empty if writing failed. A failure does not end the run, which is then replayed when
        it is resumed.
        """
        path = Path(folder).expanduser() / f"{uuid.uuid4().hex}.safetensors"
        partial = path.with_suffix(".partial")
        try:
            save_file(_tensors(weights, memory), partial, metadata={"model": self._digest})
            partial.replace(path)
        except (OSError, SafetensorError):
            with contextlib.suppress(OSError):
                partial.unlink()
            return {}
        self._written.append(path)
        while len(self._written) > KEPT:
            with contextlib.suppress(OSError):
                self._written.pop(0).unlink()
        return entry(path)

    def read_into(
        self, weights: Mapping[str, Tensor], path: Path, device: torch.device
    ) -> dict[Tensor, dict[str, Tensor]]:
        """Load a snapshot into ``weights``, by name. Return the optimizer's state of each weight.

        Raises:
            GrpoError: the snapshot cannot be read, or belongs to another model.
        """
        memory: dict[Tensor, dict[str, Tensor]] = {}
        with self._opened(path) as file, torch.no_grad():
            known = set(file.keys())
            for name, weight in weights.items():
                weight.copy_(file.get_tensor(f"{_WEIGHT}/{name}"))
                kinds = [kind for kind in _ADAM_MEMORY if f"{kind}/{name}" in known]
                if kinds:
                    memory[weight] = {kind: file.get_tensor(f"{kind}/{name}").to(device) for kind in kinds}
        return memory

    @contextlib.contextmanager
    def _opened(self, path: Path) -> Iterator[Any]:
        """Open a snapshot to read it tensor by tensor. It is refused if unreadable, or of another model."""
        try:
            with safe_open(path, framework="pt") as file:
                if (file.metadata() or {}).get("model") != self._digest:
                    raise GrpoError(tr("The snapshot {path} belongs to another model.").format(path=path))
                yield file
        except (OSError, SafetensorError, KeyError, RuntimeError) as error:
            raise GrpoError(
                tr(
                    "The snapshot {path} cannot be read ({error}); delete it, and the run will be learned again."
                ).format(path=path, error=shortened(error))
            ) from None


def _tensors(weights: Mapping[str, Tensor], memory: Mapping[Tensor, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, weight in weights.items():
        tensors[f"{_WEIGHT}/{name}"] = weight.detach()
        tensors |= {f"{kind}/{name}": value for kind, value in memory.get(weight, {}).items()}
    return {name: tensor.to("cpu").contiguous() for name, tensor in tensors.items()}


def require_folder(folder: str, size: float) -> None:
    """Create the folder for snapshots of ``size`` bytes.

    Raises:
        SettingsError: the folder cannot be created, or has too little free space.
    """
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise SettingsError(
            "model.snapshot_folder", folder, tr("it cannot be created ({reason})").format(reason=error.strerror)
        ) from None
    if free < (KEPT + 1) * size:
        raise SettingsError(
            "model.snapshot_folder",
            folder,
            plural(
                "{count} snapshot of {size:.1f} GB does not fit there; {free:.1f} GB are free",
                "{count} snapshots of {size:.1f} GB do not fit there; {free:.1f} GB are free",
                KEPT + 1,
            ).format(count=KEPT + 1, size=size / 1e9, free=free / 1e9),
        )
