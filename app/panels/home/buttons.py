"""The large buttons of the Home panel: one that opens a door, and one that opens a run, with a small picture of it.

The picture is read from the run's file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.examples import EXAMPLES, TITLES, example
from app.plotting.numbers import shown
from app.resources import icon
from app.theme.labels import plain_tip
from app.theme.painting import WRAPPED, frame, painter_of, write
from app.theme.styled import Styled
from app.theme.tokens import RADIUS
from app.widgets.panel_spec import Door
from grpo_core.errors import RunFileError
from grpo_core.runs import library
from grpo_core.runs.reader import RunReader
from grpo_core.text import plural, tr

POINTS = 120
"""Maximum number of points of a curve. A longer series is reduced to that many means."""
RUNS = 8
"""Maximum number of the user's runs that are shown."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The preview of one run.

    Attributes:
        steps: number of its last update.
        rewards: (n,) its mean rewards over the updates, n at most :data:`POINTS`.
    """

    path: Path
    title: str
    steps: int
    rewards: np.ndarray


Previews: TypeAlias = dict[str, list[Preview]]
"""The user's ``own`` runs, newest first, and the ``examples`` that are shipped with the program."""


def previews(folder: Path, poll: Callable[[], None]) -> Iterator[Previews]:
    """Yield the most recently written runs in ``folder`` and the examples, once.

    Broken runs, and those without an update, are left out.

    Raises:
        Cancelled: ``poll`` raised it.
    """
    own = [(one.path, one.meta.title) for one in library.entries(folder, poll) if one.meta is not None and one.steps]
    yield {"own": _read(own[:RUNS]), "examples": _read([(example(name), TITLES[name]) for name in EXAMPLES])}


def _read(runs: Sequence[tuple[Path, str]]) -> list[Preview]:
    found = []
    for path, title in runs:
        with suppress(RunFileError), RunReader.open(path) as reader:
            rewards = reader.series("reward_mean")
            found.append(Preview(path=path, title=title, steps=reader.last, rewards=shortened(rewards)))
    return found


def shortened(values: np.ndarray) -> np.ndarray:
    """Return the finite entries of ``values`` (n,), reduced to :data:`POINTS` means if there are more than that."""
    values = values[np.isfinite(values)]
    if len(values) <= POINTS:
        return values
    return np.array([part.mean() for part in np.array_split(values, POINTS)])


DOOR_PAD, PICTURE = 16, 48
"""Pixels at 100 %: padding, and width and height of the picture."""
LARGE = 1.35
"""Factor by which the font size of the title is multiplied."""


class _Framed(Styled, QAbstractButton):
    """A button with a ring if it has the keyboard focus, and another ground under the pointer."""

    def _framed(self) -> QPainter:
        """Return a painter of this button that has painted the frame."""
        painter, theme = painter_of(self), self.theme
        pen = theme.ring if self.hasFocus() else QPen(theme.colour("border"), 1.0)
        inside = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        ground = theme.faint("text", 0.07) if self.underMouse() else theme.colour("surface")
        frame(painter, inside, pen, ground, radius=RADIUS * self.factor)
        return painter


class DoorButton(_Framed):
    """The button of one door. Enter and Space open it, and the left and right arrow keys move to its neighbours."""

    def __init__(self, door: Door, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.door = door
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        self.setText(door.title)
        self.setAccessibleName(door.title)
        self.setAccessibleDescription(door.sentence)
        self._fit()

    def _apply_style(self) -> None:
        self._fit()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(110 * self.factor), self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        pad, theme, scale = DOOR_PAD * self.factor, self.theme, self.factor
        title = QFontMetrics(theme.font("strong", LARGE * scale)).height()
        wide = round(self.width() - 2 * pad)
        text = QFontMetrics(theme.font("body", scale)).boundingRect(0, 0, wide, 10_000, WRAPPED, self.door.sentence)
        self.setMinimumHeight(round(3 * pad + PICTURE * scale + title + text.height()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Right | Qt.Key.Key_Down:
                self.focusNextChild()
            case Qt.Key.Key_Left | Qt.Key.Key_Up:
                self.focusPreviousChild()
            case _:
                super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, scale = self._framed(), self.theme, self.factor
        pad, side = DOOR_PAD * scale, round(PICTURE * scale)
        box = QRectF(self.rect()).adjusted(pad, pad, -pad, -pad)
        picture = icon(self.door.icon, theme.colour("push_up").name()).pixmap(
            QSize(side, side), self.devicePixelRatioF()
        )
        painter.drawPixmap(box.topLeft(), picture)
        box.setTop(box.top() + side + pad / 2)
        write(painter, box, self.door.title, theme.font("strong", LARGE * scale), theme.ink("text"), WRAPPED)
        box.setTop(box.top() + painter.fontMetrics().height() + pad / 4)
        write(painter, box, self.door.sentence, theme.font("body", scale), theme.ink("muted"), WRAPPED)


WIDE, CURVE, PAD = 168, 56, 8
"""Pixels at 100 %: width of the card, height of the curve, and padding around both."""
TITLE_LINES = 2


class RunCard(_Framed):
    """The card of one run. A click opens the run."""

    def __init__(self, preview: Preview, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.preview = preview
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setText(preview.title)
        self.setAccessibleName(tr("Open {title}, {detail}").format(title=preview.title, detail=self.detail))
        self.setToolTip(plain_tip(f"{preview.title}\n{preview.path.name}"))

    @property
    def detail(self) -> str:
        if not len(self.preview.rewards):
            return plural("{steps:,} update", "{steps:,} updates", self.preview.steps).format(steps=self.preview.steps)
        last = shown(float(self.preview.rewards[-1]), 3)
        return plural(
            "{steps:,} update · reward {last}", "{steps:,} updates · reward {last}", self.preview.steps
        ).format(steps=self.preview.steps, last=last)

    def sizeHint(self) -> QSize:
        lines = ("section",) * TITLE_LINES + ("small",)
        words = sum(QFontMetricsF(self.theme.font(role, self.factor)).height() for role in lines)
        return QSize(round(WIDE * self.factor), round((CURVE + 3 * PAD) * self.factor + words))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, scale = self._framed(), self.theme, self.factor
        pad = PAD * scale
        curve = QRectF(1 + pad, 1 + pad, self.width() - 2 - 2 * pad, CURVE * scale)
        painter.setPen(theme.pen("reward", 1.6 * scale, Qt.PenStyle.SolidLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(self._curve(curve))
        top = curve.bottom() + pad
        texts = (("section", "text", self.text(), TITLE_LINES), ("small", "muted", self.detail, 1))
        for role, colour, text, lines in texts:
            font = theme.font(role, scale)
            metrics = QFontMetricsF(font)
            # a wrapped line rarely fills the width
            cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, curve.width() * (1 + 0.8 * (lines - 1)))
            box = QRectF(curve.left(), top, curve.width(), lines * metrics.height())
            write(painter, box, cut, font, theme.ink(colour), int(Qt.TextFlag.TextWordWrap))
            top += box.height()

    def _curve(self, area: QRectF) -> QPolygonF:
        """Return the curve scaled to ``area`` by its extreme rewards, or at mid-height if all are equal."""
        rewards = self.preview.rewards
        low, high = (float(rewards.min()), float(rewards.max())) if len(rewards) else (0.0, 0.0)
        across = area.width() / max(len(rewards) - 1, 1)
        heights = (rewards - low) / (high - low) if high > low else rewards * 0 + 0.5
        return QPolygonF(
            [QPointF(area.left() + n * across, area.bottom() - y * area.height()) for n, y in enumerate(heights)]
        )
