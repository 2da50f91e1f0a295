"""Memory needed for training: four models that can be switched off, a few knobs, and every block with its formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.boxes import across
from app.jobs.job_process import language_job
from app.jobs.runner import Poll
from app.panels.controls.rows import Row, row_for
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.bill_picture import BillPicture, in_words, size_of
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.teaching.lessons.interactives.pictures import compared
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.config.fields import about
from grpo_core.errors import SettingsError
from grpo_core.memory import WORDS, Block, Training, total
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.bill import BILL_ANSWERS, FOUR, Bill, known_of
from grpo_core.text import plural, tr

SHOWS = ("bill", "compute", "real")
REAL_CHECKS = ("real_mib", "real_optimizer_share")
MIB = 2.0**20
SWITCHES = ("critic", "reward_model", "reference")
KNOBS = ("parameters", "weight_bytes", "optimizer", "trained_share", "helper_share", "generated", "length", "tokens")
ROWS, PPO = (*SWITCHES, *KNOBS), Training(**FOUR)
"""Names of all control rows, and the training setup with whose values the picture begins."""
BILLION, PETA = 1e9, 1e15
WORK = (
    BarSeries(name=tr("PPO, one completion"), meaning="reference", style="outline"),
    BarSeries(name=tr("this training"), meaning="policy"),
)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Memory of the model's process after an update.

    Attributes:
        blocks: memory of the policy, its optimizer and its reference.
        held: bytes of all tensors in that process, counted independently of the ledger; None with NumPy, which keeps no
            such count.
        allocated: bytes allocated according to torch; None if it keeps no count (on the CPU).
    """

    blocks: list[Block]
    held: int | None
    allocated: int | None


def rows() -> dict[str, Row]:
    """Return a control row for every adjustable field. Parameters are counted in billions."""
    made = {}
    for name in ROWS:
        what, default = about(Training, name), getattr(Training(), name)
        if name == "parameters":
            what = replace(what, title=tr("Parameters, in billions"), low=1e-3, high=1000, usual=(0.1, 700))
        made[name] = row_for(name, what, default)
    return made


class MemoryBill(ManyRuns[None, Counted]):
    """The memory as bars, or the work for one prompt, with the control rows that change both.

    The state has fields of :class:`Training`, ``knobs`` (the adjustable ones) and ``block`` (the open one, as
    “model/part”).
    """

    without_runs, waits = ("bill", "compute"), False
    shows_run = False
    offer = Offer(
        shows=SHOWS,
        checks=(*BILL_ANSWERS, *REAL_CHECKS),
        state={**{name: getattr(PPO, name) for name in ROWS}, "knobs": (), "block": ""},
        words={"knobs": ROWS},
    )

    def _build(self) -> None:
        self.bill = Bill(PPO)
        self.picture = BillPicture()
        self.picture.opened.connect(self.touched)
        self.work = BarChart(tr("Operations for one prompt, from sampling to the gradient"))
        self.twin = self.make_twin(self.work, [part.entry for part in WORK])
        self.rows = rows()
        for row in self.rows.values():
            row.edited.connect(self._on_edited)
        self.total, self.formula = Label(wraps=True), Label(wraps=True)
        self._knobs: tuple[str, ...] = KNOBS[:2]
        self._drawn_ledger: Counted | None = None
        self._stack = pages(self.picture, self.twin)
        self._switches = QWidget()
        self._switches.setLayout(self._line_of(SWITCHES))
        self.lay_out(self.total, (self._stack, 1), self.formula, self._switches, self._line_of(KNOBS), spacing=6)

    def _line_of(self, names: Sequence[str]) -> QHBoxLayout:
        return across(*((self.rows[name], 1) for name in names), margins=0, spacing=24)

    def _take(self) -> None:
        try:
            training = replace(PPO, **{name: self.state[name] for name in ROWS})
        except SettingsError:
            training = PPO
        self._set(training)
        self._knobs = self.state["knobs"]
        model, _, part = self.state["block"].partition("/")
        places = [n for n, b in enumerate(self.picture.blocks) if (b.model, b.part) == (model, part)]
        self.picture.chosen = places[0] if places else 0

    def _set(self, training: Training) -> None:
        self.bill = Bill(training)
        self._draw_blocks()

    def _draw_blocks(self) -> None:
        if self.shows == "real":
            self.picture.show_blocks([] if self.real is None else self.real.blocks)
        else:
            self.picture.show_blocks(self.bill.blocks, self.bill.all_four)

    def computed(self, settings: Settings, lane: None, poll: Poll) -> Iterator[Counted]:
        """Yield the ledger of the shipped language model after its first update, which a process runs."""
        return (Counted(**found) for found in language_job("ledger", poll=poll))

    @property
    def real(self) -> Counted | None:
        """The ledger of the trained model, or None until it has been counted."""
        return self.latest(None)

    def waiting(self) -> str:
        return tr("The language model makes one update, and its tensors are counted…")

    @Slot(tuple, object, object)
    def _on_edited(self, paths: tuple[str, ...], value: Any, gesture: object) -> None:
        name = paths[0]
        if name == "parameters" and isinstance(value, (int, float)):
            value = value * BILLION
        try:
            self._set(replace(self.bill.training, **{name: value}))
            self.rows[name].accept()
        except SettingsError as error:
            self.rows[name].refuse(str(error))
        self.touched.emit()

    def _draw(self, view: View) -> str:
        what = self.shows
        if what == "real":
            self.train(self.settings)  # the shipped model has its own
        if self.real is not self._drawn_ledger:
            self._drawn_ledger = self.real
            self._draw_blocks()
        self.picture.set_look(view.theme, view.scale)
        self._stack.setCurrentWidget(self.twin if what == "compute" else self.picture)
        training = self.bill.training
        for name, row in self.rows.items():
            value = getattr(training, name)
            row.show_value(value / BILLION if name == "parameters" else value)
            row.setVisible(name in self._knobs)
        self._switches.setVisible(any(name in self._knobs for name in SWITCHES))
        if what == "compute":
            work = self.bill.work()
            names = [WORDS.get(who, who) for who in work["PPO, one completion"]]
            counts = {part.name: np.array([*by.values()]) / PETA for part, by in zip(WORK, work.values(), strict=True)}
            self.work.show_picture(compared(WORK, counts, names, "", Scale(label="PFLOP", low=0)))
            self.said[self.twin] = self._sentence("compute")
        self.total.setFont(view.theme.font("strong", view.scale * 1.15))
        self.total.setText(self._sentence(what))
        self.formula.setFont(view.theme.font("body", view.scale))
        block = self.picture.block
        self.formula.setVisible(what != "compute" and block is not None)
        if block is not None:
            pattern = (
                tr("{title}: {formula} = {size}, an estimate for a dense transformer")
                if block.estimate
                else tr("{title}: {formula} = {size}")
            )
            self.formula.setText(pattern.format(title=block.title, formula=block.formula, size=size_of([block])))
        return self.total.text()

    def _sentence(self, what: str) -> str:
        answers = self.bill.answers()
        if what == "compute":
            return plural(
                "{generated} completion of {length:,} tokens: {shown} times the work of PPO with one completion.",
                "{generated} completions of {length:,} tokens: {shown} times the work of PPO with one completion.",
                self.bill.training.generated,
            ).format(
                generated=self.bill.training.generated,
                length=self.bill.training.length,
                shown=shown(answers["work_over_ppo"](), 2),
            )
        if what == "real":
            return self._sentence_of_real()
        known = known_of(self.bill.blocks)
        return tr("{blocks}, of which {known} without estimates: {percent} of what all four models take.").format(
            blocks=size_of(self.bill.blocks), known=size_of(known), percent=percent(answers["share_of_four"]())
        )

    def _sentence_of_real(self) -> str:
        if self.real is None:
            return self.progress_text
        if self.real.held is None:
            return tr("{blocks} of real tensors, all of which NumPy holds between updates too.").format(
                blocks=size_of(self.real.blocks)
            )
        between = [block for block in self.real.blocks if block.part != "gradients"]
        tensors = tr("{blocks} of real tensors. Between updates {between}; all tensors of its process: {held}.").format(
            blocks=size_of(self.real.blocks), between=size_of(between), held=in_words(self.real.held)
        )
        if self.real.allocated is None:
            return tensors
        allocated = tr("torch reports that it has allocated {allocated}.").format(
            allocated=in_words(self.real.allocated)
        )
        return f"{tensors} {allocated}"

    def _summary(self, view: View) -> str:
        return f"{self.total.text()} {self.picture.accessibleDescription()}"

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        if self.shows != "real":
            return self.bill.answers()
        if self.real is None:
            return {}
        blocks = self.real.blocks
        states = [block for block in blocks if block.part == "optimizer states"]
        return {
            "real_mib": lambda: total(blocks) / MIB,
            "real_optimizer_share": lambda: total(states) / total(blocks),
        }
