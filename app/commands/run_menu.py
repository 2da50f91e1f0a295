"""Commands of the Run menu."""

from __future__ import annotations

from pathlib import Path

from app.commands.command import REST, RUN, Command
from app.commands.targets import CommandTargets
from app.experiments.repeats import COUNT
from app.messages.message import Severity
from app.panel_registry import COMPARISON, KL_OVER_BETA, TRAINING_HISTORY
from app.settings.preferences import SPEEDS
from app.theme.file_dialogs import file_to_open
from grpo_core.text import tr

USUAL_SPEED = 2
"""Index in ``SPEEDS`` that serves as the starting point if the current speed is not one of them."""


def run_commands(targets: CommandTargets) -> list[Command]:
    player, window, when = targets.player, targets.window, targets.when

    def change_speed(by: int) -> None:
        here = SPEEDS.index(player.speed) if player.speed in SPEEDS else USUAL_SPEED
        player.set_speed(SPEEDS[min(max(here + by, 0), len(SPEEDS) - 1)])

    def choose_python() -> None:
        kinds = "Python (python*)"
        if name := file_to_open(window, tr("Python with torch"), str(Path.home()), kinds, link=True):
            targets.pythons.chosen = name
            targets.preferences.change(python=name)
            text = tr("From the next run on, language models on a GPU and models from folders are trained in {path}.")
            window.messages.say(text.format(path=name), Severity.INFO)

    return [
        Command(id="run", text=tr("Run or pause"), menu=RUN, run=player.toggle, icon="run",
                shortcuts=("Space", "Ctrl+Space"), blocked=when.can_run,
                face=lambda: (tr("Pause"), "pause") if player.busy else (tr("Run", "verb"), "run"),
                tip=tr("Compute updates at the chosen speed, or replay those of a finished run; the same key pauses.")),
        Command(id="step", text=tr("Step", "verb"), menu=RUN, run=player.step, shortcuts=(".",), icon="step",
                blocked=when.can_step, repeats=True,
                tip=tr("Go to the next update, or compute it if this is the newest.")),
        Command(id="step_back", subject="playback", text=tr("Step back"), menu=RUN, run=player.step_back,
                shortcuts=(",",), icon="step_back", blocked=when.not_at_start, repeats=True,
                tip=tr("Go back to the previous update; nothing is lost.")),
        Command(id="stage", subject="playback", text=tr("Stage"), menu=RUN, run=player.stage, shortcuts=("Shift+.",),
                icon="stage", blocked=when.can_show_stage, repeats=True, divided=True,
                tip=tr("Reveal the next stage of the update: sample, score, normalize, update.")),
        Command(id="stage_back", subject="playback", text=tr("Stage back"), menu=RUN, run=player.stage_back,
                shortcuts=("Shift+,",), icon="stage_back", blocked=when.not_at_start, repeats=True,
                tip=tr("Hide the last stage again.")),
        Command(id="run_n", subject="training", text=tr("Run 50"), menu=RUN, shortcuts=("Ctrl+.",), icon="run_n",
                run=lambda: player.run_n(50, at_once=True), blocked=when.can_train, divided=True,
                tip=tr("Fifty more updates, as fast as they can be computed, then pause.")),
        Command(id="faster", subject="training", text=tr("Faster"), menu=RUN, run=lambda: change_speed(1),
                shortcuts=("Ctrl+Up",), repeats=True, tip=tr("More updates per second.")),
        Command(id="slower", subject="training", text=tr("Slower"), menu=RUN, run=lambda: change_speed(-1),
                shortcuts=("Ctrl+Down",), repeats=True, tip=tr("Fewer updates per second.")),
        Command(id="breakpoints", subject="training", text=tr("Stop when…"), menu=RUN, run=targets.breakpoints.show,
                shortcuts=("Ctrl+Shift+B",), divided=True,
                tip=tr("Breakpoints: stop the run at the update where a condition on a series becomes true.")),
        Command(id="reset", subject="training", text=tr("Reset"), menu=RUN, run=targets.runs.reset,
                shortcuts=("Ctrl+Home",), icon="to_start", blocked=when.may_reset, divided=True,
                tip=tr("Start this run again with its original settings and seed; the old run stays as thin lines.")),
        Command(id="branch", subject="training", text=tr("Branch here"), menu=RUN, run=targets.runs.branch,
                shortcuts=("Ctrl+B",), icon="branch", blocked=when.can_branch,
                tip=tr("Begin a new run at the update shown, with the settings shown.")),
        Command(id="new_seed", subject="training", text=tr("New seed"), menu=RUN, run=targets.runs.new_seed,
                icon="new_seed", blocked=when.may_seed,
                tip=tr("Begin a new run with the next seed and the settings shown; this one stays in the list.")),
        Command(id="repeat", subject="training", text=tr("Repeat × {count}").format(count=COUNT), menu=RUN,
                run=lambda: window.show_panel(TRAINING_HISTORY).repeat(), blocked=when.can_repeat, divided=True,
                tip=tr("Run the same settings with other seeds, side by side, to see how much of this run is "
                    "chance.")),
        Command(id="race", subject="experiments", text=tr("Race", "verb"), menu=RUN, shortcuts=("Ctrl+R",),
                run=lambda: window.show_panel(COMPARISON).race(),
                tip=tr("Race algorithms over the same seeds, on the rewards of the run shown.")),
        Command(id="sweep", subject="experiments", text=tr("Sweep"), menu=RUN, shortcuts=("Ctrl+Shift+R",),
                run=lambda: window.show_panel(KL_OVER_BETA).sweep(),
                tip=tr("Train many seeds at each β of a grid, or at each value of another setting.")),
        Command(id="queue", subject=REST, text=tr("Runs in the background"), menu=RUN, run=targets.background_runs.show,
                tip=tr("Sweep the language model over a setting: real runs, one after the other, in the "
                    "background.")),
        Command(id="torch_python", subject=REST, text=tr("Python with torch…"), menu=RUN,
                run=choose_python, divided=True,
                tip=tr("Choose the Python in which language models on a GPU and models from folders are trained.")),
    ]  # fmt: skip # table, one row per line
