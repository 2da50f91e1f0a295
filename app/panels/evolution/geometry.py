"""Geometry of the rows of fixed prompts: columns, strips, and the curve below, fitted into a given size."""

from __future__ import annotations

from PySide6.QtCore import QRectF

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
