"""Text output about a run for the terminal: a summary, an update as a table, an explained number."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grpo_core import step_table
from grpo_core.config import Settings, language_settings
from grpo_core.config.presets import presets_of
from grpo_core.errors import GrpoError
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.explain import Node, Quantity, explain
from grpo_core.foreign.formats import imported_runs
from grpo_core.lm.interface import engine_of
from grpo_core.metrics import METRICS, Metric
from grpo_core.record import Origin, Step
from grpo_core.runs.run_file import RunReader
from grpo_core.what_if.advice import tried


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
