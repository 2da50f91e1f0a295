"""The controller of models from folders: choose one, inspect it in the background, and start a run of it."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.jobs.runner import Poll
from app.messages.message import Severity
from app.sessions.file_task import FileTasks
from grpo_core.errors import GrpoError
from grpo_core.host.other_python import requirements
from grpo_core.text import tr
from grpo_core.trainers.hf.folder import ModelFiles
from grpo_core.trainers.hf.memory import need, require_space
from grpo_core.trainers.hf.reading import read_model
from grpo_core.trainers.hf.refusal import NO_TRANSFORMERS
from grpo_core.update_time import StoredTimes

if TYPE_CHECKING:
    from app.application import Application

LOOKING = "model-folder"


class ModelFolders(FileTasks):
    """Starts runs of models from folders. A model's description and requirements are shown before it is loaded."""

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


def is_model(path: Path) -> bool:
    """Return whether ``path`` looks like a model rather than a recorded run.

    A model is a GGUF file, or a folder with the configuration of a model or an adapter.
    """
    if path.suffix.lower() == ".gguf" or (path / "adapter_config.json").is_file():
        return True
    return (path / "config.json").is_file() and ((path / "tokenizer.json").is_file() or any(path.glob("*.safetensors")))
