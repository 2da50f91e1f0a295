"""The command line: train a run into a file and look into one, without a window and without Qt."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from grpo_core import __version__
from grpo_core.assignments import described_settings, settings_from
from grpo_core.audit.command import add_command as add_audit
from grpo_core.breakpoints import Breakpoint, Watch, breakpoint_from_text, nothing_before, sentence
from grpo_core.command_numbers import count
from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.errors import Cancelled, GrpoError, RunFileError, SettingsError
from grpo_core.experiments.command import add_commands as add_experiments
from grpo_core.health.command import add_command as add_diagnose
from grpo_core.hf.folder import look
from grpo_core.hf.generation import ignored_sentence
from grpo_core.hf.memory import need
from grpo_core.learners import Learner, learner
from grpo_core.lm.words import ABOUT
from grpo_core.metrics import metrics
from grpo_core.pretrain_command import add_command as add_pretrain
from grpo_core.runs.database import opened
from grpo_core.runs.export_command import add_command as add_export
from grpo_core.runs.files import lock, release, take_place
from grpo_core.runs.import_command import add_command as add_import
from grpo_core.runs.library import Lineage, free_name
from grpo_core.runs.run_file import RunReader, RunWriter

FAILED, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, 2 after an error told in one sentence, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    try:
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except GrpoError as error:
        print(error, file=sys.stderr)
        return INTERRUPTED if isinstance(error, Cancelled) else FAILED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 0
    except OSError as error:
        print(f"{error.filename or 'A file'} cannot be used: {error.strerror}.", file=sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
    return FAILED


def train(options: argparse.Namespace) -> int:
    """Trains a new run and leaves it in a file."""
    out = Path(options.out)
    settings = settings_from(options.preset, options.set, _base(options))
    if options.seed is not None:
        settings = settings.replace({"seed": options.seed})
    with _interruptible() as cancelled, _written_to(out, options.force) as path:
        training = learner(settings, cancelled=cancelled)
        with RunWriter.create(path, settings, title=options.title or out.stem) as writer:
            trouble = _trained(training, writer, options.steps, Watch(options.stop_when, nothing_before))
            writer.commit()
        if trouble is None and path != out:
            take_place(path, out)
    if trouble is not None:
        stays = "" if path == out else f"\n{out} stays as it was."
        print(f"{trouble}\n{path} holds {_counted(writer.committed)}.{stays}", file=sys.stderr)
        return INTERRUPTED if isinstance(trouble, Cancelled) else FAILED
    print(f"{out} holds {_counted(writer.committed)}.")
    return 0


def _base(options: argparse.Namespace) -> Settings | None:
    """The defaults of the kind of run that is asked for; of a model from a folder it is said what it is and needs."""
    if options.model is None:
        return language_settings() if options.language else None
    files = look(Path(options.model))
    settings = files.settings
    wanted = settings_from(options.preset, options.set, settings)
    about = ABOUT[wanted.language.problem]
    sentences = [files.description, need(files, wanted).sentence, ignored_sentence(files.whole)]
    print(*filter(None, [*sentences, about.watch, about.gamed]), sep="\n", file=sys.stderr)
    return settings


@contextlib.contextmanager
def _written_to(out: Path, force: bool) -> Iterator[Path]:
    """Where a new run is written: ``out``, or a file beside the run there, which only a finished run replaces.

    Raises:
        RunFileError: something is there that may not be replaced: without ``force`` anything, with it all but a run
            that nobody writes.
    """
    if not out.exists():
        yield out
        return
    if not force:
        raise RunFileError(f"{out} exists already; choose another name, or add --force to replace it.")
    opened(out)[0].close()  # a sentence where it is no run file: such a one is not ours to replace
    held = lock(out)
    try:
        yield free_name(out)
    finally:
        release(held)


def inspect(options: argparse.Namespace) -> int:
    """Prints what a run is, one of its updates, and an explanation of one of its numbers."""
    from grpo_core.inspection import explanation, step_text, summary

    path = Path(options.run)
    with RunReader.open(path) as reader, contextlib.closing(Lineage(reader, path.parent)) as lineage:
        wanted = options.step is not None or options.passed is not None or options.explain is not None
        if not wanted:
            print(summary(reader))
            return 0
        step = lineage.step(reader.last if options.step is None else options.step)
        passed = (step.passes if options.passed is None else options.passed) - 1
        if not 0 <= passed < step.passes:
            raise GrpoError(f"Update {step.step} has no pass {passed + 1}; it has passes 1 to {step.passes}.")
        from grpo_core.explain import Quantity

        places = {name: getattr(options, name) for name in ("row", "token", "context", "action", "group")}
        inner = {name: None if place is None else place - 1 for name, place in places.items()}
        quantity = Quantity(options.explain or "loss", passed=passed, **inner)
        text = explanation(step, quantity, verbose=options.verbose)
        print(step_text(step, passed, reader.origin), text, sep="\n\n")
    return 0


def list_presets(options: argparse.Namespace) -> int:
    """Lists the presets: what each reproduces, and what of it is not reproduced."""
    for name, preset in PRESETS.items():
        print(f"{name}\n    {preset.source}" + (f"\n    Not covered: {preset.not_covered}" * bool(preset.not_covered)))
    return 0


def list_settings(options: argparse.Namespace) -> int:
    """Lists the settings: what each does, its default, and what is allowed."""
    for path, rule, default in described_settings(language_settings() if options.language else None):
        if isinstance(default, tuple):
            default, allowed = ",".join(f"{number:g}" for number in default), "numbers with commas between them"
        else:
            allowed = rule.allowed
        print(f"{path}\n    {rule.help}\n    Default {'nothing' if default is None else default}; {allowed}")
    return 0


def _trained(training: Learner, writer: RunWriter, steps: int, watch: Watch) -> Exception | None:
    """Trains up to ``steps`` updates with a progress bar, or to a breakpoint; what went wrong, if anything did."""
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


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Inside the block the first Ctrl-C only turns the yielded function true; a second one acts as usual."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


def _counted(updates: int) -> str:
    return "1 update" if updates == 1 else f"{updates} updates"


class _Parser(argparse.ArgumentParser):
    """Complains in one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(FAILED, f"{message[:1].upper()}{message[1:]}; {self.prog} --help says what is possible.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="grpo-lab" if getattr(sys, "frozen", False) else "python -m grpo_core",
        description="Train and inspect GRPO runs without a window.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("train", help="train a new run into a file", description=train.__doc__)
    one.set_defaults(command=train)
    one.add_argument("--language", action="store_true", help="the language model instead of the bandit")
    one.add_argument(
        "--model", metavar="FOLDER", help="a model of your own: a folder with config.json, safetensors and "
        "tokenizer.json, or a GGUF file",
    )  # fmt: skip
    one.add_argument("--preset", metavar="NAME", help="a member of the family; “presets” lists them")
    one.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE",
        help="change a setting, as in objective.beta=0.1; may be repeated; “settings” lists them",
    )  # fmt: skip
    one.add_argument("--steps", type=count, default=200, metavar="N", help="updates to train (default 200)")
    one.add_argument(
        "--stop-when", action="append", default=[], type=_breakpoint, metavar="CONDITION",
        help="stop where it becomes true, as in entropy<1.0, max_prob>0.9 or, for the first one, dead_groups!=0; "
        "may be repeated",
    )  # fmt: skip
    one.add_argument("--seed", type=int, metavar="N", help=f"fixes every random number (default {Settings().seed})")
    one.add_argument("--title", default="", help="the name shown in the window")
    one.add_argument("--out", required=True, metavar="FILE", help="the run file to write, such as run.grpo")
    one.add_argument("--force", action="store_true", help="replace the file if it exists")

    two = commands.add_parser("inspect", help="look into a run file", description=inspect.__doc__)
    two.set_defaults(command=inspect)
    two.add_argument("run", metavar="FILE", help="a run file")
    two.add_argument("--step", type=count, metavar="N", help="the update to show (default the last)")
    two.add_argument("--pass", dest="passed", type=count, metavar="N", help="its inner pass (default the last)")
    two.add_argument(
        "--explain",
        metavar="NAME",
        help="a number to explain: advantage, ratio, kl, gradient, ... (by default the loss)",
    )
    for place in ("row", "token", "context", "action", "group"):
        two.add_argument(f"--{place}", type=count, metavar="N", help=f"the {place} of that number, counted from 1")
    two.add_argument("--verbose", action="store_true", help="the digits of that number's second computation")

    add = partial(_interruptible_command, commands)
    add_pretrain(add)
    add_experiments(add)
    add_export(add)
    add_import(add)
    add_audit(add)
    add_diagnose(add)
    for name, command, help in (
        ("presets", list_presets, "list the presets"),
        ("settings", list_settings, "list the settings"),
    ):
        listed = commands.add_parser(name, help=help, description=command.__doc__)
        listed.set_defaults(command=command)
        if name == "settings":
            listed.add_argument("--language", action="store_true", help="those of the language model")
    six = commands.add_parser(
        "trl-script", help="write the settings as a script for TRL", description=trl_script.__doc__
    )
    six.set_defaults(command=trl_script, language=False)
    six.add_argument("--model", metavar="FOLDER", required=True, help="a model of your own")
    six.add_argument("--preset", metavar="NAME", help="a member of the family; “presets” lists them")
    six.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="change a setting")
    six.add_argument("--out", required=True, metavar="FILE", type=Path, help="the script to write, such as train.py")
    six.add_argument("--force", action="store_true", help="replace the file if it exists")
    hidden = commands.add_parser("match")  # without a help text it is not listed
    hidden.set_defaults(command=match)
    return parser


def trl_script(options: argparse.Namespace) -> int:
    """Writes a script that trains with TRL what “train --model” trains here; what TRL cannot do is refused."""
    from grpo_core.hf.trl_script import script

    out: Path = options.out
    if out.exists() and not options.force:
        raise GrpoError(f"{out} exists already; choose another name, or add --force to replace it.")
    out.write_text(script(settings_from(options.preset, options.set, _base(options))), encoding="utf-8")
    print(f"{out} trains with TRL 1.16; run it with: accelerate launch {out}")
    return 0


def match(options: argparse.Namespace) -> int:
    """Matches regular expressions for another process of this program (``lm/patterns.py``)."""
    from grpo_core.lm.pattern_process import serve

    serve()
    return 0


def _interruptible_command(
    commands: Any, name: str, help: str, run: Callable[[argparse.Namespace, Callable[[], None]], int]
) -> argparse.ArgumentParser:
    """A command that asks now and then whether Ctrl-C was pressed."""

    def interruptible(options: argparse.Namespace) -> int:
        with _interruptible() as cancelled:

            def poll() -> None:
                if cancelled():
                    raise Cancelled("Stopped on request.")

            return run(options, poll)

    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=run.__doc__)
    parser.set_defaults(command=interruptible)
    return parser


def _breakpoint(text: str) -> Breakpoint:
    try:
        return breakpoint_from_text(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from None
