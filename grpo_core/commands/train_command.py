"""The commands that train: a new run into a file, and a checkpoint of the language model."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_core import parts
from grpo_core.assignments import settings_from
from grpo_core.breakpoints import Breakpoint, Watch, breakpoint_from_text, nothing_before, sentence
from grpo_core.commands.command_line import FAILED, INTERRUPTED, count, interruptible
from grpo_core.config import Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError, RunFileError, SettingsError
from grpo_core.learners import NO_TORCH, Learner, learner
from grpo_core.lm.kept_prompts import left_out
from grpo_core.metrics import metrics
from grpo_core.runs.database import opened
from grpo_core.runs.files import locked, take_place
from grpo_core.runs.library import free_name
from grpo_core.runs.run_file import RunWriter
from grpo_core.text import without_stop


@dataclass(frozen=True, kw_only=True)
class Start:
    """Something else that a run can start from, which a part contributes.

    Attributes:
        add_options: adds options to the parser of ``train``.
        base: returns the default settings of the run that the options request, or None if they do not request this.
        resumed: returns a learner and a writer of a run file at the path that continue an earlier run, or None if the
            options do not request this. The third argument is called before every token and every pass; True cancels.
    """

    add_options: Callable[[argparse.ArgumentParser], None]
    base: Callable[[argparse.Namespace], Settings | None]
    resumed: Callable[[argparse.Namespace, Path, Callable[[], None]], tuple[Learner, RunWriter] | None]


def add_commands(commands: Any) -> None:
    """Add ``train`` to the commands of a parser, the result of ``add_subparsers``."""
    training = commands.add_parser("train", help="train a new run and save it to a file", description=train.__doc__)
    training.set_defaults(command=train)
    training.add_argument("--language", action="store_true", help="train the language model instead of the bandit")
    training.add_argument("--preset", metavar="NAME", help="an algorithm of the family; “presets” lists them")
    training.add_argument(
        "--prompts",
        metavar="FILE",
        help="train a language model on your own prompts: a CSV, JSON, JSONL or Parquet file",
    )
    training.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="change a setting, as in objective.beta=0.1; can be repeated; “settings” lists them",
    )
    training.add_argument(
        "--steps", type=count, default=200, metavar="N", help="number of updates to train (default 200)"
    )
    training.add_argument(
        "--stop-when",
        action="append",
        default=[],
        type=_breakpoint,
        metavar="CONDITION",
        help="stop when CONDITION becomes true, as in entropy<1.0 or max_prob>0.9, or when a series is first not 0, "
        "as in dead_groups!=0; can be repeated",
    )
    training.add_argument(
        "--seed", type=int, metavar="N", help=f"seed of all random numbers (default {Settings().seed})"
    )
    training.add_argument("--title", default="", help="the title shown in the window")
    training.add_argument("--out", required=True, metavar="FILE", help="the run file to write, such as run.grpo")
    training.add_argument("--python", metavar="PATH", help="train in the Python at PATH, which has torch")
    training.add_argument("--force", action="store_true", help="replace FILE if it exists")
    for start in parts.rows("starts"):
        start.add_options(training)


def train(options: argparse.Namespace) -> int:
    """Train a new run and store it in a file."""
    out = Path(options.out)
    with interruptible() as poll, _written_to(out, options.force) as path:
        starts: list[Start] = parts.rows("starts")
        resumed = next((found for start in starts if (found := start.resumed(options, path, poll))), None)
        if resumed is not None:
            training, made = resumed
        else:
            base = base_settings(options)
            if options.prompts and base is None:
                raise GrpoError("--prompts is for a language model; add --language or --model FOLDER.")
            settings = settings_from(options.preset, options.set, base)
            if options.seed is not None:
                settings = settings.replace({"seed": options.seed})
            training = learner(settings, poll=poll)
            if said := left_out(settings):
                print(said, file=sys.stderr)
            made = RunWriter.create(path, settings, title=options.title or out.stem)
        with made as writer:
            trouble = _trained(training, writer, options.steps, Watch(options.stop_when, nothing_before))
            writer.commit()
        if trouble is None and path != out:
            take_place(path, out)
    if trouble is not None:
        stays = "" if path == out else f"\n{out} is unchanged."
        print(f"{trouble}\n{path} contains {_counted(writer.committed)}.{stays}", file=sys.stderr)
        return INTERRUPTED if isinstance(trouble, Cancelled) else FAILED
    print(f"{out} contains {_counted(writer.committed)}.")
    return 0


def base_settings(options: argparse.Namespace) -> Settings | None:
    """Return the defaults of the requested kind of run, or None for those of the bandit."""
    starts: list[Start] = parts.rows("starts")
    chosen = next((settings for start in starts if (settings := start.base(options)) is not None), None)
    return chosen or (with_prompts(language_settings(), options) if options.language else None)


def with_prompts(settings: Settings, options: argparse.Namespace) -> Settings:
    """Return ``settings``, changed to train on the prompts that the options name, if any."""
    file = getattr(options, "prompts", None)
    return settings if file is None else settings.replace(settings.changes_for_prompts(file))


@contextlib.contextmanager
def _written_to(out: Path, force: bool) -> Iterator[Path]:
    """Yield the path to write a new run to: ``out`` or, if a run exists there, a new file next to it.

    The existing run is replaced only when the new one is finished.

    Raises:
        RunFileError: ``out`` exists and must not be replaced. Without ``force``, nothing is replaced; with it, only
            a run to which nothing is being written.
    """
    if not out.exists():
        yield out
        return
    if not force:
        raise RunFileError(f"{out} already exists; choose another name, or add --force to replace it.")
    opened(out).close()  # raises if it is not a run file, which must not be replaced
    with locked(out):
        yield free_name(out)


def _trained(training: Learner, writer: RunWriter, steps: int, watch: Watch) -> Exception | None:
    """Train up to ``steps`` updates with a progress bar, or to a breakpoint. Return the error that ended it, if any."""
    from tqdm import tqdm

    with tqdm(total=steps, unit="update", file=sys.stderr, dynamic_ncols=True) as bar:
        for _ in range(steps):
            try:
                step = next(training)
            except GrpoError as error:
                return error
            scalars = metrics(step)
            writer.append(step, scalars)
            if bar.update():
                bar.set_postfix_str(f"mean reward {scalars['reward_mean']:.3f}")
            if writer.full:
                return RunFileError(writer.full)
            if reached := watch.reached(scalars):
                bar.write(sentence(step.step, reached, scalars), file=sys.stderr)
                break
        return None


def _counted(updates: int) -> str:
    return "1 update" if updates == 1 else f"{updates} updates"


def _breakpoint(text: str) -> Breakpoint:
    try:
        return breakpoint_from_text(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(without_stop(str(error))) from None


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
        model = pretrained(recipe, out.with_name(out.name + ".partial"), poll=poll, progress=progress)
    save_model(model, out, {"recipe": f"{recipe.task}, steps {recipe.steps}, batch {recipe.batch}, seed {recipe.seed}"})
    print(f"{out} contains a model with {sum(weight.numel() for weight in model.parameters()):,} parameters.")
    return 0


def add_pretrain(add: Callable[..., argparse.ArgumentParser]) -> None:
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
