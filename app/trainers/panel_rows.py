"""The rows of the panel registry for runs of other trainers."""

from __future__ import annotations

from typing import Any

from app.widgets.panel_spec import Area, LayoutVariant, PanelSpec, at, later
from grpo_core.text import tr

COMPLETIONS = PanelSpec(
    id="completions",
    after="comparison",
    title=tr("Completions"),
    factory=later("trainers.panels.completions.panel", "CompletionsPanel"),
    size=(768, 420),
    shows_recorded=True,
    help=tr("The completions of the update as text: search, sort and filter them, or compare two side by side."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED),
)

TOKEN_OVERVIEW = PanelSpec(
    id="token_overview",
    after="token_inspector",
    title=tr("Token overview"),
    factory=later("trainers.panels.token_overview.panel", "TokenOverviewPanel"),
    area=Area.CENTRE,
    size=(768, 420),
    shows_recorded=True,
    help=tr("Every token of the update at once, one strip of pixels per completion."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED),
)

REWARD_WEIGHTS = PanelSpec(
    id="reward_weights",
    after="what_if",
    title=tr("Reward weights"),
    factory=later("trainers.panels.reward_weights", "RewardWeightsPanel"),
    area=Area.CENTRE,
    size=(768, 320),
    kind="recorded",
    help=tr("A recorded step with other weights for its reward functions: advantages, silent groups and pushes."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED, rank=2),
)

RUN_COMPARISON = PanelSpec(
    id="run_comparison",
    after="reward_weights",
    title=tr("Recorded series"),
    factory=later("trainers.panels.run_comparison", "RunComparisonPanel"),
    size=(768, 320),
    kind="recorded",
    help=tr("The trainer's numbers next to ours, step by step, and another recorded run next to this one."),
    shown=at(Area.BOTTOM, LayoutVariant.RECORDED, rank=1),
)

DIAGNOSIS = PanelSpec(
    id="diagnosis",
    after="run_comparison",
    title=tr("Diagnosis"),
    factory=later("trainers.panels.diagnosis.panel", "DiagnosisPanel"),
    size=(768, 320),
    help=tr("Faults of a run, with evidence, and whether recorded losses and advantages agree with its settings."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED, rank=-1),
)

STEP_SUMMARY = PanelSpec(
    id="step_summary",
    after="diagnosis",
    title=tr("This step"),
    factory=later("trainers.panels.step_summary", "StepSummaryPanel"),
    area=Area.RIGHT,
    size=(372, 420),
    shows_recorded=True,
    help=tr("Which groups of the update gave no signal, and which tokens carry its push, its KL or its loss."),
    shown=at(Area.RIGHT, LayoutVariant.RECORDED),
)

MY_RUN = PanelSpec(
    id="my_run",
    after="home",
    title=tr("My run"),
    factory=later("trainers.panels.my_run", "MyRunPanel"),
    area=Area.CENTRE,
    size=(768, 480),
    help=tr("Open a run of another trainer from a folder, a file or the clipboard, or one of the last runs."),
)

PANELS: tuple[PanelSpec[Any], ...] = (
    COMPLETIONS, TOKEN_OVERVIEW, REWARD_WEIGHTS, RUN_COMPARISON, DIAGNOSIS, STEP_SUMMARY, MY_RUN,
)  # fmt: skip # short names, side by side
