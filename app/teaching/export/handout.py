"""A lesson on paper: the students' pages with questions and blank scales, and the answers in a separate file.

Text, blank scales, options and formulas are drawn as vectors, on A4 or Letter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPageLayout, QPageSize, QPainter, QPdfWriter, QPen
from PySide6.QtSvg import QSvgRenderer

from app.build import this_build
from app.export.stage import themed
from app.formula.plain import plain_text
from app.formula.render import INK, SIZE, svg
from app.help.glossary import lookup
from app.plotting.numbers import shown
from app.plotting.ranges import ticks
from app.teaching.lessons.prediction import Placed, lesson_of, result_text
from app.teaching.lessons.readable import readable
from app.teaching.lessons.speaker_notes import plan_of, teaching_of
from app.theme.painting import WRAPPED
from app.theme.tokens import Theme
from grpo_core.assignments import train_command
from grpo_core.config import described_at
from grpo_core.teaching.lessons import Lesson, Prediction, Word, spoken, terms_in
from grpo_core.text import tr

TERMS = 5


def handout(lessons: Sequence[Lesson], paper: str) -> bytes:
    """Return the students' pages of lessons as a PDF on ``paper``, without any answers."""
    groups = [group for lesson in lessons for group in _pages(lesson)]
    title = lessons[0].title if len(lessons) == 1 else _foot(lessons)
    return pdf(groups, title=title, foot=_foot(lessons), paper=paper)


def answers(lessons: Sequence[Lesson], values: Sequence[Mapping[int, float]], paper: str) -> bytes:
    """Return the answers to lessons as a PDF on ``paper``.

    ``values`` contains, for each lesson, the answers computed in a walk through it, by step, counted from 0.
    """
    groups = [group for lesson, mine in zip(lessons, values, strict=True) for group in _answers(lesson, mine)]
    alone = len(lessons) == 1
    title = tr("Answers: {title}").format(title=lessons[0].title) if alone else _foot(lessons)
    return pdf(groups, title=title, foot=_foot(lessons), paper=paper)


def _answers(lesson: Lesson, values: Mapping[int, float]) -> Iterator[Group]:
    yield _head(lesson, tr("Answers"))
    yield from ([Text(text=text)] for text in teaching_of(lesson))
    for number, (place, predict) in enumerate(lesson.questions.items(), start=1):
        value = values.get(place, math.nan)
        step = lesson.steps[place]
        blocks: list[Block] = [_asked(number, predict)]
        if math.isnan(value):
            blocks.append(Text(text=tr("This run has no such number.")))
        else:
            blocks.append(Text(text=tr("This run: {result}.").format(result=answer_text(predict, value)), size=1.15))
            if sentence := lesson_of(predict, Placed(None, value)):
                blocks.append(Text(text=sentence))
        blocks.append(Text(text=spoken(step.text)))
        if plan := plan_of(lesson, place):
            blocks.append(Text(text=plan, role="small"))
        if step.speaker:
            blocks.append(Text(text=tr("For the teacher: {notes}").format(notes=step.speaker), role="small"))
        yield blocks
    yield from ([Text(text=term.name, role="strong"), *_defined(term)] for term in terms(lesson) if term.asked)


def answer_text(predict: Prediction, value: float) -> str:
    """Return the answer as displayed in the lesson. A direction is displayed as a word."""
    if predict.kind != "direction":
        return result_text(predict, value)
    way = next(option.text for option in predict.options.values() if value in option)
    return tr("{way} ({number})").format(way=way, number=result_text(predict, value))


def _pages(lesson: Lesson) -> Iterator[Group]:
    yield [*_head(lesson, tr("Name:                                                            Date:"))]
    for number, predict in enumerate(lesson.questions.values(), start=1):
        yield [
            _asked(number, predict),
            _blank(predict),
            Text(text=tr("Why?"), role="small"),
            Ruled(count=1),
            Text(text=tr("What the run says:"), role="small"),
            Ruled(count=1),
        ]
    yield [Text(text=tr("What I conclude"), role="strong"), Ruled(count=3)]
    for heading, groups in ((tr("Five terms"), list(_terms(lesson))), (tr("To try at home"), list(_at_home(lesson)))):
        for place, group in enumerate(groups):
            yield [Text(text=heading, role="number"), *group] if not place else group


def _head(lesson: Lesson, below: str) -> list[Block]:
    title = tr("Lesson {number}: {title}").format(number=lesson.number, title=lesson.title)
    return [Text(text=title, role="number", size=1.1), Text(text=lesson.gist), Text(text=below, role="strong")]


def _foot(lessons: Sequence[Lesson]) -> str:
    if len(lessons) == 1:
        pattern = tr("{title} · seed {seed} · {version}")
        return pattern.format(title=lessons[0].title, seed=lessons[0].start.seed, version=this_build())
    numbers = ", ".join(str(lesson.number) for lesson in lessons)
    return tr("Lessons {numbers} · {version}").format(numbers=numbers, version=this_build())


def _asked(number: int, predict: Prediction) -> Text:
    return Text(text=tr("{number}.  {question}").format(number=number, question=spoken(predict.ask)), role="strong")


def _blank(predict: Prediction) -> Block:
    """Return the block in which a prediction is written in pencil."""
    if predict.options:
        return Options(texts=tuple(option.text for option in predict.options.values()))
    return Scale(low=predict.low, high=predict.high, form=predict.shown)


@dataclass(frozen=True, kw_only=True)
class Term:
    """A term in the text of a lesson.

    Attributes:
        name: the term as written in the text, or in the glossary.
        key: its :func:`key_of`.
        word: its definition, from the lesson or the glossary.
        asked: number of questions that are answered before the first text with this term is seen.
    """

    name: str
    key: str
    word: Word
    asked: int


def terms(lesson: Lesson, most: int = TERMS) -> list[Term]:
    """Return the first ``most`` terms in the text of the lesson, in the order in which they are seen."""
    found: dict[str, Term] = {}
    for place, step in enumerate(lesson.steps):
        for link, said in terms_in(step.text).items():
            key, word = key_of(lesson, link), lesson.words.get(link.casefold())
            entry = lookup(link) if word is None else None
            if entry is not None:
                word, said = Word(hover=entry.sentence, latex=entry.latex), entry.title
            if word is not None and key not in found and len(found) < most:
                found[key] = Term(name=said, key=key, word=word, asked=lesson.asked_before_text(place))
    return [*found.values()]


def key_of(lesson: Lesson, link: str) -> str:
    """Return the key of the term to which a link in the text leads. Links with different words can have the same."""
    entry = None if link.casefold() in lesson.words else lookup(link)
    return link.casefold() if entry is None else entry.title


def _terms(lesson: Lesson) -> Iterator[Group]:
    """Yield the definitions of terms, and lines instead of those that are seen after a question."""
    for term in terms(lesson):
        below = [Text(text=tr("In your own words:"), role="small"), Ruled(count=1)] if term.asked else _defined(term)
        yield [Text(text=term.name, role="strong"), *below]


def _defined(term: Term) -> list[Block]:
    formula = [Formula(latex=term.word.latex)] if term.word.latex else []
    return [Text(text=term.word.hover), *formula]


def _at_home(lesson: Lesson) -> Iterator[Group]:
    """Yield the section on repeating the lesson at home with its knobs, each of which is to be predicted first."""
    yield [
        Text(text=tr("Repeat the lesson and change one thing; first predict what it does:")),
        Text(text=" ".join(["grpo-lab", "--present", lesson.id]), role="mono"),
    ]
    knobs = list(dict.fromkeys(knob for step in lesson.steps for knob in step.knobs))
    for knob in knobs[:TERMS]:
        yield [Options(texts=(described_at(knob).title,))]  # its help can answer a question
    yield [
        Text(text=tr("Or open the run of the first step in the full program:")),
        Text(text=command(lesson), role="mono"),
    ]


def command(lesson: Lesson) -> str:
    """Return the command that computes the run at the start of a lesson."""
    updates = max(max(step.update for step in lesson.steps), 1)
    return train_command(lesson.settings_of(lesson.steps[0]), updates, "home.grpo")


PAPERS = {"a4": QPageSize.PageSizeId.A4, "letter": QPageSize.PageSizeId.Letter}
DPI, FINER = 96, 4
"""Logical pixels per inch, and the factor by which coordinates on paper are finer."""
MARGIN_MM = 18.0
GAP, LINE = 10.0, 26.0
"""Pixels between two blocks, and between two ruled lines."""


def _look() -> Theme:
    """Return the light theme, whatever theme the window has, because paper is white."""
    return themed("light")


def _font(role: str, size: float = 1.0) -> QFont:
    """Return a font of the theme without alternate glyphs.

    In a PDF, alternate glyphs (for example digits of equal width) would not be linked to their characters, and could
    neither be searched nor read aloud.
    """
    font = _look().font(role, size)
    font.clearFeatures()
    for name in ("calt", "kern", "liga"):
        font.setFeature(QFont.Tag(name), int(name == "kern"))
    return font


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph in one of the type roles, at ``size`` times its usual size."""

    text: str
    role: str = "body"
    size: float = 1.0

    def height(self, width: float) -> float:
        """Return the height in pixels at this width."""
        return QFontMetricsF(self._font).boundingRect(QRectF(0, 0, width, 1e6), WRAPPED, self.text).height()

    def draw(self, painter: QPainter, area: QRectF) -> None:
        """Draw the block from the top of ``area``."""
        painter.setFont(self._font)
        painter.drawText(area, WRAPPED, self.text)

    @property
    def _font(self) -> QFont:
        return _font(self.role, self.size)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A line from ``low`` to ``high`` for marking a prediction in pencil, with numbers in the format ``form``."""

    low: float
    high: float
    form: str = "digits"

    def height(self, width: float) -> float:
        return 52.0

    def draw(self, painter: QPainter, area: QRectF) -> None:
        left, right, y = area.left() + 20, area.right() - 20, area.top() + 24
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        painter.setFont(_font("small"))
        metrics = QFontMetricsF(painter.font())
        for tick in ticks(self.low, self.high, 6):
            x = left + (right - left) * (tick - self.low) / (self.high - self.low)
            text = readable(tick, self.form)
            painter.drawLine(QPointF(x, y - 4), QPointF(x, y + 4))
            painter.drawText(QPointF(x - metrics.horizontalAdvance(text) / 2, y + 8 + metrics.ascent()), text)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options, each preceded by a box to tick in pencil."""

    texts: tuple[str, ...]

    def height(self, width: float) -> float:
        return sum(Text(text=text).height(width - 26) + 6 for text in self.texts)

    def draw(self, painter: QPainter, area: QRectF) -> None:
        top = area.top()
        for text in self.texts:
            words = Text(text=text)
            painter.drawRect(QRectF(area.left() + 2, top + 3, 11, 11))
            words.draw(painter, QRectF(area.left() + 26, top, area.width() - 26, area.height()))
            top += words.height(area.width() - 26) + 6


@dataclass(frozen=True, kw_only=True)
class Ruled:
    """Lines to write on."""

    count: int

    def height(self, width: float) -> float:
        return LINE * self.count

    def draw(self, painter: QPainter, area: QRectF) -> None:
        painter.save()
        painter.setPen(QPen(_look().colour("muted"), 0.5))
        for number in range(1, self.count + 1):
            y = area.top() + LINE * number
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.restore()


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A formula, scaled down if it is too wide, or its plain text if it cannot be drawn."""

    latex: str

    def height(self, width: float) -> float:
        renderer = self._renderer()
        if renderer is None:
            return Text(text=plain_text(self.latex), role="mono").height(width)
        return renderer.viewBoxF().height() * self._share(renderer, width)

    def draw(self, painter: QPainter, area: QRectF) -> None:
        renderer = self._renderer()
        if renderer is None:
            Text(text=plain_text(self.latex), role="mono").draw(painter, area)
            return
        box = renderer.viewBoxF().size() * self._share(renderer, area.width())
        renderer.render(painter, QRectF(area.topLeft(), box))

    def _renderer(self) -> QSvgRenderer | None:
        source = svg(self.latex)
        if source is None:
            return None
        renderer = QSvgRenderer(QByteArray(source.replace(INK, _look().colour("text").name()).encode()))
        return renderer if renderer.isValid() and not renderer.viewBoxF().isEmpty() else None

    def _share(self, renderer: QSvgRenderer, width: float) -> float:
        return min(15 / SIZE, width / renderer.viewBoxF().width())


Block = Text | Scale | Options | Ruled | Formula
Group = Sequence[Block]
"""Blocks that are kept together if they fit on one page."""


def pdf(groups: Sequence[Group], *, title: str, foot: str, paper: str) -> bytes:
    """Return the numbered pages as a PDF.

    Args:
        paper: a key of :data:`PAPERS`.
    """
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(DPI * FINER)
    writer.setTitle(title)
    margins = QMarginsF(MARGIN_MM, MARGIN_MM, MARGIN_MM, MARGIN_MM)
    page = QPageSize(PAPERS[paper])
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter))
    painter = QPainter(writer)
    painter.scale(FINER, FINER)
    width, height = writer.width() / FINER, writer.height() / FINER - LINE
    top, number = 0.0, 1
    _draw_foot(painter, foot, number, QRectF(0, height, width, LINE))
    for group in groups:
        needed = sum(block.height(width) + GAP for block in group)
        for block in group:
            high = block.height(width)
            if top and (top + (needed if block is group[0] and needed <= height else high) > height):
                writer.newPage()
                top, number = 0.0, number + 1
                _draw_foot(painter, foot, number, QRectF(0, height, width, LINE))
            painter.setPen(QPen(_look().colour("text"), 0.8))
            block.draw(painter, QRectF(0, top, width, high))
            top += high + GAP
        top += GAP
    painter.end()
    buffer.close()
    return bytes(data.data())


def _draw_foot(painter: QPainter, foot: str, number: int, area: QRectF) -> None:
    painter.setPen(_look().ink("muted"))
    painter.setFont(_font("small"))
    painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom), foot)
    page = tr("Page {number}").format(number=shown(number))
    painter.drawText(area, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom), page)
