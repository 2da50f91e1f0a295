"""``python -m app handout``: a lesson on paper, with its answers in a separate file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.display import draw_offscreen
from app.export.command import command
from grpo_core.commands.command_line import Parser
from grpo_core.errors import GrpoError
from grpo_core.regular_file import refuse_existing
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
    from app.teaching.lessons.catalogue import lesson_called

    refuse_existing(files, options.force)
    for path in write_papers([lesson_called(options.lesson)], options.out, options.answers, options.paper):
        print(path, flush=True)


main = command(write)


def write_papers(lessons: Sequence[Lesson], pages: Path | None, answers: Path | None, paper: str) -> Iterator[Path]:
    """Write the students' pages of lessons and, after walking through them, the answers of their runs, as PDFs.

    Yield each file that is written. None for a file that is not asked for.

    Raises:
        GrpoError: a step cannot be computed, or a file cannot be written; the message says why.
    """
    from app.export.stage import application
    from app.settings import files
    from app.teaching.export import handout
    from app.teaching.export.lesson_stage import walked_answers

    with application():
        if pages is not None:
            files.write(pages, handout.handout(lessons, paper))
            yield pages
        if answers is not None:
            values = [walked_answers(lesson) for lesson in lessons]
            files.write(answers, handout.answers(lessons, values, paper))
            yield answers


def command_parser() -> argparse.ArgumentParser:
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
