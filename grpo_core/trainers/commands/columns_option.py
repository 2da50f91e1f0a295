"""The option ``--columns``, which says what the columns of a table mean."""

from __future__ import annotations

import argparse

from grpo_core.errors import GrpoError
from grpo_core.text import tr
from grpo_core.trainers.importers.row_columns import MEANINGS, parsed_columns


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add ``--columns`` to a command that opens recorded runs."""
    parser.add_argument(
        "--columns",
        type=_columns,
        default="",
        metavar="NAME=MEANING,...",
        help=tr(
            "what columns of a table under names of your own mean, such as my_col=completion; meanings: {known}"
        ).format(known=", ".join(MEANINGS)),
    )


def _columns(text: str) -> str:
    try:
        parsed_columns(text)
    except GrpoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
