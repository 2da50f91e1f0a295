"""The option ``--columns``, which says what the columns of a table mean."""

from __future__ import annotations

import argparse

from grpo_core.text import tr
from grpo_core.trainers.importers.row_columns import MEANINGS


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add ``--columns`` to a command that opens recorded runs."""
    parser.add_argument(
        "--columns",
        default="",
        metavar="NAME=MEANING,...",
        help=tr("what columns of a table mean, such as my_col=completion; the meanings are {known}").format(
            known=", ".join(MEANINGS)
        ),
    )
