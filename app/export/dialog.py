"""The dialog for exporting a picture: panel, size, theme, scale, caption and, for a sequence, the updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QDialogButtonBox, QFormLayout, QSpinBox, QWidget

from app.boxes import across, down
from app.theme.labels import Label
from app.theme.look import SCALES, TITLES
from grpo_core.text import tr

PICTURE, SEQUENCE, FILM = tr("Export picture"), tr("Export image sequence"), tr("Export film")
"""Titles of the dialog."""
SHOWN = tr("As shown")
SIZES = ((768, 260), (1280, 720), (1600, 900), (1920, 1080), (3840, 2160))
OWN = tr("Other…")
LEAST, MOST = 24, 8192
MOST_FRAMES = 10_000
ANEW = tr(
    "Drawn again from the run's file, without what was chosen inside the panel, such as series, a zoom or "
    "a race. To keep that, choose theme and scale under View, and “As shown” here."
)

LESSON_ANEW = tr(
    "The lesson is played again from its first step to its last, in runs of its own. Each question is "
    "shown for some seconds before its answer appears."
)


@dataclass(frozen=True, kw_only=True)
class PictureChoice:
    """The user's choice of a picture. None means “as shown”.

    Attributes:
        panel: id of the panel.
        size: total size of the picture in pixels, including the caption.
        scale: 1 is 100 %.
        steps: the updates of a sequence; None for a single picture.
        lesson: id of a lesson to film from beginning to end; empty for updates of a panel.
    """

    panel: str
    size: tuple[int, int] | None = None
    theme: str | None = None
    scale: float | None = None
    caption: bool = True
    steps: range | None = None
    lesson: str = ""


class PictureDialog(QDialog):
    """A dialog that asks for a :class:`PictureChoice`.

    Args:
        panels: (id, title) of the panels to choose from.
        panel: id of the panel that is initially selected.
        head: last update, for a sequence or a film; 0 for a single picture.
        lesson: (id, title) of a lesson that can be filmed from beginning to end instead of a panel, and is
            initially selected.

    Signals:
        chosen: emitted when the user has confirmed a choice.
    """

    chosen = Signal(object)

    def __init__(
        self,
        panels: Sequence[tuple[str, str]],
        panel: str,
        parent: QWidget,
        *,
        title: str = PICTURE,
        head: int = 0,
        lesson: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.panel = _combo(tr("Panel"), panels)
        self.panel.setCurrentIndex(max(self.panel.findData(panel), 0))
        self._lesson = "" if lesson is None else lesson[0]
        if lesson is not None:
            self.panel.insertItem(0, tr("The lesson “{title}”").format(title=lesson[1]))
            self.panel.setCurrentIndex(0)
        sizes = [(SHOWN if not head else tr("What suits the panel"), None), *((f"{w} × {h}", (w, h)) for w, h in SIZES)]
        self.size_choice = _combo(tr("Size"), [(size, text) for text, size in [*sizes, (OWN, OWN)]])
        self.width_box, self.height_box = _number(tr("Width in pixels"), 1600), _number(tr("Height in pixels"), 900)
        self.theme = _combo(tr("Theme"), [(None, SHOWN), *(each for each in TITLES.items() if each[0] != "system")])
        self.scale = _combo(tr("Scale"), [(None, SHOWN), *((scale, f"{scale:.0%}") for scale in SCALES)])
        self.caption = QCheckBox(tr("Update, settings, seed and version below"))
        self.caption.setChecked(True)
        self.first, self.last = _number(tr("First update"), 1), _number(tr("Last update"), max(head, 1))
        for box in (self.first, self.last):
            box.setRange(1, max(head, 1))
        self.last.setValue(max(head, 1))
        self._head = head
        self._build()
        self._on_size()
        self._on_look()

    def _build(self) -> None:
        self.own = QWidget()
        across(self.width_box, Label("×"), self.height_box, None, on=self.own, margins=0)
        form = QFormLayout()
        form.addRow(tr("Panel"), self.panel)
        if self._head:
            span = across(self.first, Label(tr("to")), self.last, None)
            form.addRow(tr("Updates"), span)
        form.addRow(tr("Size"), self.size_choice)
        form.addRow("", self.own)
        form.addRow(tr("Theme"), self.theme)
        form.addRow(tr("Scale"), self.scale)
        form.addRow(tr("Caption"), self.caption)
        self.hint = Label(name="muted", wraps=True)
        self.hint.setMinimumHeight(4 * self.hint.fontMetrics().height())
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.save = self.buttons.addButton(tr("Save as…"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        down(form, self.hint, self.buttons, on=self, spacing=16)
        self.size_choice.currentIndexChanged.connect(self._on_size)
        for choice in (self.panel, self.theme, self.scale):
            choice.currentIndexChanged.connect(self._on_look)
        self.accepted.connect(self._on_accepted)

    @Slot()
    def _on_size(self) -> None:
        self.own.setEnabled(self.size_choice.currentData() == OWN)
        size = self.size_choice.currentData()
        if isinstance(size, tuple):
            self.width_box.setValue(size[0])
            self.height_box.setValue(size[1])

    @Slot()
    def _on_look(self) -> None:
        for box in (self.first, self.last):
            box.setEnabled(not self._whole)
        anew = self._head or self.theme.currentData() is not None or self.scale.currentData() is not None
        self.hint.setText(LESSON_ANEW if self._whole else ANEW if anew else "")

    @property
    def _whole(self) -> bool:
        """Whether the lesson is selected, to be filmed from its first step to its last."""
        return bool(self._lesson) and self.panel.currentIndex() == 0

    @Slot()
    def _on_accepted(self) -> None:
        size = self.size_choice.currentData()
        first, last = sorted((self.first.value(), self.last.value()))
        self.chosen.emit(
            PictureChoice(
                panel=self.panel.currentData() or "",
                size=(self.width_box.value(), self.height_box.value()) if size is not None else None,
                theme=self.theme.currentData(),
                scale=self.scale.currentData(),
                caption=self.caption.isChecked(),
                steps=range(first, min(last, first + MOST_FRAMES - 1) + 1) if self._head else None,
                lesson=self._lesson if self._whole else "",
            )
        )


def _combo(name: str, entries: Sequence[tuple[object, str]]) -> QComboBox:
    made = QComboBox()
    made.setAccessibleName(name)
    for data, text in entries:
        made.addItem(text, data)
    return made


def _number(name: str, value: int) -> QSpinBox:
    made = QSpinBox()
    made.setAccessibleName(name)
    made.setRange(LEAST, MOST)
    made.setValue(value)
    return made
