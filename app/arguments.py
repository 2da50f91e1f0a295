"""The command line of the window. It does not need Qt, so an installation without Qt can still print the help text."""

from __future__ import annotations

import argparse
from pathlib import Path

from app import parts

COMMANDS = "Without a window: grpo-lab train, inspect, race, sweep, export and more; see grpo-lab train --help."


def parser() -> argparse.ArgumentParser:
    """Return the parser of all arguments other than the commands."""
    made = argparse.ArgumentParser(prog="grpo-lab", description="Every number of a GRPO update, live.", epilog=COMMANDS)
    made.add_argument("files", nargs="*", type=Path, help="runs (.grpo) or a session (.grposession) to open")
    made.add_argument("--reset-layout", action="store_true", help="start with every panel in its original place")
    made.add_argument("--safe-mode", action="store_true", help="restore neither layout nor run")
    made.add_argument("--new", action="store_true", help="start with a new run instead of the last one")
    made.add_argument("--self-test", action="store_true", help="check that this copy is complete and correct")
    made.add_argument(
        "--problem-report",
        action="store_true",
        help="write a text file that you can send: versions and the last log lines, nothing of your runs",
    )
    made.add_argument("--version", action="store_true", help="show which build this is")
    made.add_argument("--language", help="language of the window; “pseudo” tries longer texts")
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
        return "A lesson is presented in a window. “grpo-lab film --lesson” makes a film of it without one."
    if options.files:
        path = options.files[0]
        other = {".grpo": "inspect", ".grposession": ""}.get(path.suffix, "diagnose")
        without = f" “grpo-lab {other} {path}” says without one what is in it." if other else ""
        return f"{path} is opened in a window.{without}"
    if getattr(options, "model", None) is not None:
        return "A model is chosen in a window. “grpo-lab train --help” explains how to train without one."
    return ""
