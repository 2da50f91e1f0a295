"""The command ``grpo-lab watch``, which examines a run while its trainer writes it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from grpo_core.errors import Cancelled, GrpoError, RunFileError, shortened
from grpo_core.text import plural, tr
from grpo_core.trainers.commands.examining import FOUND, SOUND, add_columns
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.own_run import opened
from grpo_core.trainers.watching import Event, Watch

PATIENCE = 60.0
"""Time limit for a user's command, in seconds."""
BETWEEN = 0.1
"""Interval in seconds between two checks for Ctrl-C."""


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    help = tr("watch a run while it is written, and report when a finding begins; press Ctrl-C to end")
    parser = add("watch", help, run)
    parser.add_argument("run", type=Path, help=tr("the file or folder of the run; it does not have to exist yet"))
    add_columns(parser)
    parser.add_argument(
        "--every", type=_seconds, default=10.0, metavar="SECONDS", help=tr("time between two checks (default 10)")
    )
    parser.add_argument(
        "--idle", type=_seconds, metavar="SECONDS", help=tr("end when nothing has been written for this long")
    )
    parser.add_argument(
        "--stop-on",
        type=Grade,
        choices=list(Grade),
        help=tr("end with exit code 1 when a finding has this grade or worse"),
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help=tr("also write each event to FILE as a line of JSON"))
    parser.add_argument(
        "--on-finding",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="COMMAND",
        help=tr(
            "run COMMAND, with the arguments after it, for each finding that begins; it must be the last option. The "
            "command runs without a shell and receives the finding as JSON on standard input"
        ),
    )


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.0 < value < 1e6:
        raise ValueError(text)
    return value


def run(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Watch until Ctrl-C, or until the requested event. Return 1 if there was a finding at least as serious as the
    grade given by ``--stop-on``, by default serious, or 0 otherwise.
    """
    watch: Watch | None = None
    try:
        while watch is None or not watch.ended:
            try:
                _await(options, poll)
                with opened(options.run, poll, options.columns) as source:
                    watch = watch or Watch(source)
                    watch.reopen(source)
                    _follow(watch, options, poll)
            except RunFileError as error:  # its reader has ended, or the run was moved
                if watch is None:
                    raise
                print(error, file=sys.stderr, flush=True)
                watch.ended = _is_idle(watch, options)
                if not watch.ended:
                    pause(options.every, poll)
    except Cancelled:
        if watch is None:
            raise
    print(_summary(watch), flush=True)
    least = options.stop_on or Grade.SERIOUS
    return FOUND if watch.worst is not None and watch.worst.rank <= least.rank else SOUND


def _follow(watch: Watch, options: argparse.Namespace, poll: Callable[[], None]) -> None:
    """Check the run at intervals until the requested condition occurs.

    Raises:
        Cancelled: Ctrl-C was pressed.
        RunFileError: the run can no longer be read.
        GrpoError: the log cannot be written.
    """
    while not watch.ended:
        begun = [grade for event in watch.look() if (grade := _told(event, options)) is not None]
        stopped = options.stop_on is not None and any(grade.rank <= options.stop_on.rank for grade in begun)
        watch.ended = stopped or _is_idle(watch, options)
        if not watch.ended:
            pause(options.every, poll)


def _is_idle(watch: Watch, options: argparse.Namespace) -> bool:
    return options.idle is not None and time.monotonic() - watch.read_at >= options.idle


def _await(options: argparse.Namespace, poll: Callable[[], None]) -> None:
    """Wait until there is a run to read.

    Raises:
        RunFileError: the run cannot be read, and nothing was written for the time given by ``--idle``.
    """
    begun, said = time.monotonic(), ""
    while True:
        try:
            with opened(options.run, poll, options.columns) as source:
                if len(source):
                    return
                why = tr("{name} contains no updates yet.").format(name=options.run)
        except RunFileError as error:
            why = str(error)
        if options.idle is not None and time.monotonic() - begun >= options.idle:
            raise RunFileError(why)
        if why != said:
            print(tr("Waiting: {why}").format(why=why), file=sys.stderr, flush=True)
            said = why
        pause(options.every, poll)


def pause(seconds: float, poll: Callable[[], None]) -> None:
    """Wait ``seconds`` between two checks. ``poll`` raises after Ctrl-C."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        poll()
        time.sleep(min(BETWEEN, left))


def _told(event: Event, options: argparse.Namespace) -> Grade | None:
    """Report an event to all requested outputs. Return its grade if it is the start of a condition."""
    print(event.line, flush=True)
    values = json.dumps(event.as_json(str(options.run)), ensure_ascii=False)
    if options.log is not None:
        try:
            with options.log.open("a", encoding="utf-8") as file:
                file.write(values + "\n")
        except OSError as error:
            raise GrpoError(
                tr("{name} could not be written: {why}").format(name=options.log, why=error.strerror or error)
            ) from None
    if event.ended:
        return None
    if options.on_finding:
        problem = _called(options.on_finding, values)
        if problem:
            print(problem, file=sys.stderr, flush=True)
    return event.grade


def _called(command: Sequence[str], values: str) -> str:
    """Call the user's command. Return an error message if it could not be started, took too long or failed, otherwise
    an empty string.
    """
    try:
        done = subprocess.run(
            list(command), input=values.encode("utf-8"), timeout=PATIENCE, check=False, capture_output=True
        )
    except OSError as error:
        return tr("“{command}” could not be started: {why}").format(command=command[0], why=error.strerror or error)
    except subprocess.TimeoutExpired:
        return tr("“{command}” took more than {seconds:.0f} seconds and was stopped.").format(
            command=command[0], seconds=PATIENCE
        )
    if done.returncode == 0:
        return ""
    said = shortened(done.stderr.decode("utf-8", "replace").strip())
    return tr("“{command}” ended with exit code {code}. {said}").format(
        command=command[0], code=done.returncode, said=said
    )


def _summary(watch: Watch) -> str:
    diagnosis = watch.diagnosis
    if diagnosis is None:
        return tr("Nothing was read.")
    return plural(
        "{updates} update was watched; findings at the end: {count}.",
        "{updates} updates were watched; findings at the end: {count}.",
        diagnosis.updates,
    ).format(updates=diagnosis.updates, count=watch.found)
