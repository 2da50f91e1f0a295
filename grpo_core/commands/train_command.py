"""The commands that train: into a new run file, or by writing a script for the same training with TRL."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from grpo_core.assignments import settings_from
from grpo_core.breakpoints import Breakpoint, Watch, breakpoint_from_text, nothing_before, sentence
from grpo_core.command_numbers import count
from grpo_core.commands.command_line import FAILED, INTERRUPTED
from grpo_core.commands.interruptible import interruptible
from grpo_core.config import Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError, RunFileError, SettingsError
from grpo_core.foreign.readers import Readers
from grpo_core.learners import Learner, learner
from grpo_core.lm.word_tasks import ABOUT
from grpo_core.metrics import metrics
from grpo_core.runs.database import opened
from grpo_core.runs.files import lock, release, take_place
from grpo_core.runs.library import free_name, remove
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.trainers.checkpoint import take_up
from grpo_core.trainers.hf.memory import need


def add_commands(commands: Any) -> None:
    """Add ``train`` and ``trl-script`` to the commands of a parser, the result of ``add_subparsers``."""
    training = commands.add_parser("train", help="train a new run and save it to a file", description=train.__doc__)
    training.set_defaults(command=train)
    training.add_argument("--language", action="store_true", help="train the language model instead of the bandit")
    training.add_argument(
        "--model",
        metavar="FOLDER",
        help="train your own model: a folder with config.json, safetensors and tokenizer.json, or a GGUF file",
    )
    training.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="continue from a checkpoint of your own model, with its settings (“export --model checkpoint” writes one)",
    )
    training.add_argument("--preset", metavar="NAME", help="an algorithm of the family; “presets” lists them")
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
    training.add_argument("--force", action="store_true", help="replace FILE if it exists")

    script = commands.add_parser(
        "trl-script", help="write a TRL training script with these settings", description=trl_script.__doc__
    )
    script.set_defaults(command=trl_script, language=False)
    script.add_argument("--model", metavar="FOLDER", required=True, help="the folder of your own model")
    script.add_argument("--preset", metavar="NAME", help="an algorithm of the family; “presets” lists them")
    script.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="change a setting")
    script.add_argument("--out", required=True, metavar="FILE", type=Path, help="the script to write, such as train.py")
    script.add_argument("--force", action="store_true", help="replace FILE if it exists")


def train(options: argparse.Namespace) -> int:
    """Train a new run and store it in a file."""
    out = Path(options.out)
    with interruptible() as cancelled, _written_to(out, options.force) as path:
        if options.checkpoint is not None:
            training, made = _taken_up(options, path, cancelled)
        else:
            settings = settings_from(options.preset, options.set, _base(options))
            if options.seed is not None:
                settings = settings.replace({"seed": options.seed})
            training = learner(settings, cancelled=cancelled)
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


def _taken_up(options: argparse.Namespace, path: Path, cancelled: Callable[[], bool]) -> tuple[Learner, RunWriter]:
    """Return a learner that continues from a checkpoint, and its run file at ``path``. Nothing is left behind on
    failure.
    """
    given = ("model", "preset", "set", "seed", "title", "language")
    if unwanted := next((name for name in given if getattr(options, name)), None):
        raise GrpoError(f"--checkpoint continues with the checkpoint's own settings; leave out --{unwanted}.")
    print(take_up(Path(options.checkpoint), path).sentence, file=sys.stderr)
    try:
        with RunReader.open(path) as reader:
            last = resume_point(reader)
            assert last is not None
            settings = reader.settings_at(last.step + 1)
        return learner(settings, resume=last, cancelled=cancelled), RunWriter.open(path)
    except BaseException:
        remove(path)
        raise


def trl_script(options: argparse.Namespace) -> int:
    """Write a script that trains with TRL what “train --model” trains here. Settings that TRL does not support are
    rejected.
    """
    from grpo_core.trainers.hf.trl_script import script

    out: Path = options.out
    if out.exists() and not options.force:
        raise GrpoError(f"{out} already exists; choose another name, or add --force to replace it.")
    out.write_text(script(settings_from(options.preset, options.set, _base(options))), encoding="utf-8")
    print(f"{out} trains with TRL 1.16; run it with: accelerate launch {out}")
    return 0


def _base(options: argparse.Namespace) -> Settings | None:
    """Return the defaults of the requested kind of run. For a model from a folder, print a description of it and its
    memory need.
    """
    if options.model is None:
        return language_settings() if options.language else None
    with contextlib.closing(Readers(own_process=True)) as readers:
        files, ignored = readers.model(Path(options.model))
    settings = files.settings
    wanted = settings_from(options.preset, options.set, settings)
    about = ABOUT[wanted.language.problem]
    sentences = [files.description, need(files, wanted).sentence, files.reading, ignored]
    print(*filter(None, [*sentences, about.watch, about.gamed]), sep="\n", file=sys.stderr)
    return settings


@contextlib.contextmanager
def _written_to(out: Path, force: bool) -> Iterator[Path]:
    """Yield the path to write a new run to: ``out`` or, if a run exists there, a new file next to it.

    The existing run is replaced only when the new one is finished.

    Raises:
        RunFileError: ``out`` exists and must not be replaced. Without ``force``, nothing is replaced; with it, only
        a run
            to which nothing is being written.
    """
    if not out.exists():
        yield out
        return
    if not force:
        raise RunFileError(f"{out} already exists; choose another name, or add --force to replace it.")
    opened(out)[0].close()  # raises if it is not a run file, which must not be replaced
    file_lock = lock(out)
    try:
        yield free_name(out)
    finally:
        release(file_lock)


def _trained(training: Learner, writer: RunWriter, steps: int, watch: Watch) -> Exception | None:
    """Train up to ``steps`` updates with a progress bar, or to a breakpoint. Return the error that ended it, if any."""
    from tqdm import tqdm

    with tqdm(total=steps, unit="update", file=sys.stderr, dynamic_ncols=True) as bar:
        for _ in range(steps):
            try:
                step = next(training)
            except GrpoError as error:
                return Cancelled("Stopped on request.") if isinstance(error, Cancelled) else error
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
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
