"""Presenting mode: how the window changes when a class is watching, and how it is restored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QRect, Qt, Signal, Slot
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget
from shiboken6 import Shiboken

from app.clock import Timer, soon
from app.messages.overlay import Place
from app.panel_registry import PIPELINE
from app.teaching.presenting import screens
from app.teaching.presenting.overlays import Blank, PointerRing, StepCounter
from app.teaching.presenting.screens import Awake
from app.teaching.presenting.speaker import NotesFile, SpeakerWindow
from app.theme.look import Look
from app.theme.tokens import Theme
from app.window.layouts import PRESENT, RECORDED
from app.window.main_window import MainWindow
from app.workspace.workspace import Workspace

BORROWER = "presenting"
SETTLE_MS, LEAVE_MS = 60, 250
"""Milliseconds between a resize of the window and the arrangement of its docks.

The first value is two frames, in which every panel requests its size. When leaving presenting mode, a window manager
can take longer to report the size.
"""


@dataclass(frozen=True, kw_only=True)
class _Before:
    """State of the window before presenting mode. ``focus`` has the focus, or will have it in an inactive window."""

    state: Qt.WindowState
    box: QRect
    focus: QWidget | None
    choice: str
    theme: Theme
    scale: float


def focus_again(window: QMainWindow, widget: QWidget | None) -> None:
    """Return the focus to ``widget``, or clear the focus, after it was moved by hiding docks."""
    now = window.focusWidget()
    if widget is not None and Shiboken.isValid(widget):
        widget.setFocus(Qt.FocusReason.OtherFocusReason)
    elif now is not None:
        now.clearFocus()


class Presenter(QObject):
    """Starts and ends presenting mode: full screen, large type, blank screen, counter, ring, and speaker's window.

    Attributes:
        active: whether presenting mode is on; neither its look nor its layout is stored as a preference.

    Signals:
        active_changed: emitted when presenting begins or ends.
    """

    active_changed = Signal()

    def __init__(
        self, window: MainWindow, workspace: Workspace, look: Look, notes: Path, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._window, self._workspace, self._look = window, workspace, look
        self._before: _Before | None = None
        self._screen = ""
        self.active = False
        self._lesson = False
        self._awake = Awake()
        self.blank, self.ring, self.counter = Blank(window), PointerRing(window), StepCounter(window, PIPELINE.id)
        self.speaker = SpeakerWindow(window)
        self.speaker.set_presenting(False)
        self.notes = NotesFile(workspace, notes, self.speaker.notes, self)
        self.speaker.choice.activated.connect(self._on_screen)
        self.speaker.changed.connect(workspace.request_frame)
        self.speaker.changed.connect(self._place_messages)
        self.active_changed.connect(self._place_messages)
        self._later = Timer(self, self._arrange)
        workspace.frame.connect(self._on_frame)
        look.changed.connect(self._on_look)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        # queued, because Qt moves the windows of a removed screen only then
        queued = Qt.ConnectionType.QueuedConnection
        application.screenAdded.connect(self._on_screens, queued)
        application.screenRemoved.connect(self._on_screens, queued)
        self._on_look()
        self._place()

    # -- presenting mode -----------------------------------------------------------------------------------------------

    @property
    def settling(self) -> bool:
        """Whether the window still has to be arranged for presenting mode, or after it."""
        return self._later.isActive()

    def toggle(self) -> None:
        if self.active:
            self.stop()
        else:
            self.start()

    def start(self) -> None:
        """Switch to full screen in the Present layout, for a projector.

        With a second screen, the speaker gets a window there.
        """
        if self.active:
            return
        window = self._window
        if self._before is None:  # otherwise presenting has just ended, and the docks are still being restored
            full = window.isFullScreen() or window.isMaximized()
            self._before = _Before(
                state=window.windowState(),
                focus=window.focusWidget(),
                choice=self._look.choice,
                theme=self._look.theme,
                scale=self._look.scale,
                box=window.normalGeometry() if full else window.geometry(),
            )
        window.saved_docks.borrow(BORROWER)
        self.active = True
        self._awake.keep()
        self.active_changed.emit()
        window.menuBar().hide()
        self.speaker.set_presenting(True)
        self.counter.switch(not self._lesson)
        window.installEventFilter(self)
        self._place()
        there = screens.screens()
        if screens.speaker_screen(there, screens.audience(there, self._screen)) is not None:
            self.speaker.show()
        self.arrange_later()

    def stop(self) -> None:
        """Restore the window to its previous state."""
        if not self.active or self._before is None:
            return
        self.blank.lift()
        self.ring.switch(False)
        self.counter.switch(False)
        self._awake.release()
        self._window.menuBar().show()
        self.speaker.set_presenting(False)
        self.speaker.hide()
        self._look.set(self._before.choice, self._before.scale, legible=0)
        self._window.setWindowState(Qt.WindowState.WindowNoState)
        # first, because it decides on which screen the next state is restored
        self._window.setGeometry(self._before.box)
        self._window.setWindowState(self._before.state)
        self.active = False
        self.active_changed.emit()
        self._window.saved_docks.give_back(BORROWER)
        self.arrange_later()  # again, once the panels have their sizes for that look

    def set_lesson(self, given: bool) -> None:
        """Adapt to whether a lesson is open. A lesson takes less space than a run and counts its own steps."""
        if given is self._lesson:
            return
        self._lesson = given
        if self.active:
            self.counter.switch(not given)
            self._place()
            self.arrange_later()

    def leave(self) -> None:
        """Leave a blank screen for the picture, or otherwise end presenting mode."""
        if not self.blank.lift():
            self.stop()

    def toggle_blank(self) -> None:
        if not self.blank.lift():
            self.blank.drop()

    # -- sizes and screens -------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Move each window to its screen, or to a remaining one if its screen is gone."""
        there = screens.screens()
        shown = screens.audience(there, self._screen)
        self.speaker.show_screens(there, shown)
        if shown is None:
            return
        if self.active:
            assert self._before is not None
            needed = screens.LESSON_SPACE if self._lesson else screens.SPACE
            scale = max(screens.fitting_scale(shown.geometry(), needed), self._before.scale)
            self._look.set("projector", scale, legible=screens.least_type(shown.geometry().height()))
            screens.fill(self._window, shown)
        screens.put_beside(self.speaker, screens.speaker_screen(there, shown) if self.active else None, there)

    def _lift(self) -> None:
        """Keep the overlays above a dock that was moved, or that a lesson brought to the front."""
        over = [one for one in (self.counter, self.ring, self.blank) if not one.isHidden()]
        if over and [one for one in self._window.children() if isinstance(one, QWidget)][-len(over) :] != over:
            for one in over:
                one.raise_()

    @Slot()
    def _on_laid_out(self) -> None:
        """Move the counter to a free position above Qt's splitters, now that the docks are in position."""
        if self.active:
            self.counter.settle()
            self._lift()

    def arrange_later(self) -> None:
        """Arrange the docks again as soon as the window and the panels have their sizes."""
        self._later.start(SETTLE_MS if self.active else LEAVE_MS)
        self._workspace.request_frame()

    @Slot()
    def _arrange(self) -> None:
        if self.active:
            self._look.set(legible=screens.least_type(self._window.height()))
            run = self._workspace.run
            recorded = run is not None and run.origin.settings.is_recorded
            self._window.show_layout(RECORDED if recorded else PRESENT)
            self.counter.settle()
            self._lift()
            if not self.blank.isHidden():
                self.blank.setFocus(Qt.FocusReason.OtherFocusReason)
        elif self._before is not None:
            if self._before.state == Qt.WindowState.WindowNoState:  # leaving full screen may end on another screen
                self._window.setGeometry(self._before.box)
            given_back = self._window.saved_docks.give_back(BORROWER)
            if given_back:
                self._window.saved_docks.settle()
            self._window.removeEventFilter(self)
            focus_again(self._window, self._before.focus)
            self._before = None
            if not given_back:
                self._window.arranged.emit()  # a lesson continues, in smaller type and with the keyboard

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.arrange_later()
        elif event.type() == QEvent.Type.LayoutRequest:
            soon(self, self._on_laid_out)
        return False

    @Slot()
    def _place_messages(self) -> None:
        """Show the messages where the class does not see them or, when not presenting, over the window."""
        overlay = self._window.overlay
        if not self.active:
            overlay.show_in(Place.WINDOW)
        elif self.speaker.isVisible() and len(screens.screens()) > 1:
            self.speaker.hold_messages(self._window.messages)
            overlay.show_in(Place.ELSEWHERE)
        else:
            overlay.show_in(Place.MARK)

    @Slot()
    def _on_screens(self) -> None:
        self._place()
        self._place_messages()

    @Slot(int)
    def _on_screen(self, place: int) -> None:
        self._screen = self.speaker.choice.itemData(place)
        self._place()

    # -- settings and notes --------------------------------------------------------------------------------------------

    @Slot()
    def _on_frame(self) -> None:
        view = self._workspace.view
        if self.active:
            self._lift()
        self.speaker.show_view(view)
        if not self.counter.isHidden():
            self.counter.show_view(view)

    @Slot()
    def _on_look(self) -> None:
        self.ring.set_look(self._look.theme, self._look.scale)
        mine = self._before if self.active and self._before is not None else self._look
        # settings for the projector need not suit the speaker's own screen
        self.speaker.set_look(mine.theme, mine.scale)

    def close(self) -> None:
        """Restore the docks to their state before presenting mode when the program closes."""
        self.stop()
        self._later.stop()
        if self._before is not None:
            self._arrange()
        self.notes.close()
        self._awake.release()
        self.speaker.hide()
