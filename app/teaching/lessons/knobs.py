"""The one to three knobs of a lesson, as control rows placed side by side or, on a narrow page, stacked."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QToolButton, QWidget

from app.boxes import across
from app.panels.controls.rows import Row, row_for
from app.theme.reasons import allow
from grpo_core.config import Settings, described_at
from grpo_core.errors import SettingsError
from grpo_core.text import tr


class Knobs(QWidget):
    """The control rows of the knobs.

    Attributes:
        rows: control rows by the dotted path of their setting.
        back: the button that returns every knob to the value of the step.

    Signals:
        turned: emitted with the dotted path and the value of a knob that was turned.
    """

    turned = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: dict[str, Row] = {}
        self.back = QToolButton()
        self.back.setText(tr("Reset"))
        self.back.setToolTip(tr("Reset everything to the values of this step."))
        self.back.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._row = across(self.back, on=self, margins=0, spacing=16)

    def stand(self, upright: bool) -> None:
        """Stack the control rows if ``upright``, otherwise place them side by side."""
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if upright else directions.LeftToRight)
        self._row.setSpacing(8 if upright else 16)

    def show_knobs(self, paths: tuple[str, ...], settings: Settings, touched: bool) -> None:
        """Show the knobs for ``paths`` with the values in ``settings``. They can be reset if one was ``touched``."""
        if tuple(self.rows) != paths:
            self._rebuild(paths, settings)
        for path, row in self.rows.items():
            row.show_value(settings.get(path))
        allow(self.back, "" if touched else tr("Nothing has been changed yet."))

    def _rebuild(self, paths: tuple[str, ...], settings: Settings) -> None:
        for row in self.rows.values():
            self._row.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = {}
        for place, path in enumerate(paths):
            row = self.rows[path] = row_for(path, described_at(path), settings.get(path))
            row.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            row.edited.connect(self._on_edited)
            self._row.insertWidget(place, row, 1)

    def refuse(self, path: str, error: SettingsError) -> None:
        if path in self.rows:
            self.rows[path].refuse(str(error))

    @Slot(tuple, object, object)
    def _on_edited(self, paths: tuple[str, ...], value: object, gesture: object) -> None:
        for path in paths:
            self.rows[path].accept()
            self.turned.emit(path, value)
