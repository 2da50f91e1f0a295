"""The command ``pretrain``, which trains a checkpoint of the language model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from grpo_core.assignments import settings_from
from grpo_core.commands.command_line import count
from grpo_core.config import language_settings
from grpo_core.errors import GrpoError, given_up
from grpo_core.learners import NO_TORCH


def run_pretrain(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Train a checkpoint for the language model. If interrupted, a second call continues from there."""
    try:
        from grpo_core.lm.checkpoint import is_checkpoint, save_model
        from grpo_core.lm.pretraining import Recipe, pretrained
    except ImportError:
        raise GrpoError(NO_TORCH) from None
    from tqdm import tqdm

    out = Path(options.out)
    if out.exists() and not options.force:
        raise GrpoError(f"{out} already exists; choose another name, or add --force to replace it.")
    if out.exists() and not is_checkpoint(out):
        raise GrpoError(f"{out} is not a checkpoint, so it was not replaced; choose another name.")
    size = settings_from(None, options.set, language_settings()).model
    given = {name: getattr(options, name) for name in ("steps", "batch", "seed", "threads")}
    recipe = Recipe(size=size, task=options.task, **{name: value for name, value in given.items() if value is not None})
    bar = tqdm(total=recipe.steps, unit="step", file=sys.stderr, dynamic_ncols=True)

    def progress(done: int, loss: float) -> None:
        bar.update(done - bar.n)
        bar.set_postfix_str(f"loss {loss:.3f} nats per token", refresh=False)

    with bar:
        model = pretrained(recipe, out.with_name(out.name + ".partial"), cancelled=given_up(poll), progress=progress)
    save_model(model, out, {"recipe": f"{recipe.task}, steps {recipe.steps}, batch {recipe.batch}, seed {recipe.seed}"})
    print(f"{out} contains a model with {sum(weight.numel() for weight in model.parameters()):,} parameters.")
    return 0


def add_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``pretrain``. ``add`` creates a parser from a name, a help text and a function."""
    parser = add("pretrain", "pretrain a checkpoint for the language model", run_pretrain)
    parser.add_argument("--out", required=True, metavar="FILE", help="the checkpoint, such as mine.safetensors")
    parser.add_argument(
        "--task",
        choices=("arithmetic", "calculator"),
        default="arithmetic",
        help="what the model learns (default: arithmetic)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="set the model's size, as in model.width=128",
    )
    for name, meaning in (
        ("steps", "optimizer steps (default 2500)"),
        ("batch", "workings per step (default 256)"),
        ("seed", "seed of the weights and the data (default 1)"),
        ("threads", "number of CPU threads (default 2)"),
    ):
        parser.add_argument(f"--{name}", type=count, metavar="N", help=meaning)
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
