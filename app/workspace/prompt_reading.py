"""Reading the user's own prompts before a run needs them: in a thread, with a message that can cancel it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QTimer, Slot

from app.messages.message_bar import BarAction, Message, MessageBar, Severity
from app.sessions.errand import Errand
from grpo_core.config import Settings
from grpo_core.lm.kept_prompts import at_hand, read_ahead
from grpo_core.lm.prompt_file import located
from grpo_core.text import tr

PATIENCE_MS = 300
"""Nothing is said of a wait that is shorter."""
READING = "prompts"


class PromptReading(QObject):
    """Has the prompts of settings at hand before something is done that needs them; the last wish counts."""

    def __init__(self, messages: MessageBar, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._messages = messages
        self._errand: Errand | None = None
        self._then: Callable[[], object] = _nothing
        self._name = ""
        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.setInterval(PATIENCE_MS)
        self._late.timeout.connect(self._on_late)

    @property
    def busy(self) -> bool:
        """Whether prompts are being read."""
        return self._errand is not None

    def ready(self, settings: Settings, then: Callable[[], object]) -> None:
        """Do ``then`` once the prompts of a run under ``settings`` are at hand: at once where they are."""
        self.close()
        if at_hand(settings):
            then()
            return
        self._then, self._name = then, located(settings.language.file).name
        self._errand = Errand(partial(read_ahead, settings), self)
        self._errand.done.connect(self._on_done)
        self._errand.failed.connect(self._on_failed)
        self._late.start()
        self._errand.start()

    def close(self) -> None:
        """Give up what is being read; nothing follows."""
        if self._errand is not None:
            self._errand.done.disconnect(self._on_done)
            self._errand.failed.disconnect(self._on_failed)
            self._errand.cancel()
            self._end()

    @Slot()
    def _on_late(self) -> None:
        cancel = BarAction(text=tr("Cancel"), run=self.close, closes=False)
        text = tr("Reading the prompts of {name} …").format(name=self._name)
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(cancel,), id=READING))

    @Slot(object)
    def _on_done(self, _: object) -> None:
        self._end()
        self._then()

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        self._end()
        if sentence:
            self._messages.say(sentence, Severity.ERROR)

    def _end(self) -> None:
        self._late.stop()
        self._messages.remove(READING)
        if self._errand is not None:
            self._errand.wait()
            self._errand.deleteLater()
            self._errand = None


def _nothing() -> None:
    return
