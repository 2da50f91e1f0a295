"""The command line of the window. It does not need Qt, so an installation without Qt can still print the help text."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from app import parts

COMMANDS = "Without a window: %(prog)s train, inspect, race, sweep, export and more; see %(prog)s train --help."


def this_program() -> str:
    """Return the command that starts this copy of the program: “grpo-lab” if a shell finds it by that name, otherwise
    a path, such as “.venv/bin/grpo-lab” in a source tree.
    """
    beside, known = shutil.which("grpo-lab", path=str(Path(sys.executable).parent)), shutil.which("grpo-lab")
    if beside and known and Path(beside).samefile(known):
        return "grpo-lab"
    path = Path(beside or sys.executable)
    path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return shlex.join([str(path), *([] if beside else ["-m", __name__.split(".")[0]])])


def parser() -> argparse.ArgumentParser:
    """Return the parser of all arguments other than the commands."""
    made = argparse.ArgumentParser(
        prog=this_program(), description="Every number of a GRPO update, live.", epilog=COMMANDS
    )
    made.add_argument("files", nargs="*", type=Path, help="runs (.grpo) or a session (.grposession) to open")
    made.add_argument("--reset-layout", action="store_true", help="start with every panel in its original place")
    made.add_argument("--safe-mode", action="store_true", help="restore neither layout nor run, use no packages")
    made.add_argument("--new", action="store_true", help="start with a new run instead of the last one")
    made.add_argument("--python", metavar="PATH", help="Python with torch, for language models on a GPU, this time")
    made.add_argument("--self-test", action="store_true", help="check that this copy is complete and correct")
    made.add_argument(
        "--problem-report",
        action="store_true",
        help="write a text file that you can send: versions and the last log lines, nothing of your runs",
    )
    made.add_argument("--version", action="store_true", help="show which build this is")
    made.add_argument("--language", help="language of the window")
    made.add_argument(
        "--out",
        type=Path,
        help=(
            "folder of the problem report (default: the current one), or of the pictures without a display "
            "(default: grpo-lab-run)"
        ),
    )
    for add_arguments in parts.rows("arguments"):
        add_arguments(made)
    return made


def shown_in_window(options: argparse.Namespace) -> str:
    """Return the reason why the requested options need a window, and what works without one.

    Empty if they need no window.
    """
    if getattr(options, "present", None):
        return f"A lesson is presented in a window. “{this_program()} film --lesson” makes a film of it without one."
    if options.files:
        path = options.files[0]
        other = {".grpo": "inspect", ".grposession": ""}.get(path.suffix, "diagnose")
        without = f" “{this_program()} {other} {path}” says without one what is in it." if other else ""
        return f"{path} is opened in a window.{without}"
    if getattr(options, "model", None) is not None:
        return f"A model is chosen in a window. “{this_program()} train --help” explains how to train without one."
    return ""
