"""The option ``--columns`` of the commands that read a log whose columns have names of the user's own."""

from __future__ import annotations

import argparse

from grpo_core.text import tr


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add ``--columns`` to a command."""
    parser.add_argument(
        "--columns",
        default="",
        metavar="NAME=MEANING,...",
        help=tr("what columns of a log mean, such as “my_col=reward,it=step”; the known names need no such option"),
    )
