"""The option ``--columns`` of the commands that read a recorded run, and the display of their progress."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from grpo_core.errors import GrpoError
from grpo_core.text import tr
from grpo_core.trainers.importers.row_columns import MEANINGS, parsed_columns


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add ``--columns``, which says what the columns of a table or log under names of the user's own mean."""
    parser.add_argument(
        "--columns",
        type=_columns,
        default="",
        metavar="NAME=MEANING,...",
        help=tr(
            "what columns under names of your own mean, such as my_col=reward,it=step; meanings: {known}, or the name "
            "under which a known trainer logs the number"
        ).format(known=", ".join(MEANINGS)),
    )


def progress_of(poll: Callable[[], None]) -> Callable[[int, int], None]:
    """Return a function that shows how many updates are done on a terminal, and calls ``poll``."""

    def progress(done: int, count: int) -> None:
        poll()
        if sys.stderr.isatty():
            print(f"\r{done}/{count}", end="\n" if done == count else "", file=sys.stderr, flush=True)

    return progress


def _columns(text: str) -> str:
    try:
        parsed_columns(text)
    except GrpoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
