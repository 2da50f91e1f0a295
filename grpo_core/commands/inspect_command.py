"""Commands that print the content of a run file, the presets, or the settings, and that verify or recover a file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core import step_table
from grpo_core.assignments import described_settings
from grpo_core.commands.command_line import count
from grpo_core.config import PRESETS, Settings, language_settings
from grpo_core.config.presets import presets_of
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain import Node, Quantity, explain
from grpo_core.foreign.formats import imported_runs, opened_run
from grpo_core.lm.interface import engine_of
from grpo_core.metrics import METRICS, Metric
from grpo_core.record import Origin, Step
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.runs.salvage import rebuilt_run
from grpo_core.runs.verify import Part, verified


def add_commands(commands: Any) -> None:
    """Add ``inspect``, ``presets`` and ``settings`` to the commands of a parser, the result of ``add_subparsers``."""
    one = commands.add_parser("inspect", help="show the contents of a run file", description=inspect.__doc__)
    one.set_defaults(command=inspect)
    one.add_argument("run", metavar="FILE", help="a run file")
    one.add_argument("--step", type=count, metavar="N", help="the update to show (default: the last)")
    one.add_argument("--pass", dest="passed", type=count, metavar="N", help="its inner pass (default: the last)")
    one.add_argument(
        "--explain",
        metavar="NAME",
        help="the number to explain: advantage, ratio, kl, gradient, ... (default: the loss)",
    )
    for place in ("row", "token", "context", "action", "group"):
        one.add_argument(f"--{place}", type=count, metavar="N", help=f"the {place} of that number, counted from 1")
    one.add_argument(
        "--try",
        dest="tried",
        action="store_true",
        help="train a bandit's update and the next five again with a setting changed, and show what helps",
    )
    one.add_argument("--verbose", action="store_true", help="also show the digits of the number's second computation")
    presets = commands.add_parser("presets", help="list the presets", description=list_presets.__doc__)
    presets.set_defaults(command=list_presets)
    settings = commands.add_parser("settings", help="list the settings", description=list_settings.__doc__)
    settings.set_defaults(command=list_settings)
    settings.add_argument("--language", action="store_true", help="list those of the language model")


def inspect(options: argparse.Namespace) -> int:
    """Print a summary of a run, or one of its updates with the explanation of one of its numbers."""
    path = Path(options.run)
    with opened_run(path) as reader, contextlib.closing(Lineage(reader, path.parent)) as lineage:
        wanted = options.step is not None or options.passed is not None or options.explain is not None or options.tried
        if not wanted:
            print(summary(reader))
            return 0
        step = lineage.step(reader.last if options.step is None else options.step)
        passed = (step.passes if options.passed is None else options.passed) - 1
        if not 0 <= passed < step.passes:
            raise GrpoError(f"Update {step.step} has no pass {passed + 1}; it has passes 1 to {step.passes}.")
        places = {name: getattr(options, name) for name in ("row", "token", "context", "action", "group")}
        inner = {name: None if place is None else place - 1 for name, place in places.items()}
        quantity = Quantity(options.explain or "loss", passed=passed, **inner)
        text = explanation(step, quantity, verbose=options.verbose)
        print(step_text(step, passed, reader.origin), text, sep="\n\n")
        if options.tried:
            print("", *tried_advice(step, lineage.step), sep="\n")
    return 0


def list_presets(options: argparse.Namespace) -> int:
    """List the presets with what each reproduces and what it does not."""
    if options.instead is not None:
        return int(options.instead(options))
    for name, preset in PRESETS.items():
        print(f"{name}\n    {preset.source}" + (f"\n    Not covered: {preset.not_covered}" * bool(preset.not_covered)))
    return 0


def list_settings(options: argparse.Namespace) -> int:
    """List the settings with the effect, the default and the allowed values of each."""
    for path, rule, default in described_settings(language_settings() if options.language else None):
        if isinstance(default, tuple):
            default, allowed = ",".join(f"{number:g}" for number in default), "numbers separated by commas"
        else:
            allowed = rule.allowed
        print(f"{path}\n    {rule.help}\n    Default {'nothing' if default is None else default}; {allowed}")
    return 0


DAMAGED = 1
"""Exit code of ``verify`` if the file is damaged."""


def add_verifying(add: Callable[..., Any]) -> None:
    """Add ``verify`` and ``rebuild``."""
    one = add("verify", help="check a run file for damage", run=run_verify)
    one.add_argument("run", metavar="FILE", type=Path, help="a run file")
    one.add_argument("--json", action="store_true", help="print the findings as JSON")
    two = add("rebuild", help="recover what can be recovered from a damaged run file", run=run_rebuild)
    two.add_argument("run", metavar="FILE", type=Path, help="a run file")
    two.add_argument("out", metavar="OUT", type=Path, help="the run file to write")
    two.add_argument("--force", action="store_true", help="replace OUT if it exists")


def run_verify(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Check every row of a run file against its checksum, and decode every update. The exit
    code is 1 if it is damaged.
    """
    from tqdm import tqdm

    with tqdm(unit="update", file=sys.stderr, disable=None, leave=False) as bar:

        def counted(done: int, count: int) -> None:
            bar.total = count
            bar.update(done - bar.n)
            poll()

        parts = verified(options.run, counted)
    whole = not any(part.damaged for part in parts)
    if options.json:
        print(json.dumps({"whole": whole, "parts": [dataclasses.asdict(part) for part in parts]}, indent=1))
    else:
        print("\n".join(map(_told, parts)))
        print(f"{options.run.name} is {'whole' if whole else 'not whole'}.")
    return 0 if whole else DAMAGED


def _told(part: Part) -> str:
    """Return a description of a part of a run file and of its damage, in one or more lines."""
    unchecked = f", {part.unchecked:,} without a checksum" if part.unchecked else ""
    lines = [f"{'damaged' if part.damaged else 'ok':8}{part.what}: {part.count:,}{unchecked}"]
    return "\n        ".join([*lines, *part.damaged])


def run_rebuild(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write what can be recovered of a run file to another file: its updates, and curves that are recomputed from
    them.
    """
    if options.out.exists() and not options.force:
        raise RunFileError(f"{options.out} already exists; choose another name, or add --force to replace it.")
    last, again = rebuilt_run(options.run, options.out, poll)
    with RunReader.open(options.run) as reader:
        lost, of_bandit = reader.last - last, not (reader.meta.settings.is_language or reader.meta.settings.is_recorded)
    print(f"{options.out} contains the updates up to {last:,}.")
    if again:
        print(
            f"{again:,} of them were damaged. They were recomputed from the update before and are identical bit "
            "for bit: they lead to the checksums that were written."
        )
    if lost > 0:
        more = " Rebuilt on the kind of processor that trained the run, the file may contain more." if of_bandit else ""
        print(
            f"The {lost:,} updates after {last:,} are left out because the first of them is damaged.{more}",
            file=sys.stderr,
        )
    return 0


def summary(reader: RunReader) -> str:
    meta = reader.meta
    settings = reader.settings_at(reader.last + 1)
    trained_here = not settings.is_recorded
    lines = [
        ("Run", meta.title or reader.path.stem),
        (
            "Created" if trained_here else "Imported",
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(meta.created)) + f", version {meta.version}",
        ),
        ("Updates", _updates(reader)),
    ]
    if not trained_here:
        lines.append(("Trained by", settings.recorded.source or "unknown"))
    if trained_here or settings.recorded.names_loss:
        lines += [("Preset", _presets(settings)), ("Settings", _differences(settings))]
    if trained_here:
        lines.append(("Seed", str(settings.seed)))
    if settings.is_language and reader.last:
        lines.append(("Computed", f"with {engine_of(reader.step(reader.last))}"))
    if meta.parent:
        lines.insert(2, ("Branch of", f"run {meta.parent[0]} after update {meta.parent[1]}"))
    for first, _ in reader.settings_changes()[1:]:
        lines.append(("Changed", f"settings at update {first}"))
    if not meta.ended:
        lines.append(("Note", "The run is still being written, or was not closed; everything that was saved is here."))
    if reader.newer:
        lines.append(
            ("Note", "This file was written by a newer version of GRPO Lab; it can be read but not continued.")
        )
    text = _aligned(lines)
    if reader.last:
        listed = {name: metric for name, metric in METRICS.items() if settings.is_language or not metric.language}
        if not trained_here:
            listed = {name: imported_runs().metric(name) for name in reader.series_names}
        shown = [
            (metric.title, _metric(name, metric, _latest(reader, name, metric), reader.origin))
            for name, metric in listed.items()
        ]
        text += f"\n\nAfter update {reader.last}\n" + _aligned(shown, "  ")
    return text


def step_text(step: Step, passed: int, origin: Origin) -> str:
    """Return an update as a table of pass ``passed``, counted from 0, and of its groups."""
    columns = step_table.columns(step)
    cells = [
        [_cell(value, column) for value, column in zip(row.cells, columns, strict=True)]
        for row in step_table.rows(EvaluatedStep(step), passed, origin=origin)
    ]
    groups = [
        f"Group {g.group + 1} ({g.prompt}): mean reward {g.mean:.4f}, std {_number(g.std)}, {g.size} scored"
        + _of_signal(g, by_step=step.settings.objective.credits_steps)
        for g in step_table.groups(step, origin=origin)
    ]
    trainers = "" if step.label is None else f" (step {step.label} of the trainer)"
    heading = f"Update {step.step}{trainers}, pass {passed + 1} of {step.passes}"
    return "\n".join([heading, _table([column.title for column in columns], cells), *groups])


def explanation(step: Step, quantity: Quantity, *, verbose: bool = False) -> str:
    """Return the explanation of a number: its formula, the formula with values, its inputs, and whether a recomputation
    agrees.

    Args:
        verbose: whether to include the digits of that comparison.

    Raises:
        GrpoError: the update has no such number.
    """
    node = _explained(step, quantity)
    lines = [f"{node.title} = {_number(node.value, 10)}{' ' + node.unit if node.unit else ''}"]
    if node.latex:
        lines.append(f"  {node.symbol} = {node.latex}")
        lines.append(f"  {node.latex_values}")
        lines.append(f"  Computed twice: {node.verdict}")
        if verbose:
            lines.append(f"  {node.comparison}")
    if node.note:
        lines.append(f"  {node.note}")
    if node.source:
        lines.append(f"  {node.source}")
    if node.inputs:
        lines.append("  From:")
        listed = [_explained(step, each) for each in node.inputs]
        lines.append(_aligned([(each.title, _number(each.value, 10)) for each in listed], "    "))
    return "\n".join(lines)


def tried_advice(step: Step, earlier: Callable[[int], Step]) -> list[str]:
    """Return a line on each change of a setting that improves an unhealthy number of a bandit's update, or why none."""
    from grpo_core.what_if.advice import tried  # which only this option needs

    if step.settings.is_recorded or step.settings.is_language:
        return ["Only a bandit's updates can be trained again at once."]
    before = earlier(step.step - 1) if step.step > 1 else None
    sentences = [sentence for _, sentence in tried(step, before)]
    return sentences or ["No number of this update is unhealthy, or no change that was tried helps."]


def _of_signal(group: step_table.GroupRow, *, by_step: bool) -> str:
    """Return a note on a group whose advantages are all 0 or whose rewards are all equal. Empty for other groups.

    ``by_step``: whether rewards of steps are compared, not those of completions.
    """
    equal = "every step is paid the same" if by_step else "all rewards are equal"
    if group.silent:
        return f"; {equal}, no signal" if group.dead and group.size else "; every advantage is 0, no signal"
    return f"; {equal}, yet the advantages are not 0" if group.dead else ""


def _explained(step: Step, quantity: Quantity) -> Node:
    try:
        return explain(step, quantity)
    except (KeyError, IndexError):
        raise GrpoError(
            f"Update {step.step} has no number “{quantity.name}” at that place; use the name of a column of the "
            "table or of a metric, such as advantage, ratio, kl or loss."
        ) from None


def _presets(settings: Settings) -> str:
    first, *others = presets_of(settings) or ("none, a mixture",)
    return f"{first} (the same switches as {', '.join(others)})" if others else first


def _latest(reader: RunReader, name: str, metric: Metric) -> float:
    """Return the last value of a series, or the last measured one if it is not measured at every update."""
    values = reader.series(name, reader.last - 1)
    if (metric.language or reader.meta.settings.is_recorded) and not math.isfinite(values[-1]):
        values = reader.series(name)
        values = values[np.isfinite(values)]
    return float(values[-1]) if len(values) else math.nan


def _updates(reader: RunReader) -> str:
    if reader.last < reader.first:
        return f"none of its own, {reader.last} before the branch point" if reader.meta.parent else "none"
    own = "" if reader.first == 1 else f", {reader.first} to {reader.last} in this file"
    return f"{reader.last}{own}"


def _differences(settings: Settings) -> str:
    changed = settings.differences(language_settings() if settings.is_language else Settings())
    named = {path: value for path, (value, _) in changed.items() if path not in ("seed", "task")}
    return ", ".join(f"{path}={value}" for path, value in named.items()) or "all defaults"


def _metric(name: str, metric: Metric, value: float, origin: Origin) -> str:
    if name == "best_action" and 0 <= value < len(origin.vocabulary):
        return origin.vocabulary[int(value)]
    unit = metric.unit
    return f"{value:.{metric.decimals}f}{' ' + unit if unit else ''}" if math.isfinite(value) else "not recorded"


def _cell(value: Any, column: step_table.Column) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if column.decimals is None else _number(value, column.decimals)


def _number(value: float, decimals: int = 4) -> str:
    """Format a number with fixed decimals, or with an exponent if fixed decimals would round it away. −0 becomes 0."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else str(value)
    if value and not 0.5 * 10.0**-decimals <= abs(value) < 1e9:
        return f"{value:.2e}"
    return f"{value + 0.0:.{decimals}f}"


def _table(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Align text in columns, flush right."""
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in (titles, *cells)
    )


def _aligned(pairs: Sequence[tuple[str, str]], indent: str = "") -> str:
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{indent}{name.ljust(width)}  {text}" for name, text in pairs)
