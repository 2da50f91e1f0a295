"""The family tree of algorithms: the switches that each member sets, and the effect of each switch on the same runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Slot

from app.boxes import across, down
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line
from app.plotting.numbers import shown, signed
from app.plotting.table_model import Column, Marked
from app.plotting.table_twin import TableTwin
from app.teaching.lessons.interactives.family_list import FamilyList
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.teaching.lessons.interactives.pictures import over_updates
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings, described_at
from grpo_core.config.value_names import worded
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.surrogates import SURROGATES
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.family import (
    FAMILY,
    MEASURE,
    SEEDS,
    UPDATES,
    Compared,
    Member,
    compared,
    forebear,
    member,
    planned,
    settings_of,
    switches,
)
from grpo_core.text import listed, plural, tr

FIRST, NAMES = "GRPO", tuple(one.name for one in FAMILY)
TREE, TABLE_OF_ALL = "tree", "table"
MEMBERS = (
    Column("name", tr("Algorithm"), chars=11, kind="text"),
    Column("critic", tr("Critic"), chars=3, kind="text", help=tr("Whether a second model learns a baseline.")),
    Column("baseline", tr("Baseline"), chars=11, kind="text", help=tr("What a reward is compared with.")),
    Column("clip", tr("Clipping"), chars=12, kind="text", help=tr("The ratios that the clip never touches.")),
    Column("kl", tr("KL penalty"), chars=9, kind="text", help=tr("Its weight and its estimator.")),
    Column("samples", tr("Samples"), chars=4, decimals=0, help=tr("Number of completions in an update here.")),
    Column(
        "least", tr("at least"), chars=4, decimals=0, help=tr("Smallest number of completions from which it learns.")
    ),
)
"""Columns of the table of members."""
SWITCHES = (
    Column(
        "adds",
        tr("Adds"),
        chars=8,
        kind="text",
        help=tr("Change of π(best action) when the switches are turned one after the other."),
    ),
    Column("switch", tr("Switch"), chars=24, kind="text", help=tr("Settings that are turned together.")),
    Column("before", tr("Before"), chars=13, kind="text", help=tr("In the member that this one came from.")),
    Column("own", tr("Here"), chars=13, kind="text", help=tr("In this member.")),
)
"""Columns of the table of switches."""
FEW = ("REINFORCE", "+ baseline", "PPO", "GRPO", "Dr. GRPO", "GSPO")
"""Members needed for a first tour. Each derives from another one in this list."""
LARGER = 1.2
"""Enlargement factor of the members' names."""
ROWS = 6
"""Number of switches that fit without scrolling. No member has more."""
TABLE = 0.42
"""Maximum share of the height that the table takes."""
CROWDED = 1.6
"""Minimum scale at which the sentence about a member's idea is omitted."""


class FamilyTree(ManyRuns[str, tuple[str, Ensemble]]):
    """The tree, and next to it the runs of the selected member and its parent, and the switches that differ.

    In the state, ``member`` is the selected one, ``all`` is whether to show more than :data:`FEW`, and ``names`` are
    the members in the table if not all.
    """

    shows_run = False
    offer = Offer(
        shows=(TREE, TABLE_OF_ALL),
        checks=("alone", "change", "largest", "silent", "switches"),
        state={"member": FIRST, "all": False, "names": ()},
        words={"member": NAMES, "names": NAMES},
    )

    def _build(self) -> None:
        self.tree = FamilyList()
        self.tree.chosen.connect(self._on_chosen)
        self.plot = LineChart(tr("π(best action)"))
        self.twin = self.make_twin(self.plot)
        self.table = self.make_table(SWITCHES, tr("Switches"))
        self.members = TableTwin(MEMBERS, tr("The family at a glance"))
        self.members.selected.connect(self._on_row)
        self._names: list[str] = []
        self.idea = Label(wraps=True)
        right = down(self.idea, self.members, (self.twin, 1), self.note, self.table, spacing=4)
        across(self.tree, (right, 1), on=self, margins=0, spacing=12)
        self.member = member(FIRST)

    def _take(self) -> None:
        self.member = member(self.state["member"])
        self.tree.show_only(None if self.state["all"] else {*FEW, self.member.name})
        self._names = list(self.state["names"] or NAMES)

    @Slot(int)
    def _on_row(self, row: int) -> None:
        self._on_chosen(self._names[row])

    @Slot(str)
    def _on_chosen(self, name: str) -> None:
        self.member = member(name)
        self.touched.emit()

    @property
    def result(self) -> Compared | None:
        return compared(self.member, dict(self.results(self.member.name)))

    @property
    def _left(self) -> int:
        """Number of switches whose runs are missing: all of them before the first result."""
        turned = len(self.result.turned) if self.result is not None else -1
        return len(switches(self.member, self.settings)) - turned

    @property
    def lanes(self) -> Sequence[str]:
        """The selected member."""
        return [self.member.name]

    def computed(self, settings: Settings, lane: str, poll: Poll) -> Iterator[tuple[str, Ensemble]]:
        """Yield the runs of a member, with seeds from that of the lesson's run on."""
        seeds = tuple(range(settings.seed, settings.seed + SEEDS))
        return self.trained(planned(member(lane), settings), seeds, UPDATES, poll)

    def waiting(self) -> str:
        before = forebear(self.member)
        against = f"{self.member.name}, {before.name}" if before is not None else self.member.name
        return plural(
            "{members}: {seeds} seeds each, {left} switch to go…",
            "{members}: {seeds} seeds each, {left} switches to go…",
            self._left,
        ).format(members=against, seeds=SEEDS, left=self._left)

    def _draw(self, view: View) -> str:
        self.train(view.wanted)
        theme, scale = view.theme, view.scale
        self.tree.set_look(theme, scale * LARGER)
        self.tree.show_member(self.member.name)
        self.table.set_look(theme, scale)
        self.idea.setFont(theme.font("body", scale))
        self.idea.setVisible(scale < CROWDED)  # in large type, only the outline's tooltip shows it
        self.idea.setText(f"{self.member.idea} ({self.member.citation})")
        self.members.setVisible(self.shows == TABLE_OF_ALL)
        self._draw_runs()
        self._draw_switches(scale)
        self.members.set_look(theme, scale)
        self.members.set_rows([at_a_glance(member(name), view.wanted) for name in self._names])
        self.members.end_with_rows(self.height() // 3)
        self.members.select_row(self._names.index(self.member.name) if self.member.name in self._names else None)
        return self._sentence()

    def _draw_runs(self) -> None:
        found, before = self.result, forebear(self.member)
        self.plot.empty = tr("The runs are being computed.")
        lines, runs = [], {}
        if found is not None and found.before is not None and before is not None:
            lines.append(Line(name="before", label=before.name, meaning="reference"))
            runs["before"] = found.before.measures[MEASURE]
        if found is not None:
            lines.append(Line(name="own", label=self.member.name, meaning="policy"))
            runs["own"] = found.own.measures[MEASURE]
        self.plot.show_picture(over_updates(lines, runs, Scale(low=0, high=1)))

    def _draw_switches(self, scale: float) -> None:
        rows = []
        for lead, changes in switches(self.member, self.settings).items():
            titles = [described_at(path).title for path in changes]
            before, own = zip(*changes.values(), strict=True)
            rows.append([self._adds(lead), listed(titles), _values_text(before), _values_text(own)])
        self.table.set_rows(rows)
        line, header = self.table.verticalHeader().defaultSectionSize(), self.table.horizontalHeader().sizeHint()
        wanted = header.height() + ROWS * line + round(4 * scale)
        self.table.setFixedHeight(min(wanted, round(TABLE * self.height())))

    def _adds(self, path: str) -> object:
        found = self.result
        if found is None or path not in found.turned:
            return Marked("…", "muted")
        if found.same(path):
            return Marked(tr("nothing", "effect"), "muted")
        value = float(found.share(path).mean())
        return Marked(signed(value), "push_up" if value > 0 else "push_down")

    def _sentence(self) -> str:
        """Return a sentence that compares the member with its parent, with the lesson's own seed and on average."""
        found, before = self.result, forebear(self.member)
        if found is None:
            return ""
        own = float(found.own.measures[MEASURE][-1, 0])
        if found.before is None or before is None:
            return tr("{name}, seed {seed}: {own} at the end.").format(
                name=self.member.name, seed=found.own.seeds[0], own=shown(own, 2)
            )
        if found.same():
            return tr("{name} and {before}: the same runs, on every seed.").format(
                name=self.member.name, before=before.name
            )
        return plural(
            "Seed {seed}: {own}, {before} {other}. On average over {count} seed: {change}.",
            "Seed {seed}: {own}, {before} {other}. On average over {count} seeds: {change}.",
            len(found.own.seeds),
        ).format(
            seed=found.own.seeds[0],
            own=shown(own, 2),
            before=before.name,
            other=shown(float(found.before.measures[MEASURE][-1, 0]), 2),
            count=len(found.own.seeds),
            change=signed(float(found.change.mean())),
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        found = self.result
        if found is None:
            return {}
        shares = [float(np.abs(found.share(path).mean())) for path in found.turned]
        return {
            "alone": self._alone,
            "change": lambda: float(found.change.mean()),
            "largest": lambda: float(np.argmax(shares) + 1) if shares else math.nan,
            "silent": lambda: float(sum(found.same(path) for path in found.turned)),
            "switches": lambda: float(len(found.turned)),
        }

    def _alone(self) -> float:
        """Return 1 if only PPO needs several answers a prompt, 2 if only GRPO does, and otherwise 3."""
        needs = [at_a_glance(member(name), self.settings)[-1] != 1 for name in ("PPO", "GRPO")]
        return 3.0 if needs[0] is needs[1] else 1.0 + needs[1]


def at_a_glance(one: Member, settings: Settings) -> list[object]:
    """Return the row of :data:`MEMBERS` for a member with the task, group size and rate of ``settings``."""
    own = settings_of(one, settings)
    goal, clip, baseline = own.objective, SURROGATES[own.objective.surrogate].clip, BASELINES[own.objective.baseline]
    low, high = (0.0, math.inf) if clip is None else clip.band(goal)
    band = tr("{low:g} to {high:g}").format(low=low, high=high).replace("inf", "∞")
    return [
        one.name,
        tr("yes") if own.learner.critic else tr("no"),
        tr("the critic") if baseline.from_critic else worded(goal.baseline),
        "–" if clip is None else tr("of π − π_old") if clip.rule else band,
        f"β {goal.beta:g}, {worded(goal.kl)}" if goal.beta else "–",
        own.learner.group_size * own.trained.prompts,
        2 if baseline.mean or baseline.within_group else 1,
    ]


def _values_text(values: tuple[object, ...]) -> str:
    plain = {True: tr("on"), False: tr("off"), None: tr("nothing", "value")}
    words = [
        plain[value]
        if value is None or isinstance(value, bool)
        else value.replace("_", " ")
        if isinstance(value, str)
        else f"{value:g}"
        for value in values
    ]
    return listed(words)
