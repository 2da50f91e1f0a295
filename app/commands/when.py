"""When commands can run: each gives the sentence that says why not, empty where they can."""

from __future__ import annotations

from app.commands.command import State
from grpo_core.text import tr


def can_train(state: State) -> str:
    return state.read_only


def can_step(state: State) -> str:
    return "" if state.step < state.head else state.read_only


def not_at_start(state: State) -> str:
    return "" if state.step > 0 else tr("This is the run before its first update.")


def needs_update(state: State) -> str:
    return "" if state.head > 0 else tr("The run has no update yet; press Run first.")


def needs_number(state: State) -> str:
    return "" if state.explainable else tr("No number is selected; click one, or move to it with the arrow keys.")


def needs_plot(state: State) -> str:
    return "" if state.has_plot else tr("No picture is in focus; click one, or reach it with Tab.")
