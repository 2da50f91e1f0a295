"""Commands of the menus Run and Go."""

from __future__ import annotations

from app.commands.command import Command
from app.commands.places import GO, RUN
from app.commands.when import can_step, can_train, needs_update, not_at_start
from app.commands.window import Window
from grpo_core.text import tr


def run_commands(window: Window) -> list[Command]:
    """The commands of the menu Run."""
    return [
        Command(id="run", text=tr("Run or pause"), menu=RUN, run=window.run_pause, icon="run",
                shortcuts=("Space", "Ctrl+Space"), blocked=can_train,
                text_now=lambda state: tr("Pause") if state.running else tr("Run"),
                tip=tr("Compute updates at the chosen speed; the same key pauses.")),
        Command(id="step", text=tr("Step"), menu=RUN, run=window.step, shortcuts=(".",), icon="step",
                blocked=can_step, repeats=True,
                tip=tr("Go to the next update; at the head it is computed.")),
        Command(id="step_back", text=tr("Step back"), menu=RUN, run=window.step_back, shortcuts=(",",),
                icon="step_back", blocked=not_at_start, repeats=True,
                tip=tr("Look at the update before; nothing is lost.")),
        Command(id="stage", text=tr("Stage"), menu=RUN, run=window.next_stage, shortcuts=("Shift+.",),
                icon="stage", blocked=can_step, repeats=True, divided=True,
                tip=tr("Reveal the next stage of the update: sample, score, normalize, update.")),
        Command(id="stage_back", text=tr("Stage back"), menu=RUN, run=window.previous_stage,
                shortcuts=("Shift+,",), icon="stage_back", blocked=not_at_start, repeats=True,
                tip=tr("Hide the last stage again.")),
        Command(id="run_n", text=tr("Run 50"), menu=RUN, run=window.run_n, shortcuts=("Ctrl+.",),
                icon="run_n", blocked=can_train, divided=True,
                tip=tr("Fifty more updates, then pause.")),
        Command(id="faster", text=tr("Faster"), menu=RUN, run=window.faster, shortcuts=("Ctrl+Up",), repeats=True,
                tip=tr("More updates per second.")),
        Command(id="slower", text=tr("Slower"), menu=RUN, run=window.slower, shortcuts=("Ctrl+Down",), repeats=True,
                tip=tr("Fewer updates per second.")),
        Command(id="breakpoints", text=tr("Stop when…"), menu=RUN, run=window.show_breakpoints,
                shortcuts=("Ctrl+Shift+B",), divided=True,
                tip=tr("Breakpoints: stop the run at the update where a condition on a series becomes true.")),
        Command(id="thinning", text=tr("Thin out at the size limit"), menu=RUN,
                run=lambda: window.set_thinning(not window.state().thinning), checked=lambda state: state.thinning,
                tip=tr("Rather than pause a long run, drop some of its older updates; its curves stay whole.")),
        Command(id="branch", text=tr("Branch here"), menu=RUN, run=window.branch, shortcuts=("Ctrl+B",),
                icon="branch", blocked=needs_update, divided=True,
                tip=tr("Begin a new run at the update shown, with the settings shown.")),
        Command(id="race", text=tr("Race"), menu=RUN, run=window.race, shortcuts=("Ctrl+R",), divided=True,
                tip=tr("Let algorithms race over the same seeds, on the landscape of the run shown.")),
        Command(id="sweep", text=tr("Sweep"), menu=RUN, run=window.sweep, shortcuts=("Ctrl+Shift+R",),
                tip=tr("Train many seeds at every β of a grid, or over any other setting.")),
        Command(id="queue", text=tr("Runs in the background"), menu=RUN, run=window.show_queue,
                tip=tr("Sweep the language model over a setting: real runs, one after the other, beside the window.")),
    ]  # fmt: skip


def go_commands(window: Window) -> list[Command]:
    """The commands of the menu Go."""
    return [
        Command(id="go_start", text=tr("Go to update 0"), menu=GO, run=window.go_start, shortcuts=("Home",),
                icon="to_start", blocked=not_at_start, tip=tr("Show the run before its first update.")),
        Command(id="go_end", text=tr("Go to the newest update"), menu=GO, run=window.go_end, shortcuts=("End",),
                icon="to_end", tip=tr("Show the newest update and follow it.")),
        Command(id="next_event", text=tr("Next event"), menu=GO, run=window.next_event, shortcuts=("N",),
                icon="next_event", divided=True, repeats=True,
                blocked=lambda state: "" if state.next_event else tr("Nothing remarkable comes after this update."),
                tip=tr("Jump to the next clip, dead group, new best action or changed setting.")),
        Command(id="previous_event", text=tr("Previous event"), menu=GO, run=window.previous_event,
                shortcuts=("P",), icon="previous_event", repeats=True,
                blocked=lambda state: (
                    "" if state.previous_event else tr("Nothing remarkable comes before this update.")
                ),
                tip=tr("Jump back to the one before.")),
    ]  # fmt: skip
