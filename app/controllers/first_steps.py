"""First steps: guided runs that start with one click and end with the user at the controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Slot

from app.controllers.layouts import LayoutsController
from app.controllers.program import Program
from app.messages.message import BarAction, Severity
from app.panel_registry import CONTROLS, EVOLUTION, POLICY_BARS, TOKEN_INSPECTOR
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.evolution import GREEDY
from app.workspace.player import Mode
from app.workspace.run_handle import RunHandle
from grpo_core.claims.answered import Answered, State
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.runs import library
from grpo_core.runs.run_file import copy_run
from grpo_core.shipped import resource
from grpo_core.text import tr

MESSAGE = "first steps"


Text = str | Callable[[RunHandle, int], str]
"""A text, or a function that computes it from the run and the number of updates with which the experience began."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """Part of an experience: several updates in a row.

    Attributes:
        speed: updates per second; None for as many as possible.
        changes: dotted path -> new value of settings that are changed first, as if by the user.
        text: one sentence about what to watch during these updates, or a function that computes it from the run.
    """

    updates: int
    speed: float | None
    changes: Mapping[str, Any] = field(default_factory=dict)
    text: Text


@dataclass(frozen=True, kw_only=True)
class Experience:
    """A guided run that demonstrates one thing.

    Attributes:
        name: label of its button, and title of its run.
        settings: dotted path -> value of settings that differ from the default.
        language: whether it uses a language model rather than the bandit.
        start: path within the resources of a shipped run, a copy of which is continued; empty to start at update 0.
        panel: the panel that is brought to the front.
        then: one sentence about what the user can try afterwards, or a function that computes it from the run.
        control: dotted path of the setting whose control receives the keyboard focus at the end; empty for none.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    language: bool = False
    start: str = ""
    panel: PanelSpec[Any] = POLICY_BARS
    acts: tuple[Act, ...]
    then: Text
    control: str = ""


def rules(run: RunHandle, start: int) -> str:
    """Return what the run's answers are paid for."""
    task = run.origin.settings.language
    return tr(
        "The first {start:,} updates are recorded. A right answer pays {right:g}, and each “=” in an answer pays "
        "{bonus:g}, right or wrong. From here it is computed live."
    ).format(start=start, right=task.answer_weight, bonus=task.bonus)


def measured(run: RunHandle, start: int) -> str:
    """Return what was measured first and last since the experience began. Empty if nothing was."""
    updates = np.flatnonzero(np.isfinite(run.series[GREEDY].values[start:])) + start + 1
    ends = [run.step(int(update)) for update in (updates[[0, -1]] if len(updates) else ())]
    if not ends or ends[0] is None or ends[1] is None:
        return ""
    return Answered(then=State.of(ends[0]), now=State.of(ends[1])).words()


def after_measured(text: str) -> Text:
    """Return a text that begins with what was measured and goes on with ``text``."""
    return lambda run, start: f"{measured(run, start)} {text}".lstrip()


LEARN = Experience(
    name=tr("Watch it learn"),
    settings={"seed": 7},
    acts=(
        Act(
            updates=1,
            speed=0.125,
            text=tr("Eight actions are drawn, each gets its reward, and the bars of those above the mean grow."),
        ),
        Act(updates=31, speed=10.0, text=tr("Update after update the policy climbs onto action 7, which pays most.")),
    ),
    then=tr(
        "Drag the diamond of action 7 down to 0 and press Space: within a hundred updates the policy has moved away."
    ),
)
TOKENS = Experience(
    name=tr("A language model, token by token"),
    settings={"seed": 7},
    language=True,
    panel=TOKEN_INSPECTOR,
    acts=(
        Act(
            updates=1,
            speed=2.0,
            text=tr("A small transformer answers eight sums, eight times each; every answer is paid if it is right."),
        ),
    ),
    then=tr(
        "Each token is tinted by how far this update pushes it up or down. Click one to see its "
        "alternatives, ratio and advantage. Space continues the run."
    ),
)
PULL_BACK = Experience(
    name=tr("What KL does (β)"),
    settings={"seed": 7, "objective.beta": 0.0, "objective.kl": "exact"},
    acts=(
        Act(updates=30, speed=15.0, text=tr("Without a KL penalty the policy leaves the dotted reference far behind.")),
        Act(
            updates=40,
            speed=10.0,
            changes={"objective.beta": 1.0},
            text=tr("Now β is 1: the KL penalty pulls the bars back towards the dotted reference."),
        ),
    ),
    then=tr(
        "The slider of β has the keyboard focus: move it with the arrow keys, press Space, and watch the bars settle."
    ),
    control="objective.beta",
)
CHEAT = Experience(
    name=tr("Watch it cheat"),
    settings={
        "seed": 5, "task.landscape": "custom", "task.custom": (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0),
        "task.bias_action": 2, "task.bias": -2.0, "learner.group_size": 32, "learner.mu": 1, "objective.std": "none",
        "objective.kl": "exact", "objective.beta": 0.0, "optimizer.kind": "adam", "optimizer.learning_rate": 0.1,
    },
    acts=(
        Act(updates=40, speed=15.0, text=tr(
            "Answer 7 is right and pays 0.8. The checker has a bug: answer 2 is wrong, hardly ever tried, and pays 1."
        )),
        Act(updates=60, speed=15.0, text=tr(
            "The bug is found. The reward keeps rising while the policy abandons the right answer, bar 7."
        )),
    ),
    then=tr("Drag the diamond of answer 2 down to 0, which fixes the checker, and press Space."),
)  # fmt: skip # table, one row per line
MODEL_CHEATS = Experience(
    name=tr("A language model learns to cheat"),
    language=True,
    start="starts/gameable.grpo",
    panel=EVOLUTION,
    acts=(
        Act(updates=5, speed=2.0, text=rules),
        Act(
            updates=20,
            speed=4.0,
            text=after_measured(tr("Only sampled answers are paid: compare them with the greedy ones.")),
        ),
    ),
    then=after_measured(
        tr(
            "The slider of what each “=” pays has the keyboard focus: move it to 0, press Space, and see whether more "
            "answers become right."
        )
    ),
    control="task.bonus",
)
EXPERIENCES = (LEARN, TOKENS, MODEL_CHEATS, PULL_BACK)
"""Experiences on the first screen, in order."""
SAME_ELSEWHERE = {
    CHEAT.name: (tr("The same on a language model"), MODEL_CHEATS),
    MODEL_CHEATS.name: (tr("The same on a bandit"), CHEAT),
}
"""Name of an experience -> the same experience with the other kind of policy, preceded by the label of its button."""


class FirstSteps(QObject):
    """Plays one experience at a time. It ends early if the user pauses it or shows another run.

    Attributes:
        playing: the current experience, or None.
    """

    def __init__(self, program: Program, layouts: LayoutsController) -> None:
        super().__init__(program)
        self._window, self._workspace, self._player = program.window, program.workspace, program.player
        self._run_manager, self._layouts = program.run_manager, layouts
        self.playing: Experience | None = None
        self._run: RunHandle | None = None
        self._act = -1
        self._start = self._goal = 0
        self._usual_speed: float | None = None
        self._workspace.frame.connect(self._on_frame)

    @property
    def explains(self) -> bool:
        """Whether an experience is playing the film of an update."""
        return self.playing is not None and self._player.film.whole

    def begin(self, experience: Experience) -> None:
        """Play ``experience`` on a new run. If the current run has no updates, close it."""
        self._stop()
        self._player.pause()
        before = self._workspace.run
        assert before is not None
        kind = before.origin.settings
        try:
            self._run = self._begun(experience)
        except (GrpoError, OSError) as error:
            self._window.messages.say(str(error), Severity.ERROR)
            return
        if not before.head and not before.is_recorded:
            self._run_manager.close_run(before)
        if kind.is_language is not experience.language or kind.is_recorded:
            self._layouts.reset()
        panel: Panel = self._window.show_panel(experience.panel)
        panel.focus_picture()
        self._usual_speed = self._player.speed
        self.playing, self._act, self._start = experience, -1, self._run.head
        self._goal = self._start
        self._next_act()

    def _begun(self, experience: Experience) -> RunHandle:
        """Return the run of ``experience``: a new one at update 0, or a copy of the shipped run at its end.

        Raises:
            GrpoError, OSError: the copy cannot be written or read.
        """
        if not experience.start:
            usual = language_settings() if experience.language else Settings()
            return self._run_manager.new_run(usual.replace(dict(experience.settings)), experience.name)
        path = library.free_name(library.new_path(self._run_manager.folder, experience.name))
        copy_run(resource(experience.start), path)
        run = self._run_manager.open(path)
        run.title = experience.name
        return run

    def _next_act(self) -> None:
        """Start the next act. After the last one, tell the user what to try next."""
        assert self.playing is not None
        self._act += 1
        if self._act == len(self.playing.acts):
            self._finish(self.playing)
            return
        act = self.playing.acts[self._act]
        if act.changes:
            self._workspace.editing.edit(dict(act.changes), self.playing.name)
        self._say(act.text)
        self._goal += act.updates
        self._player.set_speed(act.speed)
        self._player.run_n(act.updates)

    def _finish(self, experience: Experience) -> None:
        self._stop()
        elsewhere = [SAME_ELSEWHERE[experience.name]] if experience.name in SAME_ELSEWHERE else []
        self._say(experience.then, *(BarAction(text=text, run=partial(self.begin, other)) for text, other in elsewhere))
        if experience.control:
            self._window.panels.of(CONTROLS).focus_setting(experience.control)

    def _say(self, text: Text, *actions: BarAction) -> None:
        assert self._run is not None
        told = text if isinstance(text, str) else text(self._run, self._start)
        self._window.messages.say(told, Severity.INFO, *actions, id=MESSAGE)

    def _stop(self) -> None:
        """End the experience, and restore the user's own speed."""
        if self.playing is not None:
            language, self.playing = self.playing.language, None
            self._player.set_speed(self._usual_speed, language=language)

    @Slot()
    def _on_frame(self) -> None:
        """Start the next act once the run has stopped and all results are loaded, unless the user has intervened.

        A run that has stopped while this frame was drawn loads its last results before the next frame.
        """
        if self.playing is None or self._run is None:
            return
        if self._workspace.run is not self._run:
            self._stop()
        elif self._player.mode is Mode.RESTING and not self._player.busy and not self._workspace.frame_due:
            if self._run.head < self._goal:
                self._stop()
            else:
                self._next_act()
