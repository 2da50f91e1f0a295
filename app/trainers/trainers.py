"""Additions of the part for other trainers to a window: their runs, their examination, and models from folders."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QApplication

from app.build import FULL, this_build
from app.commands.command import Command
from app.controllers.runs import OWN_SUFFIX
from app.messages.message import Severity
from app.panel_registry import WHAT_IF
from app.part import WindowPart
from app.settings.files import exists, write_or_say
from app.theme.file_dialogs import folder_to_use
from app.trainers.commands.file_entries import file_entries
from app.trainers.controllers.examinations import Examinations
from app.trainers.controllers.model_folders import ModelFolders, is_model
from app.trainers.controllers.recorded_runs import RecordedRuns
from app.trainers.examination import examination_of
from app.trainers.panel_rows import MY_RUN, STEP_SUMMARY
from app.widgets.panel import Panel
from app.widgets.panel_spec import Door
from app.workspace.run_handle import RunHandle
from grpo_core.config.fields import DETAILS
from grpo_core.errors import GrpoError
from grpo_core.foreign.formats import place_of
from grpo_core.runs import library
from grpo_core.runs.session import SUFFIX
from grpo_core.shipped import shipped_model
from grpo_core.text import tr
from grpo_core.trainers.hf.folder import known
from grpo_core.trainers.hf.reading import read_model
from grpo_core.trainers.model_export import is_checkpoint
from grpo_core.trainers.run_paths import pasted_name

if TYPE_CHECKING:
    from app.application import Application

LONGEST_PASTE = 10_000
"""Number of characters of a pasted text in which paths are looked for."""
OF_MY_RUN = (
    "playback", "what if", "saving", "pictures", "data", "models", "completions", "token_inspector", "token_overview",
    "reward_weights", "run_comparison", "diagnosis", "step_summary", "step_detail", "training_history", "controls",
    DETAILS,
)  # fmt: skip # short names, side by side


class Trainers(WindowPart):
    """The controllers of recorded runs and of models from folders in one window.

    Attributes:
        recorded_runs, examinations, model_folders: the controllers, by subject.
    """

    name = "trainers"
    files = tr("Runs of other trainers (*.json *.parquet *.db *.jsonl *.csv *.log *.txt *tfevents*)")

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._program = program
        self.examination = examination_of(program.workspace)
        self.recorded_runs = RecordedRuns(program, self)
        self.examinations = Examinations(program, self.recorded_runs, self)
        self.model_folders = ModelFolders(program, self)

    # -- the rows ------------------------------------------------------------------------------------------------------

    def commands(self) -> list[Command]:
        return file_entries(self._program, self.model_folders)

    def doors(self) -> tuple[Door, ...]:
        mine = Door(
            id="my_run",
            title=tr("My run"),
            sentence=tr("What your own trainer wrote: which rewards, tokens and settings moved the policy, and why."),
            icon="door-run",
            panel=MY_RUN.id,
            subjects=frozenset(OF_MY_RUN),
            begin=lambda: None,
        )
        return (mine,)

    def connect_panel(self, panel: Panel) -> None:
        if panel.id == MY_RUN.id:
            mine: Any = panel
            mine.file.clicked.connect(self._program.runs.ask_open)
            mine.folder.clicked.connect(self.ask_open_folder)
            mine.paste.clicked.connect(self.open_pasted)
            mine.run_wanted.connect(self._program.runs.open_path)
            mine.list_runs(self._program.run_manager.folder)
        if panel.id == STEP_SUMMARY.id:
            summary: Any = panel
            summary.other.clicked.connect(partial(self._program.window.show_panel, WHAT_IF))

    def checks(self, driven: Any) -> tuple[tuple[str, Callable[[], str]], ...]:
        from app.trainers.self_test import pretrained

        if this_build().kind == FULL or (shipped_model() is not None and find_spec("transformers") is not None):
            return (("a pretrained model learns", lambda: pretrained(driven)),)
        return ()

    def closers(self) -> tuple[Callable[[], object], ...]:
        return self.recorded_runs.close, self.model_folders.close

    # -- opening -------------------------------------------------------------------------------------------------------

    def opener(self, path: Path) -> Callable[[Path], object] | None:
        if exists(path) and is_checkpoint(path):
            return self.model_folders.take_up
        if exists(path) and is_model(path):
            return self.model_folders.open
        if path.suffix.lower() not in (OWN_SUFFIX, SUFFIX) and exists(place_of(path)):
            return partial(self.recorded_runs.open, otherwise=self._program.runs.open_own)
        return None

    def open_recorded(self, path: Path) -> bool:
        self.recorded_runs.open(path, lambda _: None)
        return True

    def open_pasted(self) -> None:
        """Open what is on the clipboard: files, the path of a file or a folder, or a log as printed or stored."""
        text = QApplication.clipboard().text().strip()
        lines = [line for line in text[:LONGEST_PASTE].splitlines() if line]
        named = [Path(QUrl(line).toLocalFile() if line.startswith("file:") else line) for line in lines]
        paths = [path for path in named if exists(place_of(path))]
        if not paths and (text[:1] in ("{", "[") or len(lines) > 1):
            folder = library.free_name(self._program.paths.cache / tr("Pasted"))
            paths = [folder / pasted_name(text)]
            if refused := write_or_say(paths[0], text.encode(), tr("The pasted text")):
                self._program.messages.say(refused)
                return
        if not paths:
            self._program.messages.say(
                tr("The clipboard has nothing to open: copy a path, or the lines of a log."), Severity.INFO
            )
        for path in paths:
            self._program.runs.open_path(path)

    def ask_open_folder(self) -> None:
        name = folder_to_use(self._program.window, tr("Open the folder of a recorded run"), str(Path.home()))
        if name:
            self._program.runs.open_path(Path(name))

    def has_read(self, run: RunHandle, poll: Callable[[], None]) -> None:
        """Load the description of the model from the folder that the run was created from, if it still exists."""
        settings = run.origin.settings
        if not settings.is_language or not settings.model.folder:
            return
        place = known(settings.model.folder, settings.model.digest)
        if place.files is None:
            with suppress(GrpoError):
                path = Path(settings.model.folder)
                place.files = read_model(self._program.workspace.readers, path, poll=poll)[0]

    def opens(self, options: argparse.Namespace) -> bool:
        return getattr(options, "model", None) is not None

    def started(self, options: argparse.Namespace) -> None:
        if self.opens(options):
            self.model_folders.open(options.model)
