"""The available lessons: the shipped files, validated against the names that lessons can use, and courses of them.

The user's own lessons are files in the user's folder, in a package or anywhere else, numbered from 100. The argument of
a command that names a lesson can be one of them, too.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import count, islice
from pathlib import Path

from app.examples import EXAMPLES
from app.help.glossary import glossary
from app.panel_registry import lesson_panels
from app.resources import resource
from app.settings.paths import find_paths
from grpo_core.errors import GrpoError
from grpo_core.plugins import credited
from grpo_core.runs.session import Manifest, save_session
from grpo_core.teaching.lessons import PACKAGED, Lesson, LessonError, Vocabulary, load_lesson, nearest
from grpo_core.text import plural, tr


@dataclass(frozen=True)
class Broken:
    """A lesson file that contains an error.

    Attributes:
        sentence: message that says what is wrong, where, and how to correct it.
    """

    file: str
    sentence: str


@cache
def lesson_titles() -> tuple[Lesson, ...]:
    """Return id, number, title and gist of the shipped lessons in order, omitting files that do not have them.

    Reading complete lessons takes 0.4 s, because that imports every picture that they can name.
    """
    titles = []
    for path in resource("lessons").glob("*.toml"):
        try:
            head = tomllib.loads(path.read_text("utf-8").partition("\n[")[0])
            titles.append(
                Lesson(
                    id=str(head["id"]),
                    number=int(head["number"]),
                    title=tr(str(head["title"])),
                    gist=tr(str(head["gist"])),
                )
            )
        except (OSError, ValueError, TypeError, KeyError):  # the list of lessons shows the error
            continue
    return tuple(sorted(titles, key=lambda one: (one.number, one.id)))


@cache
def vocabulary() -> Vocabulary:
    """Return the names that lesson files can use."""
    from app.teaching.lessons.interactives.table import INTERACTIVES

    terms = {name.casefold() for entry in glossary() for name in (entry.id, entry.title, entry.symbol, *entry.also)}
    offers = {name: interactive.offer for name, interactive in INTERACTIVES.items()}
    return Vocabulary(panels=lesson_panels(), interactives=offers, terms=frozenset(terms - {""}), recorded=EXAMPLES)


@lru_cache(maxsize=256)
def _read(path: Path, stamp: tuple[int, int]) -> Lesson | LessonError:
    """Read the lesson from a file. ``stamp`` is the file's modification time and size."""
    try:
        return load_lesson(path, vocabulary())
    except LessonError as error:
        return error


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:  # reading the file reports why
        return 0, 0
    return status.st_mtime_ns, status.st_size


def lesson_in(path: Path) -> Lesson:
    """Return the lesson in a file, rereading it only if the file has changed.

    Raises:
        LessonError: the file is not valid; the message says what is wrong, and where.
    """
    lesson = _read(path, _stamp(path))
    if isinstance(lesson, LessonError):
        raise lesson
    return lesson


def lessons(folder: Path | None = None) -> tuple[list[Lesson], list[Broken]]:
    """Return the lessons of a folder (the shipped ones by default) in order, and the broken files."""
    folder = resource("lessons") if folder is None else folder
    try:
        vocabulary()
    except GrpoError as error:  # without a glossary, terms cannot be checked
        return [], [Broken("glossary.toml", str(error))]
    good: dict[str, tuple[Lesson, str]] = {}
    broken = []
    for path in sorted(folder.glob("*.toml")):
        try:
            lesson = lesson_in(path)
        except LessonError as error:
            broken.append(Broken(path.name, str(error)))
            continue
        if lesson.id in good:
            sentence = tr("{name}: the id “{id}” already belongs to {good}; choose another.").format(
                name=path.name, id=lesson.id, good=good[lesson.id][1]
            )
            broken.append(Broken(path.name, sentence))
        else:
            good[lesson.id] = lesson, path.name
    return sorted((lesson for lesson, _ in good.values()), key=lambda lesson: (lesson.number, lesson.id)), broken


def find_lesson(known: Sequence[Lesson], name: str) -> Lesson | None:
    """Return the lesson among ``known`` with this id or number, or None if there is none."""
    wanted = name.strip().casefold()
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 9 else None
    return next((lesson for lesson in known if lesson.id.casefold() == wanted or lesson.number == number), None)


COURSE = ("build_group", "same_rewards", "clipping", "reward_hacking")
"""Lessons of the 45-minute course: what a reward means in a group, silent groups, clipping, and a fooled checker."""
SLOTS = {
    30: COURSE[:2],
    60: (*COURSE, "three_knobs"),
    90: ("one_update", *COURSE[:2], "group_size", *COURSE[2:], "three_knobs"),
}
"""Lessons for a slot of so many minutes, with at least a tenth of it left for questions."""


def plan(lessons: Sequence[Lesson], slot: int | None = None) -> str:
    """Return the speaker's plan: the start time, question and duration of each lesson, taken from its notes, and what
    remains of a ``slot`` in minutes.
    """
    lines, begun = [], 0.0
    for lesson in lessons:
        lines.append(
            tr("{begun:g} min: lesson {number}, {title} ({minutes:g} min)").format(
                begun=begun, number=lesson.number, title=lesson.title, minutes=lesson.minutes
            )
        )
        begun += lesson.minutes
    end = tr("{begun:g} min: the end") if slot is None else tr("{begun:g} min: the end, {left:g} min for questions")
    return "\n".join([*lines, end.format(begun=begun, left=(slot or 0) - begun)])


def write_course(path: Path, lessons: Sequence[Lesson], slot: int | None = None) -> None:
    """Write a session that opens the first of ``lessons`` and then the rest in order, with a plan for the speaker.

    Raises:
        GrpoError: the file cannot be written; the message says why.
    """
    manifest = Manifest(
        lesson=lessons[0].id,
        course=tuple(lesson.id for lesson in lessons),
        notes=plan(lessons, slot),
        created=time.time(),
    )
    save_session(path, manifest, [])


ENDING = ".toml"
FIRST = 100
"""Lowest number of a user's lesson. Shipped lessons have lower numbers."""
MOST = 200
"""Maximum number of files that are read from the folder."""


def is_lesson_file(name: str) -> bool:
    """Return whether ``name`` denotes a file rather than the id or the number of a lesson."""
    return Path(name).suffix.lower() == ENDING


def read_own(path: Path, others: Sequence[tuple[Path, Lesson]] = ()) -> Lesson:
    """Return the lesson in one of the user's files, or in a shipped one.

    ``others`` are other files and their lessons, whose ids and numbers are taken.

    Raises:
        LessonError: the file cannot be read, or its id or number belongs to another lesson.
    """
    lesson = lesson_in(path)
    whose = next((name for name, place in PACKAGED.items() if place == path), "")
    lesson = replace(lesson, title=credited(whose, lesson.title))
    if path.resolve().parent == resource("lessons").resolve():
        return lesson
    if lesson.number < FIRST:
        sentence = tr("number: {number} is taken or reserved for shipped lessons; your own lessons begin at {first}")
        raise LessonError(path.name, 1, sentence.format(number=lesson.number, first=FIRST))
    for title in lesson_titles():
        if title.id == lesson.id:
            raise LessonError(path.name, 1, _taken("id", lesson.id, tr("lesson {number}").format(number=title.number)))
    for other, there in others:
        if other.resolve() != path.resolve():
            for key in ("id", "number"):
                if getattr(there, key) == getattr(lesson, key):
                    raise LessonError(path.name, 1, _taken(key, getattr(lesson, key), other.name))
    return lesson


def _taken(key: str, value: object, whose: str) -> str:
    sentence = tr("{key}: “{value}” already belongs to {whose}; choose another")
    return sentence.format(key=key, value=value, whose=whose)


def own_lessons(folder: Path) -> tuple[list[tuple[Path, Lesson]], list[Broken]]:
    """Return the lessons in the user's folder and in packages with their files, in order, and the broken files."""
    good: list[tuple[Path, Lesson]] = []
    broken = []
    try:
        paths = sorted(islice(folder.glob("*" + ENDING), MOST + 1))
    except OSError:
        paths = []
    for path in (*paths[:MOST], *PACKAGED.values()):
        try:
            good.append((path, read_own(path, good)))
        except LessonError as error:
            broken.append(Broken(path.name, str(error)))
    if len(paths) > MOST:
        broken.append(
            Broken(
                folder.name,
                plural(
                    "Only {most} file of this folder is read.", "Only {most} files of this folder are read.", MOST
                ).format(most=MOST),
            )
        )
    return sorted(good, key=lambda one: one[1].number), broken


def template(taken: Sequence[int] = ()) -> str:
    """Return the text of a new, working lesson with the lowest number not in ``taken``, at least :data:`FIRST`."""
    number = next(number for number in count(FIRST) if number not in taken)
    return resource("lessons/template.txt").read_text("utf-8").replace("NUMBER", str(number))


def lesson_called(name: str) -> Lesson:
    """Return the lesson with an id or a number, or the lesson in a file.

    Ids and numbers can denote shipped lessons and those in the user's folder.

    Raises:
        GrpoError: there is none, or the file is not a lesson; the message says where the error is and how to
            correct it.
    """
    own, _ = own_lessons(find_paths().lessons)
    if is_lesson_file(name):
        path = Path(name)
        beside, _ = own_lessons(path.parent)
        return read_own(path, [*own, *beside])
    known = [*lessons()[0], *(lesson for _, lesson in own)]
    lesson = find_lesson(known, name)
    if lesson is None:
        sentence = tr("Unknown lesson “{name}”. Choose one of {ids}{nearest}.")
        ids = [lesson.id for lesson in known]
        raise GrpoError(sentence.format(name=name, ids=", ".join(ids), nearest=nearest(name.strip(), ids)))
    return lesson
