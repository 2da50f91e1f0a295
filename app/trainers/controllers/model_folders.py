"""The controller of models from folders: they are inspected in the background, trained in a new run, and exported."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.controllers.export import SCRIPTS
from app.jobs.runner import Poll
from app.messages.message import Severity
from app.sessions.file_task import FileTasks
from grpo_core.errors import GrpoError
from grpo_core.host.other_python import requirements
from grpo_core.runs import library
from grpo_core.shipped import shipped_model
from grpo_core.text import tr
from grpo_core.traces.recorders import RECORDER, RECORDER_SOURCE
from grpo_core.trainers.hf.folder import ModelFiles
from grpo_core.trainers.hf.memory import need, require_space
from grpo_core.trainers.hf.reading import read_model
from grpo_core.trainers.hf.refusal import NO_TRANSFORMERS
from grpo_core.trainers.hf.trl_script import script
from grpo_core.trainers.model_export import CHECKPOINT, take_up
from grpo_core.update_time import StoredTimes

if TYPE_CHECKING:
    from app.application import Application

LOOKING = "model-folder"
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


class ModelFolders(FileTasks):
    """Starts runs of models from folders, and writes checkpoints, trained models and scripts for TRL.

    A model's description and requirements are shown before it is loaded.
    """

    def __init__(self, program: Application, parent: QObject | None = None) -> None:
        super().__init__(program.messages, LOOKING, parent, abandon=True)
        self._program = program
        self._times = StoredTimes(program.paths.update_times)

    def open(self, path: Path) -> None:
        """Start a run of the model at ``path``, a folder or a GGUF file, or report why it cannot be used."""
        title = tr("Reading the model in {name}").format(name=path.name)
        self.start(title, partial(self._looked_at, path), self._on_looked_at)

    def _looked_at(self, path: Path, poll: Poll) -> tuple[ModelFiles, str]:
        """Return the model's files and a note on ignored generation settings, if it fits into memory."""
        other = self._program.pythons.usable(requirements(str(path)), gpu=False)
        if other is None and any(find_spec(name) is None for name in ("torch", "transformers", "peft")):
            raise GrpoError(NO_TRANSFORMERS)

        files, ignored = read_model(self._program.workspace.readers, path, poll=poll)
        require_space(files, files.settings)
        return files, ignored

    def _on_looked_at(self, found: tuple[ModelFiles, str]) -> None:
        files, ignored = found
        time = self._times.sentence(files.settings)  # before the model is loaded, which begins with the run
        self._program.runs.new_run_of(files.settings)
        sentences = (files.description, need(files, files.settings).sentence, files.reading, time, ignored)
        self._program.messages.say(" ".join(filter(None, sentences)), Severity.INFO)

    def open_shipped(self) -> None:
        """Start a run of the pretrained model included in the full package."""
        path = shipped_model()
        if path is not None:
            self.open(path)

    def take_up(self, folder: Path) -> None:
        """Continue from the checkpoint in ``folder`` in a new run, or report why that is impossible."""
        runs, path = self._program.runs, library.new_path(self._program.run_manager.folder, folder.name)
        title = tr("Loading {name}").format(name=folder.name)

        def open_it(sentence: str) -> None:
            self._program.messages.say(sentence, Severity.INFO)
            runs.open_own(path)

        runs.when_idle(partial(runs.start, title, lambda poll: take_up(folder, path), open_it))

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
            self._program.exporter.export(folder, text, "--model", kind, "--step", str(number))


def is_model(path: Path) -> bool:
    """Return whether ``path`` looks like a model rather than a recorded run.

    A model is a GGUF file, or a folder with the configuration of a model or an adapter.
    """
    if path.suffix.lower() == ".gguf" or (path / "adapter_config.json").is_file():
        return True
    return (path / "config.json").is_file() and ((path / "tokenizer.json").is_file() or any(path.glob("*.safetensors")))
