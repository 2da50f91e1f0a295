"""The command ``grpo-lab diagnose``, which diagnoses a recorded run."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

from grpo_core.command_numbers import count
from grpo_core.errors import RunFileError
from grpo_core.text import tr
from grpo_core.trainers.commands.columns_option import add_columns, progress_of
from grpo_core.trainers.health.diagnose import diagnose
from grpo_core.trainers.health.report import as_html, as_json, as_text
from grpo_core.trainers.own_run import opened

NOTHING_SERIOUS, SERIOUS = 0, 1


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    help = tr(
        "report what is wrong with a run of GRPO Lab or of another trainer; exit with code 1 if a finding is serious"
    )
    parser = add("diagnose", help, run)
    parser.add_argument("run", type=Path, help=tr("the file or folder of a run"))
    add_columns(parser)
    parser.add_argument("--json", action="store_true", help=tr("print the result as JSON"))
    parser.add_argument("--html", type=Path, metavar="FILE", help=tr("also write the result to FILE as an HTML page"))
    parser.add_argument("--last", type=count, metavar="N", help=tr("read only the last N updates"))


def run(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Print the diagnosis. Return 1 if something serious was found, or 0 otherwise. ``poll`` raises after Ctrl-C.

    Raises:
        RunFileError: there is no readable update.
    """
    with opened(options.run, poll, options.columns) as source:
        first = 1 if options.last is None else max(len(source) - options.last + 1, 1)
        result = diagnose(source, range(first, len(source) + 1), progress_of(poll))
        if not result.updates:
            raise RunFileError(
                result.unreadable[0]
                if result.unreadable
                else tr("{name} contains no updates.").format(name=source.title)
            )
        if options.html is not None:
            _write_for_owner(options.html, as_html(source, result))
        print(json.dumps(as_json(source, result), indent=1) if options.json else as_text(source, result))
        return SERIOUS if result.serious else NOTHING_SERIOUS


def _write_for_owner(path: Path, text: str) -> None:
    """Write a page that only its owner can read, because it quotes a user's text."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
