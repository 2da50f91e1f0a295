"""The registry of panels, with one row for each.

The order is that of the menu, and of panels with equal rank in an area. A new panel is a file with its class and a row
in ``PANELS``. Menus, docks, layouts, export, lessons and the self-test read the rows. A panel that every
window creates is imported at the top of this module. One that is created when it is first shown has a factory that
imports it then: importing all of these would add 0.2 to 0.4 s to the start of the program. The packager, which follows
import statements, still finds every module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.panels.explain import ExplainPanel
from app.panels.metrics import MetricsPanel
from app.panels.pipeline import PipelinePanel
from app.panels.step_detail import StepDetailPanel
from app.panels.timeline import TimelinePanel
from app.parts import rows
from app.widgets.panel import Panel
from app.widgets.panel_spec import Area, LayoutVariant, PanelSpec, at
from app.workspace.workspace import Workspace
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.experiments.comparison import ComparisonPanel
    from app.experiments.kl_over_beta import KlOverBetaPanel
    from app.experiments.queue import QueuePanel
    from app.panels.breakpoints import BreakpointsPanel
    from app.panels.controls.panel import ControlsPanel
    from app.panels.evolution.panel import EvolutionPanel
    from app.panels.help import GlossaryDockPanel, ReferencesDockPanel
    from app.panels.home.panel import HomePanel
    from app.panels.policy_bars import PolicyBarsPanel
    from app.panels.score import ScorePanel
    from app.panels.tokens.panel import TokenInspectorPanel
    from app.panels.training_history import TrainingHistoryPanel
    from app.panels.what_if.panel import WhatIfPanel

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


def _controls(workspace: Workspace) -> ControlsPanel:
    from app.panels.controls.panel import ControlsPanel

    return ControlsPanel(workspace)


CONTROLS = PanelSpec(
    id="controls",
    title=tr("Controls"),
    factory=_controls,
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


def _policy_bars(workspace: Workspace) -> PolicyBarsPanel:
    from app.panels.policy_bars import PolicyBarsPanel

    return PolicyBarsPanel(workspace)


POLICY_BARS = PanelSpec(
    id="policy_bars",
    title=tr("Policy π(a)"),
    factory=_policy_bars,
    eager=True,
    size=(768, 260),
    shows_recorded=True,
    kind="bandit",
    in_lessons=True,
    help=tr("The probability of each action before and after the update, with the rewards."),
    shown=at(Area.CENTRE, LayoutVariant.BANDIT, LayoutVariant.PRESENT_BANDIT)
    | at(Area.BOTTOM, LayoutVariant.COMPARE_BANDIT, rank=-1),
)


def _training_history(workspace: Workspace) -> TrainingHistoryPanel:
    from app.panels.training_history import TrainingHistoryPanel

    return TrainingHistoryPanel(workspace)


TRAINING_HISTORY = PanelSpec(
    id="training_history",
    title=tr("Training history"),
    factory=_training_history,
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
    help=tr("The first screen: ways in, your last runs and recorded examples."),
)

LAB: tuple[PanelSpec[Panel], ...] = tuple(spec for spec in [*vars().values()] if isinstance(spec, PanelSpec))
"""The rows above, in their order."""


def _with_parts() -> tuple[PanelSpec[Panel], ...]:
    """Return the rows of the lab with those of the parts, each of which names the row that it follows."""
    made = [*LAB]
    for specs in rows("panels"):
        for spec in specs:
            made.insert(next((n for n, one in enumerate(made, 1) if one.id == spec.after), len(made)), spec)
    return tuple(made)


PANELS = _with_parts()


def lesson_panels() -> tuple[str, ...]:
    """Return the IDs of the panels that can be shown next to a lesson."""
    return tuple(spec.id for spec in PANELS if spec.in_lessons)
