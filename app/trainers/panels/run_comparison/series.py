"""Series of recorded runs over the trainer's own steps, recomputed and recorded, for one run or two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import Qt

from app.plotting.axis import Scale
from app.plotting.line_data import Line, LinePicture
from app.trainers.recorded_run import RecordedRun
from grpo_core.config import flat
from grpo_core.config.value_names import worded
from grpo_core.text import plural, tr
from grpo_core.trainers.recorded_series import OURS, TRAINER, logged_as, metric

PARTS_AT = 1e-6
"""Maximum relative difference at which two runs count as equal."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A quantity that can be selected.

    Attributes:
        names: names of the series for this quantity, this program's first.
    """

    title: str
    names: tuple[str, ...]


def choices(run: RecordedRun) -> list[Choice]:
    """Return the recorded quantities of a run.

    This program's quantities come first, paired with the trainer's, followed by those that only the trainer reports.
    """
    known = [name for name, series in run.series.items() if np.isfinite(series.values).any()]
    found, taken = [], set[str]()
    for name, rule in OURS.items():
        beside = logged_as(name, known)
        mine = [] if name not in known or any(_same(run, name, other) for other in beside) else [name]
        names = (*mine, *beside)
        if names:
            found.append(Choice(title=rule.title, names=names))
            taken |= set(names)
    rest = sorted(name for name in known if name.startswith(TRAINER) and name not in taken)
    return [*found, *(Choice(title=metric(name).title, names=(name,)) for name in rest)]


def _same(run: RecordedRun, name: str, other: str) -> bool:
    """Return whether a series has the values of another, because only the trainer's log has them."""
    return not run.source.has_losses and bool(
        np.array_equal(run.series[name].values, run.series[other].values, equal_nan=True)
    )


def picture(run: RecordedRun, other: RecordedRun | None, choice: Choice) -> LinePicture:
    """Return a chart of a quantity over the trainer's steps, with the lines of ``other`` behind those of ``run``."""
    lines = [line for name in choice.names if (line := _line(run, name, "")) is not None]
    if other is not None:
        lines += [line for name in choice.names if (line := _line(other, name, other.title)) is not None]
    first = metric(choice.names[0])
    return LinePicture(
        x=Scale(label=tr("step"), whole=True),
        y=Scale(unit=first.unit, low=first.low, high=first.high),
        lines=tuple(lines),
        subject=choice,
    )


def _line(run: RecordedRun, name: str, title: str) -> Line | None:
    series = run.series.get(name)
    if series is None or not np.isfinite(series.values).any():
        return None
    rule, values = metric(name), series.values
    called = tr("trainer") if name.startswith(TRAINER) else tr("ours")
    return Line(
        name=f"{run.id} {name}",
        meaning=rule.colour,
        label=title if title else called,
        x=_labels(run),
        title=f"{rule.title} · {title}" if title else rule.title,
        y=np.array(values),
        style=Qt.PenStyle.DashLine if name.startswith(TRAINER) else None,
        unit=rule.unit,
        marker="o" if len(values) < 3 else "",
        strength=0.5 if title else 1.0,
        z=5.0 if title else 10.0,
    )


def _labels(run: RecordedRun) -> np.ndarray:
    """Return the trainer's step numbers of the updates in the series, computed or not, (n,)."""
    return np.array(run.source.labels[: len(run.series["reward_mean"])], np.float64)


PLACES = ("output_dir", "logging_dir", "run_name", "hub_model_id", "resume_from_checkpoint")
"""Trainer settings for the location and name of a run, which always differ between runs."""


def settings_that_differ(run: RecordedRun, other: RecordedRun) -> list[list[object]]:
    """Return (setting, value in ``run``, value in ``other``) for all settings that differ.

    A setting that is known for only one run is left out.
    """
    here, there = _settings(run), _settings(other)
    both = (name for name in here if name in there)
    return [[name, worded(here[name]), worded(there[name])] for name in both if here[name] != there[name]]


def _settings(run: RecordedRun) -> dict[str, object]:
    """Return the objective and the learner in this program's terms, and the trainer's own settings, by name."""
    settings = run.origin.settings
    known = {name: value for name, value in flat(settings).items() if name.startswith(("objective.", "learner."))}
    theirs = settings.recorded.trainer_values
    return known | {name: value for name, value in theirs.items() if name not in PLACES}


def parting(run: RecordedRun, other: RecordedRun) -> str:
    """Return a sentence about the first step at which the runs differ, and the quantity that differs."""
    here, there = _by_label(run), _by_label(other)
    shared = sorted(here.keys() & there.keys())
    if not shared:
        return tr("The runs have no step in common.")
    for label in shared:
        for name in OURS:
            one, two = (
                values[name].values[at] for values, at in ((run.series, here[label]), (other.series, there[label]))
            )
            if np.isfinite(one) and np.isfinite(two) and abs(one - two) > PARTS_AT * max(abs(one), abs(two)):
                return tr("They part at step {label}: {title} is {one:.6g} here and {two:.6g} there.").format(
                    label=label, title=OURS[name].title, one=one, two=two
                )
    return plural(
        "The one step in common is the same.", "All {count} steps in common are the same.", len(shared)
    ).format(count=len(shared))


def _by_label(run: RecordedRun) -> dict[int, int]:
    return {label: place for place, label in enumerate(run.source.labels[: run.computed])}
