"""``python -m app film``: updates or a lesson as an animated WebP or as numbered pictures, without a display."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from app import parts
from app.display import draw_offscreen
from app.export.command import THEMES, exit_code, number_from, panels_named, scale_from, size_from
from grpo_core.commands.command_line import Parser
from grpo_core.commands.export_command import span
from grpo_core.errors import GrpoError

LEAST_RATE, MOST_RATE = 1.0, 60.0


def main(arguments: Sequence[str]) -> int:
    """Make the film that the arguments describe.

    Return 0 on success, or 2 after reporting an error in one sentence.
    """
    return exit_code(lambda: film(arguments))


def film(arguments: Sequence[str]) -> None:
    """Make the film that the arguments describe, and print one line per picture.

    Raises:
        GrpoError: the film is impossible; the message says why.
    """
    options = command_parser().parse_args(arguments)
    for line in (options.instead or _film_of_updates)(options):
        print(line, flush=True)


def _film_of_updates(options: argparse.Namespace) -> Iterator[str]:
    if options.run is None:
        raise GrpoError("Say what to film: give a run file; “film --help” lists what else can be filmed.")
    specs = [None] if options.panel is None else panels_named(options.panel)
    steps = span(options.step, options.steps)
    if len(specs) > 1:
        raise GrpoError("A film shows one panel; name it with --panel.")
    size, scale = size_from(options.size), scale_from(options.scale)
    speed = None if options.speed is None else number_from("--speed", options.speed, 0.1, MOST_RATE)
    rate = rate_from(options.rate)
    draw_offscreen()
    from app.export.film_file import FilmChoice, export_film

    choice = FilmChoice(
        spec=specs[0],
        steps=steps,
        speed=speed,
        rate=rate,
        size=size,
        theme=options.theme,
        scale=scale,
        caption=not options.no_caption,
    )
    yield from export_film(options.run, options.out, choice, force=options.force)


def rate_from(text: str) -> float:
    """Return the number of pictures per second.

    Raises:
        GrpoError: it cannot be parsed, or is out of range.
    """
    return number_from("--rate", text, LEAST_RATE, MOST_RATE)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
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
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument("--size", metavar="WxH", help="size of the pictures in pixels (default: 1280x720)")
    parser.add_argument("--scale", default="1", metavar="X", help="scale of everything in it, 0.8 to 2.5 (default: 1)")
    parser.add_argument(
        "--no-caption", action="store_true", help="leave out the line with update, settings, seed and version"
    )
    parser.add_argument("--force", action="store_true", help="replace existing files")
    parser.set_defaults(instead=None)
    for options in parts.rows("options"):
        if "film" in options:
            options["film"](parser)
    return parser
