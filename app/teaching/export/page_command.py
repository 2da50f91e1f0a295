"""``python -m app page``: a run, a lesson or the simulator as one self-contained HTML file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from app.display import draw_offscreen
from app.export.command import command
from grpo_core.commands.command_line import Parser, count
from grpo_core.commands.export_command import span
from grpo_core.errors import GrpoError
from grpo_core.regular_file import refuse_existing

ENDINGS = (".html", ".htm")


def write(arguments: Sequence[str]) -> None:
    """Write the page that the arguments describe, and print one line per file.

    Raises:
        GrpoError: the page is impossible; the message says why.
    """
    options = command_parser().parse_args(arguments)
    if (options.run is not None) + (options.lesson is not None) + options.simulator != 1:
        raise GrpoError("Give a run file, or a lesson with --lesson, or --simulator.")
    if options.out.suffix.lower() not in ENDINGS:
        raise GrpoError(f"A page is HTML; end the name of {options.out.name} in .html.")
    draw_offscreen()
    from app.export.stage import application
    from app.settings import files

    refuse_existing([options.out], options.force)
    with application():
        files.write(options.out, _page(options))
    print(options.out, flush=True)


main = command(write)


def _page(options: argparse.Namespace) -> bytes:
    if options.updates is not None and options.run is None:
        raise GrpoError("--updates is for a run; a lesson's page shows the updates of its steps.")
    if options.simulator:
        from app.teaching.export.page.simulator_page import simulator_page

        return simulator_page()
    if options.lesson is not None:
        from app.teaching.export.page.lesson_page import lesson_page
        from app.teaching.lessons.catalogue import lesson_called

        return lesson_page(lesson_called(options.lesson))
    from app.teaching.export.page.run_page import run_page

    passed = None if options.passed is None else options.passed - 1
    return run_page(options.run, _updates(options.updates), passed=passed, group=options.group - 1)


def _updates(text: str | None) -> range | None:
    """Return the updates given by ``--updates``, which is one number or a range."""
    if text is None:
        return None
    return span(None, text) if ":" in text else span(text, None)


def command_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="grpo-lab page",
        description=(
            "Write updates of a run, or a lesson, as one HTML file that loads nothing else: each number opens "
            "with its formula, its values and what it comes from. Or write the simulator, a page that computes."
        ),
    )
    parser.add_argument("run", type=Path, nargs="?", metavar="FILE", help="a run file")
    parser.add_argument("--lesson", metavar="LESSON|FILE", help="a lesson's id or number, or a file of your own")
    parser.add_argument("--simulator", action="store_true", help="the bandit's simulator, which computes in a browser")
    parser.add_argument("--updates", metavar="M:N", help="the updates M to N, or one (default: the last)")
    parser.add_argument("--pass", dest="passed", type=count, metavar="N", help="the inner pass (default: the last)")
    parser.add_argument(
        "--group", type=count, default=1, metavar="N", help="the prompt whose tokens are shown (default: 1)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.html", help="the page")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    return parser
