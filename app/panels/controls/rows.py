"""Rows of the controls by kind of setting, and those of all settings that are not always shown, under headings."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

from PySide6.QtCore import QEvent, QRectF, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QWidget

from app.boxes import across, down
from app.help.hover import explain_on_hover
from app.panels.controls.kinds import PARTS
from app.theme.file_dialogs import file_to_open
from app.theme.labels import Label, Paragraph
from app.theme.painting import fitting, painter_of, write
from app.widgets.calm import CalmBox, CalmSlider, SliderScale, parsed, push_button, shown, toggle, tool_button
from grpo_core.config import About, about, described
from grpo_core.config.value_names import headed
from grpo_core.errors import SettingsError
from grpo_core.text import listed, plural, tr

MARK = " •"


class _Name(Label):
    """The name of a setting. A long one is shortened rather than push its value out of view."""

    def minimumSizeHint(self) -> QSize:
        return QSize(1, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        text = fitting(self.text(), self.fontMetrics(), self.width(), MARK)
        write(painter_of(self), QRectF(self.rect()), text, self.font(), self.palette().color(self.foregroundRole()))


class Row(QWidget):
    """A row with a setting's name, its value and, below them, why an input was rejected.

    Attributes:
        paths: dotted paths of the settings that the row changes together.
        usual: the value before anything is chosen.

    Signals:
        edited: paths, value, gesture (None for a single edit).
    """

    edited = Signal(tuple, object, object)

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.paths, self.about = paths, about
        self.usual: Any = None
        self._marked = "", True
        self.name = _Name(about.named)
        self.error = Label(name="refusal", wraps=True)
        self.error.hide()
        self.note = Label(name="muted", wraps=True)
        self.note.hide()
        self.head = across((self.name, 1), margins=0)
        self.body = down(self.head, self.error, self.note, on=self, margins=0, spacing=4)
        explain_on_hover(self.name, about.title, f"{about.help} {usual(about)}")

    def label(self, widget: QWidget) -> None:
        """Label the input widget with the setting's name and its help from the glossary."""
        explain_on_hover(widget, self.about.title, f"{self.about.help} {usual(self.about)}")
        widget.setAccessibleName(self.about.title)
        self.name.setBuddy(widget)

    def show_value(self, value: Any) -> None:
        raise NotImplementedError

    def refuse(self, sentence: str) -> None:
        """Show below the field why the input was rejected and what is allowed."""
        self.error.tell(sentence)

    def stay(self, value: Any, error: SettingsError) -> None:
        """Show why the input was rejected, and that the setting stays ``value``."""
        sentence = tr("{title} stays {row}: {allowed}.")
        self.refuse(sentence.format(title=self.about.title, row=shown(value), allowed=error.allowed))
        self.show_value(value)

    def accept(self) -> None:
        """Clear the message about a rejected input."""
        self.error.hide()

    def mark(self, sentence: str) -> None:
        """Mark the name, and show ``sentence``, which says that the update shown used a different value.

        An empty string removes both.
        """
        marked = sentence, self.isEnabled()  # a lock replaces the tooltip
        if marked == self._marked:
            return
        self._marked = marked
        self.name.setText(f"{self.about.named}{MARK}" if sentence else self.about.named)
        note = f"{sentence} {self.about.help} {usual(self.about)}".strip()
        explain_on_hover(self.name, self.about.title, note)


def usual(about: About) -> str:
    """Return the usual and the allowed range of a setting as sentences."""
    parts = []
    if about.usual is not None:
        parts.append(tr("Usual: {low:g} to {high:g}.").format(low=about.usual[0], high=about.usual[1]))
    if about.choices:
        parts.append(tr("Choices: {choices}.").format(choices=listed(headed(choice) for choice in about.offered)))
    else:
        parts.append(tr("Allowed: {allowed}.").format(allowed=about.allowed))
    return " ".join(parts)


GESTURES = itertools.count(1)
FILES = ("file", "folder", "checkpoint")
"""Ends of the paths of settings that name a file or folder."""


class FieldRow(Row):
    """A row of the controls with a text field, whose text is read once it is complete and has changed."""

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(paths, about, parent)
        self._shown = ""
        self.field = QLineEdit()
        self.field.editingFinished.connect(self._on_typed)
        self.field.returnPressed.connect(self.field.clearFocus)
        self.field.textEdited.connect(self.error.hide)
        self.label(self.field)

    def show_value(self, value: Any) -> None:
        self._shown = shown(value)
        if not self.field.hasFocus():
            self.field.setText(self._shown)

    def read(self, text: str) -> Any:
        """Return the value that ``text`` means."""
        raise NotImplementedError

    @Slot()
    def _on_typed(self) -> None:
        if self.field.text().strip() != self._shown:
            self.edited.emit(self.paths, self.read(self.field.text()), None)
        self.field.setModified(False)


class NumberRow(FieldRow):
    """A row of the controls with a number field and, if the setting has a usual range, a slider below it."""

    def __init__(self, paths: tuple[str, ...], about: About, whole: bool, parent: QWidget | None = None) -> None:
        super().__init__(paths, about, parent)
        self._whole = whole
        self._value: float | None = None
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setObjectName("valueField")
        self.field.setPlaceholderText(tr("off") if about.optional else "")
        self.fit()
        self.head.addWidget(self.field)
        self.slider: CalmSlider | None = None
        if about.usual is not None:
            self._scale = SliderScale.of(about, whole)
            self.slider = CalmSlider()
            self.slider.setRange(0, self._scale.steps)
            self.slider.setPageStep(max(self._scale.steps // 10, 1))
            self.slider.setAccessibleName(about.title)
            self.slider.spoken = self._spoken
            self.slider.sliderPressed.connect(self._on_pressed)
            self.slider.valueChanged.connect(self._on_slid)
            self.body.insertWidget(1, self.slider)
        self._gesture: int | None = None

    def fit(self) -> None:
        """Make the field wide enough for seven digits in the current font."""
        self.field.setFixedWidth(self.field.fontMetrics().horizontalAdvance("0") * 9 + 12)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange) and hasattr(self, "field"):
            self.fit()

    def show_value(self, value: Any) -> None:
        text = shown(value)
        self._shown = text
        self._value = None if value is None else float(value)
        if not self.field.hasFocus() or not self.field.isModified():
            self.field.setText(text)
        if self.slider is not None and value is not None:
            with QSignalBlocker(self.slider):
                self.slider.setValue(self._scale.position(float(value)))

    def _spoken(self, position: int) -> str:
        """Return the slider's value for a screen reader: the exact current value if the slider is at it."""
        here = self._value is not None and self._scale.position(self._value) == position
        value = self._value if here else self._scale.value(position)
        return f"{shown(value)} {self.about.unit}".rstrip()

    @Slot()
    def _on_pressed(self) -> None:
        self._gesture = next(GESTURES)

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        value = self._scale.value(position)
        gesture = self._gesture if self.slider is not None and self.slider.isSliderDown() else None
        self.edited.emit(self.paths, int(value) if self._whole else value, gesture)

    def read(self, text: str) -> Any:
        return parsed(text, self._whole)


class ChoiceRow(Row):
    """A row of the controls with a combo box."""

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(paths, about, parent)
        self.box = CalmBox(entries=((headed(choice), choice) for choice in about.offered))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(10)
        self.box.activated.connect(self._on_chosen)
        self.label(self.box)
        self.body.insertWidget(1, self.box)

    def show_value(self, value: Any) -> None:
        with QSignalBlocker(self.box):
            self.box.setCurrentIndex(self.box.findData(value))

    @Slot(int)
    def _on_chosen(self, index: int) -> None:
        self.edited.emit(self.paths, self.box.itemData(index), None)


class TextRow(FieldRow):
    """A row of the controls with a text field. A file name can be chosen in a dialog."""

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(paths, about, parent)
        self.field.setMinimumWidth(1)
        self.field.setPlaceholderText(tr("none", "text"))
        self.body.insertWidget(1, self.field)
        self.browse = tool_button(tr("Choose…"), name=tr("Choose a file for {title}").format(title=about.title))
        self.browse.clicked.connect(self._on_browse)
        self.head.addWidget(self.browse)
        self.browse.setHidden(not paths[0].endswith(FILES))  # in the row, since it would be a window of its own before

    def show_value(self, value: Any) -> None:
        self._shown = str(value)
        if not self.field.hasFocus():
            self.field.setText(self._shown)
            self.field.setCursorPosition(0)

    def read(self, text: str) -> Any:
        return text.strip()

    @Slot()
    def _on_browse(self) -> None:
        name = file_to_open(self, self.about.title, self._shown)
        if name:
            self.edited.emit(self.paths, name, None)


class SwitchRow(Row):
    """A row of the controls with a check box."""

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(paths, about, parent)
        self.box = QCheckBox()
        self.box.clicked.connect(self._on_clicked)
        self.label(self.box)
        self.head.addWidget(self.box)

    def show_value(self, value: Any) -> None:
        with QSignalBlocker(self.box):
            self.box.setChecked(bool(value))

    @Slot(bool)
    def _on_clicked(self, checked: bool) -> None:
        self.edited.emit(self.paths, checked, None)


class ListRow(FieldRow):
    """A row of the controls with a field for a comma-separated list of numbers."""

    def __init__(self, paths: tuple[str, ...], about: About, parent: QWidget | None = None) -> None:
        super().__init__(paths, about, parent)
        self.body.insertWidget(1, self.field)

    def read(self, text: str) -> Any:
        return tuple(parsed(part, whole=False) for part in text.replace(";", ",").split(",") if part.strip())


def setting_row(part: str, owner: type, name: str) -> Row:
    """Return the row of the field ``name`` of the settings class ``owner``, whose dotted path begins with ``part``."""
    row = row_for(f"{part}.{name}", about(owner, name), getattr(owner, name))
    row.usual = getattr(owner, name)
    return row


def row_for(path: str, about: About, default: Any) -> Row:
    if about.choices:
        return ChoiceRow((path,), about)
    if about.text:
        return TextRow((path,), about)
    if isinstance(default, bool):
        return SwitchRow((path,), about)
    if isinstance(default, tuple):
        return ListRow((path,), about)
    return NumberRow((path,), about, whole=isinstance(default, int))


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
        self.more = toggle(tr("More settings"), "")
        self.more.setArrowType(Qt.ArrowType.RightArrow)
        self.more.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more.toggled.connect(self._on_more)
        self.source = Paragraph(name="muted", margin=0)
        self.rest = push_button(tip=tr("Show every setting and command. View, Show everything takes them back."))
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
