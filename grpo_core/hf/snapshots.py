"""Snapshots of every weight of a model and of its optimizer, as safetensors in a folder of the user's beside the run.

The run file holds the name of such a file only (:mod:`grpo_core.snapshot_file`). Files are written under another name
first, so that one that is there is whole, and never written twice; of one run the last two stay.
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
from grpo_core.text import tr

_WEIGHT = "weight"
"""What stands before the name of a weight; before what the optimizer remembers of it stands the kind of that."""
_ADAM_MEMORY = ("step", "exp_avg", "exp_avg_sq")
"""What torch's AdamW remembers of a weight, by its own names."""
KEPT = 2
"""Files of one run that stay."""


class Snapshots:
    """The snapshots that one run has written.

    Args:
        digest: of the model's files; a snapshot is read for the same only.
    """

    def __init__(self, digest: str) -> None:
        self._digest = digest
        self._written: list[Path] = []

    def write(
        self, folder: str, weights: Mapping[str, Tensor], memory: Mapping[Tensor, Mapping[str, Tensor]]
    ) -> dict[str, np.ndarray]:
        """The entry of ``resume`` that names a new file with ``weights``, by name, and the optimizer's ``memory`` of
        them. Empty where it could not be written, which ends no run: it is learned again when it is taken up."""
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
        """Gives ``weights``, by name, the values that a snapshot holds. Returns the optimizer's memory of each.

        Raises:
            GrpoError: it cannot be read, or belongs to another model.
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
        """A snapshot as safetensors opens it, to be read tensor by tensor.

        Raises:
            GrpoError: it cannot be read, or belongs to another model.
        """
        try:
            with safe_open(path, framework="pt") as file:
                if (file.metadata() or {}).get("model") != self._digest:
                    raise GrpoError(tr("The snapshot {path} belongs to another model.").format(path=path))
                yield file
        except (OSError, SafetensorError, KeyError, RuntimeError) as error:
            raise GrpoError(
                tr("The snapshot {path} cannot be read ({error}); delete it, and the run is learned again.").format(
                    path=path, error=shortened(error)
                )
            ) from None


def _tensors(
    weights: Mapping[str, Tensor], memory: Mapping[Tensor, Mapping[str, Tensor]]
) -> dict[str, Tensor]:  # fmt: skip
    """Tensors of a snapshot, by name: every weight, and what the optimizer remembers of it."""
    tensors: dict[str, Tensor] = {}
    for name, weight in weights.items():
        tensors[f"{_WEIGHT}/{name}"] = weight.detach()
        tensors |= {f"{kind}/{name}": value for kind, value in memory.get(weight, {}).items()}
    return {name: tensor.to("cpu").contiguous() for name, tensor in tensors.items()}


def require_folder(folder: str, size: float) -> None:
    """Makes the folder for snapshots of so many bytes.

    Raises:
        SettingsError: it cannot be made, or there is not enough room in it.
    """
    path = Path(folder).expanduser()
    try:
        path.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise SettingsError(
            "model.snapshot_folder", folder, tr("it cannot be made ({reason})").format(reason=error.strerror)
        ) from None
    if free < (KEPT + 1) * size:
        raise SettingsError(
            "model.snapshot_folder",
            folder,
            tr("{count} snapshots of {size:.1f} GB do not fit there: {free:.1f} GB are free").format(
                count=KEPT + 1, size=size / 1e9, free=free / 1e9
            ),
        )
