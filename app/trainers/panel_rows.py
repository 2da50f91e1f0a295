"""The rows of the panel registry for runs of other trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.widgets.panel_spec import Area, LayoutVariant, PanelSpec, at
from app.workspace.workspace import Workspace
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.trainers.panels.completions.panel import CompletionsPanel
    from app.trainers.panels.diagnosis.panel import DiagnosisPanel
    from app.trainers.panels.my_run import MyRunPanel
    from app.trainers.panels.reward_weights.panel import RewardWeightsPanel
    from app.trainers.panels.run_comparison.panel import RunComparisonPanel
    from app.trainers.panels.step_summary.panel import StepSummaryPanel
    from app.trainers.panels.token_overview.panel import TokenOverviewPanel


def _completions(workspace: Workspace) -> CompletionsPanel:
    from app.trainers.panels.completions.panel import CompletionsPanel

    return CompletionsPanel(workspace)


COMPLETIONS = PanelSpec(
    id="completions",
    after="comparison",
    title=tr("Completions"),
    factory=_completions,
    size=(768, 420),
    shows_recorded=True,
    help=tr("The completions of the update as text: search, sort and filter them, or compare two side by side."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED),
)


def _token_overview(workspace: Workspace) -> TokenOverviewPanel:
    from app.trainers.panels.token_overview.panel import TokenOverviewPanel

    return TokenOverviewPanel(workspace)


TOKEN_OVERVIEW = PanelSpec(
    id="token_overview",
    after="token_inspector",
    title=tr("Token overview"),
    factory=_token_overview,
    area=Area.CENTRE,
    size=(768, 420),
    shows_recorded=True,
    help=tr("Every token of the update at once, one strip of pixels per completion."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED),
)


def _reward_weights(workspace: Workspace) -> RewardWeightsPanel:
    from app.trainers.panels.reward_weights.panel import RewardWeightsPanel

    return RewardWeightsPanel(workspace)


REWARD_WEIGHTS = PanelSpec(
    id="reward_weights",
    after="what_if",
    title=tr("Reward weights"),
    factory=_reward_weights,
    area=Area.CENTRE,
    size=(768, 320),
    kind="recorded",
    help=tr("A recorded step with other weights for its reward functions: advantages, silent groups and pushes."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED, rank=2),
)


def _run_comparison(workspace: Workspace) -> RunComparisonPanel:
    from app.trainers.panels.run_comparison.panel import RunComparisonPanel

    return RunComparisonPanel(workspace)


RUN_COMPARISON = PanelSpec(
    id="run_comparison",
    after="reward_weights",
    title=tr("Recorded series"),
    factory=_run_comparison,
    size=(768, 320),
    kind="recorded",
    help=tr("The trainer's numbers next to ours, step by step, and another recorded run next to this one."),
    shown=at(Area.BOTTOM, LayoutVariant.RECORDED, rank=1),
)


def _diagnosis(workspace: Workspace) -> DiagnosisPanel:
    from app.trainers.panels.diagnosis.panel import DiagnosisPanel

    return DiagnosisPanel(workspace)


DIAGNOSIS = PanelSpec(
    id="diagnosis",
    after="run_comparison",
    title=tr("Diagnosis"),
    factory=_diagnosis,
    size=(768, 320),
    help=tr("Faults of a run, with evidence, and whether a recorded loss agrees with the run's settings."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED, rank=-1),
)


def _step_summary(workspace: Workspace) -> StepSummaryPanel:
    from app.trainers.panels.step_summary.panel import StepSummaryPanel

    return StepSummaryPanel(workspace)


STEP_SUMMARY = PanelSpec(
    id="step_summary",
    after="diagnosis",
    title=tr("This step"),
    factory=_step_summary,
    area=Area.RIGHT,
    size=(372, 420),
    shows_recorded=True,
    help=tr("Which groups of the update gave no signal, and which tokens carry its push, its KL or its loss."),
    shown=at(Area.RIGHT, LayoutVariant.RECORDED),
)


def _my_run(workspace: Workspace) -> MyRunPanel:
    from app.trainers.panels.my_run import MyRunPanel

    return MyRunPanel(workspace)


MY_RUN = PanelSpec(
    id="my_run",
    after="home",
    title=tr("My run"),
    factory=_my_run,
    area=Area.CENTRE,
    size=(768, 480),
    help=tr("Open a run of another trainer from a folder, a file or the clipboard, or one of the last runs."),
)

PANELS: tuple[PanelSpec[Any], ...] = (
    COMPLETIONS, TOKEN_OVERVIEW, REWARD_WEIGHTS, RUN_COMPARISON, DIAGNOSIS, STEP_SUMMARY, MY_RUN,
)  # fmt: skip # short names, side by side
