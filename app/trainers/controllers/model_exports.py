"""The controller of checkpoints and exports of models from folders: asks what to write and where."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.controllers.export import SCRIPTS
from app.messages.message import Severity
from app.trainers.controllers.model_folders import ModelFolders
from grpo_core.errors import GrpoError
from grpo_core.runs import library
from grpo_core.shipped import shipped_model
from grpo_core.text import tr
from grpo_core.traces.recorders import RECORDER, RECORDER_SOURCE
from grpo_core.trainers.checkpoint import CHECKPOINT, take_up
from grpo_core.trainers.hf.trl_script import script

if TYPE_CHECKING:
    from app.application import Application


EXPORTS = {
    "adapter": (
        tr("Export adapter into"),
        tr("{title} adapter"),
        tr("{target} holds the adapter after update {step}, with a card on how it was trained."),
    ),
    "merged": (
        tr("Export whole model into"),
        tr("{title} model"),
        tr("{target} holds the whole model after update {step}, with a card on how it was trained."),
    ),
    CHECKPOINT: (
        tr("Save checkpoint into"),
        tr("{title} checkpoint"),
        tr(
            "{target} holds a checkpoint after update {step}; to continue from it, open this folder with “My run” "
            "on the first screen."
        ),
    ),
}
"""Kind of export -> title of the dialog, name of the new folder, and message about what it holds."""


class ModelExports:
    """Checkpoints, trained models, and scripts for TRL."""

    def __init__(self, program: Application, folders: ModelFolders) -> None:
        self._program, self._folders = program, folders

    def open_shipped(self) -> None:
        """Start a run of the pretrained model included in the full package."""
        path = shipped_model()
        if path is not None:
            self._folders.open(path)

    def take_up(self, folder: Path) -> None:
        """Continue from the checkpoint in ``folder`` in a new run, or report why that is impossible."""
        path = library.new_path(self._program.run_manager.folder, folder.name)
        title = tr("Loading {name}").format(name=folder.name)
        opened = partial(self._program.runs.open_own, path)
        self._program.run_files.create(title, lambda poll: take_up(folder, path), opened)

    def ask_trl_script(self) -> None:
        suggestion = str(Path.home() / "train.py")
        target = self._program.exports.ask_file(tr("Export as TRL script"), suggestion, SCRIPTS)
        if target is not None:
            self.write_trl_script(target)

    def write_trl_script(self, path: Path) -> None:
        """Write the current settings as a script for TRL with the recorder next to it, or say what TRL lacks."""
        try:
            text = script(self._program.workspace.editing.wanted)
        except GrpoError as error:
            self._program.messages.say(str(error), Severity.ERROR)
            return
        self._program.exporter.write(
            {path: text.encode("utf-8"), path.with_name(RECORDER): RECORDER_SOURCE.read_bytes()},
            tr(
                "The settings are written to {path}, for TRL 1.16 with accelerate launch. The recorder is "
                "next to it as {recorder}; the folder runs/trl that it fills can be opened here."
            ).format(path=path, recorder=RECORDER),
        )

    def ask_export(self, kind: str) -> None:
        """Ask for a folder, and write the model after the current update, or the last one, to a new folder in it.

        ``kind`` selects the part, as in ``grpo-lab export --model``.
        """
        title, name, written = EXPORTS[kind]
        run = self._program.workspace.run
        assert run is not None
        folder = self._program.exports.ask_folder(title, name.format(title=run.title))
        if folder is not None:
            view = self._program.workspace.view
            number = view.cursor.step or view.head
            text = written.format(target=folder, step=number)
            self._program.exporter.start(folder, text, "--model", kind, "--step", str(number))
