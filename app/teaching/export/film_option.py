"""The option of ``film`` that films a lesson."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from app.display import draw_offscreen
from app.export.film_command import film_look_from
from grpo_core.commands.command_line import Instead
from grpo_core.errors import GrpoError


def add_option(parser: argparse.ArgumentParser) -> None:
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
    from app.teaching.lessons.own import lesson_called

    yield from export_lesson(lesson_called(options.lesson), options.out, FilmLook(**film_look), force=options.force)
