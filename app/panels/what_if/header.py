"""The choices of a what-if: the row above it, and the editable settings on top of its preset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.boxes import Wrap, down, plain_scroll_area
from app.panels.controls.rows import Row, row_for
from app.panels.what_if.question import AS_IT_RAN
from app.theme.labels import Label, plain_tip, wrapped_tip
from app.token_grid.tints import TINTS
from app.widgets.calm import CalmBox, choice_box, push_button, shown, toggle
from grpo_core.config import PRESETS, Settings
from grpo_core.config.settings import described_at
from grpo_core.text import tr

SHOWS = {
    "numbers": tr("Numbers"),
    "policy": tr("Policy after"),
    "tokens": tr("Tokens"),
    "samples": tr("Samples"),
}
"""The available views. The numbers are offered only if they do not fit next to the others."""
ASK_TIP = tr(
    "Computes the update with these settings on a copy of the model: all passes, and the effect on every "
    "token. The run is not changed."
)
ASK_FOLDER_TIP = tr(
    "Computes the update with these settings: all passes, and the effect on every token. The loaded model "
    "does it, with its adapter put back to where the update began; no second model is loaded, and the run "
    "is not changed."
)
EVERY_WEIGHT_TIP = tr(
    "Every weight of this model is trained, and the weights before an update are not kept. A run that "
    "trains an adapter can be asked, and so can one with a folder for snapshots."
)


class WhatIfHeader(QWidget):
    """The row above a what-if: combo boxes for preset, view, pass and tint, and the button that asks the model.

    Attributes:
        preset, shows, tint: the data of their entries are names of presets, keys of :data:`SHOWS` and of ``TINTS``.
        passes: its entries are the passes in their order.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.preset, self.passes = _combo(tr("What if it had been")), _combo(tr("Pass"))
        self.shows, self.tint = _combo(tr("Show", "label of a choice")), _combo(tr("Tint"))
        for name in (AS_IT_RAN, *PRESETS):
            preset = PRESETS.get(name)
            tip = tr("The settings of the update itself, to change a few.") if preset is None else preset.source
            self.preset.offer(name, name, tip)
        self.settings = toggle(tr("Settings"), tr("Change settings on top of the preset."))
        self.settings.setAccessibleName(tr("Change settings on top of the preset"))
        self.settings.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.ask = push_button(tr("Ask the model"), ASK_TIP)
        self.ask.setAccessibleDescription(ASK_TIP)
        self._label = Label(tr("What if"), name="muted")
        self._others = (self.settings, self.passes, self.shows, self.tint, self.ask)
        self._row = Wrap(self._label, self.preset, *self._others, on=self, margins=(12, 4, 12, 4), spacing=6)

    def show_choice(self, preset: str, changed: bool, tip: str) -> None:
        """Show the preset, with an asterisk if settings have been changed on top of it."""
        self.preset.show_named(preset, changed=changed)
        self.preset.setToolTip(wrapped_tip(tip))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:  # a box was shown or hidden, or its text has changed
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        """Fit the header on one line if possible.

        First the preset box shrinks to its text, then the labels before the boxes are hidden. If that is not enough,
        the last boxes move to a second line.
        """
        metrics, hint = self.preset.fontMetrics(), self.preset.sizeHint().width()
        longest = max(metrics.horizontalAdvance(self.preset.itemText(n)) for n in range(self.preset.count()))
        least = hint - longest + metrics.horizontalAdvance(self.preset.currentText())
        shown = [widget for widget in self._others if not widget.isHidden()]
        space, margins = self._row.spacing(), self._row.contentsMargins()
        left = (
            self.width() - margins.left() - margins.right() - sum(widget.sizeHint().width() + space for widget in shown)
        )
        named = not 0 <= left - least < self._label.sizeHint().width() + space
        self._label.setVisible(named)
        left -= self._label.sizeHint().width() + space if named else 0
        self.preset.setFixedWidth(min(max(left, least), hint) if left >= least else hint)

    def show_model(self, settings: Settings) -> None:
        tip = ASK_TIP
        if settings.is_language and settings.model.folder:
            tip = ASK_FOLDER_TIP if settings.model.keeps_weights else EVERY_WEIGHT_TIP
        if tip != self.ask.accessibleDescription():
            self.ask.setToolTip(plain_tip(tip))
            self.ask.setAccessibleDescription(tip)

    def show_passes(self, count: int, passed: int) -> None:
        self.passes.fill([tr("pass {n} of {count}").format(n=n + 1, count=count) for n in range(count)], passed)
        self.passes.setVisible(count > 1)

    def show_views(self, shows: Sequence[str], current: str, tints: Sequence[str], tint: str) -> None:
        for box, names, here in ((self.shows, shows, current), (self.tint, tints, tint)):
            titles = SHOWS if box is self.shows else {name: TINTS[name].title for name in names}
            with QSignalBlocker(box):
                if [box.itemData(n) for n in range(box.count())] != list(names):
                    box.clear()
                    for name in names:
                        box.addItem(titles[name], name)
                box.setCurrentIndex(box.findData(here))
        self.shows.setVisible(len(shows) > 1)
        self.tint.setVisible(current == "tokens")


def _combo(name: str) -> CalmBox:
    box = choice_box(name)
    box.setMinimumContentsLength(4)
    return box


PATHS = (
    "objective.clip_low",
    "objective.clip_high",
    "objective.beta",
    "objective.baseline",
    "objective.std",
    "objective.reduction",
    "objective.level",
    "objective.importance_cap",
    "learner.mu",
    "optimizer.learning_rate",
)


class SettingsEditor(QWidget):
    """The fields of the settings in one column, one for each of ``PATHS``.

    Signals:
        edited: the dotted paths of settings, and their new value.
    """

    edited = Signal(tuple, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Row] = []
        self.settings = Settings()
        for path in PATHS:
            about = dataclasses.replace(described_at(path), usual=None)  # no slider, for lack of space
            row = row_for(path, about, self.settings.get(path))
            row.edited.connect(self.edited)  # no gesture: it is no edit of the run
            self.rows.append(row)
        fields = down(*self.rows, None, margins=(12, 4, 12, 8), spacing=8)
        down(plain_scroll_area(fields), on=self, margins=0)

    def show_settings(self, wanted: Settings, ran: Settings) -> None:
        """Show the settings of the what-if, and mark those that differ from the recorded ones."""
        self.settings = wanted
        for row in self.rows:
            row.setVisible(not ran.is_recorded or row.paths[0].startswith("objective."))
            value, then = wanted.get(row.paths[0]), ran.get(row.paths[0])
            row.show_value(value)
            row.mark("" if value == then else tr("The update ran with {then}.").format(then=shown(then)))

    def row(self, paths: tuple[str, ...]) -> Row:
        return next(row for row in self.rows if row.paths == paths)
