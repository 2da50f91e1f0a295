"""Dock widgets, one per panel, with slim title bars, and the user's own arrangement of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QMoveEvent, QPaintEvent, QPalette, QPen, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QMainWindow,
    QSizePolicy,
    QSpacerItem,
    QTabBar,
    QToolButton,
    QWidget,
)

from app.boxes import across
from app.theme.labels import Label, plain_tip
from app.theme.painting import painter_of
from app.widgets.panel import Panel, in_window
from app.widgets.panel_spec import Area, PanelSpec
from grpo_core.text import tr


class TitleButton(QToolButton):
    """The small button of a title bar that closes its panel."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setProperty("quiet", True)
        self.setAccessibleName(name)
        self.setToolTip(plain_tip(name))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def sizeHint(self) -> QSize:
        side = round(self.fontMetrics().height() * 1.15)
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        colour = self.palette().color(QPalette.ColorRole.WindowText)
        colour.setAlphaF(1.0 if self.underMouse() else 0.45)
        painter.setPen(QPen(colour, max(self.width() / 16, 1.1)))
        inner = QRectF(self.rect()).adjusted(*(v * self.width() * 0.3 for v in (1, 1, -1, -1)))
        painter.drawLine(inner.topLeft(), inner.bottomRight())
        painter.drawLine(inner.topRight(), inner.bottomLeft())


class DockTitle(QWidget):
    """A panel's name, and a button to close the panel. A double-click or a drag makes the panel float."""

    def __init__(self, dock: QDockWidget, title: str, help: str) -> None:
        super().__init__(dock)
        self.setObjectName("dockTitle")
        self.label = Label(title, name="section")
        self.label.setToolTip(plain_tip(help))
        close = TitleButton(tr("Close {title}").format(title=title))
        close.clicked.connect(dock.close)
        across((self.label, 1), close, on=self, margins=(12, 3, 4, 3), spacing=2)


class Placeholder(QWidget):
    """A stand-in for a panel that has not been created yet, by default with the minimum size of a panel.

    Its size is that of its layout, because Qt asks for it hundreds of times an update.
    """

    def __init__(self, parent: QWidget | None = None, width: int = 220, height: int = 80) -> None:
        super().__init__(parent)
        policy = QSizePolicy.Policy.Minimum
        across(on=self, margins=0).addItem(QSpacerItem(width, height, policy, policy))


class Dock(QDockWidget):
    """The dock of one panel.

    Attributes:
        panel: the panel in the dock; None until it is created.
        low: whether it is in the strip of short rows, with a grip instead of a title bar.
        bare: whether it has no title bar even outside tabs, like a lesson when presenting.

    Signals:
        wanted: emitted with the panel's entry in the registry when the dock becomes visible and has to get its panel.
    """

    wanted = Signal(object)

    def __init__(self, spec: PanelSpec[Panel], window: QMainWindow) -> None:
        super().__init__(spec.title, window)
        self.setObjectName(f"dock.{spec.id}")
        self.setWhatsThis(spec.help)
        self.panel: Panel | None = None
        self.low = spec.area is Area.STRIP
        self.bare = False
        self._spec, self._window = spec, window
        self.setWidget(Placeholder())
        if self.low:
            self.setFeatures(self.features() | QDockWidget.DockWidgetFeature.DockWidgetVerticalTitleBar)
            grip = QWidget(self)
            grip.setFixedWidth(6)
            grip.setCursor(Qt.CursorShape.SizeAllCursor)
            grip.setToolTip(plain_tip(tr("Drag to move {title}").format(title=spec.title)))
            self.setTitleBarWidget(grip)
        else:
            self._title = DockTitle(self, spec.title, spec.help)
            self._no_title = Placeholder(self, 0, 0)  # in place of the title bar while it is tabbed
            self._no_title.hide()
            self.setTitleBarWidget(self._title)
            self.visibilityChanged.connect(self.refresh_title)
            self.dockLocationChanged.connect(self.refresh_title)
            self.topLevelChanged.connect(self.refresh_title)

    @property
    def row_height(self) -> int:
        """The height that the panel requests, or 0 for as much as is available, as for every tabbed panel."""
        return 0 if self.panel is None or self._is_tabbed else self.panel.row_height

    @property
    def _is_tabbed(self) -> bool:
        window = self.parent()  # no longer a window while it is being destroyed
        return isinstance(window, QMainWindow) and not self.isFloating() and bool(window.tabifiedDockWidgets(self))

    def set_count(self, count: int) -> None:
        """Append the number of listed items to the panel's name, also on its tab. 0 removes the number."""
        title = tr("{title} ({count})").format(title=self._spec.title, count=count) if count else self._spec.title
        if title != self.windowTitle():
            self.setWindowTitle(title)
            self._title.label.setText(title)

    def hold(self, panel: Panel) -> None:
        placeholder = self.widget()
        self.panel = panel
        self.setWidget(panel)
        placeholder.deleteLater()
        if self.low:
            panel.row_changed.connect(self._on_row, Qt.ConnectionType.QueuedConnection)
        if self.isVisible():
            panel.show()

    def release(self) -> None:
        """Release the panel to another window or page, until :meth:`hold` brings it back."""
        self.setWidget(Placeholder())

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self._look()  # a tab brought to the front was outside the window, where nothing is drawn

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()

    def _look(self) -> None:
        if self.panel is not None:
            self.panel.on_frame()
        elif in_window(self):
            self.wanted.emit(self._spec)

    @Slot()
    def _on_row(self) -> None:
        """Apply the panel's new height. Its neighbours give up or gain the difference."""
        own = self.layout()
        if own is not None:  # requests made by a panel while it was being laid out were missed
            own.invalidate()
            own.activate()
        if not self.isFloating() and self.row_height:
            self._window.resizeDocks([self], [self.row_height], Qt.Orientation.Vertical)

    @Slot()
    def refresh_title(self, *_: object) -> None:
        """Show the title bar unless the dock is tabbed, since its tab shows the name. A dock in the strip never
        has one.
        """
        if self.low:
            return
        if not isinstance(self.parent(), QMainWindow):
            return
        shown, tabbed = self.titleBarWidget(), self._is_tabbed
        wanted = self._no_title if tabbed or self.bare else self._title
        if wanted is not shown:
            shown.hide()
            self.setTitleBarWidget(wanted)
            wanted.setVisible(not tabbed)


@contextmanager
def rearranged(window: QMainWindow) -> Iterator[None]:
    """Arrange the docks anew inside the block, which has to lay out the window."""
    for bar in window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
        bar.blockSignals(True)
        while bar.count():  # Qt fills the tab bars in use again, and forgets some others
            bar.removeTab(0)
        bar.blockSignals(False)
    yield
    delete_lost_separators(window)
    for bar in window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
        bar.setVisible(bar.count() > 1)  # Qt leaves one that it uses again hidden until the window is laid out anew


SEPARATOR = "qt_qmainwindow_extended_splitter"
"""The object name that Qt gives to the widget over a one-pixel separator."""


def delete_lost_separators(window: QMainWindow) -> None:
    """Delete the separators that Qt lost track of when docks were rearranged, and would never delete.

    Qt shows each one still in use whenever it lays out the window.

    While a dock is being dragged, Qt keeps a second layout with its own separators, so nothing is deleted then.
    """
    layout = window.layout()
    if layout is None or not window.isVisible() or QApplication.mouseButtons() != Qt.MouseButton.NoButton:
        return
    separators = window.findChildren(QWidget, SEPARATOR, Qt.FindChildOption.FindDirectChildrenOnly)
    before = [separator for separator in separators if separator.isVisible()]
    for separator in separators:
        separator.hide()
    layout.invalidate()
    layout.activate()
    if not any(separator.isVisible() for separator in separators):  # it was not laid out
        for separator in before:
            separator.show()
        return
    for separator in separators:
        if not separator.isVisible():
            separator.deleteLater()


def put_back(window: QMainWindow, docks: Mapping[str, Dock], state: QByteArray) -> bool:
    """Restore the docks from ``state``, which was saved from this window, and hide the title bars of tabbed docks.

    Return whether Qt could restore them.
    """
    with rearranged(window):
        restored = window.restoreState(state)
        for dock in docks.values():
            dock.refresh_title()
    return restored


class SavedDocks:
    """The positions of the docks before a lesson or presenting mode rearranged them.

    The first borrower saves the state, and the last one to give the window back restores it, in whatever order they
    finish.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, Dock]) -> None:
        self._window, self._docks = window, docks
        self._state: QByteArray | None = None
        self._instead: Callable[[], object] | None = None
        self._with: set[str] = set()

    @property
    def lent(self) -> bool:
        return bool(self._with)

    def borrow(self, who: str) -> None:
        """Save the arrangement, because ``who`` is about to change it."""
        if self._state is None:  # otherwise the docks are still being restored
            self._state = self._window.saveState()
        self._with.add(who)

    def replace(self, arrange: Callable[[], object]) -> None:
        """Set a function to be called when the window is given back, instead of restoring the saved state.

        This is needed when another kind of run is shown by then.
        """
        self._instead = arrange

    def give_back(self, who: str) -> bool:
        """Restore the docks, because ``who`` is done with them.

        If another borrower remains, return False and move nothing.
        """
        self._with.discard(who)
        if self._with or self._state is None:
            return False
        if self._instead is not None:
            self._instead()
        else:
            put_back(self._window, self._docks, self._state)
        return True

    def settle(self) -> None:
        """End the restoration. Later changes are the user's own."""
        if not self._with:
            self._state = self._instead = None
