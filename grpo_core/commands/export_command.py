"""The exports that need no window: a run as CSV, an update as a script."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.export.tables import FILES, checked, export_folder, export_step
from grpo_core.foreign.formats import opened_run

PICTURES = (".png", ".svg", ".pdf")
TOLD = 5
"""Maximum number of messages about unreadable updates. The rest are only counted."""


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``export``. ``add`` creates a parser from a name, a help text and a function."""
    parser = add("export", "write a run as CSV, or an update as a NumPy script", run_export)
    parser.add_argument("run", metavar="FILE", type=Path, help="a run file")
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="PATH",
        help="a folder for series.csv, settings.json and samples.csv, or a script such as step12.py",
    )
    parser.add_argument("--step", metavar="N", help="one update (default: the last for a script, all for a folder)")
    parser.add_argument("--steps", metavar="M:N", help="write updates M to N to samples.csv")
    parser.add_argument("--pass", dest="passed", metavar="N", help="one inner pass in the script (default: all)")
    parser.add_argument("--force", action="store_true", help="replace existing files")


def run_export(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write a run as a folder of CSV files, or one update as a script that needs only NumPy."""
    from tqdm import tqdm

    out: Path = options.out
    steps = span(options.step, options.steps)
    ending = out.suffix.lower()
    if ending == ".py":
        if options.steps is not None:
            raise GrpoError("A script contains one update; choose it with --step.")
        passed = None if options.passed is None else whole("--pass", options.passed) - 1
        with opened_run(options.run, poll) as reader:
            number = checked(steps or range(reader.last, reader.last + 1), reader)[0]
            export_step(reader, out, number, passed=passed, force=options.force)
        print(f"{out} recomputes update {number}; run it with: python {out}")
        return 0
    if ending in PICTURES:
        raise GrpoError(
            f"Pictures such as {out.name} are exported by the window's own command: "
            "python -m app export … --panel NAME."
        )
    if ending in (".csv", ".json", ".parquet"):
        raise GrpoError(
            f"A run is exported as a folder of CSV files, not as the file {out.name}; give the name of a folder."
        )
    if options.passed is not None:
        raise GrpoError("--pass applies only to scripts; a folder contains every pass.")
    if out.exists() and not out.is_dir():
        raise RunFileError(f"{out} is a file; give the name of a folder.")
    with tqdm(unit="update", file=sys.stderr, disable=None, leave=False) as bar:

        def counted() -> None:
            bar.update()
            poll()

        with opened_run(options.run, poll) as reader:
            updates, left_out = export_folder(reader, out, steps=steps, force=options.force, poll=counted)
    for sentence in left_out[:TOLD]:
        print(f"Left out: {sentence}", file=sys.stderr)
    if len(left_out) > TOLD:
        print(f"Left out: {len(left_out) - TOLD} more updates.", file=sys.stderr)
    print(f"{out} contains {', '.join(FILES)}; the samples of {updates} updates.")
    return 0


def span(step: Any, steps: Any, least: int = 1) -> range | None:
    """Return the updates that ``--step`` or ``--steps`` specifies, or None if neither is given.

    ``least`` is the smallest number of an update that is accepted.

    Raises:
        GrpoError: the option cannot be parsed, or both are given.
    """
    if step is not None and steps is not None:
        raise GrpoError("Give --step for one update or --steps for several, not both.")
    if step is not None:
        number = whole("--step", step, least)
        return range(number, number + 1)
    if steps is None:
        return None
    first, colon, last = str(steps).partition(":")
    if not colon:
        raise GrpoError(f"--steps cannot be “{steps}”: give the first and the last update, such as 1:50.")
    begin, end = whole("--steps", first, least), whole("--steps", last, least)
    if end < begin:
        raise GrpoError(f"--steps cannot be “{steps}”: give the first update before the last, as in {end}:{begin}.")
    return range(begin, end + 1)


def whole(name: str, text: str, least: int = 1) -> int:
    """Parse an integer of at least ``least``.

    Raises:
        GrpoError: ``text`` is not such a number.
    """
    if not (text.isascii() and text.isdecimal()) or int(text[:18]) < least:
        raise GrpoError(f"{name} cannot be “{text}”: it must be a whole number of at least {least}.")
    return int(text[:18])
