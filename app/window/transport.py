"""The toolbar: step back, step, run, run N, speed, branch, and the list of runs."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, QPoint, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QComboBox, QLineEdit, QSizePolicy, QToolBar, QToolButton, QWidget

from app.clock import soon
from app.examples import is_example
from app.panels.controls.restraints import Restrainable
from app.plotting.numbers import in_bytes
from app.theme.labels import Label, allow, plain_tip
from app.training.controller import Controller
from app.widgets.calm import CalmBox, text_field
from app.window.run_list import RunList
from app.window.status import Status
from app.workspace.player import Mode, Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.runs.files import size_of
from grpo_core.text import tr

SPEEDS: tuple[tuple[str, float | None], ...] = (
    ("1 / 8 s", 0.125),
    ("1 / 4 s", 0.25),
    ("1 / s", 1.0),
    ("2 / s", 2.0),
    ("5 / s", 5.0),
    ("10 / s", 10.0),
    ("30 / s", 30.0),
    ("60 / s", 60.0),
    (tr("max"), None),
)
LENGTHS: tuple[tuple[str, int | None], ...] = (
    (tr("50 updates"), 50),
    (tr("150 updates"), 150),
    (tr("200 updates"), 200),
    (tr("1,000 updates"), 1000),
    (tr("10,000 updates"), 10_000),
    (tr("no limit"), None),
)


MARGIN, ABOVE = 12, 7
"""Pixels at 100 % scale: margins at both ends of the toolbar, and above and below its buttons."""
EARLY = 2
"""Number of buttons that lose their labels before the run's status is hidden."""
RUN_TEXTS = (tr("Run", "verb"), tr("Pause"))


class Transport(QToolBar):
    """The controls that move the run. The buttons use the actions of the commands.

    Signals:
        seed_wanted: emitted to start a new run from this seed.
    """

    seed_wanted = Signal(object)

    def __init__(
        self,
        controller: Controller,
        player: Player,
        run_manager: RunManager,
        workspace: Workspace,
        actions: Mapping[str, QAction],
    ) -> None:
        super().__init__(tr("Transport"))
        self.setObjectName("transport")
        self.setMovable(False)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._spare: list[QAction] = []
        self._of_training: list[QAction] = []
        self._short: dict[QToolButton, int] = {}
        """Buttons reduced to their icon -> number of pixels that their text would take."""
        self._fitted: tuple[object, ...] | None = None
        """What determined the space needed in the toolbar when :meth:`_fit` was last called during a frame.

        Later frames call it again only if this has changed; None forces a call.
        """
        self.apply_style(1.0)
        self._controller, self._player = controller, player
        self._run_manager, self._workspace = run_manager, workspace
        self._button(actions["step_back"], icon_only=True)
        step, stage = (self._button(actions[name]) for name in ("step", "stage"))
        self.run = self._button(actions["run"])
        self.run.setProperty("primary", True)
        run_n, reset = self._button(actions["run_n"]), self._button(actions["reset"])
        self.seed, self._new_seed = self._add_seed(actions)
        new_run = self._button(actions["new_run"])
        self.speed = self._choice(tr("Speed"), [text for text, _ in SPEEDS], self._on_speed)
        self.length = self._choice(tr("Stop after"), [text for text, _ in LENGTHS], self._on_length)
        branch = self._button(actions["branch"])
        self._shrinking = (run_n, stage, step, branch, new_run, reset, self._new_seed)
        spacer = QWidget()
        spacer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(spacer)
        self.status = Status()
        self._status_action = self.addWidget(self.status)
        extension = self.findChild(QToolButton, "qt_toolbar_ext_button")
        assert isinstance(extension, QToolButton)
        self._extension = extension
        self._extension.installEventFilter(self)
        self.runs = RunList()
        self.runs.activated.connect(self._on_run)
        self.addWidget(self.runs)
        player.changed.connect(self.refresh)
        controller.progressed.connect(self._on_progress)
        run_manager.runs_changed.connect(self.refresh)
        workspace.frame.connect(self._on_frame)
        self.refresh()

    def _button(self, action: QAction, *, icon_only: bool = False) -> QToolButton:
        self.addAction(action)
        button = self.widgetForAction(action)
        assert isinstance(button, QToolButton)
        if icon_only:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        button.setAccessibleName(action.text())
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def _label(self, text: str) -> Label:
        """Return a label next to a box.

        It is hidden first when space is short, and the box's tooltip then repeats it.
        """
        label = Label(text, name="muted")
        self._spare.append(self.addWidget(label))
        self._of_training.append(self._spare[-1])
        return label

    def _fit(self) -> None:
        """Hide labels, and then the text of buttons, until the list of runs fits at the right end.

        While the status shows a wait for the model or the progress of a long update, it is hidden late. Seed, speed
        and length are hidden for a run trained by another program, and where nothing else is left to hide.
        """
        run = self._workspace.run
        out = set(self._of_training) if run is not None and run.is_recorded else set()
        for action in self._of_training:
            if action.isVisible() == (action in out):
                action.setVisible(action not in out)
        words = [action for action in reversed(self._spare) if action not in out]
        first, last = ([], [self._status_action]) if self.status.needed else ([self._status_action], [])
        shown = [action for action in self.actions() if action not in out]
        widths = {action: _width_of(self.widgetForAction(action)) for action in shown}
        layout = self.layout()
        gap = MARGIN if layout is None else layout.spacing()
        needed = sum(widths.values()) + sum(self._short.values()) + gap * len(widths) + 2 * self._margin
        fields = [action for action in reversed(self._of_training) if action not in (*out, *self._spare)]
        early, late = self._shrinking[:EARLY], self._shrinking[EARLY:]
        order: list[QAction | QToolButton] = [*words, *early, *first, *late, *last, *fields]
        for one in order:
            short = needed > self.width()
            if isinstance(one, QToolButton):
                needed -= self._shorten(one, short)
            else:
                one.setVisible(not short)
                needed -= (widths[one] + gap) * short
        if layout is not None:
            layout.activate()  # new text must not be painted in the space of the old text

    def _shorten(self, button: QToolButton, short: bool) -> int:
        """Show only a button's icon if ``short``, otherwise also its text. Return how many pixels that saves."""
        styles = Qt.ToolButtonStyle
        if short and button not in self._short:
            full = button.sizeHint().width()
            button.setToolButtonStyle(styles.ToolButtonIconOnly)
            self._short[button] = full - button.sizeHint().width()
        elif not short and button in self._short:
            del self._short[button]
            button.setToolButtonStyle(styles.ToolButtonTextOnly if button is self._new_seed else self.toolButtonStyle())
        return self._short.get(button, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._extension and event.type() == QEvent.Type.Show:
            soon(self, self._hide_extension)
        if watched is self._extension and event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            self._keep_extension_inside()
        return super().eventFilter(watched, event)

    def _keep_extension_inside(self) -> None:
        """Keep Qt's extension button inside the toolbar.

        Qt positions it by its width in the style, which is less than its actual width.
        """
        place = self._extension.geometry()
        inside = min(max(place.x(), 0), max(self.width() - place.width(), 0))
        if inside != place.x():
            self._extension.move(inside, place.y())

    @Slot()
    def _hide_extension(self) -> None:
        """Hide the extension button if Qt has left it visible although everything fits.

        While showing the button, Qt lays out the toolbar again. If everything fits then, Qt hides the button but
        afterwards shows it nevertheless. The button is then visible but counts as hidden, so no later layout removes
        it.
        """
        if self._extension.isHidden() and self._extension.isVisible():
            self._extension.setAttribute(Qt.WidgetAttribute.WA_WState_Hidden, False)
            self._extension.hide()

    def _add_seed(self, actions: Mapping[str, QAction]) -> tuple[QLineEdit, QToolButton]:
        """Return the field for the seed, and the button that starts a new run from it or from the next seed."""
        label = self._label(tr("Seed"))
        tip = tr("Type another seed and press Return to begin a new run with it and the settings shown.")
        field = text_field(tr("Seed of a new run"), tip=tip)
        field.setAlignment(Qt.AlignmentFlag.AlignRight)
        field.returnPressed.connect(self._on_seed)
        field.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        field.customContextMenuRequested.connect(self._on_seed_menu)
        label.setBuddy(field)
        self._of_training.append(self.addWidget(field))
        new_seed = self._button(actions["new_seed"])
        new_seed.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        return field, new_seed

    @Slot(QPoint)
    def _on_seed_menu(self, place: QPoint) -> None:
        """Show the menu with which a session locks or hides the seed, as for every control."""
        control = Restrainable(paths=("seed",), lock=tr("Lock the seed"), hide=tr("Hide the seed"))
        control.show_menu(self, self._workspace.editing, self.seed.mapToGlobal(place))

    @Slot()
    def _on_seed(self) -> None:
        """Start a run from the typed seed. An invalid seed is replaced by the current one."""
        text = self.seed.text().strip()
        self.seed.clearFocus()
        if text.isdecimal() and int(text) != self._workspace.editing.wanted.seed:
            self.seed_wanted.emit(int(text))
        self._show_seed()

    def _show_seed(self) -> None:
        if not self.seed.hasFocus():
            editing = self._workspace.editing
            self.seed.setText(str(editing.wanted.seed))
            allow(self.seed, tr("The seed is locked for this session.") if "seed" in editing.locked else "")

    def _choice(self, name: str, texts: list[str], slot: object) -> QComboBox:
        self._label(name)
        box = CalmBox(name)
        box.setToolTip(plain_tip(name))
        box.addItems(texts)
        box.activated.connect(slot)
        self._of_training.append(self.addWidget(box))
        return box

    @Slot(int)
    def _on_speed(self, index: int) -> None:
        self._player.set_speed(SPEEDS[index][1])

    @Slot(int)
    def _on_length(self, index: int) -> None:
        self._player.set_length(LENGTHS[index][1])

    def apply_style(self, scale: float) -> None:
        self._margin = round(MARGIN * scale)
        self._fitted = None
        self._above = round(ABOVE * scale)
        self._keep_margins()
        self.setIconSize(QSize(round(14 * scale), round(14 * scale)))
        if hasattr(self, "run"):
            self._keep_run_width()
            self.seed.setFixedWidth(self.seed.fontMetrics().horizontalAdvance("00000") + round(18 * scale))

    def _keep_margins(self) -> None:
        """Set smaller margins above and below the buttons than at the ends.

        Qt's own are equal, whatever the style sheet says.

        When Qt's toolbar layout places the first button, it swaps two of them (it uses the upper margin at the left and
        the left one at the top), but not in its size hint. The sums are therefore correct, and these two margins are
        swapped here.
        """
        layout, ends, above = self.layout(), self._margin, self._above
        if layout is not None:
            layout.setContentsMargins(above, ends, 2 * ends - above, 2 * above - ends)

    def _keep_run_width(self) -> None:
        """Make the button wide enough for both "Run" and "Pause", so that its neighbours do not move."""
        metrics = self.run.fontMetrics()
        own = metrics.horizontalAdvance(self.run.text())
        longest = max(metrics.horizontalAdvance(text) for text in RUN_TEXTS)
        self.run.setFixedWidth(self.run.sizeHint().width() - own + longest)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "run"):
            self._fitted = None
            self._keep_margins()
            self._keep_run_width()
            for button in self._shrinking:  # another font has other widths
                self._shorten(button, False)

    @Slot(int)
    def _on_run(self, index: int) -> None:
        self._run_manager.show(self._workspace.runs[index])

    @Slot()
    def _on_frame(self) -> None:
        """Show whether the run is stored on disk, and its size."""
        run = self._workspace.run
        if run is None:
            return
        self._show_seed()
        origin = (
            tr("recorded", "run")
            if is_example(run.path) or run.is_recorded
            else tr("saved")
            if run.saved
            else tr("autosaved")
        )
        written = run.path.exists()  # a branch has no file before its first own update
        text = f"{origin} · {in_bytes(size_of(run.path))}" if written else tr("no update yet")
        if run.is_recorded:
            text = origin
        if self._workspace.training not in (None, run) and self._player.mode is Mode.COMPUTING:
            text = tr("{title} is training").format(title=self._workspace.training.title)
        self._show_waiting()
        self.status.say(text)
        texts = [action.text() for action in self.actions()]
        needs = texts, self.status.minimumWidth(), self.status.needed, run.is_recorded
        if needs != self._fitted:  # nothing else that takes space changes in a frame
            self._fit()
            self._fitted = needs

    @Slot()
    def _on_progress(self) -> None:
        needed = self.status.needed
        self._show_waiting()
        if self.status.needed != needed:
            self._fit()

    def _show_waiting(self) -> None:
        """Show that the run is waiting for its model, or the progress of a long update."""
        run = self._workspace.run
        language = run is not None and run.origin.settings.is_language
        self.status.moving = self._player.staged
        trains = language and run is self._workspace.training
        self.status.wait_for(trains and self._player.loading)
        computing = trains and self._player.mode is Mode.COMPUTING
        self.status.follow(self._controller.progress if computing else None, computing=computing)

    @Slot()
    def refresh(self) -> None:
        self._show_waiting()
        self._fitted = None
        self._keep_run_width()
        self.runs.show_runs(self._workspace.runs, self._workspace.run)
        with QSignalBlocker(self.speed), QSignalBlocker(self.length):
            self.speed.setCurrentIndex(_nearest([value for _, value in SPEEDS], self._player.speed))
            self.length.setCurrentIndex(_nearest([value for _, value in LENGTHS], self._player.length))


def _width_of(widget: QWidget) -> int:
    """Return the width in pixels of a toolbar widget, or 0 for the one that takes the remaining space."""
    fixed = widget.minimumWidth() == widget.maximumWidth()
    return widget.width() if fixed else max(widget.sizeHint().width(), 0)


def _nearest(values: list[float | None] | list[int | None], value: float | None) -> int:
    if value is None:
        return len(values) - 1
    return min(range(len(values) - 1), key=lambda i: abs((values[i] or 0) - value))
