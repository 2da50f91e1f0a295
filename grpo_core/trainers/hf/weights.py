"""The trained weights of a model from a folder: optimizer steps, snapshots for one update, and files.

The files are safetensors with all weights and the optimizer's state, in a folder of the user's choice. The run file
contains only the name of such a file (:mod:`grpo_core.snapshot_file`). Files are written under a temporary name first,
so that every snapshot file is complete, and are never overwritten. The last two of a run are kept.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from grpo_core.config import Optimizer, Settings
from grpo_core.errors import GrpoError, SettingsError, shortened
from grpo_core.lm.trained_weights import Kept, State, TrainedWeights, forget_casts
from grpo_core.snapshot_file import entry, named_file
from grpo_core.text import plural, tr
from grpo_core.trainers.hf.memory import keeps_copy


class FolderWeights(TrainedWeights):
    """The weights that an update changes (an adapter's, or all of a model's), with their optimizer state.

    An adapter is small: a copy of it is kept in memory before each update, and its state is stored in the run file. A
    full model is large: a copy is kept only for updates of several passes, and its state is stored in a file in the
    snapshot folder, which the run file names.

    Args:
        model: the model; weights that require a gradient are trained.
        settings: settings of the first update.
        digest: digest of the model's files; only snapshots with the same digest are read.

    Attributes:
        snapshot_folder: folder for files with all weights; empty for none.
    """

    def __init__(self, model: Any, settings: Settings, *, device: torch.device, digest: str) -> None:
        self._named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        super().__init__(list(self._named.values()), torch.zeros(1, device=device), settings.optimizer)
        self._whole = not settings.model.adapter_rank  # every weight of the model is trained
        self._moved, self._aside = False, False
        self.snapshot_folder = settings.model.snapshot_folder
        self._snapshots = Snapshots(digest)
        self._weights_aside = Snapshots(digest)  # separate, so that a question deletes none of the run's snapshots

    @property
    def trained_parameters(self) -> int:
        return sum(weight.numel() for weight in self._weights)

    def stepped(self, wanted: Optimizer) -> float:
        """Take one optimizer step along the gradients. Return their norm before clipping.

        Nothing is changed if that norm is not finite.
        """
        norm = super().stepped(wanted)
        self._moved = self._moved or bool(np.isfinite(norm))
        return norm

    def forget_gradients(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)

    def kept_for(self, settings: Settings) -> Kept | None:
        """Return a snapshot for undoing the next update, or None if every weight is trained in one pass, since such an
        update is cancelled before its step.
        """
        self._moved = False
        return self.kept() if keeps_copy(settings) else None

    def put_back(self, kept: Kept | None) -> None:
        """Restore the snapshot ``kept`` of :meth:`kept_for`.

        Raises:
            GrpoError: there is no snapshot, and the weights have changed.
        """
        if kept is not None:
            super().put_back(kept)
            return
        self.forget_gradients()
        if self._moved and not self._aside:
            raise GrpoError(
                tr(
                    "The update ended after its step; the model is being loaded, and its updates are being learned "
                    "again."
                )
            )

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Context manager in which the model's weights can be changed freely: they and the optimizer's state are saved
        in a file in the snapshot folder, and restored afterwards.

        Raises:
            GrpoError: they could not be written, in which case nothing has changed, or could not be read back.
        """
        kind, optimizer = self._kind, self._optimizer
        path = named_file(self._weights_aside.write(self.snapshot_folder, self._named, optimizer.state))
        if path is None:
            raise GrpoError(
                tr("The current weights could not be saved in {folder}, so the question was cancelled.").format(
                    folder=self.snapshot_folder
                )
            )
        optimizer.state.clear()
        self._aside = True
        try:
            yield
        finally:
            self._aside = False
            self.forget_gradients()
            self._kind, self._optimizer = kind, optimizer
            optimizer.state.update(self._weights_aside.read_into(self._named, path, self.device))
            forget_casts()
            path.unlink(missing_ok=True)

    def state(self) -> State:
        """Return the adapter and its optimizer state. If every weight is trained, return the name of a file that
        contains them, or nothing if no snapshots are requested; such a run is replayed.
        """
        if not self._whole:
            return super().state()
        if not self.snapshot_folder:
            return {}
        return self._snapshots.write(self.snapshot_folder, self._named, self._optimizer.state)

    def restore(self, state: State, optimizer: Optimizer) -> None:
        """Restore the state returned by :meth:`state`.

        Raises:
            GrpoError: the state belongs to another model, or its file cannot be read.
        """
        path = named_file(state)
        if path is None:
            super().restore(state, optimizer)
            return
        memory = self._snapshots.read_into(self._named, path, self.device)
        forget_casts()
        self._kind, self._optimizer = optimizer.kind, self._made(optimizer)
        self._optimizer.state.update(memory)


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
