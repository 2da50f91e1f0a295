"""Commands that print the content of a run file, the presets, or the settings, and that verify or recover a file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grpo_core.assignments import described_settings
from grpo_core.commands.command_line import count
from grpo_core.config import PRESETS, language_settings
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.formats import opened_run
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.salvage import rebuilt_run
from grpo_core.runs.verify import Part, verified


def add_commands(commands: Any) -> None:
    """Add ``inspect``, ``presets`` and ``settings`` to the commands of a parser, the result of ``add_subparsers``."""
    one = commands.add_parser("inspect", help="show the contents of a run file", description=inspect.__doc__)
    one.set_defaults(command=inspect)
    one.add_argument("run", metavar="FILE", help="a run file")
    one.add_argument("--step", type=count, metavar="N", help="the update to show (default: the last)")
    one.add_argument("--pass", dest="passed", type=count, metavar="N", help="its inner pass (default: the last)")
    one.add_argument(
        "--explain",
        metavar="NAME",
        help="the number to explain: advantage, ratio, kl, gradient, ... (default: the loss)",
    )
    for place in ("row", "token", "context", "action", "group"):
        one.add_argument(f"--{place}", type=count, metavar="N", help=f"the {place} of that number, counted from 1")
    one.add_argument(
        "--try",
        dest="tried",
        action="store_true",
        help="train a bandit's update and the next five again with a setting changed, and show what helps",
    )
    one.add_argument("--verbose", action="store_true", help="also show the digits of the number's second computation")
    presets = commands.add_parser("presets", help="list the presets", description=list_presets.__doc__)
    presets.set_defaults(command=list_presets)
    settings = commands.add_parser("settings", help="list the settings", description=list_settings.__doc__)
    settings.set_defaults(command=list_settings)
    settings.add_argument("--language", action="store_true", help="list those of the language model")


def inspect(options: argparse.Namespace) -> int:
    """Print a summary of a run, or one of its updates with the explanation of one of its numbers."""
    from grpo_core.commands.inspection import explanation, step_text, summary, tried_advice

    path = Path(options.run)
    with opened_run(path) as reader, contextlib.closing(Lineage(reader, path.parent)) as lineage:
        wanted = options.step is not None or options.passed is not None or options.explain is not None or options.tried
        if not wanted:
            print(summary(reader))
            return 0
        step = lineage.step(reader.last if options.step is None else options.step)
        passed = (step.passes if options.passed is None else options.passed) - 1
        if not 0 <= passed < step.passes:
            raise GrpoError(f"Update {step.step} has no pass {passed + 1}; it has passes 1 to {step.passes}.")
        from grpo_core.explain import Quantity

        places = {name: getattr(options, name) for name in ("row", "token", "context", "action", "group")}
        inner = {name: None if place is None else place - 1 for name, place in places.items()}
        quantity = Quantity(options.explain or "loss", passed=passed, **inner)
        text = explanation(step, quantity, verbose=options.verbose)
        print(step_text(step, passed, reader.origin), text, sep="\n\n")
        if options.tried:
            print("", *tried_advice(step, lineage.step), sep="\n")
    return 0


def list_presets(options: argparse.Namespace) -> int:
    """List the presets with what each reproduces and what it does not."""
    if options.instead is not None:
        return int(options.instead(options))
    for name, preset in PRESETS.items():
        print(f"{name}\n    {preset.source}" + (f"\n    Not covered: {preset.not_covered}" * bool(preset.not_covered)))
    return 0


def list_settings(options: argparse.Namespace) -> int:
    """List the settings with the effect, the default and the allowed values of each."""
    for path, rule, default in described_settings(language_settings() if options.language else None):
        if isinstance(default, tuple):
            default, allowed = ",".join(f"{number:g}" for number in default), "numbers separated by commas"
        else:
            allowed = rule.allowed
        print(f"{path}\n    {rule.help}\n    Default {'nothing' if default is None else default}; {allowed}")
    return 0


DAMAGED = 1
"""Exit code of ``verify`` if the file is damaged."""


def add_verifying(add: Callable[..., Any]) -> None:
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
