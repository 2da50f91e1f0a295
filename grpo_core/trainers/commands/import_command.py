"""The command ``grpo-lab import``, which converts a run that another trainer recorded into a run file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from grpo_core.command_numbers import count
from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.text import plural, tr
from grpo_core.trainers.commands.columns_option import add_columns, progress_of
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.own_run import is_own


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add("import", tr("convert a run that another trainer recorded to a run file"), run)
    parser.add_argument("source", type=Path, help=tr("the file or folder of a recorded run"))
    parser.add_argument("out", type=Path, help=tr("the run file to write, such as run.grpo"))
    parser.add_argument(
        "--sweep",
        action="store_true",
        help=tr("read the folder of a sweep for TRL, and write all series of its runs to OUT as a table (CSV)"),
    )
    add_columns(parser)
    parser.add_argument("--last", type=count, metavar="N", help=tr("read only the last N updates"))


def run(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write a run file that only its owner can read, because it contains prompts and completions. With ``--sweep``,
    write the table of a sweep instead. ``poll`` raises after Ctrl-C.
    """
    if options.sweep:
        from grpo_core.trainers.commands.trl_sweep_command import collect

        return collect(options.source, options.out, lambda path: recorded(path, poll))
    if is_own(options.source):
        raise RunFileError(
            tr("This program trained the run in {name}; it is in a run file already.").format(name=options.source.name)
        )
    with recorded(options.source, poll, options.columns) as source:
        first = 1 if options.last is None else max(len(source) - options.last + 1, 1)
        left_out = convert(source, options.out, range(first, len(source) + 1), progress_of(poll))
        written = len(source) - first + 1 - len(left_out)
        print(
            plural(
                "{out} contains {count} update of {title}, {bytes:,} bytes.",
                "{out} contains {count} updates of {title}, {bytes:,} bytes.",
                written,
            ).format(out=options.out, count=written, title=source.title, bytes=options.out.stat().st_size)
        )
        for sentence in left_out:
            print(tr("Left out: {sentence}").format(sentence=sentence), file=sys.stderr)
        return 0
