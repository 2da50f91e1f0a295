"""Reading of the user's own prompts in a thread before a run needs them, with a message that can cancel it."""

from __future__ import annotations

from collections.abc import Callable

from app.controllers.program import Program
from app.messages.message import Severity
from app.sessions.file_task import FileTasks
from grpo_core.config import Settings
from grpo_core.errors import given_up
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
        self.start(title, lambda poll: read_ahead(settings, given_up(poll), read), done)
