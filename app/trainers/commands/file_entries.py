"""Entries of the File menu for runs and models of other trainers."""

from __future__ import annotations

from app.commands.command import Command
from app.commands.conditions import Conditions
from app.commands.menu_paths import EXPORT, FILE
from app.commands.targets import CommandTargets
from app.trainers.commands.model_conditions import ModelConditions
from app.trainers.controllers.model_exports import ModelExports
from grpo_core.text import tr


def file_entries(targets: CommandTargets, models: ModelExports) -> list[Command]:
    """Return the commands that open and export such models."""
    can = ModelConditions(Conditions(targets))
    return [
        Command(id="new_shipped_run", subject="models", text=tr("New SmolLM2 135M (shipped)"), after="new_run",
                menu=FILE, run=models.open_shipped, blocked=can.needs_shipped_model,
                tip=tr("Train a real language model of 135 million parameters on sums in words, offline.")),
        Command(id="save_checkpoint", subject="models", text=tr("Save checkpoint…"), after="save_as", menu=FILE,
                run=models.ask_export_checkpoint, blocked=can.can_export_model,
                tip=tr("Save the adapter or weights, the optimizer and the update shown in a folder, to continue "
                    "from later.")),
        Command(id="export_trl", subject="models", text=tr("Export as TRL script…"), after="export_script", menu=EXPORT,
                run=models.ask_trl_script, blocked=can.can_export_trl,
                tip=tr("Write the model, task, rewards and loss as a program for TRL 1.16, to run on larger "
                    "machines.")),
        Command(id="export_adapter", subject="models", text=tr("Export adapter…"), after="export_trl", menu=EXPORT,
                run=models.ask_adapter, divided=True, blocked=can.can_export_adapter,
                tip=tr("Write the adapter after the update shown in the format of peft, with a card on its "
                    "training.")),
        Command(id="export_model", subject="models", text=tr("Export whole model…"), after="export_adapter",
                menu=EXPORT, run=models.ask_model, blocked=can.can_export_model,
                tip=tr("Write the model after the update shown: merged weights, tokenizer and a card on its "
                    "training.")),
    ]  # fmt: skip # table, one row per line
