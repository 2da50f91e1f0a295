"""Layout and painting of the rows of fixed prompts, with their captions, the curve below and the cursor across."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from app.theme.painting import CENTRE, LEFT, RIGHT, frame, write
from app.theme.tokens import Theme
from app.workspace.answers import GLYPHS
from app.workspace.evolution import Change, Evolution, Mark, RightShare, Turn
from grpo_core.text import tr

EDGE, GAP = 12.0, 12.0
"""Horizontal margins and gaps between the columns in pixels, at 100 %."""
LEAST, MOST, TWO_LINES = 23.0, 56.0, 33.0
"""Row heights at 100 %: minimum, maximum, and the minimum that fits the previous answer below the current one."""
CAPTION, CURVE, TALLEST = 18.0, 66.0, 160.0
"""Height of the caption line, and the minimum and maximum height of the curve below the rows, at 100 %."""
STRIP = 60.0
"""Minimum width of a strip in pixels at 100 %."""


def axis_end(head: int) -> int:
    """Return the last update on the axis: 10, 20, 50, 100, ..., so that strips have space to grow."""
    decade = 10
    while head > 5 * decade:
        decade *= 10
    return next(end for end in (decade, 2 * decade, 5 * decade) if head <= end)


class Geometry:
    """A layout of rows for ``count`` prompts of up to ``longest`` characters, in pixels.

    Args:
        glyph: character width in prompts and answers.
        letters: their line height.
        since: text width of the last column.
        end: the last update on the axis.

    Attributes:
        line: height of a row.
        prompt, answer, strip, since: (left, width) of each column.
        curve: height of the curve below the rows; 0 if it does not fit.
    """

    def __init__(
        self,
        width: float,
        height: float,
        scale: float,
        count: int,
        *,
        glyph: float,
        letters: float,
        longest: int,
        since: float,
        end: int,
    ) -> None:
        self.width, self.scale, self.count = width, scale, count
        self.letters, self.end = letters, end
        edge, gap = EDGE * scale, GAP * scale
        prompt = min(longest * glyph + 8 * scale, width * 0.28)
        answer = min(max(width * 0.3, 13 * glyph), 26 * glyph, width * 0.4)
        last = max(gap, 0.8 * letters)  # the digits at the end of the axis extend beyond it
        strip = width - 2 * edge - prompt - answer - 2 * gap - last - since
        if strip < STRIP * scale:
            strip, since = strip + since + last, 0.0
        strip = max(strip, 20.0)
        self.prompt, self.answer = (edge, prompt), (edge + prompt + gap, answer)
        self.strip = (edge + prompt + answer + 2 * gap, strip)
        self.since = (self.strip[0] + strip + last, since)
        space = height - CAPTION * scale
        self.curve = CURVE * scale if space - CURVE * scale >= (LEAST + 2) * scale * count else 0.0
        self.line = min(max((space - self.curve) / max(count, 1), LEAST * scale), MOST * scale)
        if self.curve:
            self.curve = min(max(space - self.line * count, self.curve), TALLEST * scale)

    @property
    def top(self) -> float:
        return CAPTION * self.scale

    @property
    def bottom(self) -> float:
        """Bottom of the last row."""
        return self.top + self.count * self.line

    @property
    def two_lines(self) -> bool:
        """Whether a row has space for the previous answer below the current one."""
        return self.line >= max(TWO_LINES * self.scale, 1.9 * self.letters)

    def row(self, place: int) -> QRectF:
        return self.cell((0, self.width), place)

    def cell(self, column: tuple[float, float], place: int) -> QRectF:
        return QRectF(column[0], self.top + place * self.line, column[1], self.line)

    def place_at(self, y: float) -> int:
        """Return the prompt whose row is at ``y``, or −1 if there is none."""
        place = int((y - self.top) // self.line)
        return place if 0 <= place < self.count else -1

    def x_of(self, update: float) -> float:
        """Return the x coordinate of the end of update ``update``. Its middle is half an update to the left."""
        return self.strip[0] + self.strip[1] * update / self.end

    def update_at(self, x: float, head: int) -> int:
        """Return the update at ``x``, or 0 outside the strips and after ``head``, the last update."""
        update = int((x - self.strip[0]) / self.strip[1] * self.end) + 1
        inside = self.strip[0] <= x <= self.strip[0] + self.strip[1]
        return update if inside and update <= head else 0

    @property
    def ticks(self) -> list[int]:
        """Updates with a label on the axis, at most five."""
        apart = 34 * self.scale * self.end / self.strip[1]
        step = next((step for step in (self.end // 5, self.end // 2) if step > apart), self.end)
        return list(range(step, self.end + 1, step))


COLUMN = 2.0
"""Minimum width in pixels of a column of a strip."""
BEFORE_RUN = 1.35
"""Factor by which prompts and answers are enlarged while there is nothing next to them."""
SHORT = 16
"""Maximum length in characters of the longest prompt for which prompts and answers are enlarged."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsPicture:
    """The content of the rows.

    Attributes:
        evolution: the answers read so far.
        now: for each prompt, the answer at the cursor; before the first update, the answer of the starting weights.
        turns: for each prompt, the last change of its answer from right to wrong or back.
        cursor: the update shown; 0 is the run before its first update.
        held_out: shares of correct greedy answers to the held-out prompts; None if no prompts are held out.
        sampled: shares of correct sampled completions, if these are shown too.
    """

    evolution: Evolution
    now: list[Change | None]
    turns: list[Turn | None]
    cursor: int
    selected: int
    held_out: RightShare | None
    sampled: RightShare | None

    @property
    def enlarged(self) -> float:
        """Enlargement factor of prompts and answers, above 1 while there is nothing next to short prompts."""
        short = max(map(len, self.evolution.prompts), default=0) <= SHORT
        return BEFORE_RUN if short and not self.begun else 1.0

    @property
    def begun(self) -> bool:
        return self.evolution.run.head > 0


class RowPainter:
    """Paints one picture in one theme and scale."""

    def __init__(
        self, painter: QPainter, picture: RowsPicture, place: Geometry, theme: Theme, *, focused: bool
    ) -> None:
        self._painter, self._picture, self._place, self._theme = painter, picture, place, theme
        self._focused = focused
        self._mono = theme.font("answer", place.scale * picture.enlarged)
        self._small = theme.font("digits", place.scale)

    def paint(self) -> None:
        self._captions()
        for n in range(self._place.count):
            self._row(n)
        if self._picture.begun:
            if self._place.curve:
                self._curve()
            self._cursor()

    def _write(self, box: QRectF, text: str, font: QFont, colour: str, align: int = LEFT) -> None:
        write(self._painter, box, text, font, self._theme.ink(colour), align, elided=True)

    def _captions(self) -> None:
        place, picture = self._place, self._picture

        def head(column: tuple[float, float], text: str) -> None:
            self._write(QRectF(column[0], 0, column[1], place.top), text, self._small, "muted")

        head(place.prompt, tr("prompt"))
        if not picture.begun:
            # they were recorded with the weights, not computed here
            recorded = picture.evolution.run.first_answers is None and any(change is not None for change in picture.now)
            caption = tr("recorded answer before any training") if recorded else tr("answer before any training")
            head((place.answer[0], place.width - place.answer[0]), caption)
            return
        head(place.answer, self._caption_of_answers())
        head(place.since, tr("since update"))
        for update in place.ticks:
            text = f"{update:,}"
            half = QFontMetricsF(self._small).horizontalAdvance(text) / 2 + 2
            box = QRectF(place.x_of(update) - half, 0, 2 * half, place.top)
            self._write(box, text, self._small, "muted", CENTRE)

    def _caption_of_answers(self) -> str:
        """Return the longest caption that fits. Next to sampled completions, it says that the answers are greedy."""
        picture, greedy = self._picture, self._picture.sampled is not None
        captions = [tr("greedy answer") if greedy else tr("answer")]
        if picture.cursor:
            whole = tr("greedy answer before update {step:,}") if greedy else tr("answer before update {step:,}")
            captions.insert(0, whole.format(step=picture.cursor))
        metrics = QFontMetricsF(self._small)
        fitting = (text for text in captions if metrics.horizontalAdvance(text) <= self._place.answer[1])
        return next(fitting, captions[-1])

    # -- one row -----------------------------------------------------------------------------------------------------

    def _row(self, n: int) -> None:
        painter, theme, place, picture = self._painter, self._theme, self._place, self._picture
        row = place.row(n)
        if n == picture.selected and picture.begun:
            band = row.adjusted(4, 1, -4, -1)
            painter.fillRect(band, theme.colour("surface"))
            painter.fillRect(QRectF(4, band.top(), 3, band.height()), theme.colour("selection"))
            if self._focused:
                frame(painter, band, theme.ring)
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(QPointF(place.prompt[0], row.bottom()), QPointF(place.width - place.prompt[0], row.bottom()))
        strong = QFont(self._mono)
        strong.setBold(True)
        self._write(place.cell(place.prompt, n), picture.evolution.prompts[n], strong, "text")
        if not picture.begun:
            self._before_training(n, picture.now[n])
            return
        self._answers(place.cell(place.answer, n), picture.now[n], picture.turns[n])
        self._strip(n)
        if place.since[1]:
            self._since(place.cell(place.since, n), picture.now[n], picture.turns[n])

    def _before_training(self, n: int, change: Change | None) -> None:
        place = self._place
        box = place.cell((place.answer[0], place.width - place.answer[0] - place.prompt[0]), n)
        if change is None:
            self._write(box, tr("comes with the first update"), self._small, "muted")
            return
        text = f"{GLYPHS[change.verdict.right]} {change.text or tr('(nothing)')}"
        self._write(box, text, self._mono, _ink(change))
        width = QFontMetricsF(self._mono).horizontalAdvance(text) + 16 * place.scale
        self._write(box.adjusted(width, 0, 0, 0), change.verdict.words, self._small, "muted")

    def _answers(self, box: QRectF, now: Change | None, turn: Turn | None) -> None:
        if now is None:
            self._write(box, "—", self._mono, "muted")
            return
        former = turn.former if turn is not None and self._place.two_lines else None
        first = QRectF(box.left(), box.top(), box.width(), box.height() * (0.56 if former else 1.0))
        self._write(first, f"{GLYPHS[now.verdict.right]} {now.text or tr('(nothing)')}", self._mono, _ink(now))
        if former is not None:
            small = self._theme.font("answer", self._place.scale * 0.85)
            rest = QRectF(box.left(), first.bottom() - 2, box.width(), box.height() * 0.4)
            self._write(rest, f"{GLYPHS[former.verdict.right]} {former.text or tr('(nothing)')}", small, "muted")

    def _since(self, box: QRectF, now: Change | None, turn: Turn | None) -> None:
        if now is None or turn is None:
            return
        font = self._small
        if turn.since == 1:
            text = {True: tr("right at once"), False: tr("still wrong"), None: ""}[now.verdict.right]
        else:
            text = {True: tr("right: {step:,}"), False: tr("wrong: {step:,}"), None: "{step:,}"}[now.verdict.right]
            text = (text if turn.exact else text.replace("{", "≤ {")).format(step=turn.since)
            font = self._theme.font("heading", self._place.scale)
        self._write(box, text, font, "push_down" if now.verdict.right is False and turn.since > 1 else "text")

    def _strip(self, n: int) -> None:
        """Paint the strip of right and wrong answers to prompt ``n``.

        A right answer has the full height, a wrong one a hatched lower half. A vertical line marks each change from
        right to wrong or back.
        """
        painter, theme, place, evolution = self._painter, self._theme, self._place, self._picture.evolution
        box = place.cell(place.strip, n)
        tall = min(box.height() * 0.62, 22 * place.scale)
        top = box.center().y() - tall / 2
        painter.setPen(QPen(theme.colour("border"), 1))
        painter.drawLine(QPointF(box.left(), top + tall), QPointF(box.right(), top + tall))
        head = evolution.run.head
        long = place.x_of(head) - place.strip[0]
        columns = evolution.columns(n, max(int(long / COLUMN), 1))
        width = long / max(len(columns), 1)

        def boxes(mark: Mark, share: float) -> list[QRectF]:
            return [
                QRectF(box.left() + a * width, top + tall * (1 - share), (b - a) * width, tall * share)
                for a, b in _spans(columns & mark)
            ]

        painter.setPen(QPen(theme.colour("push_down"), 1))
        painter.setBrush(theme.hatch("push_down"))
        painter.drawRects([one.adjusted(0.5, 0, -0.5, -0.5) for one in boxes(Mark.WRONG, 0.5)])
        painter.setPen(Qt.PenStyle.NoPen)
        for mark, meaning, share in ((Mark.UNTOLD, "reference", 0.3), (Mark.RIGHT, "push_up", 1.0)):
            painter.setBrush(theme.colour(meaning))
            painter.drawRects(boxes(mark, share))
        painter.setPen(QPen(theme.colour("text"), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        turned = sorted({round(place.x_of(step - 1)) for step in evolution.turns(n)})
        painter.drawLines([QLineF(x, top - 2, x, top + tall + 2) for x in turned])

    # -- below and across --------------------------------------------------------------------------------------------

    def _curve(self) -> None:
        """Paint the shares of right answers on the axis of the strips.

        The sampled completions, if shown, are a thick line; the held-out prompts are a line with points.
        """
        painter, theme, place, picture = self._painter, self._theme, self._place, self._picture
        sampled, held_out = picture.sampled, picture.held_out
        if sampled is None and held_out is None:
            return
        scale = place.scale
        top, bottom = place.bottom + 14 * scale, place.bottom + place.curve - 10 * scale
        labels = [(tr("Held-out prompts, right in %"), "muted")]
        if sampled is not None:
            # The two lines have one colour: the marks before the words tell which is which.
            labels = [("━ " + tr("Sampled, right in %"), "policy"), ("○ " + tr("Held out, greedy, in %"), "push_up")]
            labels = labels if held_out is not None else labels[:1]
        for line, (text, colour) in enumerate(labels):
            space = place.strip[0] - place.prompt[0] - 44 * scale
            label = QRectF(place.prompt[0], top + (16 * line - 8) * scale, space, 16 * scale)
            self._write(label, text, self._small, colour)
        for share in (0.0, 0.5, 1.0):
            y = bottom + (top - bottom) * share
            painter.setPen(QPen(theme.colour("border"), 1))
            painter.drawLine(QPointF(place.strip[0], y), QPointF(place.x_of(place.end), y))
            label = QRectF(place.strip[0] - 44 * scale, y - 8 * scale, 38 * scale, 16 * scale)
            self._write(label, f"{share * 100:.0f}", self._small, "muted", RIGHT)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if sampled is not None:
            painter.setPen(QPen(theme.colour("policy"), max(theme.line_width, 2.4)))
            painter.drawPolyline(self._points(sampled, top, bottom))
        points = [] if held_out is None else self._points(held_out, top, bottom)
        painter.setPen(QPen(theme.colour("push_up"), max(theme.line_width, 1.6)))
        painter.drawPolyline(points)
        painter.setBrush(theme.colour("ground"))
        if len(points) <= place.strip[1] / 8:
            for point in points:
                painter.drawEllipse(point, 3 * scale, 3 * scale)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _points(self, share: RightShare, top: float, bottom: float) -> list[QPointF]:
        """Return the points of the measurements, with 100 % at ``top`` and 0 % at ``bottom``."""
        place = self._place
        xs = np.asarray(place.strip[0] + place.strip[1] * (share.steps - 0.5) / place.end)
        ys = np.asarray(bottom + (top - bottom) * share.shares)
        return [QPointF(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]

    def _cursor(self) -> None:
        place, cursor = self._place, self._picture.cursor
        if cursor:
            x = place.x_of(cursor - 0.5)
            self._painter.setPen(QPen(self._theme.colour("text"), 1.5))
            self._painter.drawLine(QPointF(x, place.top), QPointF(x, place.bottom + place.curve))


def _ink(change: Change) -> str:
    return {True: "text", False: "push_down", None: "muted"}[change.verdict.right]


def _spans(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return the spans in which ``flags`` is nonzero as (first, last + 1)."""
    edges = np.flatnonzero(np.diff(flags.astype(bool).astype(np.int8), prepend=0, append=0))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
