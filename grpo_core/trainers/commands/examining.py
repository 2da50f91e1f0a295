"""The commands ``diagnose``, ``audit`` and ``ask``, which examine a recorded run."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from grpo_core.commands.command_line import count
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.text import tr
from grpo_core.trainers.audit import report
from grpo_core.trainers.audit.audit import audit
from grpo_core.trainers.commands.columns_option import add_columns, progress_of
from grpo_core.trainers.health.diagnose import diagnose
from grpo_core.trainers.health.report import as_answer, as_html, as_json, as_text
from grpo_core.trainers.own_run import NO_OTHER_TRAINER, is_own, opened
from grpo_core.trainers.run_paths import pasted_name

SOUND, FOUND = 0, 1
"""Exit codes: nothing serious was found, and the loss agrees; or the opposite."""
PASTED = "-"
LONGEST = 64 << 20
"""Maximum number of characters of a pasted text."""


def add_diagnose(add: Callable[..., argparse.ArgumentParser]) -> None:
    help = tr(
        "report what is wrong with a run of GRPO Lab or of another trainer; exit with code 1 if a finding is serious"
    )
    parser = add("diagnose", help, run_diagnose)
    parser.add_argument("run", type=Path, help=tr("the file or folder of a run"))
    add_columns(parser)
    parser.add_argument("--json", action="store_true", help=tr("print the result as JSON"))
    parser.add_argument("--html", type=Path, metavar="FILE", help=tr("also write the result to FILE as an HTML page"))
    parser.add_argument("--last", type=count, metavar="N", help=tr("read only the last N updates"))


def run_diagnose(options: argparse.Namespace, poll: Callable[[], None]) -> int:
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
        return FOUND if result.serious else SOUND


def _write_for_owner(path: Path, text: str) -> None:
    """Write a page that only its owner can read, because it quotes a user's text."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def add_audit(add: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add(
        "audit", tr("recompute a run that another trainer recorded; exit with code 1 if the loss departs"), run_audit
    )
    parser.add_argument("run", type=Path, help=tr("the folder of a recorded run"))
    parser.add_argument("--json", action="store_true", help=tr("print the result as JSON"))
    parser.add_argument("--last", type=count, metavar="N", help=tr("read only the last N updates"))
    add_columns(parser)


def run_audit(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Print the audit. Return 0 if everything agrees, or 1 if something deviates. ``poll`` raises after Ctrl-C."""
    if is_own(options.run):
        raise RunFileError(NO_OTHER_TRAINER)
    with recorded(options.run, poll, options.columns) as source:
        if not source.has_losses:
            raise RunFileError(report.why_not(source))
        first = 1 if options.last is None else max(len(source) - options.last + 1, 1)
        result = audit(source, range(first, len(source) + 1), progress_of(poll))
        print(json.dumps(report.as_json(source, result), indent=1) if options.json else report.as_text(source, result))
        return SOUND if result.agrees else FOUND


def add_ask(add: Callable[..., argparse.ArgumentParser]) -> None:
    help = tr("say what breaks first in a run, what was found, and which file would show more; paste a log, or name it")
    parser = add("ask", help, run_ask)
    parser.add_argument("run", help=tr("the file or folder of a run, or - for a log on standard input"))
    add_columns(parser)


def run_ask(options: argparse.Namespace, poll: Callable[[], None]) -> int:
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
        return FOUND if result.serious else SOUND
