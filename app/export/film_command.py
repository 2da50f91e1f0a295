"""``python -m app film``: updates or a lesson as an animated WebP or as numbered pictures, without a display."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app import parts
from app.display import draw_offscreen
from app.export.command import add_look, command, look_from, number_from, panels_named
from grpo_core.commands.command_line import Parser, add_options_of_parts
from grpo_core.commands.export_command import span
from grpo_core.errors import GrpoError

LEAST_RATE, MOST_RATE = 1.0, 60.0


def film(arguments: Sequence[str]) -> None:
    """Make the film that the arguments describe, and print one line per picture.

    Raises:
        GrpoError: the film is impossible; the message says why.
    """
    options = command_parser().parse_args(arguments)
    for line in (options.instead or _film_of_updates)(options):
        print(line, flush=True)


main = command(film)


def _film_of_updates(options: argparse.Namespace) -> Iterator[str]:
    if options.run is None:
        raise GrpoError("Say what to film: give a run file; “film --help” lists what else can be filmed.")
    specs = [None] if options.panel is None else panels_named(options.panel)
    steps = span(options.step, options.steps)
    if len(specs) > 1:
        raise GrpoError("A film shows one panel; name it with --panel.")
    speed = None if options.speed is None else number_from("--speed", options.speed, 0.1, MOST_RATE)
    film_look = film_look_from(options)
    draw_offscreen()
    from app.export.film_file import FilmChoice, export_film

    choice = FilmChoice(spec=specs[0], steps=steps, speed=speed, **film_look)
    yield from export_film(options.run, options.out, choice, force=options.force)


def film_look_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a :class:`app.export.stage.FilmLook` from the options.

    Raises:
        GrpoError: one of them cannot be parsed, or is out of range.
    """
    return look_from(options) | {"rate": number_from("--rate", options.rate, LEAST_RATE, MOST_RATE)}


def command_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="grpo-lab film",
        description=(
            "Film updates of a run: samples fall, rewards arrive, the policy moves. Writes an animated WebP, or "
            "numbered pictures in a folder."
        ),
    )
    parser.add_argument("run", type=Path, nargs="?", metavar="FILE", help="a run file")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="PATH", help="a file that ends in .webp, or a folder for pictures"
    )
    parser.add_argument("--step", "--update", metavar="N", help="the update (default: the last)")
    parser.add_argument("--steps", "--updates", metavar="M:N", help="the updates M to N, one after the other")
    parser.add_argument(
        "--panel",
        metavar="NAME",
        help="the panel to show (default: policy-bars, or token-inspector for a language model)",
    )
    parser.add_argument(
        "--speed",
        metavar="X",
        help=(
            "updates per second; up to 2, their stages are played; above 2, each is one picture (default: each "
            "at its own pace)"
        ),
    )
    parser.add_argument("--rate", metavar="X", default="20", help="pictures per second, 1 to 60 (default: 20)")
    add_look(parser, "size of the pictures in pixels (default: 1280x720)")
    add_options_of_parts("film", parser, parts.rows("options"))
    return parser
