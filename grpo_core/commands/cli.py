"""The command line, which trains a run into a file and inspects run files, without a window and without Qt."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from grpo_core import __version__, parts, plugins
from grpo_core.commands.command_line import (
    FAILED,
    INTERRUPTED,
    Parser,
    Run,
    add_options_of_parts,
    interruptible,
    plain_output,
)
from grpo_core.commands.experiment_commands import add_commands as add_experiments
from grpo_core.commands.export_command import add_command as add_export
from grpo_core.commands.inspect_command import add_commands as add_inspecting
from grpo_core.commands.inspect_command import add_verifying
from grpo_core.commands.train_command import add_commands as add_training
from grpo_core.commands.train_command import add_pretrain
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.host.other_python import run_command

_ENDS = (".", "!", "?", "…", "”", "。", "！", "？")


def main(arguments: Sequence[str] | None = None, *, here: bool = False) -> int:
    """Run one command. Return its exit code, or 2 after an error reported in one message, or 130 after Ctrl-C.

    With ``here``, the option ``--python`` is ignored, because this is the Python that it names.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a character shows a question mark
            stream.reconfigure(errors="replace")
    with plain_output():
        return _run(sys.argv[1:] if arguments is None else arguments, here)


def _run(arguments: Sequence[str], here: bool) -> int:
    for sentence in plugins.refusals():
        print(sentence, file=sys.stderr)
    options = _parser().parse_args(arguments)
    try:
        if not here and getattr(options, "python", None):
            return run_command(options.python, arguments)
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except GrpoError as error:
        said = str(error)
        print(said if said.endswith(_ENDS) else f"{said}.", file=sys.stderr)  # foreign messages may lack the stop
        return INTERRUPTED if isinstance(error, Cancelled) else FAILED
    except BrokenPipeError:  # the reader of the pipe has closed it
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 0
    except OSError as error:
        print(f"{error.filename or 'A file'} cannot be used: {error.strerror}.", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED


def names() -> frozenset[str]:
    """Return the names of all commands. This imports no part, whose texts need a language."""
    commands: Any = Parser().add_subparsers()
    _add_own_commands(commands)
    return frozenset(commands.choices) | parts.command_names()


def parsers() -> Mapping[str, argparse.ArgumentParser]:
    commands: Any = Parser().add_subparsers()
    _add_commands(commands)
    return dict(commands.choices)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="grpo-lab" if getattr(sys, "frozen", False) else "python -m grpo_core",
        description="Train and inspect GRPO runs from the command line.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    _add_commands(parser.add_subparsers(required=True, metavar="COMMAND"))
    return parser


def _add_commands(commands: Any) -> None:
    _add_own_commands(commands)
    for name, parser in commands.choices.items():
        add_options_of_parts(name, parser)
    for added in parts.rows("commands"):
        for add_command in added:
            add_command(partial(_interruptible_command, commands))


def _add_own_commands(commands: Any) -> None:
    add_training(commands)
    add_inspecting(commands)
    add = partial(_interruptible_command, commands)
    add_pretrain(add)
    add_experiments(add)
    add_export(add)
    add_verifying(add)


def _interruptible_command(commands: Any, name: str, help: str, run: Run) -> argparse.ArgumentParser:
    """Add a command that polls for Ctrl-C."""

    def interruptible_run(options: argparse.Namespace) -> int:
        with interruptible() as poll:
            return (getattr(options, "instead", None) or run)(options, poll)

    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=run.__doc__)
    parser.set_defaults(command=interruptible_run)
    return parser
