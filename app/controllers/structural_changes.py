"""Changes to structural settings (task, actions, prompts, policy or seed), which need a new run.

The user's own prompts are read in a thread before a run needs them, with a message that can cancel it.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Slot

from app.clock import Timer
from app.controllers.layouts import LayoutsController
from app.controllers.program import Program
from app.messages.message import Severity
from app.sessions.file_task import FileTasks
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.lm.kept_prompts import at_hand, left_out, read_ahead
from grpo_core.lm.prompt_file import located
from grpo_core.text import tr

READING = "prompts"


class PromptReading(FileTasks):
    """Loads the prompts of settings before an action that needs them. Only the last request counts."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.messages, READING, program, abandon=True)
        self._readers = program.workspace.readers

    def ready(self, settings: Settings, then: Callable[[], object]) -> None:
        """Call ``then`` once the prompts of a run under ``settings`` are loaded, immediately if they already are."""
        self.close()

        def done(read: object = None) -> None:
            then()
            if said := left_out(settings):
                self._messages.say(said, Severity.INFO)

        if at_hand(settings):
            done()
            return
        title = tr("Reading the prompts of {name}").format(name=located(settings.language.file).name)
        read = self._readers.prompts
        self.start(title, lambda poll: read_ahead(settings, poll, read), done)


MERGE_MS = 400
"""Milliseconds within which consecutive changes lead to a single new run."""


class StructuralChanges(QObject):
    """Creates the run that structural changes need, so that the controls never show a task that is not the one trained.

    A run without updates is replaced; one with updates stays in the list, and undo returns to it. A run in training
    is paused at the first change. Run, Step and Stage create the run first, without waiting for further changes.
    """

    def __init__(self, program: Program, prompts: PromptReading, layouts: LayoutsController) -> None:
        super().__init__(program)
        self._workspace, self._run_manager, self._player = program.workspace, program.run_manager, program.player
        self._prompts, self._layouts, self._messages = prompts, layouts, program.messages
        self._timer = Timer(self, self.apply, MERGE_MS)
        self._workspace.editing.changed.connect(self._on_edited)
        self._player.starting.connect(self.apply)
        self._player.prepare = self._prepare

    @Slot()
    def _on_edited(self) -> None:
        if not self._workspace.editing.pending:
            self._timer.stop()
            return
        if self._player.busy:
            self._player.pause()
        if "task" in self._workspace.editing.pending:  # no panel mixes one kind of run with settings of the other
            self.apply()
        else:
            self._timer.start()

    @Slot()
    def apply(self) -> None:
        """Create the run for the pending changes, if there are any. Prompts that are not loaded are read first."""
        self._timer.stop()
        if self._workspace.editing.pending:
            self._prompts.ready(self._workspace.editing.wanted, self._make)

    def change_to(self, wanted: Settings, text: str) -> None:
        """Change to ``wanted`` as one undo step, and create a new run immediately if needed."""
        self._workspace.editing.change_to(wanted, text)
        self.apply()

    def _make(self) -> None:
        editing, left = self._workspace.editing, self._workspace.run
        if left is None or not editing.pending:
            return
        stays, listed = left.head > 0, len(self._workspace.runs)
        try:
            run = self._run_manager.change_structure(editing.wanted, editing.goal)
        except GrpoError as error:
            editing.drop_pending()
            self._messages.say(str(error), Severity.ERROR)
            return
        editing.note_runs(left, run)
        if run.origin.settings.is_language is not left.origin.settings.is_language:
            self._layouts.reset()
        if stays and len(self._workspace.runs) > listed:
            sentence = tr("{title} begins with these settings. {before} stays in the list; Undo returns to it.")
            self._messages.say(sentence.format(title=run.title, before=left.title), Severity.INFO)

    def _prepare(self) -> None:
        """Create the run for the controls and pass it to the learner, before anything is computed.

        Raises:
            GrpoError: the run cannot be continued, or its prompts are still being read.
        """
        if self._workspace.editing.pending:
            raise GrpoError(tr("The prompts of this run are still being read; press Run again when that is done."))
        self._run_manager.training.make_ready()
