"""The speaker's window: what comes next, a clock, notes, and the selection of the screen for the class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QObject, QSignalBlocker, Qt, QTime, Signal, Slot
from PySide6.QtGui import QAction, QHideEvent, QKeyEvent, QMouseEvent, QScreen, QShowEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPlainTextEdit, QToolButton, QWidget

from app.boxes import across, down
from app.clock import Timer, now
from app.settings.files import write_or_say
from app.teaching.presenting.screens import described
from app.theme.labels import Label
from app.theme.stylesheet import palette, stylesheet
from app.theme.tokens import Theme
from app.widgets.calm import push_button, toggle
from app.widgets.stage_button import STAGE_HELP, STAGE_NAMES
from app.workspace.cursor import Stage
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import tr

BUTTONS = ("present.back", "present.next", "present.blank")
KEYS = (
    "present", "present.leave", "present.next", "present.back", "present.step", "present.step_back", "present.blank",
    "present.ring", "run", "step", "step_back", "lesson.next", "lesson.back", "lesson.skip",
    "lesson.keep", "lesson.leave", "messages",
)  # fmt: skip # table, one row per line
"""Commands whose shortcuts also work in the speaker's window."""
ALONE = tr("There is one screen, and the class sees it. Drag this window wherever you like.")


class SpeakerWindow(QWidget):
    """A normal window in addition to the one that the class sees.

    Attributes:
        notes: the speaker's notes; read-only until a click or the button "Edit notes", so that keys of a lesson and of
            a remote control do not end up in them.
        choice: the combo box for the screen that the class sees.
        key_target: function that returns the widget of the main window that receives the keys that this window does not
            use, for example an open question; None for no widget.

    Signals:
        changed: emitted when the window is opened or closed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setWindowTitle(tr("GRPO Lab, speaker"))
        self._begun: float | None = None
        self._lesson_is_open = False
        self.key_target: Callable[[], QWidget | None] = lambda: None
        self.clock, self.elapsed = Label(), Label()
        self.clock.setAccessibleName(tr("Time"))
        self.elapsed.setAccessibleName(tr("Time since the start"))
        self.reset = push_button(tr("Restart"), tr("Restart the time of the talk at 0:00."), self.restart)
        self.now, self.next, self.lesson = Label(wraps=True), Label(wraps=True), Label(wraps=True)
        self.lesson.hide()
        for label in (self.clock, self.elapsed, self.next):
            label.setObjectName("number")
        self.notes = NotesEdit()
        tip = tr("Type notes; Esc ends typing and returns the keys to the lesson and the remote.")
        self.edit = toggle(tr("Edit notes"), tip)
        self.edit.toggled.connect(self._on_edit)
        self.notes.wanted.connect(self.edit.setChecked)
        self.where = Label(tr("The class sees"))
        self.choice = QComboBox()
        self.choice.setAccessibleName(tr("The class sees"))
        for widget in (self.reset, self.edit, self.choice):  # clicking one of them does not move the keyboard focus
            widget.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.alone = Label(ALONE, name="muted", wraps=True)
        self._ticks = Timer(self, self._tick, 1000, repeats=True)
        self._build()
        self.resize(620, 560)

    def _build(self) -> None:
        self._buttons = QHBoxLayout()
        self._column = down(
            across(self.clock, None, Label(tr("Talk"), name="section"), self.elapsed, self.reset),
            Label(tr("Now"), name="section"),
            self.now,
            Label(tr("Next"), name="section"),
            self.next,
            self.lesson,
            across(self._buttons, None, self.edit),
            (self.notes, 1),
            across(self.where, (self.choice, 1)),
            self.alone,
            on=self,
            margins=16,
            spacing=12,
        )

    def use_commands(self, commands: Mapping[str, QAction]) -> None:
        """Add commands of the main window, by their IDs.

        Those in ``BUTTONS`` get buttons, and the shortcuts of those in ``KEYS`` work in this window, too.
        """
        self.addActions([commands[id] for id in KEYS])
        for id in BUTTONS:
            button = QToolButton()
            button.setDefaultAction(commands[id])
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self._buttons.addWidget(button)

    def hold_messages(self, messages: QWidget) -> None:
        """Show the main window's messages here, where the class does not see them, until it takes them back."""
        if messages.parentWidget() is not self:
            self._column.insertWidget(0, messages)

    # -- what it shows -----------------------------------------------------------------------------------------------

    def show_view(self, view: View) -> None:
        """Show the position of the cursor and what comes next, unless a lesson is open, which determines both."""
        if not self.isVisible() or self._lesson_is_open:
            return
        self.now.setText(sentence_now(view))
        self.next.setText(sentence_next(view))

    def show_lesson(self, now: str, next_: str, notes: str) -> None:
        """Show an open lesson: its current position, its next step, and its notes for the speaker."""
        self._lesson_is_open = True
        self.now.setText(now)
        self.next.setText(next_)
        self.lesson.tell(notes)

    def end_lesson(self) -> None:
        """Return to showing the run after a lesson."""
        self._lesson_is_open = False
        self.lesson.tell("")

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale, which can differ from those of the class's screen."""
        self.setPalette(palette(theme))
        body, large = theme.font("body", scale).pixelSize(), theme.font("body", 1.3 * scale).pixelSize()
        first = f"QWidget {{ color: {theme.hex('text')}; font-size: {body}px; }}"
        last = f"QPlainTextEdit {{ font-size: {large}px; }}"
        self.setStyleSheet(f"{first} {stylesheet(theme, scale)} {last}")

    def show_screens(self, there: Sequence[QScreen], shown: QScreen | None) -> None:
        """Offer the available screens in the combo box. If there is only one, there is nothing to choose."""
        several = len(there) > 1
        with QSignalBlocker(self.choice):
            self.choice.clear()
            for place, screen in enumerate(there, 1):
                self.choice.addItem(described(screen, place), screen.name())
                if screen is shown:
                    self.choice.setCurrentIndex(place - 1)
        for widget in (self.where, self.choice):
            widget.setVisible(several)
        self.alone.setVisible(not several)

    def set_presenting(self, on: bool) -> None:
        """Start or stop the clock of the talk. Editing of the notes ends."""
        self.edit.setChecked(False)
        if on and self._begun is None:
            self.restart()
        if not on:
            self._begun = None
            self._tick()

    @Slot()
    def restart(self) -> None:
        """Restart the clock of the talk at 0:00."""
        self._begun = now()  # the wall clock may be adjusted in the meantime
        self._tick()

    @Slot()
    def _tick(self) -> None:
        time = QLocale().toString(QTime.currentTime(), QLocale.FormatType.ShortFormat)
        since = 0 if self._begun is None else int(now() - self._begun)
        hours, rest = divmod(since, 3600)
        passed = f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
        for label, text in ((self.clock, time), (self.elapsed, passed)):
            label.setText(text)
            label.setAccessibleDescription(text)  # its name says what it is, and keeps each second from being spoken

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(bool)
    def _on_edit(self, on: bool) -> None:
        self.notes.set_editing(on)
        if on:
            self.notes.setFocus(Qt.FocusReason.OtherFocusReason)
        elif self.focusWidget() is self.notes:
            self.setFocus(Qt.FocusReason.OtherFocusReason)

    def event(self, event: QEvent) -> bool:
        """Offer a key to the target before any command with the same key, as Qt does in the target's own window."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._pass_on(event):
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._pass_on(event):
            super().keyPressEvent(event)

    def _pass_on(self, event: QKeyEvent) -> bool:
        """Send ``event`` to the target, and accept it if the target does. Return whether it did."""
        target = self.key_target()
        if target is None:
            return False
        copy = event.clone()
        copy.setAccepted(event.type() == QEvent.Type.KeyPress)  # as Qt delivers them: only a press is accepted at first
        QCoreApplication.sendEvent(target, copy)
        event.setAccepted(copy.isAccepted())
        return copy.isAccepted()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self._tick()
        self._ticks.start()
        self.changed.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._ticks.stop()
        self.changed.emit()


def shown_now(view: View) -> tuple[str, str]:
    """Return the number of the update, and its stage and pass or, without an update, the state of the run."""
    if view.step.step is None:
        return f"{view.cursor.step:,}", tr("No update yet") if not view.head else tr("Before update 1")
    stage, passes = view.cursor.stage, view.step.passes
    name = STAGE_NAMES[stage]
    if stage is Stage.UPDATE and passes > 1:
        name = tr("{name}, pass {passed}/{passes}").format(name=name, passed=view.step.passed + 1, passes=passes)
    return f"{view.cursor.step:,}", name


def sentence_now(view: View) -> str:
    """Return a sentence for the speaker about the update and its stage."""
    if view.step.step is None:
        return tr("Update {step:,} of {head:,} · before the first update").format(step=view.cursor.step, head=view.head)
    return tr("Update {step:,} of {head:,} · {stage} {view}").format(
        step=view.cursor.step, head=view.head, stage=view.cursor.stage + 1, view=shown_now(view)[1]
    )


def sentence_next(view: View) -> str:
    """Return a sentence about what the forward key of a remote control will show."""
    step, passes = view.cursor.step, max(view.step.passes, 1)
    here = view.cursor.next_stage(passes) if step > 0 else None
    if here is not None:
        if here.stage is Stage.UPDATE and here.passed > 0:
            return tr("Pass {passed} of {passes} of the same update.").format(passed=here.passed + 1, passes=passes)
        return f"{STAGE_NAMES[here.stage]}. {STAGE_HELP[here.stage]}"
    if step >= view.head and view.run.read_only:
        return tr("This is the last update of the run, and nothing is computed: it can only be looked at.")
    pattern = (
        tr("Update {step:,} is shown. {stage}: {help}")
        if step < view.head
        else tr("Update {step:,} is computed. {stage}: {help}")
    )
    return pattern.format(step=step + 1, stage=STAGE_NAMES[Stage.SAMPLE], help=STAGE_HELP[Stage.SAMPLE])


LARGEST = 1_000_000
"""Maximum size in bytes of a notes file that is read."""
SETTLE_MS = 2000


class NotesFile(QObject):
    """Stores the notes in a text file, and tells the user if they cannot be written."""

    def __init__(self, workspace: Workspace, path: Path, notes: NotesEdit, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace, self._path, self._notes = workspace, path, notes
        self._later = Timer(self, self.save, SETTLE_MS)
        notes.set_text(_read(path))
        notes.textChanged.connect(self._later.start)

    @Slot()
    def save(self) -> None:
        """Write the notes now."""
        self._later.stop()
        refusal = write_or_say(self._path, self._notes.toPlainText().encode("utf-8", "replace"), tr("The notes"))
        if refusal:
            self._workspace.problem.emit(refusal, "warning")

    def close(self) -> None:
        """Write pending changes."""
        if self._later.isActive():
            self.save()


def _read(path: Path) -> str:
    """Return the stored notes, or an empty string if they cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", errors="replace")
    except OSError:
        return ""


class NotesEdit(QPlainTextEdit):
    """A text field that accepts keys only while it is being edited.

    Signals:
        wanted: emitted with True when a mouse button is pressed on it, to edit it, and with False when Esc ends that.
    """

    wanted = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Notes"))
        self.setPlaceholderText(tr("Notes: the class does not see them, and a session keeps them."))
        self.setTabChangesFocus(True)
        self.set_editing(False)

    def set_editing(self, on: bool) -> None:
        """Set whether the field accepts keys. If it does not, all keys go to the window."""
        self.setReadOnly(not on)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if on else Qt.FocusPolicy.NoFocus)

    def set_text(self, text: str) -> None:
        """Replace the notes, for example with those of a session, without emitting a signal."""
        with QSignalBlocker(self):
            self.setPlainText(text)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.wanted.emit(True)
        super().mousePressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and self._ends(event):
            event.accept()  # before the command that ends the presentation
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._ends(event):
            self.wanted.emit(False)
        else:
            super().keyPressEvent(event)

    def _ends(self, event: QKeyEvent) -> bool:
        return event.key() == Qt.Key.Key_Escape and not self.isReadOnly()
