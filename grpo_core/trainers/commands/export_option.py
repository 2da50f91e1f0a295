"""The option of ``export`` that writes the trained model of a run."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from grpo_core.commands.command_line import Instead
from grpo_core.commands.export_command import whole
from grpo_core.errors import GrpoError
from grpo_core.trainers.checkpoint import CHECKPOINT, save_checkpoint
from grpo_core.trainers.model_export import KINDS, export_model


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        choices=(*KINDS, CHECKPOINT),
        action=Instead,
        run=write_model,
        help="if the run trains a model from a folder: write to the new folder --out, with a model card, its adapter "
        "for peft, the entire model with merged weights, or a checkpoint to continue from",
    )


def write_model(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write the trained model of a run, and print a sentence that says what was written. Return 0."""
    if options.steps is not None or options.passed is not None:
        raise GrpoError("A model is exported as it was after one update; choose the update with --step.")
    if options.force:
        raise GrpoError(
            "--force does not replace a model folder; choose a name that is not in use, or delete the folder yourself."
        )
    number = None if options.step is None else whole("--step", options.step)
    if options.model == CHECKPOINT:
        print(save_checkpoint(options.run, options.out, number=number, poll=poll))
    else:
        print(export_model(options.run, options.out, options.model, number=number, poll=poll))
    return 0
