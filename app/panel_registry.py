"""The registry of panels, with one row for each.

The order is that of the menu, and of panels with equal rank in an area. A new panel is a file with its class and a row
in ``PANELS``. Menus, docks, layouts, export, lessons and the self-test read the rows. A panel that every
window creates is imported at the top of this module. One that is created when it is first shown is imported then, by
:func:`~app.widgets.panel_spec.later`: importing all of these would add 0.2 to 0.4 s to the start of the program. The
packager, which follows import statements, finds their modules under ``TYPE_CHECKING``.
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
from app.widgets.panel_spec import Area, LayoutVariant, PanelSpec, at, later
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.experiments.comparison import ComparisonPanel
    from app.experiments.kl_over_beta import KlOverBetaPanel
    from app.experiments.queue import QueuePanel
    from app.panels.breakpoints import BreakpointsPanel
    from app.panels.controls.panel import ControlsPanel
    from app.panels.evolution.panel import EvolutionPanel
    from app.panels.help import GlossaryPanel, ReferencesPanel
    from app.panels.home.panel import HomePanel
    from app.panels.policy_bars import PolicyBarsPanel
    from app.panels.score import ScorePanel
    from app.panels.tokens.panel import TokenInspectorPanel
    from app.panels.training_history import TrainingHistoryPanel
    from app.panels.what_if.panel import WhatIfPanel

(BANDIT, LANGUAGE, COMPARE_BANDIT, COMPARE_LANGUAGE, PRESENT_BANDIT, PRESENT_LANGUAGE, RECORDED) = LayoutVariant

# fmt: off
TIMELINE = PanelSpec(id="timeline", title=tr("Timeline"), factory=TimelinePanel, area=Area.TOP, eager=True,
    size=(1366, 28), shows_recorded=True,
    help=tr("All updates of the run, with the one shown, the events and the branches."))
CONTROLS: PanelSpec[ControlsPanel] = PanelSpec(id="controls", title=tr("Controls"),
    factory=later("panels.controls.panel", "ControlsPanel"), area=Area.LEFT, eager=True, size=(256, 640),
    shows_recorded=True, in_lessons=True,
    shown=at(Area.LEFT),
    help=tr("The settings of the run, and what a change of each one means."))
METRICS = PanelSpec(id="metrics", title=tr("Metric cards"), factory=MetricsPanel, area=Area.STRIP, eager=True,
    size=(768, 64), shows_recorded=True, in_lessons=True,
    shown=at(Area.STRIP),
    help=tr("Numbers of the update shown, each with its curve over the run."))
PIPELINE = PanelSpec(id="pipeline", title=tr("Pipeline"), factory=PipelinePanel, area=Area.STRIP, eager=True,
    size=(768, 92), shows_recorded=True, in_lessons=True,
    shown=at(Area.STRIP),
    help=tr("The stages of an update, and the terms of the objective that is maximised."))
POLICY_BARS: PanelSpec[PolicyBarsPanel] = PanelSpec(id="policy_bars", title=tr("Policy π(a)"),
    factory=later("panels.policy_bars", "PolicyBarsPanel"), eager=True, size=(768, 260), kind="bandit",
    shows_recorded=True, in_lessons=True,
    shown=at(Area.CENTRE, BANDIT, PRESENT_BANDIT) | at(Area.BOTTOM, COMPARE_BANDIT, rank=-1),
    help=tr("The probability of each action before and after the update, with the rewards."))
TRAINING_HISTORY: PanelSpec[TrainingHistoryPanel] = PanelSpec(id="training_history", title=tr("Training history"),
    factory=later("panels.training_history", "TrainingHistoryPanel"), eager=True, size=(768, 220),
    shows_recorded=True, in_lessons=True,
    shown=at(Area.BOTTOM) | at(Area.RIGHT, BANDIT),
    help=tr("Series of the run over its updates."))
EVOLUTION: PanelSpec[EvolutionPanel] = PanelSpec(id="evolution", title=tr("Evolution"),
    factory=later("panels.evolution.panel", "EvolutionPanel"), size=(640, 480), kind="language", shows_recorded=True,
    in_lessons=True,
    shown=at(Area.CENTRE, LANGUAGE, PRESENT_LANGUAGE) | at(Area.BOTTOM, COMPARE_LANGUAGE),
    help=tr("Held-out prompts, and how the model's answers to them change over the run."))
SCORE_YOUR_OWN: PanelSpec[ScorePanel] = PanelSpec(id="score_your_own", title=tr("Score your own"),
    factory=later("panels.score", "ScorePanel"), size=(768, 220), kind="language", in_lessons=True,
    shown=at(Area.BOTTOM, LANGUAGE, COMPARE_LANGUAGE),
    help=tr("A completion that you type, scored by the model and the reward."))
KL_OVER_BETA: PanelSpec[KlOverBetaPanel] = PanelSpec(id="kl_over_beta", title=tr("KL over β"),
    factory=later("experiments.kl_over_beta", "KlOverBetaPanel"), area=Area.CENTRE, size=(768, 220), in_lessons=True,
    shown=at(Area.CENTRE, BANDIT, LANGUAGE, COMPARE_BANDIT, COMPARE_LANGUAGE, rank=1),
    help=tr("A sweep: the same training at several values of one setting."))
COMPARISON: PanelSpec[ComparisonPanel] = PanelSpec(id="comparison", title=tr("Comparison"),
    factory=later("experiments.comparison", "ComparisonPanel"), area=Area.CENTRE, size=(768, 260), in_lessons=True,
    shown=at(Area.CENTRE, BANDIT, PRESENT_BANDIT, rank=2) | at(Area.CENTRE, COMPARE_BANDIT, COMPARE_LANGUAGE),
    help=tr("A race: several algorithms on the same task from the same seeds."))
TOKEN_INSPECTOR: PanelSpec[TokenInspectorPanel] = PanelSpec(id="token_inspector", title=tr("Token inspector"),
    factory=later("panels.tokens.panel", "TokenInspectorPanel"), size=(768, 260), shows_recorded=True,
    in_lessons=True,
    shown=at(Area.CENTRE, RECORDED) | at(Area.CENTRE, BANDIT, rank=3) | at(Area.RIGHT, LANGUAGE)
    | at(Area.BOTTOM, COMPARE_BANDIT) | at(Area.BOTTOM, COMPARE_LANGUAGE, PRESENT_LANGUAGE, rank=-1),
    help=tr("The completions of a group, tinted by what the update does to each token."))
WHAT_IF: PanelSpec[WhatIfPanel] = PanelSpec(id="what_if", title=tr("What if"),
    factory=later("panels.what_if.panel", "WhatIfPanel"), area=Area.CENTRE, size=(768, 260), in_lessons=True,
    shown=at(Area.BOTTOM, COMPARE_BANDIT, COMPARE_LANGUAGE, rank=-2) | at(Area.CENTRE, RECORDED, rank=1),
    help=tr("The update as it was, next to the update that other settings would have made of the same batch."))
QUEUE: PanelSpec[QueuePanel] = PanelSpec(id="queue", title=tr("Runs in the background"),
    factory=later("experiments.queue", "QueuePanel"), size=(768, 240),
    help=tr("Runs that train one after the other in a separate process."))
STEP_DETAIL = PanelSpec(id="step_detail", title=tr("Step detail"), factory=StepDetailPanel, area=Area.RIGHT,
    eager=True, size=(700, 330), shows_recorded=True, in_lessons=True,
    shown=at(Area.RIGHT, BANDIT, rank=-1) | at(Area.RIGHT, COMPARE_BANDIT)
    | at(Area.BOTTOM, LANGUAGE, COMPARE_LANGUAGE, RECORDED),
    help=tr("Every number of each completion of the update, in a table."))
EXPLAIN = PanelSpec(id="explain", title=tr("Explain"), factory=ExplainPanel, area=Area.RIGHT, eager=True,
    size=(560, 460), shows_recorded=True, in_lessons=True,
    shown=at(Area.RIGHT, *(layout for layout in LayoutVariant if layout not in (BANDIT, LANGUAGE))),
    help=tr("How the chosen number is computed: its formula, its inputs, and why it has this value."))
BREAKPOINTS: PanelSpec[BreakpointsPanel] = PanelSpec(id="breakpoints", title=tr("Breakpoints"),
    factory=later("panels.breakpoints", "BreakpointsPanel"), area=Area.RIGHT,
    help=tr("Conditions that stop the run when they become true."))
GLOSSARY: PanelSpec[GlossaryPanel] = PanelSpec(id="glossary", title=tr("Glossary"),
    factory=later("panels.help", "GlossaryPanel"), area=Area.RIGHT, in_lessons=True,
    help=tr("Every term of the field that the program uses."))
REFERENCES: PanelSpec[ReferencesPanel] = PanelSpec(id="references", title=tr("References"),
    factory=later("panels.help", "ReferencesPanel"), area=Area.RIGHT,
    help=tr("The papers and programs behind what is shown."))
HOME: PanelSpec[HomePanel] = PanelSpec(id="home", title=tr("Home"), factory=later("panels.home.panel", "HomePanel"),
    area=Area.CENTRE, size=(768, 480),
    help=tr("The first screen: ways in, your last runs and recorded examples."))
# fmt: on

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
