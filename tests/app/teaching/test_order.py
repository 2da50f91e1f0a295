"""What a lesson says after a question stands before it in nothing that is handed out: paper, page, quiz or film."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.export.film_look import FilmLook
from app.panel_registry import lesson_panels
from app.teaching.export.gift import gift
from app.teaching.export.handout import handout, terms
from app.teaching.export.lesson_film import LessonFilm
from app.teaching.export.page.lesson_page import Walked, page_of
from app.teaching.lessons.catalogue import lessons
from grpo_core.config import described_at
from grpo_core.teaching.lessons import Lesson, spoken
from tests.app.pdf_text import pages_of
from tests.app.teaching.lessons.spoilers import texts_of
from tests.app.teaching.test_gift import read

SHIPPED = lessons(lesson_panels())[0]
each_lesson = pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.id)


def plain(text: str) -> str:
    return "".join(text.split())


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
    check(lesson, 0, "".join(pages_of(handout(lesson, "a4"))))


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
            self.seen.append(given.get("title") or "")
        waits = waits or ("term" in kinds and self.answered < int(given["data-asked"] or 0))
        if tag not in ("br", "hr", "input", "meta", "line", "polyline", "rect"):
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
    for answered in range(lesson.asked + 1):
        reader = Reader(answered)
        reader.feed(page)
        seen = plain("".join(reader.seen))
        check(lesson, answered, seen)
        assert answered < lesson.asked or all(plain(spoken(step.to_read)) in seen for step in lesson.steps)


HANDS = re.compile(
    r"\b(drag|click|press|hover|type an?|change [^,.]*:|change one|set the|try|turn the|score it)\b", re.IGNORECASE
)


@each_lesson
@pytest.mark.usefixtures("qapp")
def test_a_page_asks_for_nothing_that_it_does_not_have(lesson: Lesson) -> None:
    reader = Reader(lesson.asked)
    reader.feed(page_of(lesson, Walked()).decode("utf-8"))
    seen = "".join(reader.seen)
    for step in lesson.steps:
        assert plain(spoken(step.to_read)) in plain(seen)
        assert not HANDS.search(step.to_read), step.to_read
        assert step.to_read == step.to_read.strip() != ""
        assert not re.search(r"[{}]|  | [.,:;]|\|\|", step.to_read + step.text), step.to_read
    assert not HANDS.search(lesson.gist)


@each_lesson
def test_a_quiz_asks_without_telling(lesson: Lesson) -> None:
    values = {place: 0.5 for place, step in enumerate(lesson.steps) if step.predict is not None}
    for question in read(gift(lesson, values))[1]:
        check(lesson, 0, plain(question.text + " ".join(text for _, text in question.options)))


def test_a_film_keeps_the_order_of_the_window(qapp: QApplication, tmp_path: Path) -> None:
    (lesson,) = (one for one in SHIPPED if one.id == "build_group")
    film = LessonFilm(qapp, lesson, FilmLook(size=(640, 360), rate=1), tmp_path)
    questions = 0
    for _, shot in film.pictures():
        if shot.open:
            seen = plain(" ".join(texts_of(film.stage.screen.widget)))
            check(lesson, lesson.asked_before_text(shot.place) - 1, seen)
            questions += 1
    film.close()
    assert questions == lesson.asked


@pytest.mark.skipif(shutil.which("chromium") is None, reason="without Chromium the page is not opened in a browser")
@pytest.mark.usefixtures("qapp")
def test_a_browser_hides_the_terms_that_follow_a_question(tmp_path: Path) -> None:
    (lesson,) = (one for one in SHIPPED if one.id == "build_group")
    path = tmp_path / "lesson.html"
    path.write_bytes(page_of(lesson, Walked()))
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=3000",
        "--dump-dom",
    ]
    opened = subprocess.run(["chromium", *options, path.as_uri()], capture_output=True, text=True, timeout=60)
    assert 'data-ready="yes"' in opened.stdout
    shown = re.findall(r'<div class="term" data-asked="(\d+)"( hidden="")?>', opened.stdout)
    assert len(shown) == len(terms(lesson, most=1000))
    assert all((asked != "0") == bool(hidden) for asked, hidden in shown)
