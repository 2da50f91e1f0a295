"""``python -m app handout``: a lesson on paper, with its answers in a separate file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from app.display import draw_offscreen
from app.export.command import command
from grpo_core.commands.command_line import Parser
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson

ENDING = ".pdf"


def write(arguments: Sequence[str]) -> None:
    """Write the handout that the arguments describe, and print one line per file.

    Raises:
        GrpoError: the handout is impossible; the message says why.
    """
    options = command_parser().parse_args(arguments)
    files = [path for path in (options.out, options.answers) if path is not None]
    for path in files:
        if path.suffix.lower() != ENDING:
            raise GrpoError(f"A handout is a PDF; end the name of {path.name} in {ENDING}.")
    if len({path.resolve() for path in files}) < len(files):
        raise GrpoError("The answers are a separate file; choose another name for it.")
    draw_offscreen()
    from app.export.files import refuse_existing
    from app.teaching.export.lesson_file import lesson_called

    refuse_existing(files, options.force)
    lesson = lesson_called(options.lesson)
    write_handout(lesson, options.out, options.paper)
    print(options.out, flush=True)
    if options.answers is not None:
        write_answers(lesson, options.answers, options.paper)
        print(options.answers)


main = command(write)


def write_handout(lesson: Lesson, out: Path, paper: str) -> None:
    """Write the students' pages of a lesson as a PDF.

    Raises:
        GrpoError: the file cannot be written; the message says why.
    """
    from app.export import files
    from app.export.stage import application
    from app.teaching.export.handout import handout

    with application():
        files.write(out, handout(lesson, paper))


def write_answers(lesson: Lesson, out: Path, paper: str) -> None:
    """Walk through ``lesson``, and write the answers of its runs.

    Raises:
        GrpoError: a step cannot be computed, or the file cannot be written.
    """
    from app.export import files
    from app.teaching.export.handout import answers

    files.write(out, answers(lesson, walked_answers(lesson), paper))


def walked_answers(lesson: Lesson) -> dict[int, float]:
    """Walk through ``lesson``, and return the answers by step, counted from 0.

    Raises:
        GrpoError: a step cannot be computed.
    """
    from app.teaching.export.lesson_walk import walked

    values = {}
    for step in walked(lesson):
        if step.problem:
            raise GrpoError(step.problem)
        if step.value is not None:
            values[step.place] = step.value
    return values


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    parser = Parser(
        prog="grpo-lab handout",
        description=(
            "Write a lesson as pages to print: its questions with blank scales, five terms, what to try at "
            "home; and the answers, which its runs compute, as a separate file."
        ),
    )
    parser.add_argument("lesson", metavar="LESSON|FILE", help="a lesson's id or number, or a file of your own")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.pdf", help="the students' pages")
    parser.add_argument(
        "--answers", type=Path, metavar="FILE.pdf", help="also write the answers, after running the lesson"
    )
    parser.add_argument("--paper", choices=("a4", "letter"), default="a4", help="paper size (default: a4)")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    return parser
