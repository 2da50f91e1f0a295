"""The trained weights of a model from a folder: stepped, kept for one update, written to a file and read back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from grpo_core.config import Optimizer, Settings
from grpo_core.errors import GrpoError
from grpo_core.hf.memory import keeps_copy
from grpo_core.hf.snapshots import Snapshots, require_folder
from grpo_core.lm.trained_weights import Kept, State, TrainedWeights
from grpo_core.snapshot_file import named_file
from grpo_core.text import tr


class FolderWeights(TrainedWeights):
    """Those weights of a model that an update changes (an adapter's, or every one), and the optimizer's memory of them.

    An adapter is small: a copy of it is kept in memory before each update, and its state goes into the run file. Every
    weight of a model is large: between updates of several passes a copy is kept, and their state goes into a file in
    the folder for snapshots, of which the run file holds the name.

    Args:
        model: its weights that require a gradient are trained.
        settings: of the first update.
        device: where the model is.
        digest: of the model's files; a snapshot is read for the same only.

    Attributes:
        snapshot_folder: where files with every weight are written; empty for none.
    """

    def __init__(self, model: Any, settings: Settings, *, device: torch.device, digest: str) -> None:
        self._named = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        super().__init__(list(self._named.values()), torch.zeros(1, device=device), settings.optimizer)
        self._whole = not settings.model.adapter_rank  # every weight of the model is trained
        self._moved, self._aside = False, False
        self.snapshot_folder = settings.model.snapshot_folder
        self._snapshots = Snapshots(digest)
        self._weights_aside = Snapshots(digest)  # they count for themselves: a question deletes no snapshot

    @property
    def trained_parameters(self) -> int:
        """Numbers that an update changes."""
        return sum(weight.numel() for weight in self._weights)

    def require_snapshot_folder(self, folder: str) -> None:
        """Make the folder for snapshots, where every weight is trained and such a folder is wanted.

        Raises:
            SettingsError: it cannot be made, or there is not enough room in it.
        """
        if folder and self._whole:
            require_folder(folder, 3 * 4 * self.trained_parameters)  # weight and two moments of Adam, 4 bytes each

    def stepped(self, wanted: Optimizer) -> float:
        """Take one optimizer step along the gradients. Returns their norm before it was limited.

        Nothing is changed if that norm is not finite.
        """
        norm = super().stepped(wanted)
        self._moved = self._moved or bool(np.isfinite(norm))
        return norm

    def forget_gradients(self) -> None:
        """Drop what was added up since the last step."""
        self._optimizer.zero_grad(set_to_none=True)

    def kept_for(self, settings: Settings) -> Kept | None:
        """A copy to go back to. None where every weight is trained in one pass, which is given up before its step."""
        self._moved = False
        return self.kept() if keeps_copy(settings) else None

    def put_back(self, kept: Kept | None) -> None:
        """Return to where :meth:`kept_for` was asked.

        Raises:
            GrpoError: nothing was kept, and the weights have moved.
        """
        if kept is not None:
            super().put_back(kept)
            return
        self.forget_gradients()
        if self._moved and not self._aside:
            raise GrpoError(
                tr("The update was given up after its step; the model is loaded and its updates are learned again.")
            )

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """As long as this lasts, the model may be elsewhere: its weights and what the optimizer remembers of them
        lie in a file in the folder for snapshots, and are read back afterwards.

        Raises:
            GrpoError: they could not be written, so that nothing has changed, or could not be read back.
        """
        kind, optimizer = self._kind, self._optimizer
        path = named_file(self._weights_aside.write(self.snapshot_folder, self._named, optimizer.state))
        if path is None:
            raise GrpoError(
                tr(
                    "The weights as they are now could not be put aside in {folder}, so the question was given up."
                ).format(folder=self.snapshot_folder)
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
            path.unlink(missing_ok=True)

    def state(self) -> State:
        """The adapter and its optimizer's memory. Where every weight is trained, the name of a file that holds them, or
        nothing where no snapshots are wanted: such a run is replayed."""
        if not self._whole:
            return super().state()
        if not self.snapshot_folder:
            return {}
        return self._snapshots.write(self.snapshot_folder, self._named, self._optimizer.state)

    def restore(self, state: State, optimizer: Optimizer) -> None:
        """Return to where :meth:`state` was taken.

        Raises:
            GrpoError: it belongs to another model, or its file cannot be read.
        """
        path = named_file(state)
        if path is None:
            super().restore(state, optimizer)
            return
        memory = self._snapshots.read_into(self._named, path, self.device)
        self._kind, self._optimizer = optimizer.kind, self._made(optimizer)
        self._optimizer.state.update(memory)
