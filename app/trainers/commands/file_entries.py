"""Entries of the File menu for runs and models of other trainers."""

from __future__ import annotations

from collections.abc import Callable

from app.commands.command import Command
from app.commands.conditions import Conditions
from app.commands.menu_paths import EXPORT, FILE
from app.commands.targets import CommandTargets
from app.trainers.commands.model_conditions import ModelConditions
from app.trainers.controllers.model_exports import ModelExports
from grpo_core.text import tr


def file_entries(targets: CommandTargets, models: ModelExports, ask_open_folder: Callable[[], None]) -> list[Command]:
    """Return the commands that open and export such runs and models."""
    can = ModelConditions(Conditions(targets))
    return [
        Command(id="new_folder_run", text=tr("New language model from a folder…"), after="new_language_run", menu=FILE,
                run=models.ask,
                tip=tr("Train a small model of your own: config.json, safetensors and tokenizer.json in one folder.")),
        Command(id="new_shipped_run", text=tr("New SmolLM2 135M (shipped)"), after="new_folder_run", menu=FILE,
                run=models.open_shipped,
                blocked=can.needs_shipped_model,
                tip=tr("Train a real language model of 135 million parameters on sums in words, offline.")),
        Command(id="take_up_checkpoint", text=tr("Take up a checkpoint…"), after="open_run", menu=FILE,
                run=models.ask_checkpoint,
                tip=tr("Continue from a saved checkpoint of a model from a folder; the checkpoint is not changed.")),
        Command(id="open_recorded", text=tr("Open folder of another trainer…"), after="take_up_checkpoint", menu=FILE,
                run=ask_open_folder,
                tip=tr("Open a run that TRL, verl, verifiers or prime-rl trained: the folder with its traces.")),
        Command(id="save_checkpoint", text=tr("Save checkpoint…"), after="save_as", menu=FILE,
                run=models.ask_export_checkpoint,
                blocked=can.can_export_model,
                tip=tr("Save the adapter or weights, the optimizer and the update shown in a folder, to continue "
                    "from later.")),
        Command(id="export_trl", text=tr("Export as TRL script…"), after="export_script", menu=EXPORT,
                run=models.ask_trl_script,
                blocked=can.can_export_trl,
                tip=tr("Write the model, task, rewards and loss as a program for TRL 1.16, to run on larger "
                    "machines.")),
        Command(id="export_adapter", text=tr("Export adapter…"), after="export_trl", menu=EXPORT,
                run=models.ask_adapter, divided=True,
                blocked=can.can_export_adapter,
                tip=tr("Write the adapter after the update shown in the format of peft, with a card on its "
                    "training.")),
        Command(id="export_model", text=tr("Export whole model…"), after="export_adapter", menu=EXPORT,
                run=models.ask_model,
                blocked=can.can_export_model,
                tip=tr("Write the model after the update shown: merged weights, tokenizer and a card on its "
                    "training.")),
    ]  # fmt: skip # table, one row per line
