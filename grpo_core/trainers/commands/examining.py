"""The commands ``diagnose``, ``audit``, ``ask`` and ``import``, which read a whole recorded run."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from grpo_core.commands.command_line import count
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.foreign.recording import Source
from grpo_core.text import plural, tr
from grpo_core.trainers.audit import report
from grpo_core.trainers.audit.audit import audit
from grpo_core.trainers.conversion import convert
from grpo_core.trainers.health.diagnose import diagnose
from grpo_core.trainers.health.report import as_answer, as_html, as_json, as_text
from grpo_core.trainers.importers.row_columns import MEANINGS, parsed_columns
from grpo_core.trainers.own_run import NO_OTHER_TRAINER, is_own, opened
from grpo_core.trainers.run_paths import pasted_name

SOUND, FOUND = 0, 1
"""Exit codes: nothing serious was found, and the recorded numbers agree; or the opposite."""
PASTED = "-"
LONGEST = 64 << 20
"""Maximum number of characters of a pasted text."""


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add ``--columns``, which says what the columns of a table or log under names of the user's own mean."""
    parser.add_argument(
        "--columns",
        type=_columns,
        default="",
        metavar="NAME=MEANING,...",
        help=tr(
            "what columns under names of your own mean, such as my_col=reward,it=step; meanings: {known}, or the name "
            "under which a known trainer logs the number"
        ).format(known=", ".join(MEANINGS)),
    )


def _columns(text: str) -> str:
    try:
        parsed_columns(text)
    except GrpoError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _last(source: Source, options: argparse.Namespace, poll: Callable[[], None]) -> tuple[range, Callable[[], None]]:
    """Return the updates that ``--last`` asks for, by default all, counted from 1, and a function to call after each.

    It calls ``poll``, and shows on a terminal how many updates are done.
    """
    last = range(1 if options.last is None else max(len(source) - options.last + 1, 1), len(source) + 1)
    done = itertools.count(1)

    def progress() -> None:
        poll()
        number = next(done)
        if sys.stderr.isatty():
            print(f"\r{number}/{len(last)}", end="\n" if number == len(last) else "", file=sys.stderr, flush=True)

    return last, progress


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
        result = diagnose(source, *_last(source, options, poll))
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
        "audit", tr("recompute a run that another trainer recorded; exit with code 1 if a number departs"), run_audit
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
        result = audit(source, *_last(source, options, poll))
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
        result = diagnose(source, poll=poll)
        if not result.updates:
            raise RunFileError(tr("{name} contains no updates.").format(name=source.title))
        print(as_answer(source, result))
        return FOUND if result.serious else SOUND


def add_import(add: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add("import", tr("convert a run that another trainer recorded to a run file"), run_import)
    parser.add_argument("source", type=Path, help=tr("the file or folder of a recorded run"))
    parser.add_argument("out", type=Path, help=tr("the run file to write, such as run.grpo"))
    parser.add_argument(
        "--sweep",
        action="store_true",
        help=tr("read the folder of a sweep for TRL, and write all series of its runs to OUT as a table (CSV)"),
    )
    add_columns(parser)
    parser.add_argument("--last", type=count, metavar="N", help=tr("read only the last N updates"))


def run_import(options: argparse.Namespace, poll: Callable[[], None]) -> int:
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
        positions, progress = _last(source, options, poll)
        left_out = convert(source, options.out, positions, progress)
        written = len(positions) - len(left_out)
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
