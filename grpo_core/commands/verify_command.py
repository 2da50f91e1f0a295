"""The commands that verify a run file and recover a damaged one."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grpo_core.errors import RunFileError
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.salvage import rebuilt_run
from grpo_core.runs.verify import Part, verified

DAMAGED = 1
"""Exit code of ``verify`` if the file is damaged."""


def add_commands(add: Callable[..., Any]) -> None:
    """Add ``verify`` and ``rebuild``."""
    one = add("verify", help="check a run file for damage", run=run_verify)
    one.add_argument("run", metavar="FILE", type=Path, help="a run file")
    one.add_argument("--json", action="store_true", help="print the findings as JSON")
    two = add("rebuild", help="recover what can be recovered from a damaged run file", run=run_rebuild)
    two.add_argument("run", metavar="FILE", type=Path, help="a run file")
    two.add_argument("out", metavar="OUT", type=Path, help="the run file to write")
    two.add_argument("--force", action="store_true", help="replace OUT if it exists")


def run_verify(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Check every row of a run file against its checksum, and decode every update. The exit
    code is 1 if it is damaged.
    """
    from tqdm import tqdm

    with tqdm(unit="update", file=sys.stderr, disable=None, leave=False) as bar:

        def counted(done: int, count: int) -> None:
            bar.total = count
            bar.update(done - bar.n)
            poll()

        parts = verified(options.run, counted)
    whole = not any(part.damaged for part in parts)
    if options.json:
        print(json.dumps({"whole": whole, "parts": [dataclasses.asdict(part) for part in parts]}, indent=1))
    else:
        print("\n".join(map(_told, parts)))
        print(f"{options.run.name} is {'whole' if whole else 'not whole'}.")
    return 0 if whole else DAMAGED


def _told(part: Part) -> str:
    """Return a description of a part of a run file and of its damage, in one or more lines."""
    unchecked = f", {part.unchecked:,} without a checksum" if part.unchecked else ""
    lines = [f"{'damaged' if part.damaged else 'ok':8}{part.what}: {part.count:,}{unchecked}"]
    return "\n        ".join([*lines, *part.damaged])


def run_rebuild(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write what can be recovered of a run file to another file: its updates, and curves that are recomputed from
    them.
    """
    if options.out.exists() and not options.force:
        raise RunFileError(f"{options.out} already exists; choose another name, or add --force to replace it.")
    last, again = rebuilt_run(options.run, options.out, poll)
    with RunReader.open(options.run) as reader:
        lost, of_bandit = reader.last - last, not (reader.meta.settings.is_language or reader.meta.settings.is_recorded)
    print(f"{options.out} contains the updates up to {last:,}.")
    if again:
        print(
            f"{again:,} of them were damaged. They were recomputed from the update before and are identical bit "
            "for bit: they lead to the checksums that were written."
        )
    if lost > 0:
        more = " Rebuilt on the kind of processor that trained the run, the file may contain more." if of_bandit else ""
        print(
            f"The {lost:,} updates after {last:,} are left out because the first of them is damaged.{more}",
            file=sys.stderr,
        )
    return 0
