"""Options of ``train`` that start a run from a model in a folder or from a checkpoint, and of ``export``, which write
that model.

Also the command ``trl-script``, which writes a script for the same training with TRL.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

from grpo_core.assignments import settings_from
from grpo_core.commands.command_line import Instead
from grpo_core.commands.export_command import whole
from grpo_core.commands.train_command import base_settings, with_prompts
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.foreign.readers import Readers
from grpo_core.learners import Learner, learner
from grpo_core.lm.word_tasks import ABOUT
from grpo_core.runs.library import remove
from grpo_core.runs.run_file import RunReader, RunWriter, resume_point
from grpo_core.trainers.hf.memory import need
from grpo_core.trainers.hf.reading import read_model
from grpo_core.trainers.model_export import CHECKPOINT, KINDS, export_model, save_checkpoint, take_up


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        metavar="FOLDER",
        help="train your own model: a folder with config.json, safetensors and tokenizer.json, or a GGUF file",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="continue from a checkpoint of your own model, with its settings (“export --model checkpoint” writes one)",
    )


def add_script_command(add: Callable[..., argparse.ArgumentParser]) -> None:
    script = add("trl-script", "write a TRL training script with these settings", write_script)
    script.set_defaults(language=False)
    script.add_argument("--model", metavar="FOLDER", required=True, help="the folder of your own model")
    script.add_argument("--preset", metavar="NAME", help="an algorithm of the family; “presets” lists them")
    script.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="change a setting")
    script.add_argument("--out", required=True, metavar="FILE", type=Path, help="the script to write, such as train.py")
    script.add_argument("--force", action="store_true", help="replace FILE if it exists")


def write_script(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write a script that trains with TRL what “train --model” trains here. Settings that TRL does not support are
    rejected.
    """
    from grpo_core.trainers.hf.trl_script import script

    out: Path = options.out
    if out.exists() and not options.force:
        raise GrpoError(f"{out} already exists; choose another name, or add --force to replace it.")
    out.write_text(script(settings_from(options.preset, options.set, base_settings(options))), encoding="utf-8")
    print(f"{out} trains with TRL 1.16; run it with: accelerate launch {out}")
    return 0


def base(options: argparse.Namespace) -> Settings | None:
    """Return the settings for a model from a folder, or None if none is requested. Prints a description of the model
    and its memory need.
    """
    if options.model is None:
        return None
    with contextlib.closing(Readers(own_process=True)) as readers:
        files, ignored = read_model(readers, Path(options.model))
    settings = with_prompts(files.settings, options)
    wanted = settings_from(options.preset, options.set, settings)
    about = ABOUT[wanted.language.problem]
    sentences = [files.description, need(files, wanted).sentence, files.reading, ignored]
    print(*filter(None, [*sentences, about.watch, about.gamed]), sep="\n", file=sys.stderr)
    return settings


def resumed(options: argparse.Namespace, path: Path, poll: Callable[[], None]) -> tuple[Learner, RunWriter] | None:
    """Return a learner that continues from a checkpoint, and its run file at ``path``, or None if no checkpoint is
    requested. Nothing is left behind on failure.
    """
    if options.checkpoint is None:
        return None
    given = ("model", "preset", "set", "seed", "title", "language", "prompts")
    if unwanted := next((name for name in given if getattr(options, name)), None):
        raise GrpoError(f"--checkpoint continues with the checkpoint's own settings; leave out --{unwanted}.")
    print(take_up(Path(options.checkpoint), path), file=sys.stderr)
    try:
        with RunReader.open(path) as reader:
            last = resume_point(reader)
            assert last is not None
            settings = reader.settings_at(last.step + 1)
        return learner(settings, resume=last, poll=poll), RunWriter.open(path)
    except BaseException:
        remove(path)
        raise


def add_export_option(parser: argparse.ArgumentParser) -> None:
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
