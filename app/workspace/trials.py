"""Trials: earlier runs shown next to the current one for comparison. All data comes from their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from app.clock import now
from app.workspace.onsets import Onsets, rises_past
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.config.presets import nearest_preset
from grpo_core.config.settings import described_at
from grpo_core.errors import RunFileError
from grpo_core.parsing import is_number
from grpo_core.text import listed, tr

MOST = 5
"""Maximum number of runs compared with the current one: the newest open runs."""
HALF = 0.5
"""Probability above which an action is likelier than all others together."""
LOOK_SECONDS = 1.0
"""Interval in seconds at which to check that the files still exist, and to redraw a growing trial."""
NAMED = 2
"""Maximum number of settings that are named individually. If there are more, only their number is given."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """An earlier run as shown next to the current one.

    Attributes:
        differs: the settings in which it differs from the current run, except the seed, for example "G 4".
        past_half: its first update after which the largest probability, averaged over the visited contexts, exceeds
            0.5; None if there is none, and for a language model, whose tokens are that likely from the start.
        action: name of the likeliest action after that update if the run has a single context; otherwise empty.
        policy: probabilities (C, A) after its last update; None for a language model, or if they are not recorded.
        shown: whether its lines and outlines are drawn; a run of another task is drawn only at the user's request.
    """

    run: RunHandle
    updates: int
    differs: tuple[str, ...]
    past_half: int | None
    action: str
    policy: np.ndarray | None
    shown: bool

    @property
    def seed(self) -> int:
        return self.run.origin.settings.seed

    @property
    def name(self) -> str:
        if not self.differs:
            return tr("seed {seed}").format(seed=self.seed)
        return tr("seed {seed}, {differences}").format(seed=self.seed, differences=listed(self.differs))


class Trials:
    """The earlier runs that are compared with the current one.

    Attributes:
        wanted: whether trials are shown at all; they are not shown next to a lesson, which has its own runs.
        changed: called when the user shows or hides a trial.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.wanted = True
        self.changed = changed
        self._hidden: set[str] = set()
        self._wanted: set[str] = set()
        """Ids of runs of another task that the user has chosen to show."""
        self._halves: WeakKeyDictionary[RunHandle, Onsets] = WeakKeyDictionary()
        self._stamp: tuple[object, ...] = ()
        self._looked = -np.inf
        self._present: tuple[Trial, ...] = ()

    def of(self, run: RunHandle, runs: Sequence[RunHandle], *, growing: bool) -> tuple[Trial, ...]:
        """Return the trials for ``run``, oldest first. The same tuple is returned until one of them changes.

        Args:
            runs: the open runs, newest last.
            growing: whether updates are being computed; a growing trial is then updated once per second.
        """
        here = run.changes[-1][1]
        others = [other for other in runs if _compares(other, run)][-MOST:] if self.wanted else []
        who = (run.id, here, tuple(other.id for other in others), frozenset(self._hidden), frozenset(self._wanted))
        stamp = (*who, tuple(other.version for other in others))
        moment = now()
        unchanged = stamp == self._stamp or (growing and who == self._stamp[:-1])
        if unchanged and moment - self._looked < LOOK_SECONDS:
            return self._present
        there = [other for other in others if os.access(other.path, os.F_OK)]
        if stamp != self._stamp or there != [trial.run for trial in self._present]:
            self._present = tuple(self._trial(other, here) for other in there)
        self._stamp, self._looked = stamp, moment
        return self._present

    def past_half(self, run: RunHandle) -> int | None:
        """Return the first update of ``run`` after which its largest probability exceeds one half, or None."""
        if run.origin.settings.is_language:
            return None
        if run not in self._halves:
            self._halves[run] = Onsets(run.series["max_prob"], partial(rises_past, level=HALF), False)
        return self._halves[run].after(0)

    def toggle(self, run: RunHandle) -> None:
        drawn = next((trial.shown for trial in self._present if trial.run is run), run.id not in self._hidden)
        hide, let = (self._hidden, self._wanted) if drawn else (self._wanted, self._hidden)
        hide.add(run.id)
        let.discard(run.id)
        self.changed()

    def show(self, wanted: bool) -> None:
        if wanted != self.wanted:
            self.wanted = wanted
            self.changed()

    def _trial(self, run: RunHandle, here: Settings) -> Trial:
        past_half, settings = self.past_half(run), run.settings_at(run.head)
        alike = settings.task == here.task or run.id in self._wanted
        return Trial(
            run=run,
            updates=run.head,
            past_half=past_half,
            action=likeliest(run, past_half),
            policy=_policy(run),
            differs=differences(settings, here),
            shown=alike and run.id not in self._hidden,
        )


def _compares(other: RunHandle, run: RunHandle) -> bool:
    """Return whether ``other`` is another run of the same kind of policy that was trained here and has updates."""
    alike = other.origin.settings.is_language is run.origin.settings.is_language
    return other is not run and other.head > 0 and alike and not other.is_recorded and not run.is_recorded


def likeliest(run: RunHandle, step: int | None) -> str:
    """Return the name of the likeliest action of ``run`` after update ``step``.

    The string is empty if ``step`` is None or there are several contexts.
    """
    if step is None or len(run.origin.context_names) > 1:
        return ""
    action = run.series["best_action"].values[step - 1]
    return run.origin.vocabulary[int(action)] if action == action else ""


def _policy(run: RunHandle) -> np.ndarray | None:
    """Return the probabilities (C, A) after the last update of a bandit's run, or None."""
    if run.origin.settings.is_language:
        return None
    try:
        step = run.step(run.head)
    except RunFileError:
        return None
    logp = None if step is None else step.distribution(step.passes)
    return None if logp is None else np.exp(logp)


def differences(settings: Settings, here: Settings) -> tuple[str, ...]:
    """Return the differences of ``settings`` from ``here``, except the seed, in a few words each.

    If several switches of a preset differ, the preset is named instead.
    """
    paths = [path for path in here.differences(settings) if path != "seed"]
    switches = [path for path in paths if path.startswith("objective.") and not is_number(settings.get(path))]
    words: list[str] = []
    if len(switches) > 1:
        words.append(nearest_preset(settings)[0])
        paths = [path for path in paths if path not in switches and not path.startswith("objective.clip")]
    words += _named(settings, paths)
    if len(words) > NAMED:
        more = tr("{count} more").format(count=len(words) - NAMED + 1)
        words = [*words[: NAMED - 1], more]
    return tuple(words)


def _named(settings: Settings, paths: Sequence[str]) -> list[str]:
    others = [path for path in paths if path.split(".")[0] != "task"]
    named = [] if others == paths else [tr("another task")]
    for path in others:
        what = described_at(path)
        value = settings.get(path)
        text = f"{value:g}" if isinstance(value, float) else tr("off") if value in (None, False) else str(value)
        named.append(f"{what.symbol or what.title} {text}")
    return named
