"""The command ``grpo-lab ask``, which answers what a person would paste into an issue."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from grpo_core.errors import GrpoError, RunFileError
from grpo_core.text import tr
from grpo_core.trainers.commands.columns_option import add_columns
from grpo_core.trainers.commands.diagnose_command import NOTHING_SERIOUS, SERIOUS
from grpo_core.trainers.health.diagnose import diagnose
from grpo_core.trainers.health.report import as_answer
from grpo_core.trainers.own_run import opened
from grpo_core.trainers.run_paths import pasted_name

PASTED = "-"
LONGEST = 64 << 20
"""Maximum number of characters of a pasted text."""


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    help = tr("say what breaks first in a run, what was found, and which file would show more; paste a log, or name it")
    parser = add("ask", help, run)
    parser.add_argument("run", help=tr("the file or folder of a run, or - for a log on standard input"))
    add_columns(parser)


def run(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Print the answer. Return 1 if something serious was found, or 0 otherwise. ``poll`` raises after Ctrl-C.

    Raises:
        GrpoError: nothing was pasted, or there is no readable update.
    """
    if options.run != PASTED:
        return _answer(Path(options.run), options, poll)
    text = sys.stdin.read(LONGEST)
    if not text.strip():
        raise GrpoError(tr("Nothing was pasted."))
    with tempfile.TemporaryDirectory(prefix="grpo-lab-ask-") as folder:
        path = Path(folder, pasted_name(text))
        path.write_text(text, encoding="utf-8", errors="replace")
        return _answer(path, options, poll)


def _answer(path: Path, options: argparse.Namespace, poll: Callable[[], None]) -> int:
    with opened(path, poll, options.columns) as source:
        result = diagnose(source, progress=lambda done, count: poll())
        if not result.updates:
            raise RunFileError(tr("{name} contains no updates.").format(name=source.title))
        print(as_answer(source, result))
        return SERIOUS if result.serious else NOTHING_SERIOUS
