"""The command ``grpo-lab audit``, which recomputes a recorded run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from grpo_core.command_numbers import count
from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.text import tr
from grpo_core.trainers.audit.audit import audit
from grpo_core.trainers.audit.report import as_json, as_text, why_not
from grpo_core.trainers.commands.columns_option import add_columns, progress_of
from grpo_core.trainers.own_run import NO_OTHER_TRAINER, is_own

AGREES, DEPARTS = 0, 1


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    parser = add(
        "audit", tr("recompute a run that another trainer recorded; exit with code 1 if the loss departs"), run
    )
    parser.add_argument("run", type=Path, help=tr("the folder of a recorded run"))
    parser.add_argument("--json", action="store_true", help=tr("print the result as JSON"))
    parser.add_argument("--last", type=count, metavar="N", help=tr("read only the last N updates"))
    add_columns(parser)


def run(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Print the audit. Return 0 if everything agrees, or 1 if something deviates. ``poll`` raises after Ctrl-C."""
    if is_own(options.run):
        raise RunFileError(NO_OTHER_TRAINER)
    with recorded(options.run, poll, options.columns) as source:
        if not source.has_losses:
            raise RunFileError(why_not(source))
        first = 1 if options.last is None else max(len(source) - options.last + 1, 1)
        result = audit(source, range(first, len(source) + 1), progress_of(poll))
        print(json.dumps(as_json(source, result), indent=1) if options.json else as_text(source, result))
        return AGREES if result.agrees else DEPARTS
