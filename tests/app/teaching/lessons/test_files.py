"""The shipped lessons are complete and short, use known terms, and contain none of the field's myths."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from app.resources import resource
from app.teaching.lessons import speaker_notes
from app.teaching.lessons.catalogue import COURSE, lessons
from app.teaching.lessons.interactives.table import INTERACTIVES
from app.teaching.lessons.listing import SUBJECTS, by_subject, lines
from app.teaching.lessons.speaker_notes import analogy_of
from grpo_core.teaching.lessons import Lesson
from tests.app.teaching.lessons.held import lesson_of

FILES = sorted(resource("lessons").glob("*.toml"))

MYTHS = {
    "lower variance": r"grpo\b.{0,60}(lower|less|smaller) variance",
    "a baseline always reduces variance": r"baseline.{0,30}always.{0,20}(reduc|lower)",
    "bigger is better": r"(bigger|larger|greater) (g|groups?)\b[^.]{0,30}\b(is|are) (always )?better",
    "the clip holds the ratio": r"(keeps?|holds?|bounds?|limits?)[^.]{0,30}ratio[^.]{0,30}(inside|within|between)",
    "the ratio cannot leave": r"ratio[^.]{0,20}(cannot|never) (leaves?|goes|go) (beyond|above|outside)",
    "k3 penalises the reverse KL": r"k3[^.]{0,40}penali[sz]es? kl\(π ?‖ ?π_?ref",
    "temperature is free": r"temperature[^.]{0,20}(is free|does not matter)",
    "the loss is progress": r"loss[^.]{0,20}(tells|shows|measures|means)[^.]{0,12}progress",
    "a falling loss": r"loss (falls|goes down|sinks)[^.]{0,40}(learn|improv|better)",
    "the critic is as large": r"critic[^.]{0,12}(always|is just)[^.]{0,8}(as large|the same size)",
}
SAID = (
    "GRPO has lower variance than REINFORCE with a baseline.",
    "A baseline always reduces variance.",
    "Bigger G is better.",
    "Clipping keeps the ratio inside 1 ± ε.",
    "The ratio cannot leave beyond 1.2.",
    "k3 in the loss penalises KL(π‖π_ref).",
    "Temperature is free at sampling.",
    "The loss tells progress.",
    "The loss falls, so the policy is learning.",
    "PPO's critic is always as large as the policy.",
)


def texts(value: object) -> list[str]:
    """Return every string in a file."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def test_every_shipped_lesson_is_whole() -> None:
    good, broken = lessons()
    assert broken == []
    assert len(good) == len(FILES) > 0
    assert [lesson.number for lesson in good] == sorted({lesson.number for lesson in good})


@pytest.mark.parametrize("lesson", lessons()[0], ids=lambda lesson: lesson.id)
def test_a_lesson_asks_cites_and_stays_short(lesson: Lesson) -> None:
    assert len(lesson.questions) >= 2
    assert lesson.sources
    assert lesson.gist
    assert lesson.interactive in ("", *INTERACTIVES)
    assert 4 <= len(lesson.steps) <= 16
    assert any(step.speaker for step in lesson.steps)
    assert lesson.steps[-1].predict is not None, "the last step transfers what was learned"


@pytest.mark.parametrize("lesson", lessons()[0], ids=lambda lesson: lesson.id)
def test_whoever_gives_a_lesson_finds_its_minutes_and_what_to_say(lesson: Lesson) -> None:
    assert all(step.minutes for step in lesson.steps)
    assert 8 <= lesson.minutes <= 20
    assert lesson.teaching is not None
    teaching = lesson.teaching
    for text in (teaching.misconception, teaching.say, teaching.disagrees, teaching.analogy):
        assert text.endswith(".")
        assert len(text.split()) <= 70
        assert not re.search(r"\d", re.sub(r"\bk[123]\b", "", text)), "a number would have to be checked by a run"


def test_the_list_says_how_long_a_lesson_takes_and_where_it_comes_in_the_course() -> None:
    made = {line.lesson: line for line in lines(lessons()[0], [], None, COURSE)}
    assert made[COURSE[1]].length.endswith("course: 2 of 4")
    assert re.fullmatch(r"\d+(\.5)? min", made["why_rl"].length)


def test_an_analogy_is_said_to_be_one() -> None:
    told = [analogy_of(lesson) for lesson in lessons()[0]]
    assert all(text.startswith("Only an analogy: ") for text in told)
    assert analogy_of(lesson_of("credit")) in speaker_notes.teaching_of(lesson_of("credit"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_lesson_repeats_a_myth(path: Path) -> None:
    for text in texts(tomllib.loads(path.read_text("utf-8"))):
        for name, pattern in MYTHS.items():
            assert not re.search(pattern, text, re.IGNORECASE), f"{name}: {text}"


def test_the_myths_would_be_found() -> None:
    for said, (name, pattern) in zip(SAID, MYTHS.items(), strict=True):
        assert re.search(pattern, said, re.IGNORECASE), name


def test_a_broken_file_and_a_second_of_the_same_id_are_listed_beside_the_good_ones(tmp_path: Path) -> None:
    good = FILES[0].read_text("utf-8")
    (tmp_path / "a.toml").write_text(good, "utf-8")
    (tmp_path / "b.toml").write_text(good, "utf-8")
    (tmp_path / "c.toml").write_text(good.replace("\nnumber =", "\nnmber =", 1), "utf-8")
    (tmp_path / "d.toml").write_bytes(b"\xff")
    found, broken = lessons(tmp_path)
    assert [lesson.id for lesson in found] == [lessons()[0][0].id]
    assert [bad.file for bad in broken] == ["b.toml", "c.toml", "d.toml"]
    assert "already belongs to a.toml" in broken[0].sentence
    assert "“number” is missing" in broken[1].sentence
    assert all(bad.sentence.endswith(".") for bad in broken)
    assert lessons(tmp_path / "nowhere") == ([], [])


def test_what_a_picture_shows_at_first_is_among_the_words_that_it_knows(tmp_path: Path) -> None:
    for name, interactive in INTERACTIVES.items():
        for key, words in interactive.offer.words.items():
            usual = interactive.offer.state[key]
            assert isinstance(usual, str | tuple)
            assert {*((usual,) if isinstance(usual, str) else usual)} <= {*words}, f"{name}: {key}"
    race = next(path for path in FILES if "fair-race" in path.name).read_text("utf-8")
    (tmp_path / "race.toml").write_text(race.replace('fairness = "samples"', 'fairness = "luck"'), "utf-8")
    (bad,) = lessons(tmp_path)[1]
    assert "“luck” is unknown here; there are “updates”, “samples” and “step_length”" in bad.sentence


def test_every_shipped_lesson_is_under_one_subject_and_the_first_begins_with_bars_to_drag() -> None:
    shipped = lessons()[0]
    filed = [id for _, ids in SUBJECTS for id in ids]
    assert sorted(filed) == sorted(lesson.id for lesson in shipped)
    listed = by_subject(lines(shipped, [], None))
    assert [line.lesson for line in listed if line.lesson] == filed
    assert [line.title for line in listed if not line.lesson] == [title for title, _ in SUBJECTS]
    first = next(lesson for lesson in shipped if lesson.id == filed[0])
    assert "Drag any bar" in first.steps[0].text and all(line.length for line in listed if line.lesson)
