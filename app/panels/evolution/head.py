"""Above the rows of prompts: the share of right answers on a dial, and chips for the tasks of a language model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import across
from app.theme.labels import allow, plain_tip
from app.theme.painted_text import Sourced
from app.theme.painting import CENTRE, frame, painter_of, write
from app.theme.tokens import Theme
from app.workspace.evolution import RightShare
from app.workspace.view import View
from grpo_core.config import Settings, language_settings
from grpo_core.text import tr

WIDE, HIGH, LINE = 152, 92, 17
"""Pixels at 100 %: width, height, and the extra height of a second line."""
HELP_HELD_OUT = tr(
    "Right answers to prompts that are never trained on, always taking the likeliest token. E goes to the update that "
    "measured it and explains it."
)
HELP_SAMPLED = tr(
    "Right answers among the sampled completions of the update shown, on which its rewards are based. "
    "Below it, right answers to prompts that are never trained on, always taking the likeliest token "
    "(greedy). E explains the number."
)


class RightDial(Sourced, QWidget):
    """A semicircular dial from 0 to 100 %. E, Return or a double click explains the number.

    It shows the share of correct held-out answers. For a model from a folder, it shows the share of correct sampled
    completions, with the held-out share in a line below.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._scale = 1.0
        self._held_out: RightShare | None = None
        self._sampled: RightShare | None = None

    def show_share(self, held_out: RightShare | None, sampled: RightShare | None, theme: Theme, scale: float) -> None:
        high = HIGH + (LINE if sampled is not None else 0)
        self.setFixedSize(QSize(round(WIDE * scale), round(high * scale)))
        self._theme, self._scale, self._held_out, self._sampled = theme, scale, held_out, sampled
        self.setAccessibleName(tr("Held-out accuracy") if sampled is None else tr("Right answers"))
        self.setToolTip(plain_tip(HELP_HELD_OUT if sampled is None else HELP_SAMPLED))
        self.setAccessibleDescription(self.words)
        self.update()

    @property
    def words(self) -> str:
        """The displayed value as a sentence."""
        sentences = []
        if self._sampled is not None and self._sampled.last is not None and self._sampled.first is not None:
            sentences.append(
                tr(
                    "{now:.0f}% of the update's sampled completions are right, {start:.0f}% at the first update."
                ).format(now=100 * self._sampled.last, start=100 * self._sampled.first)
            )
        held_out = self._held_out
        if held_out is None:
            return " ".join(sentences)
        if held_out.last is None or held_out.first is None:
            sentences.append(tr("Held-out prompts have not been tried yet."))
        else:
            sentences.append(
                tr(
                    "{now:.0f}% of the held-out prompts are answered right, {start:.0f}% at the start, "
                    "always taking the likeliest token."
                ).format(now=100 * held_out.last, start=100 * held_out.first)
            )
        return " ".join(sentences)

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self._held_out if self._sampled is None else self._sampled
        if self._theme is None or shown is None:
            return
        theme, scale = self._theme, self._scale
        painter = painter_of(self)
        centre, radius = QPointF(self.width() / 2, 72 * scale), 58 * scale
        circle = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
        wide = 9 * scale
        painter.setPen(QPen(theme.colour("border"), wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawArc(circle, 0, 180 * 16)
        if shown.last is not None:
            painter.setPen(QPen(theme.colour("push_up"), wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            painter.drawArc(circle, 180 * 16, -round(180 * 16 * shown.last))
        if shown.first is not None:
            angle = math.pi * (1 - shown.first)
            way = QPointF(math.cos(angle), -math.sin(angle))
            painter.setPen(QPen(theme.colour("text"), 2 * scale))
            painter.drawLine(centre + way * (radius - wide), centre + way * (radius + wide * 0.8))
        place = QRectF(0, 34 * scale, self.width(), 36 * scale)
        number = "—" if shown.last is None else f"{shown.last:.0%}"
        write(painter, place, number, theme.font("counter", scale), theme.colour("text"), CENTRE)
        room = self.width() - 8 * scale  # inside the frame of the keyboard focus
        for n, line in enumerate(self.lines):
            font = theme.font("digits", scale)
            needed = QFontMetricsF(font).horizontalAdvance(line)
            if needed > room:  # in presenting mode the letters are larger, but the dial is not
                font.setPixelSize(int(font.pixelSize() * room / needed))
            place = QRectF(0, (73 + n * LINE) * scale, self.width(), LINE * scale)
            write(painter, place, line, font, theme.colour("muted"), CENTRE)
        if self.hasFocus():
            ring = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            frame(painter, ring, theme.ring, radius=4)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines below the number, which say what it counts."""
        held_out, lines = self._held_out, list[str]()
        if self._sampled is not None:
            lines.append(_counted(self._sampled, tr("sampled: {right} of {asked}"), tr("of the sampled completions")))
        if held_out is not None and lines:
            lines.append(
                _counted(held_out, tr("greedy, held out: {right} of {asked}"), tr("greedy, held out: {share:.0%}"))
            )
        elif held_out is not None:
            lines.append(_counted(held_out, tr("held out, greedy: {right} of {asked}"), tr("of the held-out prompts")))
        return tuple(lines)


def _counted(share: RightShare, counts: str, uncounted: str) -> str:
    """Fill in ``counts`` if the number of judged answers is known, otherwise ``uncounted``."""
    if share.last is None:
        return tr("held out: not asked yet")
    text = counts if share.asked else uncounted
    return text.format(right=share.right, asked=share.asked, share=share.last)


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A task offered as a chip.

    Attributes:
        changes: the settings that define the task, by dotted path.
        along: initial settings of a new run with the task, which the user can change later.
    """

    text: str
    changes: Mapping[str, Any] = field(hash=False)
    help: str
    along: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def describes(self, settings: Settings) -> bool:
        return all(settings.get(path) == value for path, value in self.changes.items())

    def begun_from(self, settings: Settings) -> dict[str, Any]:
        """Return the changes to ``settings`` that start a run of this task.

        Settings that only an agent's run needs are reset.
        """
        left = settings.is_language and settings.language.has_tool and not self.along
        usual = {path: language_settings().get(path) for path, value in AGENT.items() if settings.get(path) == value}
        return {**(usual if left else {}), **self.changes, **self.along}


AGENT = {"model.checkpoint": "calculator", "task.max_tokens": 40, "optimizer.learning_rate": 3e-4}
"""Settings of an agent's run: the model can call the tool, has space for three calls, and learns to use it in about
thirty updates.
"""
CHIPS = (
    Chip(text=tr("Sums"), changes={"task.problem": "arithmetic", "task.difficulty": "mixed"},
         help=tr("Right answers pay: the model's habit is repaired.")),
    Chip(text=tr("Gameable"), changes={"task.problem": "gameable", "task.difficulty": "mixed"},
         help=tr("Every “=” pays too: the reward can be had without being right.")),
    Chip(text=tr("Hopeless"), changes={"task.problem": "arithmetic", "task.difficulty": "hopeless"},
         help=tr("Almost nothing is answered right: without differences in reward, nothing is learned.")),
    Chip(text=tr("Agent"), changes={"task.problem": "calculator"}, along=AGENT,
         help=tr("Sums too large for it, and a calculator that answers within the completion.")),
    Chip(text=tr("Own…"), changes={"task.problem": "own"}, help=tr("Your own prompts and answers, from a file.")),
)  # fmt: skip # table, one row per line

IN_WORDS = (
    Chip(text=tr("Sums"), changes={"task.problem": "sums", "task.form_weight": 0.0},
         help=tr("Sums in words: the last number pays.")),
    Chip(text=tr("Form"), changes={"task.problem": "form", "task.form_weight": 1.0},
         help=tr("Sums in words, and a form that the answer should have: both pay.")),
    Chip(text=tr("Own…"), changes={"task.problem": "questions"},
         help=tr("Your own questions and answers, from a file.")),
)  # fmt: skip # table, one row per line
"""The tasks offered for a model from a folder, which reads any text."""


NEW_RUN = tr("This begins a new run; the present one stays in the list.")


class TaskChips(QWidget):
    """A row of chips, one per task, in which the task of the run shown is marked.

    Signals:
        wanted: begin a run with this task (its changes to settings, by dotted path).
    """

    wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Task"))
        self._settings = language_settings()
        self._chips = {self._button(chip): chip for chip in (*CHIPS, *IN_WORDS)}
        across(*self._chips, None, on=self, margins=0, spacing=2)

    def _button(self, chip: Chip) -> QPushButton:
        button = QPushButton(chip.text)
        button.setObjectName("chip")
        button.setCheckable(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setToolTip(plain_tip(f"{chip.help} {NEW_RUN}"))
        if chip in IN_WORDS:
            button.hide()  # to show one without a parent opens a window
        button.clicked.connect(partial(self._on_clicked, chip))
        return button

    @property
    def buttons(self) -> list[QPushButton]:
        """The buttons of the tasks that the model of the run shown can have."""
        return [button for button in self._chips if not button.isHidden()]

    def show_task(self, view: View) -> None:
        """Mark the task of the run shown. If the session locks the task, disable the others."""
        self._settings = view.run.origin.settings
        offered = IN_WORDS if self._settings.model.folder else CHIPS
        for button, chip in self._chips.items():
            button.setVisible(chip in offered)
            locked = chip.changes.keys() & view.locked
            allow(button, tr("The task is locked for this session.") if locked else "")
        self._mark()

    def _mark(self) -> None:
        for button, chip in self._chips.items():
            button.setChecked(chip.describes(self._settings))

    def _on_clicked(self, chip: Chip) -> None:
        self._mark()  # it follows the run shown
        self.wanted.emit(chip.begun_from(self._settings))
