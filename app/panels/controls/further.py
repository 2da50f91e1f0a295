"""The settings under “More settings”: all settings that are not always shown, grouped under headings."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QSizePolicy, QToolButton, QWidget

from app.boxes import down
from app.panels.controls.kinds import PARTS
from app.panels.controls.rows import Row, setting_row
from app.theme.labels import Label
from grpo_core.config import described
from grpo_core.text import plural, tr


def muted() -> Label:
    """Return an empty, word-wrapped label in the muted colour."""
    label = Label(name="muted", wraps=True)
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    return label


class FurtherSettings(QWidget):
    """A button that unfolds the further settings. They are created on first use, since most windows never show them.

    Attributes:
        source: the origin of the algorithm, shown above the settings.
        rest: a button for the settings that are not shown, below the others.
        sections: heading -> its settings; empty before :meth:`make_rows`.

    Signals:
        opening: emitted before the settings are shown, so that listeners can create the rows first.
    """

    opening = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sections: dict[Label, list[Row]] = {}
        self.more = QToolButton()
        self.more.setText(tr("More settings"))
        self.more.setCheckable(True)
        self.more.setArrowType(Qt.ArrowType.RightArrow)
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.toggled.connect(self._on_more)
        self.source = muted()
        self.rest = QPushButton()
        self.rest.setToolTip(tr("Show every setting and command. View, Show everything takes them back."))
        self._rows = QWidget()
        self._column = down(spacing=12)
        down(self.source, self._column, self.rest, on=self._rows, margins=0, spacing=12)
        self._rows.hide()
        down(self.more, self._rows, on=self, margins=0, spacing=12)

    def make_rows(self, taken: Collection[str]) -> list[Row]:
        """Return the rows of all settings except those at the paths ``taken``, or nothing if there are rows already."""
        if self.sections:
            return []
        for part, title, owner in PARTS:
            for number, (name, rule) in enumerate(described(owner)):
                if rule.section or number == 0:
                    heading = Label(rule.section or title, name="section")
                    self.sections[heading] = rows = []
                    self._column.addWidget(heading)
                if f"{part}.{name}" not in taken:
                    rows.append(setting_row(part, owner, name))
                    self._column.addWidget(rows[-1])
        return [row for rows in self.sections.values() for row in rows]

    def show_headings(self) -> None:
        for heading, rows in self.sections.items():
            heading.setVisible(any(not row.isHidden() for row in rows))

    def offer_rest(self, count: int) -> None:
        """Offer to show ``count`` settings that have their usual values, or nothing if there are none."""
        self.rest.setText(plural("Show {count} more setting", "Show {count} more settings", count).format(count=count))
        self.rest.setVisible(count > 0)

    @Slot(bool)
    def _on_more(self, on: bool) -> None:
        self.opening.emit()
        self.more.setArrowType(Qt.ArrowType.DownArrow if on else Qt.ArrowType.RightArrow)
        self._rows.setVisible(on)
