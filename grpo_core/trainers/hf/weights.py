"""The trained weights of a model from a folder: optimizer steps, snapshots for one update, and files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from grpo_core.config import Optimizer, Settings
from grpo_core.errors import GrpoError
from grpo_core.lm.trained_weights import Kept, State, TrainedWeights, forget_casts
from grpo_core.snapshot_file import named_file
from grpo_core.text import tr
from grpo_core.trainers.hf.memory import keeps_copy
from grpo_core.trainers.hf.snapshots import Snapshots


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
