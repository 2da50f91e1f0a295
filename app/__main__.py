"""Start: ``python -m app``."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

from grpo_core.child.start import COMMAND
from grpo_core.child.start import start as start_child

DRAWING = ("export", "film")
"""Commands that draw panels, so that they start on the window's side."""


def main() -> int:
    """Run the program; returns the process's exit status."""
    multiprocessing.freeze_support()  # first of all: a frozen child, of a library too, must not open a window
    if sys.argv[1:2] == [COMMAND]:
        start_child(sys.argv[2:])
        return 0
    if len(sys.argv) > 1 and is_command(sys.argv[1]):
        from grpo_core import cli

        return cli.main(sys.argv[1:])
    try:
        from app import language

        untranslated = language.choose(sys.argv[1:])  # before anything that says something is imported
        from app.start import start
    except ImportError as error:
        why = lacking(str(error))
        if not why:
            raise
        print(why, file=sys.stderr)
        return 1
    if untranslated:
        print(untranslated, file=sys.stderr)
    return start(sys.argv[1:])


def is_command(argument: str) -> bool:
    """Whether an argument is one of the commands that need no window, such as “train”: a plain word, and no file."""
    if argument in DRAWING:
        return False
    plain = argument.isascii() and argument.isalpha() and not Path(argument).exists()
    return plain


def lacking(message: str) -> str:
    """What to install where Qt, or a library that it takes from the system, is lacking; empty for anything else."""
    if message == "No module named 'PySide6'":
        return (
            "The window needs Qt, which is not installed: pip install 'grpo-lab[app]'. Without it there are commands, "
            "such as “grpo-lab train --help”."
        )
    library, marker, _ = message.partition(": cannot open shared object file")
    if not marker:
        return ""
    return (
        f"GRPO Lab cannot open a window, because the system lacks {library}. Install it: on Debian and Ubuntu "
        "“sudo apt install libgl1 libegl1 libxcb1 libfontconfig1”, on Fedora “sudo dnf install mesa-libGL mesa-libEGL "
        "libxcb fontconfig”."
    )


if __name__ == "__main__":
    sys.exit(main())
