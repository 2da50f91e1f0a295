"""What a lesson says after a question stands before it in nothing that is handed out: paper, page, quiz or film."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.export.stage import FilmLook
from app.teaching.export.gift import gift
from app.teaching.export.handout import handout, terms
from app.teaching.export.lesson_film import pictures
from app.teaching.export.lesson_stage import lesson_stage
from app.teaching.export.page.lesson_page import Walked, page_of
from app.teaching.lessons.catalogue import lessons
from grpo_core.config import described_at
from grpo_core.teaching.lessons import Lesson, spoken
from tests.app.pdf_text import pages_of
from tests.app.teaching.lessons.held import lesson_of
from tests.app.teaching.lessons.spoilers import texts_of
from tests.app.teaching.test_gift import read
from tests.app.teaching.test_handout import plain
from tests.app.teaching.test_page import opened_in_chromium

SHIPPED = lessons()[0]
each_lesson = pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.id)


def later(lesson: Lesson, answered: int) -> Iterator[str]:
    """Yield what must not be seen before more than ``answered`` questions are answered."""
    for place, step in enumerate(lesson.steps):
        if lesson.asked_before_text(place) > answered:
            yield from {spoken(step.text), spoken(step.to_read)}
            yield from (knob_help for knob in step.knobs if (knob_help := described_at(knob).help))
            if step.predict is not None and step.predict.reveal:
                yield spoken(step.predict.reveal)
    for term in terms(lesson, most=1000):
        if term.asked > answered:
            yield term.word.hover
            yield from filter(None, (term.word.click,))


def check(lesson: Lesson, answered: int, text: str) -> None:
    """Assert that ``text``, seen after ``answered`` answers, has nothing that comes later."""
    asked = plain(" ".join(spoken(step.predict.ask) for step in lesson.steps if step.predict is not None))
    told = [one for one in later(lesson, answered) if plain(one) in text and plain(one) not in asked]
    assert not told, told


@each_lesson
@pytest.mark.usefixtures("qapp")
def test_a_handout_says_nothing_that_follows_its_first_question(lesson: Lesson) -> None:
    check(lesson, 0, "".join(pages_of(handout([lesson], "a4"))))


@dataclass
class Reader(HTMLParser):
    """The texts of a page by what must be answered before they are shown, as ``reveal`` of page.js does it."""

    answered: int
    asked: int = 0
    hidden: list[bool] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, outside = dict(attrs), bool(self.hidden and self.hidden[-1])
        kinds = (given.get("class") or "").split()
        if "question" in kinds:
            self.asked += 1
        waits = self.asked > self.answered and ("words" in kinds or {"step", "result"} & {*kinds})
        if self.hidden and not self.hidden[-1] and not waits:
            self.seen.append(f"{given.get('title') or ''} {given.get('alt') or ''}")
        waits = waits or ("term" in kinds and self.answered < int(given["data-asked"] or 0))
        if tag not in ("br", "hr", "img", "input", "meta", "line", "polyline", "rect"):
            self.hidden.append(bool(outside or waits or tag in ("script", "style")))

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "polyline", "rect"):
            self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if self.hidden and not self.hidden[-1]:
            self.seen.append(data)


@each_lesson
@pytest.mark.usefixtures("qapp")
def test_a_page_shows_terms_and_texts_with_their_answers(lesson: Lesson) -> None:
    page = page_of(lesson, Walked()).decode("utf-8")
    for answered in range(len(lesson.questions) + 1):
        reader = Reader(answered)
        reader.feed(page)
        seen = plain("".join(reader.seen))
        check(lesson, answered, seen)
        assert answered < len(lesson.questions) or all(plain(spoken(step.to_read)) in seen for step in lesson.steps)


HANDS = re.compile(
    r"\b(drag|click|press|hover|type an?|change [^,.]*:|change one|set the|try|turn the|score it)\b", re.IGNORECASE
)


@each_lesson
def test_a_page_asks_for_nothing_that_it_does_not_have(lesson: Lesson) -> None:
    for step in lesson.steps:
        assert not HANDS.search(step.to_read), step.to_read
        assert step.to_read == step.to_read.strip() != ""
        assert not re.search(r"[{}]|  | [.,:;]|\|\|", step.to_read + step.text), step.to_read
    assert not HANDS.search(lesson.gist)


NUMBER = re.compile(r"(?<![\d.,])(\d+(?:\.\d+)?)( ?%)?")
NARROW = 0.1
"""Largest width of an answer's range, as a share of the answer, at which a number in the range tells it."""
TELLS = (
    ("one_update", 3, r"ratio of 1\b"),
    ("one_update", 4, r"loss is 0|still 0"),
    ("same_rewards", 2, r"43%"),
    ("difficulty", 2, r"0\.6 times"),
    ("temperature", 2, r"nearly all answers are right|colder meant more"),
    ("many_batches", 2, r"pushed down about"),
    ("kl", 4, r"value is biased"),
    ("reward_hacking", 3, r"reward fell|left bar 7 at 0"),
    ("reward_hacking", 5, r"left it below"),
    ("process_reward", 4, r"three times|the lead"),
    ("process_reward", 6, r"again"),
    ("fair_race", 3, r"like REINFORCE"),
    ("family_tree", 5, r"does not divide"),
    ("reported", 3, r"still wrong"),
    ("one_group", 2, r"half were right"),
    ("one_group", 6, r"all eight answers"),
    ("widen_or_narrow", 3, r"no better|as with groups of 8|where it began"),
    ("stale_samples", 3, r"again|than before"),
    ("three_stages", 3, r"as before"),
    ("memory_bill", 3, r"halve"),
)
"""Lesson, step of a question, counted from 1, and words that told its answer in a later question."""


def beside(lesson: Lesson, place: int) -> list[str]:
    """Return all that is read beside the question of a step, counted from 0, where all questions are on one sheet."""
    asked = (step.predict for n, step in enumerate(lesson.steps) if n != place and step.predict is not None)
    return [spoken(text) for predict in asked for text in (predict.ask, *(choice.text for choice in predict.choices))]


@each_lesson
def test_no_question_tells_the_number_that_another_asks_for(lesson: Lesson) -> None:
    """They are all on one sheet of a handout, and in one quiz."""
    for place, step in enumerate(lesson.steps):
        low, high = (0.0, math.inf) if step.predict is None else step.predict.holds
        if math.isinf(high) or high - low > NARROW * abs(high) or step.predict is None or not step.predict.number:
            continue
        for text in beside(lesson, place):
            for digits, percent in NUMBER.findall(text):
                exact = len(digits.replace(".", "").strip("0")) > 1
                assert not (exact and low <= float(digits) / (100 if percent else 1) <= high), (place + 1, text)


@pytest.mark.parametrize(("id", "step", "words"), TELLS)
def test_no_question_tells_in_words_what_another_asks(id: str, step: int, words: str) -> None:
    lesson = lesson_of(id)
    assert lesson.steps[step - 1].predict is not None
    assert not [text for text in beside(lesson, step - 1) if re.search(words, text, re.IGNORECASE)]


@each_lesson
def test_a_quiz_asks_without_telling(lesson: Lesson) -> None:
    values = {place: 0.5 for place, step in enumerate(lesson.steps) if step.predict is not None}
    for question in read(gift(lesson, values))[1]:
        check(lesson, 0, plain(question.text + " ".join(text for _, text in question.options)))


def test_a_film_keeps_the_order_of_the_window(qapp: QApplication) -> None:
    lesson, wanted, questions = lesson_of("build_group"), FilmLook(size=(640, 360), rate=1), 0
    with lesson_stage(wanted.pixels) as stage:
        for _ in pictures(stage, lesson, wanted):
            if stage.player.covered:
                seen = plain(" ".join(texts_of(stage.screen.widget)))
                check(lesson, lesson.asked_before_text(stage.player.place) - 1, seen)
                questions += 1
    assert questions == len(lesson.questions)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="without Chromium the page is not opened in a browser")
@pytest.mark.usefixtures("qapp")
def test_a_browser_hides_the_terms_that_follow_a_question(tmp_path: Path) -> None:
    lesson = lesson_of("build_group")
    opened = opened_in_chromium(page_of(lesson, Walked()), tmp_path, "--virtual-time-budget=3000")
    shown = re.findall(r'<div class="term" data-asked="(\d+)"( hidden="")?>', opened)
    assert len(shown) == len(terms(lesson, most=1000))
    assert all((asked != "0") == bool(hidden) for asked, hidden in shown)
