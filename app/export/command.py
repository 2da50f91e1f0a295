"""``python -m app export``: panels as pictures and tables, without a display.

Exports that do not need Qt are in the core.
"""

from __future__ import annotations

import argparse
import difflib
import math
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.display import draw_offscreen
from grpo_core.commands.command_line import FAILED, INTERRUPTED, Parser, add_options_of_parts
from grpo_core.commands.export_command import run_export, span
from grpo_core.errors import GrpoError

if TYPE_CHECKING:
    from app.widgets.panel import Panel
    from app.widgets.panel_spec import PanelSpec

FORMATS = ("png", "svg", "pdf", "csv")
THEMES = ("light", "dark", "projector", "contrast")
LEAST, MOST = 24, 8192
"""Minimum and maximum side of a picture in pixels."""


def command(work: Callable[[Sequence[str]], int | None]) -> Callable[[Sequence[str]], int]:
    """Return ``work`` as a command: a function of the arguments that returns an exit status.

    This is 0 on success, 1 if ``work`` returns a number of faults, 2 after reporting an error in one sentence, or 130
    after Ctrl+C.
    """

    @wraps(work)
    def run(arguments: Sequence[str]) -> int:
        try:
            return 1 if work(arguments) else 0
        except GrpoError as error:
            print(error, file=sys.stderr)
            return FAILED
        except KeyboardInterrupt:
            return INTERRUPTED

    return run


def export(arguments: Sequence[str]) -> None:
    """Run the export that the arguments describe, and print one line per file.

    Raises:
        GrpoError: the export is impossible; the message says why.
    """
    options = command_parser().parse_args(arguments)
    if options.panel is None:
        _without_window(options)
        return
    specs, steps = panels_named(options.panel), span(options.step, options.steps, least=0)
    wanted_look = look_from(options)
    draw_offscreen()
    from app.export.pictures import Wanted, export_pictures

    wanted = Wanted(
        specs=tuple(specs),
        steps=steps,
        several=options.panel == "all" or options.steps is not None,
        format=options.format,
        row=options.row,
        explained=options.explain,
        passed=options.passed,
        density=number_from("--density", options.density, 1, 4),
        **wanted_look,
    )
    for line in export_pictures(options.run, options.out, wanted, force=options.force):
        print(line, flush=True)


main = command(export)


def panels_named(name: str) -> list[PanelSpec[Panel]]:
    """Return the panels called ``name``, which is an id or a title. "all" means the panels that show a recorded run.

    Raises:
        GrpoError: there is no such panel; the message suggests the closest match.
    """
    from app.panel_registry import PANELS

    if name == "all":
        return [spec for spec in PANELS if spec.shows_recorded]
    known = {_plain(word): spec for spec in PANELS for word in (spec.title, spec.id)}
    if _plain(name) in known:
        return [known[_plain(name)]]
    ids = [_plain(spec.id) for spec in PANELS]
    close = difflib.get_close_matches(_plain(name), known, n=1)
    if close:
        raise GrpoError(f"Unknown panel “{name}”; did you mean {_plain(known[close[0]].id)}?")
    raise GrpoError(f"Unknown panel “{name}”. Choose one of {', '.join(ids)}, or all.")


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.casefold()).strip("-")


def _without_window(options: argparse.Namespace) -> None:
    if options.instead is None and options.out.suffix.lower().lstrip(".") in FORMATS:
        raise GrpoError(f"Say what {options.out.name} should show: add --panel and a name, such as policy-bars.")
    (options.instead or run_export)(options, lambda: None)


def add_look(parser: argparse.ArgumentParser, size: str) -> None:
    """Add the options that all commands that draw panels have. ``size`` is the help of that of the pictures."""
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument("--size", metavar="WxH", help=size)
    parser.add_argument("--scale", default="1", metavar="X", help="scale of everything in it, 0.8 to 2.5 (default: 1)")
    parser.add_argument(
        "--no-caption", action="store_true", help="leave out the line with update, settings, seed and version"
    )
    parser.add_argument("--force", action="store_true", help="replace existing files")


def look_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a :class:`app.export.stage.PictureLook` from the options of :func:`add_look`.

    Raises:
        GrpoError: one of them cannot be parsed, or is out of range.
    """
    return {
        "size": _size_from(options.size),
        "theme": options.theme,
        "scale": _scale_from(options.scale),
        "caption": not options.no_caption,
    }


def _size_from(text: str | None) -> tuple[int, int] | None:
    """Return width and height in pixels from text like 1600x900, or None without text."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})[xX×](\d{1,6})", text)
    if match is None or not all(LEAST <= int(side) <= MOST for side in match.groups()):
        raise GrpoError(f"--size cannot be “{text}”: give width and height from {LEAST} to {MOST}, such as 1600x900.")
    return int(match[1]), int(match[2])


def _scale_from(text: str) -> float:
    """Return the scale from text like 1.5 or 150%."""
    from app.theme.look import SCALES

    try:
        scale = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        scale = 0.0
    if not SCALES[0] <= scale <= SCALES[-1]:
        raise GrpoError(f"--scale cannot be “{text}”: give a number from {SCALES[0]} to {SCALES[-1]}, such as 1.5.")
    return scale


def number_from(name: str, text: str, least: float, most: float) -> float:
    """Return the number that is given to the option ``name``.

    Raises:
        GrpoError: it cannot be parsed, or is below ``least`` or above ``most``.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise GrpoError(f"{name} cannot be “{text}”: give a number from {least:g} to {most:g}.")
    return number


def command_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="grpo-lab export",
        description="Write panels of a run as pictures or tables, the run as CSV, an update as a NumPy "
        "script, or the model that was trained.",
    )
    parser.add_argument("run", type=Path, metavar="FILE", help="a run file")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="PATH",
        help="a picture (.png, .svg, .pdf), a table (.csv), a folder for several or, without a panel, a folder for "
        "CSV files or a script (.py)",
    )
    parser.add_argument("--panel", metavar="NAME", help="the panel to show, such as token-inspector, or all")
    parser.add_argument("--step", metavar="N", help="the update (default: the last)")
    parser.add_argument("--steps", metavar="M:N", help="a sequence of updates, one file each")
    parser.add_argument(
        "--pass", dest="passed", metavar="N", help="the inner pass (default: the last; for a script: all)"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="png", help="format of the files in a folder (default: png)"
    )
    parser.add_argument("--density", default="1", metavar="D", help="pixel density of a PNG, 1 to 4 (default: 1)")
    parser.add_argument("--row", metavar="N", help="the selected completion")
    parser.add_argument(
        "--explain", metavar="NAME", help="the number that the panel “explain” explains (default: loss)"
    )
    add_look(parser, "size of the picture in pixels (default: what suits the panel)")
    add_options_of_parts("export", parser)
    return parser
