"""``python -m app lesson``: create a new lesson, check one, list the names that lesson files can use, and film one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.display import draw_offscreen
from app.export.command import command
from app.export.film_command import film_look_from
from grpo_core.commands.command_line import Instead, Parser, count
from grpo_core.errors import GrpoError
from grpo_core.regular_file import refuse_existing
from grpo_core.runs.session import SUFFIX
from grpo_core.text import plural, tr

MOST_SEEDS = 16


def _run(arguments: Sequence[str]) -> int:
    options = command_parser().parse_args(arguments)
    faults: int = options.command(options)
    return faults


main = command(_run)


def _new(options: argparse.Namespace) -> int:
    """Write a working lesson as a starting point for a new one."""
    from app.settings.files import write
    from app.settings.paths import find_paths
    from app.teaching.lessons.catalogue import is_lesson_file, own_lessons, template

    folder = find_paths().lessons
    own = [lesson.number for _, lesson in own_lessons(folder)[0]]
    path: Path = options.file or folder / "my-lesson.toml"
    if not is_lesson_file(path.name):
        raise GrpoError(f"A lesson's file ends in .toml; {path.name} does not.")
    beside = [lesson.number for _, lesson in own_lessons(path.parent)[0]]
    refuse_existing([path], options.force)
    write(path, template([*own, *beside]).encode("utf-8"))
    print(path)
    return 0


def _check(options: argparse.Namespace) -> int:
    """Run every step of a lesson, report its answers, and return the number of faults."""
    seeds = _seeds(options.seeds)
    draw_offscreen()
    from app.teaching.export.lesson_check import check_lesson, lines_of
    from app.teaching.lessons.catalogue import lesson_called

    lesson = lesson_called(options.lesson)
    print(tr("Lesson {number}: {title}").format(number=lesson.number, title=lesson.title), flush=True)
    faults, seconds = 0, 0.0
    for report in check_lesson(lesson, seeds):
        faults += len(report.faults)
        seconds += report.seconds
        for line in lines_of(lesson, report):
            print(line, flush=True)
    sentence = plural(
        "{steps} step, {asked} of them with a question, computed in {seconds:.1f} s. Faults: {faults}.",
        "{steps} steps, {asked} of them with a question, computed in {seconds:.1f} s. Faults: {faults}.",
        len(lesson.steps),
    )
    print(
        sentence.format(
            steps=len(lesson.steps), asked=len(lesson.questions), seconds=seconds, faults=faults or tr("none", "faults")
        )
    )
    return faults


def _gift(options: argparse.Namespace) -> int:
    """Write the questions of lessons, with the answers of their runs, as a file that Moodle can import (GIFT)."""
    from app.settings.files import write

    refuse_existing([options.out], options.force)
    draw_offscreen()
    from app.teaching.export.gift import gift
    from app.teaching.export.lesson_stage import walked
    from app.teaching.lessons.catalogue import lesson_called, lessons

    chosen = [lesson_called(name) for name in options.lesson] or lessons()[0]
    parts = []
    for lesson in chosen:
        print(tr("Lesson {number}: {title}").format(number=lesson.number, title=lesson.title), flush=True)
        values = {}
        for step in walked(lesson):
            if step.problem:
                print(f"  {step.problem}", flush=True)
            elif step.value is not None:
                values[step.place] = step.value
        parts.append(gift(lesson, values))
    write(options.out, "\n".join(parts).encode("utf-8"))
    print(options.out)
    return 0


def _course(options: argparse.Namespace) -> int:
    """Write lessons as a session that gives them in sequence and, on request, their handout and its answers."""
    if options.out.suffix != SUFFIX:
        raise GrpoError(f"A course is a session; end the name of {options.out.name} in {SUFFIX}.")
    asked = [path for path in (options.out, options.handout, options.answers) if path is not None]
    refuse_existing(asked, options.force)
    draw_offscreen()
    from app.teaching.export.handout_command import write_papers
    from app.teaching.lessons.catalogue import COURSE, SLOTS, lesson_called, plan, write_course

    if options.lesson and options.minutes is not None:
        raise GrpoError("--minutes chooses the lessons; name none.")
    if options.minutes is not None and options.minutes not in SLOTS:
        raise GrpoError(f"--minutes cannot be {options.minutes}; there are courses for {', '.join(map(str, SLOTS))}.")
    lessons = [lesson_called(name) for name in options.lesson or SLOTS.get(options.minutes, COURSE)]
    write_course(options.out, lessons, options.minutes)
    list(write_papers(lessons, options.handout, options.answers, options.paper))
    print(plan(lessons, options.minutes))
    for path in asked:
        print(path)
    return 0


def _words(options: argparse.Namespace) -> int:
    """Print the names that a lesson file can use: pictures with their states and numbers, panels, and metrics."""
    from app.teaching.lessons.interactives.table import words_table

    print(words_table())
    return 0


def _seeds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MOST_SEEDS):
        raise GrpoError(f"--seeds cannot be “{text}”: give a number from 0 to {MOST_SEEDS}.")
    return int(text)


def command_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="grpo-lab lesson", description="Write your own lesson, and check what it says.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    new = commands.add_parser("new", help="write a lesson to begin with", description=_new.__doc__)
    new.add_argument(
        "file", type=Path, nargs="?", metavar="FILE.toml", help="the new file (default: in your folder of lessons)"
    )
    new.add_argument("--force", action="store_true", help="replace existing files")
    new.set_defaults(command=_new)
    check = commands.add_parser(
        "check",
        help="run a lesson, and check what it says against its runs",
        description=(
            "Run every step of a lesson, and check where its answers lie, whether its reveals are true, other "
            "seeds, and times. The exit status is 1 if something is wrong."
        ),
    )
    check.add_argument("lesson", metavar="LESSON|FILE", help="a file of your own, or a lesson's id or number")
    check.add_argument("--seeds", default="5", metavar="N", help="number of other seeds, 0 to 16 (default: 5)")
    check.set_defaults(command=_check)
    questions = commands.add_parser("gift", help="write questions as a file for Moodle", description=_gift.__doc__)
    questions.add_argument(
        "lesson", nargs="*", metavar="LESSON|FILE", help="ids, numbers or files (default: all shipped)"
    )
    questions.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the file, such as questions.gift.txt"
    )
    questions.add_argument("--force", action="store_true", help="replace existing files")
    questions.set_defaults(command=_gift)
    course = commands.add_parser("course", help="write a session of several lessons", description=_course.__doc__)
    course.add_argument(
        "lesson", nargs="*", metavar="LESSON|FILE", help="the lessons, in order (default: 45 minutes, 4 5 11 14)"
    )
    course.add_argument("--minutes", type=count, metavar="N", help="a course for a slot of 30, 60 or 90 minutes")
    course.add_argument("--out", type=Path, required=True, metavar=f"FILE{SUFFIX}", help="the session")
    course.add_argument("--handout", type=Path, metavar="FILE.pdf", help="also write the students' pages")
    course.add_argument(
        "--answers", type=Path, metavar="FILE.pdf", help="also write the answers, after running the lesson"
    )
    course.add_argument("--paper", choices=("a4", "letter"), default="a4", help="paper size (default: a4)")
    course.add_argument("--force", action="store_true", help="replace existing files")
    course.set_defaults(command=_course)
    words = commands.add_parser("words", help="list the words that a lesson's file can use", description=_words.__doc__)
    words.set_defaults(command=_words)
    return parser


def add_film_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--lesson`` to the options of ``film``."""
    parser.add_argument(
        "--lesson",
        metavar="ID|FILE",
        action=Instead,
        run=film_of_lesson,
        help="film this lesson instead, with each question before its answer: its name (such as build_group), its "
        "number, or a file of your own",
    )


def film_of_lesson(options: argparse.Namespace) -> Iterator[str]:
    """Make the film of a lesson, and yield one line per picture.

    Raises:
        GrpoError: the film is impossible; the message says why.
    """
    if any(value is not None for value in (options.run, options.step, options.steps, options.panel, options.speed)):
        raise GrpoError(
            "A lesson is filmed completely: do not combine --lesson with a run file, --step, --steps, "
            "--panel or --speed."
        )
    film_look = film_look_from(options)
    draw_offscreen()
    from app.export.stage import FilmLook
    from app.teaching.export.lesson_film import export_lesson
    from app.teaching.lessons.catalogue import lesson_called

    yield from export_lesson(lesson_called(options.lesson), options.out, FilmLook(**film_look), force=options.force)
