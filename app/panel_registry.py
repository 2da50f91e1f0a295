"""The registry of panels, with one row for each.

The order is that of the menu, and of panels with equal rank in an area. A new panel is a file with its class and a row
in ``PANELS``. Menus, docks, layouts, export, lessons and the self-test read the rows. A panel that is created with the
window is imported at the top of this module. One that is created when it is first shown has a factory that imports it
then: importing all of these would add 0.1 to 0.3 s to the start of the program. The packager, which follows import
statements, still finds every module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.panels.controls.panel import ControlsPanel
from app.panels.explain import ExplainPanel
from app.panels.metrics import MetricsPanel
from app.panels.pipeline import PipelinePanel
from app.panels.policy_bars import PolicyBarsPanel
from app.panels.step_detail import StepDetailPanel
from app.panels.timeline import TimelinePanel
from app.panels.training_history import TrainingHistoryPanel
from app.widgets.panel import Panel
from app.widgets.panel_spec import Area, LayoutVariant, PanelSpec, at
from app.workspace.workspace import Workspace
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.experiments.comparison import ComparisonPanel
    from app.experiments.kl_over_beta import KlOverBetaPanel
    from app.experiments.queue import QueuePanel
    from app.panels.breakpoints import BreakpointsPanel
    from app.panels.evolution.panel import EvolutionPanel
    from app.panels.help import GlossaryDockPanel, ReferencesDockPanel
    from app.panels.home.panel import HomePanel
    from app.panels.score import ScorePanel
    from app.panels.tokens.panel import TokenInspectorPanel
    from app.panels.what_if.panel import WhatIfPanel
    from app.teaching.homework_panel import HomeworkPanel
    from app.teaching.lessons.panel import LessonPanel
    from app.trainers.panels.completions.panel import CompletionsPanel
    from app.trainers.panels.diagnosis.panel import DiagnosisPanel
    from app.trainers.panels.reward_weights.panel import RewardWeightsPanel
    from app.trainers.panels.run_comparison.panel import RunComparisonPanel
    from app.trainers.panels.step_summary.panel import StepSummaryPanel
    from app.trainers.panels.token_overview.panel import TokenOverviewPanel

TIMELINE = PanelSpec(
    id="timeline",
    title=tr("Timeline"),
    factory=TimelinePanel,
    area=Area.TOP,
    eager=True,
    size=(1366, 28),
    shows_recorded=True,
    help=tr("All updates of the run, with the one shown, the events and the branches."),
)

CONTROLS = PanelSpec(
    id="controls",
    title=tr("Controls"),
    factory=ControlsPanel,
    area=Area.LEFT,
    eager=True,
    size=(256, 640),
    shows_recorded=True,
    in_lessons=True,
    help=tr("The settings of the run, and what a change of each one means."),
    shown=at(Area.LEFT),
)

METRICS = PanelSpec(
    id="metrics",
    title=tr("Metric cards"),
    factory=MetricsPanel,
    area=Area.STRIP,
    eager=True,
    size=(768, 64),
    shows_recorded=True,
    in_lessons=True,
    help=tr("Numbers of the update shown, each with its curve over the run."),
    shown=at(Area.STRIP),
)

PIPELINE = PanelSpec(
    id="pipeline",
    title=tr("Pipeline"),
    factory=PipelinePanel,
    area=Area.STRIP,
    eager=True,
    size=(768, 92),
    shows_recorded=True,
    in_lessons=True,
    help=tr("The stages of an update, and the terms of the objective that is maximised."),
    shown=at(Area.STRIP),
)

POLICY_BARS = PanelSpec(
    id="policy_bars",
    title=tr("Policy π(a)"),
    factory=PolicyBarsPanel,
    eager=True,
    size=(768, 260),
    shows_recorded=True,
    kind="bandit",
    in_lessons=True,
    help=tr("The probability of each action before and after the update, with the rewards."),
    shown=at(Area.CENTRE, LayoutVariant.BANDIT, LayoutVariant.PRESENT_BANDIT)
    | at(Area.BOTTOM, LayoutVariant.COMPARE_BANDIT, rank=-1),
)

TRAINING_HISTORY = PanelSpec(
    id="training_history",
    title=tr("Training history"),
    factory=TrainingHistoryPanel,
    eager=True,
    size=(768, 220),
    shows_recorded=True,
    in_lessons=True,
    help=tr("Series of the run over its updates."),
    shown=at(Area.BOTTOM) | at(Area.RIGHT, LayoutVariant.BANDIT),
)


def _evolution(workspace: Workspace) -> EvolutionPanel:
    from app.panels.evolution.panel import EvolutionPanel

    return EvolutionPanel(workspace)


EVOLUTION = PanelSpec(
    id="evolution",
    title=tr("Evolution"),
    factory=_evolution,
    size=(640, 480),
    shows_recorded=True,
    kind="language",
    in_lessons=True,
    help=tr("Held-out prompts, and how the model's answers to them change over the run."),
    shown=at(Area.CENTRE, LayoutVariant.LANGUAGE, LayoutVariant.PRESENT_LANGUAGE)
    | at(Area.BOTTOM, LayoutVariant.COMPARE_LANGUAGE),
)


def _score_your_own(workspace: Workspace) -> ScorePanel:
    from app.panels.score import ScorePanel

    return ScorePanel(workspace)


SCORE_YOUR_OWN = PanelSpec(
    id="score_your_own",
    title=tr("Score your own"),
    factory=_score_your_own,
    size=(768, 220),
    kind="language",
    in_lessons=True,
    help=tr("A completion that you type, scored by the model and the reward."),
    shown=at(Area.BOTTOM, LayoutVariant.LANGUAGE, LayoutVariant.COMPARE_LANGUAGE),
)


def _kl_over_beta(workspace: Workspace) -> KlOverBetaPanel:
    from app.experiments.kl_over_beta import KlOverBetaPanel

    return KlOverBetaPanel(workspace)


KL_OVER_BETA = PanelSpec(
    id="kl_over_beta",
    title=tr("KL over β"),
    factory=_kl_over_beta,
    size=(768, 220),
    in_lessons=True,
    help=tr("A sweep: the same training at several values of one setting."),
    area=Area.CENTRE,
    shown=at(
        Area.CENTRE,
        LayoutVariant.BANDIT,
        LayoutVariant.LANGUAGE,
        LayoutVariant.COMPARE_BANDIT,
        LayoutVariant.COMPARE_LANGUAGE,
        rank=1,
    ),
)


def _comparison(workspace: Workspace) -> ComparisonPanel:
    from app.experiments.comparison import ComparisonPanel

    return ComparisonPanel(workspace)


COMPARISON = PanelSpec(
    id="comparison",
    title=tr("Comparison"),
    factory=_comparison,
    size=(768, 260),
    in_lessons=True,
    help=tr("A race: several algorithms on the same task from the same seeds."),
    area=Area.CENTRE,
    shown=at(Area.CENTRE, LayoutVariant.BANDIT, LayoutVariant.PRESENT_BANDIT, rank=2)
    | at(Area.CENTRE, LayoutVariant.COMPARE_BANDIT, LayoutVariant.COMPARE_LANGUAGE),
)


def _completions(workspace: Workspace) -> CompletionsPanel:
    from app.trainers.panels.completions.panel import CompletionsPanel

    return CompletionsPanel(workspace)


COMPLETIONS = PanelSpec(
    id="completions",
    title=tr("Completions"),
    factory=_completions,
    size=(768, 420),
    shows_recorded=True,
    help=tr("The completions of the update as text: search, sort and filter them, or compare two side by side."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED),
)


def _run_comparison(workspace: Workspace) -> RunComparisonPanel:
    from app.trainers.panels.run_comparison.panel import RunComparisonPanel

    return RunComparisonPanel(workspace)


RUN_COMPARISON = PanelSpec(
    id="run_comparison",
    title=tr("Recorded series"),
    factory=_run_comparison,
    size=(768, 320),
    kind="recorded",
    help=tr("The trainer's numbers next to ours, step by step, and another recorded run next to this one."),
    shown=at(Area.BOTTOM, LayoutVariant.RECORDED, rank=1),
)


def _token_inspector(workspace: Workspace) -> TokenInspectorPanel:
    from app.panels.tokens.panel import TokenInspectorPanel

    return TokenInspectorPanel(workspace)


TOKEN_INSPECTOR = PanelSpec(
    id="token_inspector",
    title=tr("Token inspector"),
    factory=_token_inspector,
    size=(768, 260),
    shows_recorded=True,
    in_lessons=True,
    help=tr("The completions of a group, tinted by what the update does to each token."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED)
    | at(Area.CENTRE, LayoutVariant.BANDIT, rank=3)
    | at(Area.RIGHT, LayoutVariant.LANGUAGE)
    | at(Area.BOTTOM, LayoutVariant.COMPARE_BANDIT)
    | at(Area.BOTTOM, LayoutVariant.COMPARE_LANGUAGE, LayoutVariant.PRESENT_LANGUAGE, rank=-1),
)


def _token_overview(workspace: Workspace) -> TokenOverviewPanel:
    from app.trainers.panels.token_overview.panel import TokenOverviewPanel

    return TokenOverviewPanel(workspace)


TOKEN_OVERVIEW = PanelSpec(
    id="token_overview",
    title=tr("Token overview"),
    factory=_token_overview,
    area=Area.CENTRE,
    size=(768, 420),
    shows_recorded=True,
    help=tr("Every token of the update at once, one strip of pixels per completion."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED),
)


def _what_if(workspace: Workspace) -> WhatIfPanel:
    from app.panels.what_if.panel import WhatIfPanel

    return WhatIfPanel(workspace)


WHAT_IF = PanelSpec(
    id="what_if",
    title=tr("What if"),
    factory=_what_if,
    area=Area.CENTRE,
    size=(768, 260),
    in_lessons=True,
    help=tr("The update as it was, next to the update that other settings would have made of the same batch."),
    shown=at(Area.BOTTOM, LayoutVariant.COMPARE_BANDIT, LayoutVariant.COMPARE_LANGUAGE, rank=-2)
    | at(Area.CENTRE, LayoutVariant.RECORDED, rank=1),
)


def _reward_weights(workspace: Workspace) -> RewardWeightsPanel:
    from app.trainers.panels.reward_weights.panel import RewardWeightsPanel

    return RewardWeightsPanel(workspace)


REWARD_WEIGHTS = PanelSpec(
    id="reward_weights",
    title=tr("Reward weights"),
    factory=_reward_weights,
    area=Area.CENTRE,
    size=(768, 320),
    kind="recorded",
    help=tr("A recorded step with other weights for its reward functions: advantages, silent groups and pushes."),
    shown=at(Area.CENTRE, LayoutVariant.RECORDED, rank=2),
)


def _queue(workspace: Workspace) -> QueuePanel:
    from app.experiments.queue import QueuePanel

    return QueuePanel(workspace)


QUEUE = PanelSpec(
    id="queue",
    title=tr("Runs in the background"),
    factory=_queue,
    size=(768, 240),
    help=tr("Runs that train one after the other in a separate process."),
)

STEP_DETAIL = PanelSpec(
    id="step_detail",
    title=tr("Step detail"),
    factory=StepDetailPanel,
    area=Area.RIGHT,
    eager=True,
    size=(700, 330),
    shows_recorded=True,
    in_lessons=True,
    help=tr("Every number of each completion of the update, in a table."),
    shown=at(Area.RIGHT, LayoutVariant.BANDIT, rank=-1)
    | at(Area.RIGHT, LayoutVariant.COMPARE_BANDIT)
    | at(Area.BOTTOM, LayoutVariant.LANGUAGE, LayoutVariant.COMPARE_LANGUAGE, LayoutVariant.RECORDED),
)


def _diagnosis(workspace: Workspace) -> DiagnosisPanel:
    from app.trainers.panels.diagnosis.panel import DiagnosisPanel

    return DiagnosisPanel(workspace)


DIAGNOSIS = PanelSpec(
    id="diagnosis",
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
    title=tr("This step"),
    factory=_step_summary,
    area=Area.RIGHT,
    size=(372, 420),
    shows_recorded=True,
    help=tr("Which groups of the update gave no signal, and which tokens carry its push, its KL or its loss."),
    shown=at(Area.RIGHT, LayoutVariant.RECORDED),
)

EXPLAIN = PanelSpec(
    id="explain",
    title=tr("Explain"),
    factory=ExplainPanel,
    area=Area.RIGHT,
    eager=True,
    size=(560, 460),
    shows_recorded=True,
    in_lessons=True,
    help=tr("How the chosen number is computed: its formula, its inputs, and why it has this value."),
    shown=at(
        Area.RIGHT,
        *(layout for layout in LayoutVariant if layout not in (LayoutVariant.BANDIT, LayoutVariant.LANGUAGE)),
    ),
)


def _breakpoints(workspace: Workspace) -> BreakpointsPanel:
    from app.panels.breakpoints import BreakpointsPanel

    return BreakpointsPanel(workspace)


BREAKPOINTS = PanelSpec(
    id="breakpoints",
    title=tr("Breakpoints"),
    factory=_breakpoints,
    area=Area.RIGHT,
    help=tr("Conditions that stop the run when they become true."),
)


def _glossary(workspace: Workspace) -> GlossaryDockPanel:
    from app.panels.help import GlossaryDockPanel

    return GlossaryDockPanel(workspace)


GLOSSARY = PanelSpec(
    id="glossary",
    title=tr("Glossary"),
    factory=_glossary,
    area=Area.RIGHT,
    in_lessons=True,
    help=tr("Every term of the field that the program uses."),
)


def _references(workspace: Workspace) -> ReferencesDockPanel:
    from app.panels.help import ReferencesDockPanel

    return ReferencesDockPanel(workspace)


REFERENCES = PanelSpec(
    id="references",
    title=tr("References"),
    factory=_references,
    area=Area.RIGHT,
    help=tr("The papers and programs behind what is shown."),
)


def _home(workspace: Workspace) -> HomePanel:
    from app.panels.home.panel import HomePanel

    return HomePanel(workspace)


HOME = PanelSpec(
    id="home",
    title=tr("Home"),
    factory=_home,
    area=Area.CENTRE,
    size=(768, 480),
    help=tr("Your last runs, recorded examples, first steps and lessons."),
    shown=at(Area.CENTRE, LayoutVariant.BANDIT, LayoutVariant.LANGUAGE, LayoutVariant.RECORDED, rank=9),
)


def _homework(workspace: Workspace) -> HomeworkPanel:
    from app.teaching.homework_panel import HomeworkPanel

    return HomeworkPanel(workspace)


HOMEWORK = PanelSpec(
    id="homework",
    title=tr("Homework of a class"),
    factory=_homework,
    size=(900, 360),
    help=tr("A folder of homework: one row per student, and the predictions of the class, one question at a time."),
)


def _lesson(workspace: Workspace) -> LessonPanel:
    from app.teaching.lessons.panel import LessonPanel

    return LessonPanel(workspace, lesson_panels())


LESSON = PanelSpec(
    id="lesson",
    title=tr("Lessons"),
    factory=_lesson,
    area=Area.CENTRE,
    eager=True,
    help=tr("Questions about GRPO, each with a prediction to make and an experiment that answers it."),
)

PANELS: tuple[PanelSpec[Panel], ...] = (
    TIMELINE, CONTROLS, METRICS, PIPELINE, POLICY_BARS, TRAINING_HISTORY, EVOLUTION, SCORE_YOUR_OWN, KL_OVER_BETA,
    COMPARISON, COMPLETIONS, TOKEN_INSPECTOR, TOKEN_OVERVIEW, WHAT_IF, REWARD_WEIGHTS, RUN_COMPARISON,
    DIAGNOSIS, STEP_SUMMARY, QUEUE, STEP_DETAIL, EXPLAIN, BREAKPOINTS, GLOSSARY, REFERENCES, HOME, HOMEWORK, LESSON,
)  # fmt: skip # table, one row per line


def lesson_panels() -> tuple[str, ...]:
    """Return the IDs of the panels that can be shown next to a lesson."""
    return tuple(spec.id for spec in PANELS if spec.in_lessons)
